"""Make the pictures of the README and the docs: `python docs/make_images.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import orthocal as oc
from orthocal.examples import MODEL1, TWO_OUTCOMES
from orthocal.pages.style import DATA, MODEL, STYLE, TOTAL
from orthocal.results.figures import bias_figure

FOLDER = Path(__file__).parent / "images"


def overview(posterior: oc.Posterior) -> Figure:
    """Three panels: the model alone, model + bias, and the posterior of theta with and without a free bias."""
    curves = posterior.curves
    x, y = posterior.data["constant_data"]["x"].values[:, 0], posterior.data["observed_data"]["y"].values[:, 0]
    grid = curves["x"].values
    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axis, name, colour, title in (
        (left, "model", MODEL, "simulator at the posterior"),
        (middle, "mean", TOTAL, "simulator + bias"),
    ):
        _, lower, upper = curves[name].values[:, :, 0]
        axis.scatter(x, y, s=9, color=DATA, alpha=0.7, lw=0, label="field data")
        axis.plot(grid, MODEL1.truth(grid[:, None]), color="k", lw=1, ls=":", label="truth (unknown to it)")
        axis.fill_between(grid, lower, upper, color=colour, alpha=0.4, lw=0)
        axis.plot(grid, curves[name].values[0, :, 0], color=colour, lw=1.5, label=title)
        axis.set(title=title, xlabel="x", ylabel="y", ylim=(-0.6, 3.8))
        axis.legend(loc="upper left")
    draws = posterior.theta.ravel()
    right.hist(draws, bins=45, density=True, color=TOTAL, alpha=0.5)
    right.axvline(MODEL1.theta_star[0], color="k", ls=":", lw=1.2, label="best theta in truth")
    low, high = np.quantile(draws, [0.025, 0.975])
    right.plot([low, high], [0.3, 0.3], color=TOTAL, lw=4, solid_capstyle="butt", label="95 % interval")
    right.set(title="posterior of theta", xlabel="theta", yticks=[], ylim=(0, 16))
    right.spines["left"].set_visible(False)
    right.legend(loc="upper left")
    return figure


def main() -> None:
    x, y = MODEL1.simulate(np.random.default_rng(1))
    posterior = oc.calibrate(MODEL1.problem(x, y, noise_cov="estimate"), seed=1)
    with mpl.rc_context(STYLE):
        FOLDER.mkdir(exist_ok=True)
        overview(posterior).savefig(FOLDER / "overview.png", dpi=130)
        bias_figure(posterior.record).savefig(FOLDER / "bias.png", dpi=110)
        two = TWO_OUTCOMES.problem(*TWO_OUTCOMES.simulate(np.random.default_rng(0)))
        oc.compare_outcomes(two, seed=1).figure().savefig(FOLDER / "outcomes.png", dpi=110)


if __name__ == "__main__":
    main()

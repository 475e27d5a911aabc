"""Make the pictures of the README and the docs: `python docs/make_images.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import orthocal as oc
from orthocal.examples import FIN, MODEL1, TWO_OUTCOMES, curved, fin_truth
from orthocal.pages.style import DATA, MODEL, STYLE, TOTAL
from orthocal.results.figures.figures import bias_drawing

FOLDER = Path(__file__).parent / "images"
#: of a data set on which the paper's algorithm misses the data of the fin
FIN_SEED = 17


def overview(posterior: oc.Posterior) -> Figure:
    """Three panels: the model alone, model + bias, and the posterior of theta with and without a free bias."""
    curves = posterior.curves
    x, y = posterior.data["constant_data"]["x"].values[:, 0], posterior.data["observed_data"]["y"].values
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


def curved_case() -> Figure:
    """Posteriors of theta by the joint projection and by the paper's algorithm, over thirty data sets."""
    example = curved(0.5)
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, method, title in zip(axes, ("pgp", "gp"), ("the paper's algorithm", "joint projection"), strict=True):
        for row in range(30):
            problem = example.problem(*example.simulate(np.random.default_rng(row)))
            draws = oc.calibrate(problem, method, draws=250, seed=row, progress=False).theta
            low, high = np.quantile(draws, [0.025, 0.975])
            holds = low < 0 < high
            axis.plot([low, high], [row, row], color=TOTAL if holds else "C3", lw=2.5, solid_capstyle="butt")
            axis.plot(draws.mean(), row, "o", ms=3.5, color=TOTAL if holds else "C3")
        axis.axvline(0.0, color="k", ls=":", lw=1.2)
        axis.set(title=f"{title}: 95 % intervals", xlabel="theta", yticks=[])
        axis.spines["left"].set_visible(False)
    return figure


def fin_case() -> Figure:
    """A cooling fin where the paper's algorithm misses the data, and the joint projection does not."""
    example = replace(FIN, truth=lambda x: fin_truth(x, 8.0), noise_sd=0.35)
    x, y = example.simulate(np.random.default_rng(FIN_SEED))
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, method, title in zip(axes, ("pgp", "gp"), ("the paper's algorithm", "joint projection"), strict=True):
        posterior = oc.calibrate(example.problem(x, y), method, seed=1, progress=False)
        grid = np.linspace(0, 1, 200)
        predicted = posterior.predict(grid, draws=100)["mean"].values.reshape(-1, 200)
        best = example.simulator(grid[:, None], posterior.theta.mean(axis=(0, 1)))
        low, high = np.quantile(predicted, [0.025, 0.975], axis=0) - best
        at_data = example.simulator(x, posterior.theta.mean(axis=(0, 1)))
        axis.errorbar(
            x[:, 0], y - at_data, yerr=0.35, fmt="o", ms=3, color=DATA, elinewidth=0.8, label="field data ± noise"
        )
        axis.plot(grid, example.truth(grid[:, None]) - best, color="k", lw=1, ls=":", label="truth (unknown to it)")
        axis.fill_between(grid, low, high, color=TOTAL, alpha=0.35, lw=0)
        axis.plot(grid, predicted.mean(axis=0) - best, color=TOTAL, lw=1.5, label="bias, with its 95 % band")
        axis.set(title=title, xlabel="x", ylabel="less the simulator at the posterior mean")
    axes[0].legend(loc="lower left", fontsize="small")
    return figure


def main() -> None:
    x, y = MODEL1.simulate(np.random.default_rng(1))
    posterior = oc.calibrate(MODEL1.problem(x, y, noise_cov="estimate"), seed=1)
    with mpl.rc_context(STYLE):
        FOLDER.mkdir(exist_ok=True)
        overview(posterior).savefig(FOLDER / "overview.png", dpi=130)
        bias_drawing(posterior.record).figure().savefig(FOLDER / "bias.png", dpi=110)
        two = TWO_OUTCOMES.problem(*TWO_OUTCOMES.simulate(np.random.default_rng(0)))
        curved_case().savefig(FOLDER / "joint_curved.png", dpi=110)
        fin_case().savefig(FOLDER / "joint_fin.png", dpi=110)
        oc.compare_outcomes(two, seed=1).figure().savefig(FOLDER / "outcomes.png", dpi=110)


if __name__ == "__main__":
    main()

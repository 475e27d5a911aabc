"""How well emulators predict held-out runs, as a figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import Array
from ..pages.panels import Drawing, Panel
from ..pages.style import CHAINS, GRID, GUIDE, MOST_PANELS, text

#: points of the right panel, of all outcomes together
MOST_POINTS = 2000


def held_out_figure(
    errors: pd.Series[float], ranking: list[str], predictions: dict[str, tuple[Array, Array]]
) -> Figure:
    """Left the relative errors by outcome, right the best emulator's predictions against the held-out runs."""
    return held_out_drawing(errors, ranking, predictions).figure()


def held_out_drawing(
    errors: pd.Series[float], ranking: list[str], predictions: dict[str, tuple[Array, Array]]
) -> Drawing:
    """The same as panels."""
    outcomes = [str(one) for one in dict.fromkeys(errors.index.get_level_values("outcome"))][:MOST_PANELS]
    best = ranking[0]
    truth, prediction = predictions[best]

    def left(axis: Axes) -> None:
        _errors(axis, errors, ranking, outcomes)

    def right(axis: Axes) -> None:
        most = max(1, MOST_POINTS // len(outcomes))
        rows = np.linspace(0, len(truth) - 1, min(len(truth), most)).astype(int)
        for k in range(len(outcomes)):
            colour = CHAINS[k % len(CHAINS)]
            axis.scatter(truth[rows, k], prediction[rows, k], s=4, alpha=0.5, linewidths=0, color=colour)
        ends = [np.nanmin(truth), np.nanmax(truth)]
        axis.plot(ends, ends, color=GUIDE, lw=0.8, zorder=0)
        axis.set(xlabel="run, less the mean run (spread = 1)", ylabel="prediction", title=f"the best: {text(best)}")

    means = errors.groupby(level=0, sort=False).mean()
    each = ", ".join(f"{name} {float(means.loc[name]):.2g}" for name in ranking)
    panels = (
        Panel(left, f"errors of held-out runs as a share of their spread, mean over the outcomes: {each}."),
        Panel(
            right,
            f"predictions of {best} against held-out runs: mean error {float(means.loc[best]):.2g} of the spread.",
        ),
    )
    return Drawing((panels,), 2, 4.5, max(3.2, 0.5 * len(ranking) + 1.2))


def _errors(axis: Axes, errors: pd.Series[float], ranking: list[str], outcomes: list[str]) -> None:
    for k, outcome in enumerate(outcomes):
        places = np.arange(len(ranking)) + (k - (len(outcomes) - 1) / 2) * 0.6 / len(outcomes)
        own = [float(errors.loc[(name, outcome)]) for name in ranking]
        label = text(outcome) if len(outcomes) > 1 else "_"
        axis.plot(own, places, "o", ms=5, color=CHAINS[k % len(CHAINS)], label=label, clip_on=False)
    axis.set_yticks(range(len(ranking)), [text(name) for name in ranking])
    axis.set_ylim(len(ranking) - 0.5, -0.5)
    axis.set_xlim(0, None)
    axis.set(xlabel="rms error of held-out runs / their spread", title="errors")
    axis.grid(axis="x", color=GRID)
    axis.set_axisbelow(True)

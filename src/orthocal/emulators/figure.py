"""How well emulators predict held-out runs, as a figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..arrays import Array
from ..pages.style import CHAINS, DATA, MOST_PANELS, styled, text


@styled
def held_out_figure(
    errors: pd.Series[float], ranking: list[str], predictions: dict[str, tuple[Array, Array]]
) -> Figure:
    """Left the relative errors by outcome, right the best emulator's predictions against the held-out runs."""
    outcomes = list(dict.fromkeys(errors.index.get_level_values("outcome")))[:MOST_PANELS]
    figure = Figure(figsize=(9, max(3.2, 0.5 * len(ranking) + 1.2)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for k, outcome in enumerate(outcomes):
        places = np.arange(len(ranking)) + (k - (len(outcomes) - 1) / 2) * 0.6 / len(outcomes)
        own = [float(errors.loc[(name, outcome)]) for name in ranking]
        left.plot(own, places, "o", ms=5, color=CHAINS[k % len(CHAINS)], label=text(outcome))
    left.set_yticks(range(len(ranking)), [text(name) for name in ranking])
    left.invert_yaxis()
    left.set_xlim(0, None)
    left.set_xlabel("rms error of held-out runs / their spread")
    left.grid(axis="x", alpha=0.3)
    if len(outcomes) > 1:
        left.legend()
    truth, prediction = predictions[ranking[0]]
    for k in range(len(outcomes)):
        rows = np.linspace(0, len(truth) - 1, min(len(truth), 2000)).astype(int)
        right.scatter(truth[rows, k], prediction[rows, k], s=4, alpha=0.5, linewidths=0, color=CHAINS[k % len(CHAINS)])
    ends = [np.nanmin(truth), np.nanmax(truth)]
    right.plot(ends, ends, color=DATA, lw=0.8, zorder=0)
    right.set_xlabel("run, less the mean run (spread = 1)")
    right.set_ylabel("prediction")
    right.set_title(f"the best: {text(ranking[0])}")
    return figure

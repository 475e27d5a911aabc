"""The figure of a study: posterior sd and coverage of every column, ours and the paper's."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator
from scipy.stats import beta

from ..pages.style import MODEL, STYLE, TOTAL, text

OURS, PAPERS = TOTAL, MODEL
#: ours above the line of a column, the paper's below it
SHIFT = 0.16


def study_figure(table: pd.DataFrame) -> Figure:
    """One row of panels a parameter: the range of the posterior sd, and the coverage of the 95 % interval."""
    with mpl.rc_context(STYLE):
        parts = [(str(name), part) for name, part in table.groupby("parameter", sort=False)]
        height = 1.1 + 0.34 * max(len(part) for _, part in parts)
        figure = Figure(figsize=(9, height * len(parts) + 0.3), layout="constrained")
        axes = figure.subplots(len(parts), 2, squeeze=False, sharey="row")
        for (left, right), (parameter, part) in zip(axes, parts, strict=True):
            _sd_panel(left, part)
            _coverage_panel(right, part)
            left.set(title=f"posterior sd of {text(parameter)}, smallest to largest")
            right.set(title="coverage of the 95 % interval", xlim=(min(0.8, right.get_xlim()[0]), 1.01))
            levels = _levels(part)
            left.set_yticks(levels, [text(label) for label in part["column"]])
            left.set_ylim(0.4, len(part) + 0.6)
        handles = [
            Line2D([], [], color=colour, marker="o", ms=4, label=label)
            for colour, label in ((OURS, "orthocal"), (PAPERS, "paper"))
        ]
        figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure


def _levels(part: pd.DataFrame) -> np.ndarray:
    return np.arange(len(part), 0, -1.0)


def _sd_panel(axis: Axes, part: pd.DataFrame) -> None:
    for level, row in zip(_levels(part), part.to_dict("records"), strict=True):
        _range(axis, level + SHIFT, row["sd_low"], row["sd_high"], OURS)
        _range(axis, level - SHIFT, row["paper_sd_low"], row["paper_sd_high"], PAPERS)
    axis.set_xscale("log")
    # powers of ten alone would be one tick or none
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(axis="x", color="0.92", lw=0.8)
    axis.set_axisbelow(True)


def _coverage_panel(axis: Axes, part: pd.DataFrame) -> None:
    axis.axvline(0.95, color="0.6", lw=0.8, ls="--", zorder=0)
    for level, row in zip(_levels(part), part.to_dict("records"), strict=True):
        if row["replications"]:
            low, high = coverage_interval(row["coverage"], row["replications"])
            axis.plot([low, high], [level + SHIFT] * 2, color=OURS, lw=1)
            axis.plot(row["coverage"], level + SHIFT, "o", color=OURS, ms=4)
        axis.plot(row["paper_coverage_low"], level - SHIFT, "o", color=PAPERS, ms=4)


def _range(axis: Axes, level: float, low: float, high: float, colour: str) -> None:
    # the markers show a range of no width
    axis.plot([low, high], [level] * 2, color=colour, lw=3, marker="o", ms=3)


def coverage_interval(share: float, count: int) -> tuple[float, float]:
    """The exact (Clopper–Pearson) 95 % interval of a probability, from its share among ``count``."""
    hits = round(share * count)
    low = beta.ppf(0.025, hits, count - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, count - hits) if hits < count else 1.0
    return float(low), float(high)

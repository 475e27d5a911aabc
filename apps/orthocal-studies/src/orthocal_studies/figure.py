"""The figure of a study: posterior sd and coverage of every column, ours and the paper's."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from scipy.stats import beta

from orthocal.applications import Drawing, Panel, style

OURS, PAPERS = style.TOTAL, style.MODEL
#: ours above the line of a column, the paper's below it
SHIFT = 0.16
#: letters of a column's name that a panel has room for
LONGEST_NAME = 26


def study_figure(table: pd.DataFrame) -> Figure:
    """One row of panels a parameter: the range of the posterior sd, and the coverage of the 95 % interval."""
    return study_drawing(table).figure()


def study_drawing(table: pd.DataFrame) -> Drawing:
    """The same as panels."""
    parts = [(str(name), part) for name, part in table.groupby("parameter", sort=False)]
    blocks = tuple(_block(parameter, part) for parameter, part in parts)
    return Drawing(blocks, 2, 4.6, 1.1 + 0.34 * max(len(part) for _, part in parts))


def _block(parameter: str, part: pd.DataFrame) -> tuple[Panel, Panel]:
    def left(axis: Axes) -> None:
        _sd_panel(axis, part)
        axis.set(title=f"posterior sd of {style.text(parameter)}")
        _rows(axis, part)

    def right(axis: Axes) -> None:
        _coverage_panel(axis, part)
        axis.set(title="coverage of the 95 % interval", xlim=(min(0.8, axis.get_xlim()[0]), 1.01))
        _rows(axis, part)

    rows = part.to_dict("records")
    sds = ", ".join(f"{row['column']} {row['sd_low']:.3g} to {row['sd_high']:.3g}" for row in rows)
    covered = ", ".join(f"{row['column']} {row['coverage']:.2f}" for row in rows)
    return (
        Panel(left, f"posterior sd of {parameter}, smallest to largest: {sds}."),
        Panel(right, f"coverage of the 95 % interval of {parameter}: {covered}."),
    )


def _rows(axis: Axes, part: pd.DataFrame) -> None:
    """A column of the table on each line."""
    axis.set_yticks(_levels(part), [style.shortened(str(label), LONGEST_NAME) for label in part["column"]])
    axis.set_ylim(0.4, len(part) + 0.6)
    axis.tick_params(axis="y", length=0)


def _levels(part: pd.DataFrame) -> np.ndarray:
    return np.arange(len(part), 0, -1.0)


def _sd_panel(axis: Axes, part: pd.DataFrame) -> None:
    for level, row in zip(_levels(part), part.to_dict("records"), strict=True):
        _range(axis, level + SHIFT, row["sd_low"], row["sd_high"], OURS, "orthocal")
        _range(axis, level - SHIFT, row["paper_sd_low"], row["paper_sd_high"], PAPERS, "paper")
    axis.set_xscale("log")
    # powers of ten alone would be one tick or none
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(axis="x", color=style.GRID, lw=0.8)
    axis.set_axisbelow(True)


def _coverage_panel(axis: Axes, part: pd.DataFrame) -> None:
    axis.axvline(0.95, color=style.GUIDE, lw=0.8, ls="--", zorder=0)
    for level, row in zip(_levels(part), part.to_dict("records"), strict=True):
        if row["replications"]:
            low, high = coverage_interval(row["coverage"], row["replications"])
            axis.plot([low, high], [level + SHIFT] * 2, color=OURS, lw=1)
            axis.plot(row["coverage"], level + SHIFT, "o", color=OURS, ms=4)
        axis.plot(row["paper_coverage_low"], level - SHIFT, "o", color=PAPERS, ms=4)


def _range(axis: Axes, level: float, low: float, high: float, colour: str, label: str) -> None:
    # the markers show a range of no width
    axis.plot([low, high], [level] * 2, color=colour, lw=3, marker="o", ms=3, label=label)


def coverage_interval(share: float, count: int) -> tuple[float, float]:
    """The exact (Clopper–Pearson) 95 % interval of a probability, from its share among ``count``."""
    hits = round(share * count)
    low = beta.ppf(0.025, hits, count - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, count - hits) if hits < count else 1.0
    return float(low), float(high)

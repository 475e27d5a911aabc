"""What the fit leaves over, in standard deviations of the noise: against the fitted values, and along each input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ..arrays import Array
from ..pages.panels import Drawing, Panel, columns_of, one_panel
from ..pages.style import GUIDE, TOTAL, shortened
from .figure_parts import (
    MOST_OUTPUTS,
    NORMAL_95,
    dots,
    fitted,
    noise_sds,
    places,
    rms,
    scale_label,
    shown_rows,
    tips_of,
    with_unit,
    zero_line,
)
from .record import Record

#: inputs that have a panel where none was chosen
MOST_INPUTS = 5
#: letters of an output's name that an axis has room for
LONGEST_OUTPUT = 24


def residual_panels(record: Record, outcomes: Sequence[int], inputs: Sequence[int] | None = None) -> Drawing:
    """(y - model - bias) / noise sd, with the posterior means: against fitted values and inputs, one block an outcome.

    With ``inputs``, along these alone.
    """
    if record.without_inputs:
        return _of_outputs(record)
    along: list[int | None] = [None, *range(min(len(record.input_names), MOST_INPUTS))]
    chosen = along if inputs is None else list(inputs)
    rows = shown_rows(record, len(outcomes) * len(chosen))
    means = fitted(record, rows)["mean"]
    left = (record.y[rows] - means) / noise_sds(record, rows)
    blocks = []
    for k in outcomes:
        block = []
        for j in chosen:
            column = means[:, k] if j is None else record.x[rows, j]
            name = f"fitted {record.scale_names[k]}" if j is None else record.input_names[j]

            def draw(axis: Axes, k: int = k, j: int | None = j, column: Array = column, name: str = name) -> None:
                at = column if j is None else places(axis, record, j, column)
                dots(axis, at, left[:, k], "residual", tips_of((name, "residual"), (column, left[:, k])), TOTAL)
                _frame(axis)
                label = f"fitted {scale_label(record, k)}" if j is None else with_unit(record, record.input_names[j])
                axis.set(xlabel=label, ylabel=f"residual of {scale_name(record, k)} [noise sd]")

            block.append(Panel(draw, _seen(record, left[:, k], column, k, j, name)))
        blocks.append(tuple(block))
    columns = columns_of(len(chosen))
    return Drawing(tuple(blocks), columns, 3.4 if columns > 2 else 4.4, 2.8 if columns < 3 else 2.7)


def scale_name(record: Record, k: int) -> str:
    """The name of an outcome's scale, short enough for an axis."""
    return shortened(record.scale_names[k], LONGEST_OUTPUT)


def _frame(axis: Axes) -> None:
    zero_line(axis)
    for edge in (-NORMAL_95, NORMAL_95):
        label = "95 % of noise" if edge > 0 else "_"
        axis.axhline(edge, color=GUIDE, lw=1, ls="--", zorder=0, label=label)
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, -3.0), max(high, 3.0))


def _seen(record: Record, left: Array, column: Array, k: int, j: int | None, name: str) -> str:
    there = np.isfinite(left)
    inside, count = int(np.sum(np.abs(left[there]) < NORMAL_95)), int(there.sum())
    words = (
        f"residuals of {record.scale_names[k]} against {name}, in noise standard deviations: {inside} of {count} lie "
        f"between -1.96 and 1.96, root mean square {rms(left):.2g}"
    )
    numeric = j is None or record.labels.of(j) is None
    if not numeric or count < 3 or np.ptp(column[there]) == 0 or np.ptp(left[there]) == 0:
        return f"{words}."
    return f"{words}; correlation {np.corrcoef(column[there], left[there])[0, 1]:.2f}."


def _of_outputs(record: Record) -> Drawing:
    """One line an output without inputs, a point a replicate."""
    names = record.outcome_names[:MOST_OUTPUTS]
    rows = np.arange(len(record.y))
    left = ((record.y - fitted(record, rows)["mean"]) / noise_sds(record, rows))[:, : len(names)]
    levels = np.arange(len(names), 0, -1.0)

    def draw(axis: Axes) -> None:
        at = np.broadcast_to(levels, left.shape)
        seen = np.isfinite(left)
        drawn = axis.scatter(left[seen], at[seen], color=TOTAL, s=12, alpha=0.7, linewidths=0, zorder=3)
        drawn.set_label("residual")
        for edge in (-NORMAL_95, 0.0, NORMAL_95):
            label = "95 % of noise" if edge > 0 else "_"
            axis.axvline(edge, color=GUIDE, lw=1, ls="--" if edge else "-", zorder=0, label=label)
        axis.set(yticks=levels, ylim=(0.4, len(levels) + 0.6), xlabel="residual [noise sd]")
        axis.set_yticklabels([shortened(name, LONGEST_OUTPUT) for name in names])
        axis.tick_params(axis="y", length=0)

    inside, count = int(np.sum(np.abs(left) < NORMAL_95)), int(np.isfinite(left).sum())
    seen = f"residuals of the outputs in noise standard deviations: {inside} of {count} lie between -1.96 and 1.96."
    return one_panel(draw, seen, 4.6, 1.0 + 0.3 * len(names))

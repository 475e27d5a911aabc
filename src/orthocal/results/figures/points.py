"""Figures of several inputs: observed against fitted values, and what there is along each input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ...arrays import Array, IntArray
from ...pages.panels import Drawing, Panel, columns_of
from ...pages.style import BIAS, GUIDE, MODEL, TOTAL
from ...pages.svg import with_tips
from ..predict.predict import central_band
from ..record import Record
from .axes import (
    distance_words,
    dots,
    is_log,
    log_scale,
    places,
    rms,
    scale_label,
    shown_rows,
    tips_of,
    with_unit,
    zero_line,
)

#: with more of them, error bars are paler
MANY_BARS = 150
_QUANTITIES = (("model", MODEL, "model alone"), ("mean", TOTAL, "model + bias"))


def points_fit(record: Record, outcomes: Sequence[int]) -> Drawing:
    """Observed values against the fitted ones, model alone and with bias, one row an outcome."""
    rows = shown_rows(record, 2 * len(outcomes))
    bands = _fitted_bands(record, rows)
    blocks = []
    for k in outcomes:
        block = []
        for quantity, colour, title in _QUANTITIES:

            def draw(
                axis: Axes, k: int = k, quantity: str = quantity, colour: str = colour, title: str = title
            ) -> None:
                _against_fitted(axis, record, rows, bands[quantity], k, colour)
                axis.set(title=title)

            seen = f"observed against fitted {record.outcome_names[k]}, {title}. {distance_words(record, quantity, k)}"
            block.append(Panel(draw, seen))
        blocks.append(tuple(block))
    return Drawing(tuple(blocks), 2, 4.2, 3.6, legend=False)


def points_fit_along(record: Record, outcomes: Sequence[int], j: int) -> Drawing:
    """Field data and fitted values along input j, model alone and with bias, one row an outcome."""
    rows = shown_rows(record, 2 * len(outcomes))
    bands = _fitted_bands(record, rows)
    blocks = []
    for k in outcomes:
        block = []
        for quantity, colour, title in _QUANTITIES:

            def draw(
                axis: Axes, k: int = k, quantity: str = quantity, colour: str = colour, title: str = title
            ) -> None:
                at, y = places(axis, record, j, record.x[rows, j]), record.native_y[rows, k]
                dots(axis, at, y, "field data", tips_of((record.outcome_names[k],), (y,)))
                _bars(axis, at, bands[quantity][:, :, k], colour, f"{title}, mean and 95 %")
                axis.set(title=title, xlabel=with_unit(record, record.input_names[j]))
                axis.set(ylabel=with_unit(record, record.outcome_names[k]))
                if is_log(record, k):
                    log_scale(axis)

            words = f"{record.outcome_names[k]} at the data along {record.input_names[j]}, {title}."
            block.append(Panel(draw, f"{words} {distance_words(record, quantity, k)}"))
        blocks.append(tuple(block))
    return Drawing(tuple(blocks), 2, 4.4, 3.0, share=True)


def points_bias(record: Record, outcomes: Sequence[int], inputs: Sequence[int]) -> Drawing:
    """The bias at the data points against each of some inputs, one block an outcome."""
    rows = shown_rows(record, len(outcomes) * len(inputs))
    band = central_band(record.at_data("bias")[:, :, rows])
    blocks = []
    for k in outcomes:
        block = []
        for j in inputs:

            def draw(axis: Axes, k: int = k, j: int = j) -> None:
                at = places(axis, record, j, record.x[rows, j])
                _bars(axis, at, band[:, :, k], BIAS, "bias, mean and 95 %")
                zero_line(axis)
                axis.set(xlabel=with_unit(record, record.input_names[j]), ylabel=f"bias of {scale_label(record, k)}")

            block.append(Panel(draw, _bias_seen(record, band[:, :, k], rows, k, j)))
        blocks.append(tuple(block))
    columns = columns_of(len(inputs))
    return Drawing(tuple(blocks), columns, 3.4 if columns > 2 else 4.4, 3.0 if columns < 3 else 2.7)


def _bias_seen(record: Record, band: Array, rows: IntArray, k: int, j: int) -> str:
    mean, lower, upper = band
    away = int(np.sum((lower > 0) | (upper < 0)))
    words = (
        f"bias of {record.scale_names[k]} at {len(rows)} data points along {record.input_names[j]}: means from "
        f"{mean.min():.3g} to {mean.max():.3g}; {away} of their 95 % intervals exclude zero"
    )
    column = record.x[rows, j]
    if record.labels.of(j) is not None or np.ptp(column) == 0 or np.ptp(mean) == 0:
        return f"{words}."
    return f"{words}; correlation with {record.input_names[j]} {np.corrcoef(column, mean)[0, 1]:.2f}."


def _fitted_bands(record: Record, rows: IntArray) -> dict[str, Array]:
    """Mean and 95 % at some rows, on the outcomes' own scale: quantity -> (3, m, q)."""
    model, bias = (record.at_data(name)[:, :, rows] for name in ("model", "bias"))
    back = record.transforms.inverse
    return {"model": central_band(back(model)), "mean": central_band(back(model + bias))}


def _against_fitted(axis: Axes, record: Record, rows: IntArray, bands: Array, k: int, colour: str) -> None:
    y, name = record.native_y[rows, k], record.outcome_names[k]
    middle, lower, upper = bands[:, :, k]
    there = y[~np.isnan(y)]
    ends = np.array([min(there.min(), lower.min()), max(there.max(), upper.max())])
    axis.plot(ends, ends, color=GUIDE, lw=1, zorder=0)
    bars = axis.errorbar(
        middle, y, xerr=[middle - lower, upper - middle], fmt="o", ms=3, mew=0, color=colour, elinewidth=0.7
    )
    with_tips(bars[0], tips_of((f"observed {name}", "fitted"), (y, middle)))
    unit = with_unit(record, name)
    axis.set(xlabel=f"fitted {unit} (rms error {rms(y - middle):.3g})", ylabel=f"observed {unit}")
    if is_log(record, k):
        log_scale(axis, both=True)


def _bars(axis: Axes, at: Array, band: Array, colour: str, label: str) -> None:
    middle, lower, upper = band
    axis.errorbar(
        at,
        middle,
        yerr=[middle - lower, upper - middle],
        fmt="o",
        ms=2.8,
        mew=0,
        color=colour,
        elinewidth=0.6,
        # many bars would hide each other
        alpha=0.75 if len(at) <= MANY_BARS else 0.4,
        label=label,
    )

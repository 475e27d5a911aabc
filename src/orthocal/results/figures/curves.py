"""Figures of a single numeric input: curves along it, with bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from ...arrays import Array, BoolArray, IntArray
from ...pages.panels import Drawing, Panel, columns_of
from ...pages.style import BIAS, MODEL, SECOND, SHADE, TOTAL, text
from ...projection import ProjectionKind
from ..predict.predict import MOST_COMBINATIONS, along_labels, central_band
from ..record import Record
from .axes import (
    distance_words,
    dots,
    fitted,
    is_log,
    log_scale,
    scale_label,
    shade_holes,
    shown_rows,
    tips_of,
    with_unit,
    zero_line,
)


class _Bands(NamedTuple):
    """Mean, lower and upper (3, m, q) of each quantity along one input x (m,)."""

    x: Array
    values: dict[str, Array]


def curves_fit(record: Record, outcomes: Sequence[int]) -> Drawing:
    """Data and fit: the model alone and model + bias, one row an outcome."""
    bands = _bands(record)
    blocks = []
    for k in outcomes:
        block = []
        for quantity, colour, title in (("model", MODEL, "model alone"), ("mean", TOTAL, "model + bias")):

            def draw(
                axis: Axes, k: int = k, quantity: str = quantity, colour: str = colour, title: str = title
            ) -> None:
                _fit_panel(axis, record, bands, k, quantity, colour)
                axis.set(title=title)

            block.append(Panel(draw, _fit_seen(record, bands, k, quantity, title)))
        blocks.append(tuple(block))
    return Drawing(tuple(blocks), 2, 4.4, 3.0, share=True)


def curves_bias(record: Record, outcomes: Sequence[int]) -> Drawing:
    """The bias and its projection, one panel an outcome."""
    bands = _bands(record)
    panels = []
    for k in outcomes:

        def draw(axis: Axes, k: int = k) -> None:
            _bias_panel(axis, record, bands, k)

        panels.append(Panel(draw, _bias_seen(record, bands, k)))
    several = len(panels) > 1
    return Drawing((tuple(panels),), 2 if several else 1, 4.4, 3.0)


def _fit_panel(axis: Axes, record: Record, bands: _Bands, k: int, quantity: str, colour: str) -> None:
    rows = shown_rows(record)
    x, y, name = record.x[rows, 0], record.native_y[rows, k], record.outcome_names[k]
    dots(axis, x, y, "field data", tips_of((record.input_names[0], name), (x, y)))
    words = "model alone" if quantity == "model" else "model + bias"
    if quantity == "mean" and "observation" in bands.values:
        _band(axis, bands, "observation", k, colour, 0.15, "95 % of observations")
    _band(axis, bands, quantity, k, colour, 0.4, f"{words}, 95 %")
    axis.plot(bands.x, bands.values[quantity][0, :, k], color=colour, lw=1.5, label=f"{words}, mean")
    shade_holes(axis, record)
    axis.set(xlabel=with_unit(record, record.input_names[0]), ylabel=with_unit(record, name))
    if is_log(record, k):
        log_scale(axis)


def _fit_seen(record: Record, bands: _Bands, k: int, quantity: str, title: str) -> str:
    mean, lower, upper = bands.values[quantity][:, :, k]
    return (
        f"{record.outcome_names[k]} along {record.input_names[0]}, {title}: its posterior mean goes from {mean[0]:.3g} "
        f"at {bands.x[0]:.3g} to {mean[-1]:.3g} at {bands.x[-1]:.3g}, with a 95 % band of width "
        f"{np.median(upper - lower):.2g}. {distance_words(record, quantity, k)}"
    )


def _bias_panel(axis: Axes, record: Record, bands: _Bands, k: int) -> None:
    rows = shown_rows(record)
    x, left = record.x[rows, 0], record.y[rows, k] - fitted(record, rows)["model"][:, k]
    dots(axis, x, left, "field data - model", tips_of((record.input_names[0], "field data - model"), (x, left)))
    if "unprojected" in bands.values:
        for edge in bands.values["unprojected"][1:, :, k]:
            axis.plot(bands.x, edge, color=SECOND, lw=0.8, ls=":", zorder=4)
        middle = bands.values["unprojected"][0, :, k]
        axis.plot(bands.x, middle, color=SECOND, lw=1, ls="--", zorder=4, label="before projection (mean, 95 %)")
    plain = record.projection in (ProjectionKind.NONE, ProjectionKind.JOINT)
    label = "bias" if plain else "projected"
    _band(axis, bands, "bias", k, BIAS, 0.35, f"{label}, 95 %")
    axis.plot(bands.x, bands.values["bias"][0, :, k], color=BIAS, lw=1.5, label=f"{label}, mean")
    zero_line(axis)
    shade_holes(axis, record)
    axis.set(xlabel=with_unit(record, record.input_names[0]), ylabel=f"bias of {scale_label(record, k)}")


def _bias_seen(record: Record, bands: _Bands, k: int) -> str:
    mean, lower, upper = bands.values["bias"][:, :, k]
    low, high = int(mean.argmin()), int(mean.argmax())
    share = float(np.mean((lower > 0) | (upper < 0)))
    return (
        f"bias of {record.scale_names[k]} along {record.input_names[0]}: its mean lies between {mean[low]:.3g} at "
        f"{bands.x[low]:.3g} and {mean[high]:.3g} at {bands.x[high]:.3g}; over {100 * share:.0f} % of the curve its "
        "95 % band excludes zero."
    )


def _band(axis: Axes, bands: _Bands, quantity: str, k: int, colour: str, alpha: float, label: str) -> None:
    _, lower, upper = bands.values[quantity][:, :, k]
    axis.fill_between(bands.x, lower, upper, color=colour, alpha=alpha, lw=0, label=label)


def _bands(record: Record) -> _Bands:
    """Bands along the domain, or at the data points where no curves are kept."""
    curves = record.curves
    if curves is not None:
        return _Bands(curves["x"].values, {str(name): curves[name].values for name in curves.data_vars})
    rows = shown_rows(record)
    x = record.x[rows, 0]
    order = np.argsort(x, kind="stable")
    model, bias = (record.at_data(name)[:, :, rows[order]] for name in ("model", "bias"))
    back = record.transforms.inverse
    drawn = {"model": back(model), "bias": bias, "mean": back(model + bias)}
    return _Bands(x[order], {name: central_band(values) for name, values in drawn.items()})


# Figures of one numeric input beside labels: a panel for each combination of labels, with curves along the input.

#: outcomes that are shown
MOST_OUTCOMES = 4


class _Panel(NamedTuple):
    """One combination of labels: what it is called, its rows of the data, and its points of the curves."""

    title: str
    labels: tuple[float, ...]
    rows: BoolArray
    points: BoolArray


def has_label_curves(record: Record) -> bool:
    """Whether there are curves to show."""
    return record.curves is not None and along_labels(record)


def label_fit(record: Record, outcomes: Sequence[int], shown: IntArray) -> Drawing:
    """Data and fit: the model alone, and model + bias, a panel for each combination; rows ``shown`` get a point."""

    def draw(axis: Axes, panel: _Panel, k: int) -> None:
        own = shown[panel.rows[shown]]
        x, y, name = record.x[own, _numeric(record)], record.native_y[own, k], record.outcome_names[k]
        dots(axis, x, y, "field data", tips_of((record.input_names[_numeric(record)], name), (x, y)))
        for quantity, colour, label in (("model", MODEL, "model alone"), ("mean", TOTAL, "model + bias")):
            _curve(axis, record, panel, quantity, k, colour, label)
        _finish(axis, record, panel, with_unit(record, name))

    return _drawing(record, outcomes, draw, "mean")


def label_bias(record: Record, outcomes: Sequence[int], shown: IntArray) -> Drawing:
    """The bias along the numeric input, in one panel for each combination of labels."""
    model = record.at_data("model")[:, :, shown].mean(axis=(0, 1))

    def draw(axis: Axes, panel: _Panel, k: int) -> None:
        here = panel.rows[shown]
        x, left = record.x[shown[here], _numeric(record)], record.y[shown[here], k] - model[here, k]
        words = "field data - model"
        dots(axis, x, left, words, tips_of((record.input_names[_numeric(record)], words), (x, left)))
        _curve(axis, record, panel, "bias", k, BIAS, "bias, mean and 95 %")
        zero_line(axis)
        _finish(axis, record, panel, f"bias of {scale_label(record, k)}")

    return _drawing(record, outcomes, draw, "bias")


def _drawing(record: Record, outcomes: Sequence[int], draw: Callable[..., None], quantity: str) -> Drawing:
    """A panel for each outcome and combination of labels; those of an outcome have one scale."""
    each = list(_combinations(record))
    some = outcomes[: min(MOST_OUTCOMES, max(1, MOST_COMBINATIONS // len(each)))]
    blocks = tuple(
        tuple(Panel(partial(draw, panel=panel, k=k), _seen(record, panel, quantity, k)) for panel in each) for k in some
    )
    columns = columns_of(len(each))
    return Drawing(blocks, columns, 3.4 if columns > 2 else 4.4, 2.7, share=True)


def _seen(record: Record, panel: _Panel, quantity: str, k: int) -> str:
    curves = record.curves
    assert curves is not None
    mean = curves[quantity].values[0, panel.points, k]
    what = "model + bias of" if quantity == "mean" else "bias of"
    return (
        f"{panel.title}, {int(panel.rows.sum())} field data: {what} {record.scale_names[k]} along "
        f"{record.input_names[_numeric(record)]} goes from {mean[0]:.3g} to {mean[-1]:.3g}, "
        f"between {mean.min():.3g} and {mean.max():.3g}."
    )


def _combinations(record: Record) -> Iterator[_Panel]:
    columns, curves = list(record.labels.columns), record.curves
    assert curves is not None
    at = curves["labels"].values
    for values in record.label_combinations:
        each = zip(record.labels.each, values, strict=True)
        title = ", ".join(f"{one.name} {one.text(value)}" for one, value in each)
        rows = (record.x[:, columns] == values).all(axis=1)
        yield _Panel(title, tuple(values.tolist()), rows, (at == values).all(axis=1))


def _curve(axis: Axes, record: Record, panel: _Panel, quantity: str, k: int, colour: str, label: str) -> None:
    curves = record.curves
    assert curves is not None
    x, (mean, lower, upper) = curves["x"].values[panel.points], curves[quantity].values[:, panel.points, k]
    axis.fill_between(x, lower, upper, color=colour, alpha=0.3, lw=0)
    axis.plot(x, mean, color=colour, lw=1.5, label=label)


def _finish(axis: Axes, record: Record, panel: _Panel, ylabel: str) -> None:
    shade_holes(axis, record, panel.labels)
    if not panel.rows.any():
        axis.set_facecolor(SHADE)
    title = panel.title if panel.rows.any() else f"{panel.title} (no data)"
    axis.set(title=text(title), xlabel=with_unit(record, record.input_names[_numeric(record)]), ylabel=ylabel)


def _numeric(record: Record) -> int:
    return int(record.labels.numeric(len(record.input_names))[0])

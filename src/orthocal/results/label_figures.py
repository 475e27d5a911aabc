"""Figures of one numeric input beside labels: a panel for each combination of labels, with curves along the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from matplotlib.axes import Axes

from ..arrays import BoolArray, IntArray
from ..pages.panels import Drawing, Panel, columns_of
from ..pages.style import BIAS, MODEL, SHADE, TOTAL, text
from .curves import MOST_COMBINATIONS, along_labels
from .figure_parts import dots, scale_label, shade_holes, tips_of, with_unit, zero_line
from .record import Record

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

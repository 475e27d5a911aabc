"""Figures of one numeric input beside labels: a panel for each combination of labels, with curves along the input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import BoolArray, IntArray
from ..pages.style import BIAS, DATA, MODEL, TOTAL, panels, text
from .coverage import DomainCoverage
from .curves import MOST_COMBINATIONS, along_labels
from .record import Record

#: panels side by side
COLUMNS = 3
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


def label_fit_figure(record: Record, shown: IntArray) -> Figure:
    """Data and fit: the model alone, and model + bias, a panel for each combination; rows ``shown`` get a point."""
    figure, found = _panels(record)
    for (k, panel), axis in found:
        own = shown[panel.rows[shown]]
        x, at = record.x[own, _numeric(record)], record.native_y[own, k]
        axis.scatter(x, at, color=DATA, s=10, alpha=0.7, linewidths=0, zorder=3, label="field data")
        for quantity, colour, label in (("model", MODEL, "model alone"), ("mean", TOTAL, "model + bias")):
            _curve(axis, record, panel, quantity, k, colour, label)
        _finish(axis, record, panel, k, text(record.outcome_names[k]))
    return _with_legend(figure, found)


def label_bias_figure(record: Record, shown: IntArray) -> Figure:
    """The bias along the numeric input, in one panel for each combination of labels."""
    figure, found = _panels(record)
    model = record.at_data("model").mean(axis=(0, 1))
    for (k, panel), axis in found:
        own = shown[panel.rows[shown]]
        x, left = record.x[own, _numeric(record)], record.y[own, k] - model[own, k]
        axis.scatter(x, left, color=DATA, s=10, alpha=0.7, linewidths=0, zorder=3, label="field data - model")
        _curve(axis, record, panel, "bias", k, BIAS, "bias, mean and 95 %")
        axis.axhline(0, color="0.7", lw=0.8, zorder=0)
        _finish(axis, record, panel, k, f"bias of {text(record.scale_names[k])}")
    return _with_legend(figure, found)


_Found = list[tuple[tuple[int, _Panel], Axes]]


def _panels(record: Record) -> tuple[Figure, _Found]:
    """A figure with a panel for each outcome and combination of labels; those of an outcome have one scale."""
    each = list(_combinations(record))
    outcomes = min(record.q, MOST_OUTCOMES, max(1, MOST_COMBINATIONS // len(each)))
    columns = min(len(each), COLUMNS)
    rows = -(-len(each) // columns)
    figure, axes = panels(rows * outcomes, columns, width=3.2 if columns > 1 else 5.5, height=2.6)
    found = []
    for k in range(outcomes):
        own = axes[k * rows : (k + 1) * rows].ravel()
        for axis in own[1:]:
            axis.sharey(own[0])
        for axis in own[len(each) :]:
            axis.set_visible(False)
        found += [((k, panel), axis) for panel, axis in zip(each, own, strict=False)]
    return figure, found


def _combinations(record: Record) -> Iterator[_Panel]:
    columns, curves = list(record.labels.columns), record.curves
    assert curves is not None
    at = curves["labels"].values
    for values in record.label_combinations:
        each = zip(record.labels.each, values, strict=True)
        title = ", ".join(f"{text(one.name)} {text(one.text(value))}" for one, value in each)
        rows = (record.x[:, columns] == values).all(axis=1)
        yield _Panel(title, tuple(values.tolist()), rows, (at == values).all(axis=1))


def _curve(axis: Axes, record: Record, panel: _Panel, quantity: str, k: int, colour: str, label: str) -> None:
    curves = record.curves
    assert curves is not None
    x, (mean, lower, upper) = curves["x"].values[panel.points], curves[quantity].values[:, panel.points, k]
    axis.fill_between(x, lower, upper, color=colour, alpha=0.3, lw=0)
    axis.plot(x, mean, color=colour, lw=1.5, label=label)


def _finish(axis: Axes, record: Record, panel: _Panel, k: int, ylabel: str) -> None:
    label = "no data nearby"
    covered = DomainCoverage(record)
    for hole in covered.holes:
        if hole.labels == panel.labels:
            axis.axvspan(hole.lower, hole.upper, color="0.93", lw=0, zorder=-1, label=label)
    if not panel.rows.any():
        axis.set_facecolor("0.93")
    title = panel.title if panel.rows.any() else f"{panel.title} (no data)"
    axis.set(title=title, xlabel=text(record.input_names[_numeric(record)]), ylabel=ylabel)


def _with_legend(figure: Figure, found: _Found) -> Figure:
    """One legend for all panels, below."""
    named: dict[str, Any] = {}
    for _, axis in found:
        handles, labels = axis.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=4)
    return figure


def _numeric(record: Record) -> int:
    return int(record.labels.numeric(len(record.input_names))[0])

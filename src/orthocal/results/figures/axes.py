"""What the figures of a record share: rows and outcomes that are shown, names with units, points, holes in the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ...arrays import Array, BoolArray, IntArray
from ...errors import InputError
from ...pages.style import DATA, GUIDE, MOST_PANELS, SHADE, shortened
from ...pages.svg import with_tips
from ...regression.gaussian_process import sample_of_points
from ..predict.data_coverage import DomainCoverage
from ..record import Record

#: more field data than this are shown by a sample: they would hide each other, and make a page that no browser opens
MOST_POINTS = 1000
#: points of all panels of a picture together, and the fewest of a panel
POINTS_OF_ALL, FEWEST_POINTS = 5000, 150
#: outputs without inputs that a figure has room for
MOST_OUTPUTS = 60
#: largest over smallest observation from which on an axis is logarithmic
LOG_AXIS = 100.0
#: letters of a label and of a name that an axis has room for
LONGEST_LABEL, LONGEST_NAME = 12, 30
#: central 95 % of a normal distribution
NORMAL_95 = 1.96


def shown_outcomes(record: Record) -> tuple[str, ...]:
    """The outcomes that get a panel: all, or the first ones where there are very many."""
    return record.outcome_names[: MOST_OUTPUTS if record.without_inputs else MOST_PANELS]


def chosen_outcomes(record: Record, outcome: str | None) -> list[int]:
    """The numbers of the outcomes to show: the one with this name, or those that get a panel."""
    if outcome is None:
        return list(range(len(shown_outcomes(record))))
    if outcome not in record.outcome_names:
        raise InputError(f"there is no outcome {outcome!r}: there are {', '.join(record.outcome_names)}")
    return [record.outcome_names.index(outcome)]


def chosen_input(record: Record, x: str) -> int:
    """The number of the input with this name."""
    if record.without_inputs:
        raise InputError(f"x={x!r}: the outputs have no inputs, leave x out")
    if x not in record.input_names:
        raise InputError(f"there is no input {x!r}: there are {', '.join(record.input_names)}")
    return record.input_names.index(x)


def shown_rows(record: Record, panels: int = 1) -> IntArray:
    """The rows that get a point: all, or some of very many, always the same ones; fewer where panels are many."""
    most = min(MOST_POINTS, max(FEWEST_POINTS, POINTS_OF_ALL // panels))
    return np.sort(sample_of_points(len(record.x), most))


def with_unit(record: Record, name: str) -> str:
    """The name of an input, outcome or parameter with its unit, where that is known."""
    unit, short = record.units.get(name), shortened(name, LONGEST_NAME)
    return short if unit is None else f"{short} [{shortened(unit, LONGEST_LABEL)}]"


def scale_label(record: Record, k: int) -> str:
    """The name of the scale of model, bias and noise of outcome k, with its unit where it is the outcome's own."""
    name = record.scale_names[k]
    return with_unit(record, name) if name == record.outcome_names[k] else shortened(name, LONGEST_NAME)


def fitted(record: Record, rows: IntArray) -> dict[str, Array]:
    """Posterior means of the model, and of model + bias, at some rows, (m, q), on the scale of the noise."""
    model, bias = (record.at_data(name)[:, :, rows].mean(axis=(0, 1)) for name in ("model", "bias"))
    return {"model": model, "mean": model + bias}


def distance_words(record: Record, quantity: str, k: int) -> str:
    """How far the data are from the posterior mean of the model, or of model + bias."""
    rows = shown_rows(record)
    left = (record.y[rows, k] - fitted(record, rows)[quantity][:, k]) / record.noise_sds[rows, k]
    return f"The field data lie {rms(left):.2g} noise standard deviations (rms) from it."


def rms(values: Array) -> float:
    """Root mean square of what is there."""
    return float(np.sqrt(np.nanmean(values**2)))


def dots(axis: Axes, x: Array, y: Array, label: str, tips: Sequence[str], colour: str = DATA) -> None:
    """Points with their tooltips; those without a value are left out."""
    seen: BoolArray = np.isfinite(y)
    drawn = axis.scatter(x[seen], y[seen], color=colour, s=10, alpha=0.7, linewidths=0, zorder=3, label=label)
    with_tips(drawn, [tip for tip, there in zip(tips, seen, strict=True) if there])


def tips_of(names: Sequence[str], columns: Sequence[Array]) -> list[str]:
    """What a point is: each name with its value."""
    return [
        ", ".join(f"{name} {value:.4g}" for name, value in zip(names, row, strict=True))
        for row in zip(*columns, strict=True)
    ]


def zero_line(axis: Axes) -> None:
    axis.axhline(0, color=GUIDE, lw=0.8, zorder=0)


def shade_holes(axis: Axes, record: Record, labels: tuple[float, ...] = ()) -> None:
    """Grey where the curves leave the data, or cross a hole in them."""
    label = "no data nearby"
    for hole in DomainCoverage(record).holes:
        if not labels or hole.labels == labels:
            axis.axvspan(hole.lower, hole.upper, color=SHADE, lw=0, zorder=-1, label=label)
            label = "_"


def is_log(record: Record, k: int) -> bool:
    """Whether the logarithm of an outcome was fitted, and it varies so much that little else could be seen."""
    y = record.native_y[:, k]
    log = bool(record.transforms) and record.transforms.names[k] == "log"
    return log and bool(np.nanmax(y) > LOG_AXIS * np.nanmin(y))


def log_scale(axis: Axes, both: bool = False) -> None:
    """A logarithmic y axis, or both, with plain numbers, which are texts on a page."""
    axis.set_yscale("log")
    scales = [axis.yaxis]
    if both:
        axis.set_xscale("log")
        scales.append(axis.xaxis)  # type: ignore[arg-type]
    for one in scales:
        one.set_major_locator(LogLocator(numticks=6))
        one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        one.set_minor_formatter(NullFormatter())


def places(axis: Axes, record: Record, j: int, column: Array) -> Array:
    """Where points stand along input j: its numbers, or side by side above their label, which the axis shows."""
    own = record.labels.of(j)
    if own is None:
        return column
    shown = [shortened(label, LONGEST_LABEL) for label in own.labels]
    longest = max(map(len, shown))
    axis.set_xticks(range(len(shown)), shown, rotation=90 if len(shown) * max(longest, 3) > 30 else 0)
    codes, at = own.codes(column), np.zeros(len(column))
    for code in range(len(shown)):
        rows = np.flatnonzero(codes == code)
        at[rows] = code + 0.3 * np.linspace(-1, 1, len(rows)) * (len(rows) > 1)
    axis.set_xlim(-0.6, len(shown) - 0.4)
    return at

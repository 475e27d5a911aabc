"""Categorical inputs: columns of x that hold labels (a machine, an operator, a site) instead of numbers.

Inside, x is an array of floats all the same: a label is the number that it reads as, where every label of its column
reads as one, and else its place among the labels, 0, 1, .... Numbers of different labels are only ever compared, never
subtracted: two labels are the same or they are not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ...arrays import Array, BoolArray, IntArray, as_columns, as_floats, checked_names
from ...errors import InputError

#: what a user may say about label columns: their names, or name -> labels in their order
Categorical: TypeAlias = "Sequence[str] | str | Mapping[str, Sequence[object]] | None"
#: a text column with more labels than this, and fewer than two rows a label, is more likely a mistake
MOST_LABELS = 20
#: how far apart points with different labels are among points whose inputs are in units of their width, times the root
#: of the number of inputs: farther than any points with the same label
FAR = 10.0


@dataclass(frozen=True)
class LabelColumn:
    """One categorical input: its place among the inputs, its name, its labels, and the number that each has in x."""

    column: int
    name: str
    labels: tuple[str, ...]
    values: tuple[float, ...]

    def codes(self, column: Array) -> IntArray:
        """The place of each number's label, (m,); -1 where it is no label's."""
        found = column[:, None] == np.asarray(self.values)
        return np.where(found.any(axis=1), found.argmax(axis=1), -1).astype(np.intp)

    def read(self, given: ArrayLike, name: str) -> Array:
        """Labels, or the numbers that they have in x, (m,), as the latter; one that is not known is refused."""
        codes, distinct = pd.factorize(np.asarray(given, dtype=object), use_na_sentinel=False)
        known = dict(zip(self.labels, self.values, strict=True))
        numbers = _numbers(distinct)
        numbers[self.codes(numbers) < 0] = np.nan
        found = np.array([known.get(label_text(one), number) for one, number in zip(distinct, numbers, strict=True)])
        unknown = np.flatnonzero(np.isnan(found[codes]))
        if unknown.size:
            raise InputError(
                f"{name} has {self.name} = {quoted(label_text(distinct[codes[unknown[0]]]))} in row {unknown[0]}, "
                f"which is none of its labels: give one of {listed(self.labels)}"
            )
        return np.asarray(found[codes], dtype=np.float64)

    def text(self, value: float) -> str:
        """The label that a number of x stands for."""
        return self.labels[self.values.index(float(value))]


@dataclass(frozen=True)
class LabelColumns:
    """The categorical inputs among all; there may be none."""

    each: tuple[LabelColumn, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.each)

    @property
    def columns(self) -> tuple[int, ...]:
        """Their places among the inputs."""
        return tuple(one.column for one in self.each)

    def numeric(self, d: int) -> IntArray:
        """The places of the other inputs, of d in all."""
        return np.setdiff1d(np.arange(d), self.columns).astype(np.intp)

    def of(self, column: int) -> LabelColumn | None:
        """The categorical input at a place, or None where it is numeric."""
        return next((one for one in self.each if one.column == column), None)

    def one_hot(self, x: Array) -> Array:
        """x (m, d) with a column of ones and zeros for each label: numeric inputs first, (m, d')."""
        parts = [x[:, self.numeric(x.shape[1])]]
        parts += [(x[:, one.column, None] == np.asarray(one.values)).astype(np.float64) for one in self.each]
        return np.hstack(parts)

    def apart(self, x: Array, span: Array) -> Array:
        """x (m, d) in units of ``span`` (d,), with points of different labels farther apart than any others."""
        if not self:
            return np.asarray(x / span)
        numeric = self.numeric(x.shape[1])
        scaled, size = x / span, FAR * np.sqrt(x.shape[1])
        return np.hstack([scaled[:, numeric], size * self.one_hot(x)[:, len(numeric) :]])

    def same(self, x: Array, other: Array) -> BoolArray:
        """Which rows of x (m, d) have all labels of a row (d,)."""
        columns = list(self.columns)
        return np.asarray((x[:, columns] == other[columns]).all(axis=1))

    def described(self, names: Sequence[str], row: Array) -> list[str]:
        """``name = value`` of each input of a point (d,), with labels as such."""
        each = [(name, value, self.of(j)) for j, (name, value) in enumerate(zip(names, row, strict=True))]
        return [f"{name} = {f'{value:.4g}' if own is None else own.text(value)}" for name, value, own in each]

    def check(self, x: Array, name: str) -> None:
        """Refuse numbers that are no label's."""
        for one in self.each:
            unknown = np.flatnonzero(one.codes(x[:, one.column]) < 0)
            if unknown.size:
                raise InputError(
                    f"{name} has {one.name} = {x[unknown[0], one.column]:g}, which is none of its labels: give those "
                    f"of {listed(one.labels)}, or their numbers {listed([f'{value:g}' for value in one.values])}"
                )

    def written(self) -> str:
        """As text for a file."""
        return json.dumps([[one.column, one.name, list(one.labels), list(one.values)] for one in self.each])

    @classmethod
    def from_text(cls, text: str) -> LabelColumns:
        return cls(
            tuple(
                LabelColumn(int(column), name, tuple(labels), tuple(map(float, values)))
                for column, name, labels, values in json.loads(text)
            )
        )


NO_LABELS = LabelColumns()


def label_text(value: object) -> str:
    """A label as text; numbers without the digits that are rounding, whole ones without a point."""
    return f"{value:.10g}" if isinstance(value, float | np.floating) else str(value)


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words for a message, the first of many."""
    return ", ".join(words) if len(words) <= most else f"{', '.join(words[:most])} and {len(words) - most} more"


def labelled_inputs(
    x: ArrayLike,
    input_names: Sequence[str] | str | None,
    categorical: Categorical | LabelColumns,
    what: str = "x",
) -> tuple[Array, tuple[str, ...], LabelColumns]:
    """x as floats (n, d), its names, and which columns are categorical.

    Those are the named ones, those of pandas' type ``category``, and those of text that is no number.
    """
    if isinstance(categorical, LabelColumns):
        inputs = as_columns(x, what)
        return inputs, checked_names(input_names, inputs.shape[1], "input_names", "x", x), categorical
    columns = _columns(x)
    if columns is None and not categorical:
        inputs = as_columns(x, what)
        return inputs, checked_names(input_names, inputs.shape[1], "input_names", "x", x), LabelColumns()
    if columns is None:
        columns = [pd.Series(column) for column in as_columns(x, what).T]
    names = checked_names(input_names, len(columns), "input_names", "x", x)
    asked = _asked(categorical, names)
    found, arrays = [], []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if name in asked or _is_labelled(column, name, what):
            own = _label_column(j, name, column, asked.get(name), what)
            found.append(own)
            arrays.append(own.read(column.to_numpy(dtype=object), what))
        else:
            arrays.append(as_floats(column.to_numpy(), what))
    return np.column_stack(arrays), names, LabelColumns(tuple(found))


def labelled_columns(x_new: ArrayLike, labels: LabelColumns, d: int, name: str) -> Array:
    """New inputs (m, d) with labels, or the numbers that they have in x, as floats."""
    columns = _columns(x_new, text=True, d=d)
    if columns is None or len(columns) != d:
        raise InputError(f"{name} has shape {np.shape(x_new)}: give one row a point and {d} columns")
    arrays = []
    for j, column in enumerate(columns):
        own = labels.of(j)
        values = column.to_numpy(dtype=object)
        arrays.append(as_floats(values, name) if own is None else own.read(values, name))
    return np.column_stack(arrays)


def _columns(x: ArrayLike, text: bool = False, d: int | None = None) -> list[pd.Series[Any]] | None:
    """The columns of x where some may hold labels, None where all are numbers; with ``text`` always."""
    if isinstance(x, pd.DataFrame):
        own = [x.iloc[:, j] for j in range(x.shape[1])]
        return own if text or any(_may_hold_labels(column) for column in own) else None
    if isinstance(x, pd.Series | pd.Categorical):
        series = pd.Series(x)
        return [series] if text or _may_hold_labels(series) else None
    try:
        if not text and np.asarray(x).dtype.kind not in "OU":
            return None
        # rows of numbers and text would all become text
        array = np.asarray(x, dtype=object)
    except ValueError:
        return None
    if array.ndim == 0:
        array = array[None]
    if array.ndim == 1:
        # a single point, or a single input
        array = array[None] if d is not None and d > 1 else array[:, None]
    if array.ndim != 2:
        return None
    return [pd.Series(array[:, j]) for j in range(array.shape[1])]


def _may_hold_labels(column: pd.Series[Any]) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype) or not (
        pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype)
    )


def _is_labelled(column: pd.Series[Any], name: str, what: str) -> bool:
    """Whether a column that nobody spoke of is categorical: of pandas' type, or of text that is no number."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if not _may_hold_labels(column):
        return False
    values = column.to_numpy(dtype=object)
    texts = np.array([isinstance(value, str) for value in values])
    numbers = ~np.isnan(_numbers(values))
    # what is missing, or neither number nor text, is refused with the numbers
    if not texts.any() or numbers[texts].all():
        return False
    if numbers.any():
        row = int(np.flatnonzero(texts & ~numbers)[0])
        raise InputError(
            f"column {name!r} of {what} has numbers, and {quoted(values[row])} in row {row}: fix that cell, or, where "
            f'the column holds labels, say categorical=["{name}"]'
        )
    count = len(set(values[texts]))
    if count > max(MOST_LABELS, len(values) // 2):
        raise InputError(
            f"column {name!r} of {what} has {count} different texts in {len(values)} rows, {quoted(values[0])} is the "
            f'first: leave it out or give numbers, or, where they are labels, say categorical=["{name}"]'
        )
    return True


def quoted(value: object, most: int = 30) -> str:
    """A cell in a message."""
    text = str(value)
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _asked(categorical: Categorical, names: tuple[str, ...]) -> dict[str, Sequence[object] | None]:
    """Name -> labels in their order, or None, as the user said."""
    if categorical is None:
        return {}
    if isinstance(categorical, str):
        categorical = [categorical]
    asked: dict[str, Sequence[object] | None] = (
        {str(name): list(labels) for name, labels in categorical.items()}
        if isinstance(categorical, Mapping)
        else {str(name): None for name in categorical}
    )
    for name in asked:
        if name not in names:
            raise InputError(f"categorical names {name!r}, which is no input: x has {', '.join(names)}")
    return asked


def _label_column(j: int, name: str, column: pd.Series[Any], given: Sequence[object] | None, what: str) -> LabelColumn:
    """The labels as they were given, of pandas' categories, or sorted."""
    missing = np.flatnonzero(column.isna().to_numpy())
    if missing.size:
        raise InputError(
            f"column {name!r} of {what} has no label in {missing.size} of {len(column)} rows, the first is row "
            f"{missing[0]}: give every row one"
        )
    if given is not None:
        known: list[object] = list(given)
    elif isinstance(column.dtype, pd.CategoricalDtype):
        known = list(column.cat.categories)
    else:
        known = sorted(set(column), key=lambda value: (isinstance(value, str), value))
    labels = tuple(label_text(value) for value in known)
    if len(set(labels)) < len(labels):
        raise InputError(
            f"column {name!r} of {what} has labels that read the same, {listed(labels)}: give each its own"
        )
    numbers = _numbers(np.asarray(labels, dtype=object))
    as_given = bool(np.isfinite(numbers).all()) and len(set(numbers)) == len(numbers)
    values = numbers if as_given else np.arange(len(labels), dtype=np.float64)
    own = LabelColumn(j, name, labels, tuple(values.tolist()))
    absent = sorted({label_text(value) for value in column} - set(labels))
    if absent:
        raise InputError(
            f"column {name!r} of {what} has {listed(absent)}, but categorical lists {listed(labels)}: list every label"
        )
    return own


def _numbers(values: NDArray[Any]) -> Array:
    """The numbers that values read as, NaN where one is none."""
    found = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        try:
            found[i] = float(value)
        except (TypeError, ValueError):
            continue
    return found

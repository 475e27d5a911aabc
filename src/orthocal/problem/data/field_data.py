"""Field data: inputs ``x`` (n, d) and outcomes ``y`` (n, q), checked once and for all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ...arrays import Array, BoolArray, IntArray, Names, as_columns, as_floats, checked_names, refuse_extreme
from ...errors import InputError
from .labels import NO_LABELS, Categorical, LabelColumns, label_text, labelled_columns, labelled_inputs
from .transforms import Chosen, Transforms, check_outcomes, chosen_transforms


@dataclass(frozen=True)
class Groups:
    """Rows that belong together: the points of one curve, the measurements of one specimen.

    Attributes
    ----------
    name
        What the groups are, ``"curve"`` for instance.
    labels
        The distinct labels, in the order of their first rows; every one has a row.
    codes
        The place of each row's label among them, (n,).
    """

    name: str
    labels: tuple[str, ...]
    codes: IntArray

    @property
    def count(self) -> int:
        return len(self.labels)

    @property
    def of_rows(self) -> tuple[str, ...]:
        """The label of each row."""
        return tuple(self.labels[code] for code in self.codes)

    def subset(self, rows: IntArray) -> Groups:
        """The groups of some rows; those without any are left out."""
        return row_groups(np.array(self.of_rows)[rows], len(rows), self.name)


@dataclass(frozen=True)
class FieldData:
    """Field data as every other module uses them.

    Attributes
    ----------
    x
        Inputs, (n, d).
    y
        Outcomes, (n, q), on the transformed scale; NaN where a cell is missing.
    input_names, outcome_names
        One name a column.
    flat_x
        Whether the user gave ``x`` as a vector: the simulator is then called with vectors too.
    native_y
        Outcomes as they were given; ``y`` itself where nothing is transformed.
    transforms
        From ``native_y`` to ``y``.
    groups
        Which rows belong together, where the user said so.
    without_inputs
        Whether the outcomes have no inputs: then ``x`` is zero, see ``problem/outputs.py``.
    labels
        Which columns of ``x`` hold labels, and what their numbers stand for, see ``problem/data/labels.py``.
    """

    x: Array
    y: Array
    input_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    flat_x: bool
    native_y: Array
    groups: Groups | None = None
    transforms: Transforms = field(default_factory=Transforms)
    without_inputs: bool = False
    labels: LabelColumns = NO_LABELS

    @cached_property
    def observed(self) -> BoolArray:
        """Which cells of y are there, (n, q)."""
        return ~np.isnan(self.y)

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def d(self) -> int:
        return int(self.x.shape[1])

    @property
    def q(self) -> int:
        return int(self.y.shape[1])

    def transformed(self, transform: Chosen) -> FieldData:
        """The same data with y on another scale."""
        transforms = chosen_transforms(transform, self.outcome_names)
        check_outcomes(transforms, self.native_y, self.outcome_names)
        return replace(self, y=transforms.forward(self.native_y), transforms=transforms)


def field_data(
    x: ArrayLike,
    y: ArrayLike,
    input_names: Names,
    outcome_names: Names,
    groups: ArrayLike | Groups | None = None,
    without_inputs: bool = False,
    categorical: Categorical | LabelColumns = None,
) -> FieldData:
    """Check the field data; names come from pandas objects where none are given."""
    (inputs, inputs_named, labels), outcomes = labelled_inputs(x, input_names, categorical), as_columns(y, "y")
    if len(inputs) != len(outcomes):
        raise InputError(f"x has {len(inputs)} rows but y has {len(outcomes)}: give one row a field observation")
    if inputs.size == 0 or outcomes.size == 0:
        raise InputError("x and y hold no data")
    _refuse_non_finite(inputs, "x", "the inputs of every observation must be known")
    infinite = np.isinf(outcomes)
    if infinite.any():
        row = int(np.flatnonzero(infinite.any(axis=1))[0])
        raise InputError(f"y is infinite in row {row}: set a cell to NaN where its measurement is missing")
    observed = ~np.isnan(outcomes)
    names = checked_names(outcome_names, outcomes.shape[1], "outcome_names", "y", y)
    for name, column in zip(names, observed.T, strict=True):
        # an output without inputs that was not measured is one to predict
        if not column.any() and not without_inputs:
            raise InputError(f"outcome {name!r} has no observation, all its cells are NaN: leave it out")
    refuse_extreme(inputs, inputs_named, "input")
    refuse_extreme(outcomes, names, "outcome")
    return FieldData(
        x=inputs,
        y=outcomes,
        input_names=inputs_named,
        outcome_names=names,
        flat_x=np.ndim(x) == 1,
        groups=groups if groups is None or isinstance(groups, Groups) else row_groups(groups, len(inputs)),
        native_y=outcomes,
        without_inputs=without_inputs,
        labels=labels,
    )


def row_groups(labels: ArrayLike, n: int, name: str | None = None) -> Groups:
    """Groups from one label a row, numbers or text; without a name they have that of a pandas object, or "group"."""
    array = np.asarray(labels, dtype=object)
    values = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if values.shape != (n,):
        raise InputError(f"groups has shape {array.shape} but there are {n} rows of data: give one label a row")
    try:
        codes, distinct = pd.factorize(values, use_na_sentinel=True)
    except TypeError:
        raise InputError("groups must be numbers or text: give one label a row") from None
    if (codes < 0).any():
        missing = np.flatnonzero(codes < 0)
        raise InputError(
            f"groups has no label in {len(missing)} of {n} rows, the first is row {missing[0]}: give every row one"
        )
    texts = tuple(label_text(value) for value in distinct)
    if len(set(texts)) < len(texts):
        raise InputError(f"groups has labels that read the same, {', '.join(sorted(texts)[:6])}: give text or numbers")
    own = checked_names(name, 1, "groups", "group", labels)[0]
    return Groups(own, texts, codes.astype(np.intp))


def chosen_groups(data: FieldData, groups: ArrayLike | str | None) -> Groups:
    """Groups by labels (n,), by the name of the data's own or of an input, or, for None, the data's own."""
    own = data.groups
    if groups is None or (isinstance(groups, str) and own is not None and groups == own.name):
        if own is None:
            raise InputError("the data have no groups: give the problem groups=, one label a row, or their labels")
        return own
    if isinstance(groups, str):
        if groups not in data.input_names:
            known = ", ".join((*data.input_names, *(() if own is None else (own.name,))))
            raise InputError(f"there are no groups {groups!r}: give labels (n,), or one of {known}")
        column = data.input_names.index(groups)
        labels, values = data.labels.of(column), data.x[:, column]
        return row_groups(values if labels is None else [labels.text(value) for value in values], data.n, groups)
    return row_groups(groups, data.n)


def new_inputs(x_new: ArrayLike, input_names: tuple[str, ...], labels: LabelColumns = NO_LABELS) -> Array:
    """Inputs for a prediction: (m, d), finite. A pandas table is read by the names of its columns.

    Categorical inputs are labels, or the numbers that these have in x.
    """
    d = len(input_names)
    if isinstance(x_new, pd.DataFrame) and set(map(str, x_new.columns)) >= set(input_names):
        x_new = x_new.rename(columns=str)[list(input_names)]
    elif isinstance(x_new, pd.DataFrame) and d > 1:
        raise InputError(f"x_new has the columns {list(x_new.columns)}: give {list(input_names)}")
    if labels:
        inputs = labelled_columns(x_new, labels, d, "x_new")
    elif d == 1:
        inputs = as_columns(x_new, "x_new") if np.ndim(x_new) else as_floats(x_new, "x_new").reshape(1, 1)
    else:
        inputs = np.atleast_2d(as_floats(x_new, "x_new"))
    if inputs.ndim != 2 or inputs.shape[1] != d or not len(inputs):
        raise InputError(f"x_new has shape {np.shape(x_new)}: give one row a point and {d} columns")
    _refuse_non_finite(inputs, "x_new", "give finite inputs")
    return inputs


def _refuse_non_finite(array: Array, name: str, advice: str) -> None:
    rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if rows.size:
        raise InputError(
            f"{name} has NaN or infinite values in {rows.size} of {len(array)} rows, "
            f"the first is row {rows[0]}: {advice}"
        )

"""Runs of the simulator: theta of each run, and its output at points that all runs share, or at its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray, Names, as_columns, as_floats, checked_names
from ..errors import FileError, InputError, shortened
from ..files.tables import Dialect
from ..pages.tables import Table, listed, shown_html
from ..problem.outputs import NO_INPUT
from .files import ColumnNames, RunParts, TableForm, is_table, load_table, named, read_runs, write_csv, write_runs
from .reading import (
    RUN,
    ReadRuns,
    TableLayout,
    all_names,
    at_one_point,
    checked_units,
    common_points,
    own_points,
    per_run,
    refuse_infinite,
)


class LongRuns(NamedTuple):
    """All runs below each other, one row a run and point: run (N,), x (N, d) and output (N, q)."""

    run: IntArray
    x: Array
    output: Array


# Columns and rows of a long table of runs: its numbers, and which rows are one run.


def floats_of(frame: pd.DataFrame, names: list[str]) -> Array:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise InputError(f"the table has no column {', '.join(map(repr, missing))}; there are: {there}")
    return np.stack([as_floats(frame[name], f"column {name!r}") for name in names], axis=-1)


def aligned(runs: list[IntArray], x: Array) -> list[IntArray]:
    """The rows of each run in the order of x, where all have the same points, and only their order differs."""
    if len({len(rows) for rows in runs}) > 1 or all(np.array_equal(x[rows], x[runs[0]]) for rows in runs):
        return runs
    ordered = [rows[np.lexsort(x[rows].T[::-1])] for rows in runs]
    return ordered if all(np.array_equal(x[rows], x[ordered[0]]) for rows in ordered) else runs


def grouped(run: pd.Series | None, parameters: Array) -> list[IntArray]:
    """The rows of each run, in the order in which the runs appear."""
    if run is None:
        _, label = np.unique(parameters, axis=0, return_inverse=True)
    else:
        if run.isna().any():
            raise InputError(f"column {RUN!r} has empty cells")
        label = pd.factorize(run)[0]
    rows = np.argsort(label.ravel(), kind="stable")
    pieces = np.split(rows, np.flatnonzero(np.diff(label.ravel()[rows])) + 1)
    return sorted((piece.astype(np.intp) for piece in pieces), key=lambda piece: int(piece[0]))


class RunTable:
    """A table of runs: output[s] = f(x, theta[s]).

    Parameters
    ----------
    theta
        (s, p), or a pandas table whose columns are the parameters.
    output
        (s, m) or (s, m, q). NaN is a missing cell, and a run that is all NaN has failed.
    x
        (m, d), the points that all runs share. Where each run has its own: ``x`` and ``output`` as lists with one
        array a run. None for outputs without inputs: then ``output`` is (s, q).
    parameter_names, input_names, outcome_names
        Names of the columns; from pandas objects where not given.
    units
        Name -> unit, for any of them.

    Attributes
    ----------
    notes
        How it was read from a file that is not ours, in sentences.

    Examples
    --------
    >>> import numpy as np, pandas as pd, orthocal as oc
    >>> theta = pd.DataFrame({"rate": [0.5, 1.0, 2.0]})
    >>> x = np.linspace(0, 1, 4)
    >>> runs = oc.RunTable(theta, np.exp(-theta.to_numpy() * x), x, input_names="time", units={"time": "s"})
    >>> runs
    RunTable(3 runs, 0 failed; parameters rate; 4 points of time; outcomes y)

    Each run at points of its own, and one that has failed:

    >>> own_points = [np.array([0.0, 0.5, 1.0]), np.array([0.2])]
    >>> oc.RunTable([[1.0], [2.0]], [np.array([0.1, 0.2, 0.3]), np.array([np.nan])], own_points)
    RunTable(2 runs, 1 failed; parameters theta; points of their own of x; outcomes y)
    """

    def __init__(
        self,
        theta: ArrayLike,
        output: ArrayLike,
        x: ArrayLike | None,
        parameter_names: Names = None,
        input_names: Names = None,
        outcome_names: Names = None,
        units: Mapping[str, str] | None = None,
    ) -> None:
        if x is None:
            outcome_names = checked_names(outcome_names, np.shape(output)[-1], "outcome_names", "y", output)
            output, x, input_names = at_one_point(output), np.zeros((1, 1)), NO_INPUT
        self.theta = as_columns(theta, "theta")
        if not self.theta.size:
            raise InputError("theta holds no runs: give one row a run and one column a parameter")
        if not np.isfinite(self.theta).all():
            row = int(np.flatnonzero(~np.isfinite(self.theta).all(axis=1))[0])
            raise InputError(f"theta has a value that is not finite in run {row}")
        blocks = own_points(output, x, self.s) if per_run(x) else common_points(output, x, self.s)
        # one block where all runs share their points, else one a run
        self._x, self._output = blocks
        refuse_infinite(self._x, self._output)
        self.parameter_names, self.input_names, self.outcome_names = all_names(
            (parameter_names, self.p, "parameter_names", "theta", theta),
            (input_names, self.d, "input_names", "x", x[0] if per_run(x) else x),
            (outcome_names, self.q, "outcome_names", "y", output[0] if per_run(x) and per_run(output) else None),
        )
        self.units = checked_units(units or {}, (*self.parameter_names, *self.input_names, *self.outcome_names))
        self.notes: tuple[str, ...] = ()
        for array in (self.theta, *self._x, *self._output):
            array.flags.writeable = False

    @property
    def s(self) -> int:
        """Number of runs.

        Examples
        --------
        >>> import orthocal as oc
        >>> runs = oc.RunTable([[1.0], [2.0], [3.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]], x=[0.0, 1.0])
        >>> runs.s
        3
        """
        return len(self.theta)

    @property
    def p(self) -> int:
        """Number of parameters.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0, 5.0], [2.0, 5.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).p
        2
        """
        return int(self.theta.shape[1])

    @property
    def d(self) -> int:
        """Number of inputs.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[[0.0, 0.0], [1.0, 0.5]]).d
        2
        """
        return int(self._x[0].shape[1])

    @property
    def q(self) -> int:
        """Number of outcomes.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], np.zeros((2, 5, 3)), x=np.linspace(0, 1, 5)).q
        3
        """
        return int(self._output[0].shape[-1])

    @property
    def m(self) -> int:
        """Number of points that all runs share.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], np.zeros((2, 5)), x=np.linspace(0, 1, 5)).m
        5
        """
        if self.ragged:
            raise InputError("each run has points of its own: there is no common m, see `points`")
        return len(self._x[0])

    @property
    def ragged(self) -> bool:
        """Whether each run has points of its own.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> own_points = [np.array([0.0, 0.5, 1.0]), np.array([0.2])]
        >>> oc.RunTable([[1.0], [2.0]], [np.zeros(3), np.zeros(1)], own_points).ragged
        True
        """
        return len(self._x) > 1

    @property
    def points(self) -> IntArray:
        """Number of points of each run, (s,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> own_points = [np.array([0.0, 0.5, 1.0]), np.array([0.2])]
        >>> oc.RunTable([[1.0], [2.0]], [np.zeros(3), np.zeros(1)], own_points).points
        array([3, 1])
        """
        counts = [len(one) for one in self._x] if self.ragged else [len(self._x[0])] * self.s
        return np.array(counts, dtype=np.intp)

    @property
    def x(self) -> Array | tuple[Array, ...]:
        """The points, (m, d); of a ragged table one (m_s, d) a run.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).x
        array([[0.],
               [1.]])
        """
        return self._x if self.ragged else self._x[0]

    @property
    def output(self) -> Array | tuple[Array, ...]:
        """The output, (s, m, q); of a ragged table one (m_s, q) a run.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).output.shape
        (2, 2, 1)
        """
        return self._output if self.ragged else self._output[0]

    @property
    def failed(self) -> BoolArray:
        """Runs without any output, (s,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [np.nan, np.nan]], x=[0.0, 1.0]).failed
        array([False,  True])
        """
        return np.array([bool(np.isnan(one).all()) for one in self._runs], dtype=np.bool_)

    @property
    def complete(self) -> BoolArray:
        """Runs without a missing cell, (s,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, np.nan]], x=[0.0, 1.0]).complete
        array([ True, False])
        """
        return np.array([not np.isnan(one).any() for one in self._runs], dtype=np.bool_)

    @property
    def long(self) -> LongRuns:
        """The runs below each other: ``run`` (N,), ``x`` (N, d) and ``output`` (N, q).

        Examples
        --------
        >>> import orthocal as oc
        >>> long = oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).long
        >>> long.run, long.output[:, 0]
        (array([0, 0, 1, 1]), array([0., 1., 0., 2.]))
        """
        x = np.concatenate(self._x) if self.ragged else np.tile(self._x[0], (self.s, 1))
        return LongRuns(np.repeat(np.arange(self.s), self.points), x, np.concatenate(list(self._runs)))

    @property
    def _runs(self) -> Sequence[Array]:
        return self._output if self.ragged else list(self._output[0])

    def subset(self, rows: IntArray | BoolArray | Sequence[int] | slice | int) -> RunTable:
        """The table with some of the runs.

        Parameters
        ----------
        rows
            Numbers or a mask, ``runs.subset(runs.complete)`` for instance.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> runs = oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [np.nan, np.nan]], x=[0.0, 1.0])
        >>> runs.subset(~runs.failed).s
        1
        """
        try:
            kept = np.atleast_1d(np.arange(self.s)[rows])
        except IndexError as error:
            raise InputError(f"the table has {self.s} runs: {error}") from None
        if not kept.size:
            raise InputError("a table needs at least one run, and none is left")
        output: ArrayLike = [self._output[i] for i in kept] if self.ragged else self._output[0][kept]
        x: ArrayLike = [self._x[i] for i in kept] if self.ragged else self._x[0]
        return self._with(self.theta[kept], output, x)

    def ordered(
        self,
        parameter_names: Sequence[str],
        input_names: Sequence[str] | None = None,
        outcome_names: Sequence[str] | None = None,
    ) -> RunTable:
        """The table with its parameters, and inputs and outcomes where they are given, in this order, by their names.

        Names that are not the table's say nothing and leave what they are about as it is; some of the outcomes will do.

        Parameters
        ----------
        parameter_names, input_names, outcome_names
            In the order that is wanted.

        Examples
        --------
        >>> import orthocal as oc
        >>> runs = oc.RunTable([[1.0, 9.0], [2.0, 8.0]], [[0.0, 1.0], [0.0, 2.0]], [0.0, 1.0], ["a", "b"])
        >>> runs.ordered(["b", "a"]).theta
        array([[9., 1.],
               [8., 2.]])
        """
        parameters, inputs = (
            tuple(wanted or own) if set(wanted or own) == set(own) else own
            for wanted, own in ((parameter_names, self.parameter_names), (input_names, self.input_names))
        )
        outcomes = tuple(outcome_names or self.outcome_names)
        outcomes = outcomes if set(outcomes) <= set(self.outcome_names) else self.outcome_names
        names = parameters, inputs, outcomes
        if names == (self.parameter_names, self.input_names, self.outcome_names):
            return self
        rows, across, along = (
            [own.index(name) for name in wanted]
            for wanted, own in zip(names, (self.parameter_names, self.input_names, self.outcome_names), strict=True)
        )
        x = [one[:, across] for one in self._x]
        output = [one[..., along] for one in self._output]
        several = self.ragged
        return self._with(self.theta[:, rows], output if several else output[0], x if several else x[0], names)

    def _with(
        self, theta: Array, output: ArrayLike, x: ArrayLike, names: Sequence[Sequence[str]] | None = None
    ) -> RunTable:
        """Other runs of the same kind."""
        given = (self.parameter_names, self.input_names, self.outcome_names) if names is None else names
        parameters, inputs, outcomes = given
        known = {*parameters, *inputs, *outcomes}
        units = {name: unit for name, unit in self.units.items() if name in known}
        table = RunTable(theta, output, x, parameters, inputs, outcomes, units)
        table.notes = self.notes
        return table

    def to_frame(self) -> pd.DataFrame:
        """A long pandas table: columns ``run``, parameters, inputs, outcomes; its ``attrs`` say which is which.

        Examples
        --------
        >>> import orthocal as oc
        >>> runs = oc.RunTable([[1.0], [2.0]], [[0.0, 0.1], [0.0, 0.2]], x=[0.0, 0.1], parameter_names=["a"])
        >>> print(runs.to_frame())
           run    a    x    y
        0    0  1.0  0.0  0.0
        1    0  1.0  0.1  0.1
        2    1  2.0  0.0  0.0
        3    1  2.0  0.1  0.2
        """
        long = self.long
        names = (*self.parameter_names, *self.input_names, *self.outcome_names)
        frame = pd.DataFrame(np.hstack([self.theta[long.run], long.x, long.output]), columns=list(names))
        frame.insert(0, RUN, long.run)
        frame.attrs.update(
            parameter_names=list(self.parameter_names),
            input_names=list(self.input_names),
            outcome_names=list(self.outcome_names),
            units=dict(self.units),
        )
        return frame

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        parameter_names: Names = None,
        input_names: Names = None,
        outcome_names: Names = None,
        units: Mapping[str, str] | None = None,
    ) -> RunTable:
        """The runs of a long table, one row a run and point.

        The column ``run`` says which rows belong together; without it, those with the same theta do. Runs stand in the
        order in which they appear, and points that all runs share in that of x if their order differs.

        Parameters
        ----------
        frame
            The table.
        parameter_names, input_names, outcome_names
            Its columns; default: those of a table from ``to_frame``. ``input_names=[]`` is for outputs without inputs.
        units
            As for a new table.

        Examples
        --------
        >>> import pandas as pd, orthocal as oc
        >>> frame = pd.DataFrame({"a": [1.0, 1.0, 2.0, 2.0], "x": [0.0, 1.0, 0.0, 1.0], "y": [0.0, 1.0, 0.0, 2.0]})
        >>> oc.RunTable.from_frame(frame, "a", "x", "y")
        RunTable(2 runs, 0 failed; parameters a; 2 points of x; outcomes y)
        """
        chosen: list[list[str]] = []
        for what, given in (
            ("parameter_names", parameter_names),
            ("input_names", input_names),
            ("outcome_names", outcome_names),
        ):
            names = frame.attrs.get(what) if given is None else [given] if isinstance(given, str) else list(given)
            if not names and not (what == "input_names" and given is not None):
                raise InputError(f"{what} is missing: say which columns of the table they are")
            chosen.append(names or [])
        if not chosen[1]:
            chosen[1], frame = [NO_INPUT], frame.assign(**{NO_INPUT: 0.0})
        parameters, inputs, outcomes = (floats_of(frame, names) for names in chosen)
        if not len(frame):
            raise InputError("the table has no rows")
        runs = aligned(grouped(frame[RUN] if RUN in frame.columns else None, parameters), inputs)
        for rows in runs:
            if not np.array_equal(parameters[rows], np.tile(parameters[rows[0]], (len(rows), 1)), equal_nan=True):
                raise InputError(f"run {frame[RUN].iloc[rows[0]]} has several values of one parameter")
        return cls(
            parameters[[rows[0] for rows in runs]],
            [outcomes[rows] for rows in runs],
            [inputs[rows] for rows in runs],
            chosen[0],
            chosen[1],
            chosen[2],
            frame.attrs.get("units") if units is None else units,
        )

    def save(self, path: str | Path) -> Path:
        """Write the table: CSV where the name ends in ``.csv``, netCDF otherwise.

        Parameters
        ----------
        path
            The file, in a folder that is there. It is written whole, or not at all.

        Examples
        --------
        >>> import orthocal as oc
        >>> runs = oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0])
        >>> path = runs.save("runs.nc")
        >>> oc.RunTable.load(path).theta
        array([[1.],
               [2.]])
        """
        if Path(path).suffix.lower() == ".csv":
            return write_csv(self.to_frame(), Path(path))
        names = (self.parameter_names, self.input_names, self.outcome_names)
        return write_runs(RunParts(self.theta, self.output, self.x, *names, self.units), Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        parameter_names: ColumnNames = None,
        input_names: ColumnNames = None,
        outcome_names: ColumnNames = None,
        units: Mapping[str, str] | None = None,
        separator: str = ",",
        decimal: str = ".",
        *,
        layout: TableLayout = "auto",
        points: str | Path | ArrayLike | None = None,
        columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        run: str | None = None,
        ignore: Sequence[str] = (),
    ) -> RunTable:
        """Read a table: CSV (``.csv``, ``.tsv``, ``.txt``, ``.dat``) or Parquet by its name, netCDF otherwise.

        A file that ``save`` wrote knows its names. Of another, say which columns are what; rows and columns may stand
        in any order, and others are left out. ``notes`` of the table says how it was read.

        Parameters
        ----------
        path
            The file.
        parameter_names, input_names, outcome_names
            Columns, or ``{name: column}`` where these are called otherwise. ``input_names=[]``: outputs without inputs.
        units
            As for a new table.
        separator, decimal
            What stands between cells and before a fraction.
        layout
            ``"long"``, one row a run and point; ``"wide"``, one row a run and one column a point, named as ``y_0.5``,
            ``y[x=0.5]`` or ``0.5``; or ``"auto"``: long where the inputs are columns.
        points
            Of a wide table: an array (m, d), or a file with the inputs' columns, and if it has one a column with the
            names of the runs' columns; ``"header"`` says that numbers 1, 2, 3 in the header are values of the input.
        columns
            Of a wide table with points: its columns in their order; for several outcomes ``{outcome: columns}``.
        run
            The column of a long table that tells runs, or replicates at one theta, apart; default ``run``, if there is
            one, or rows with the same theta are a run.
        ignore
            Columns that are left out without a note.

        Examples
        --------
        >>> import pandas as pd, orthocal as oc
        >>> wide = pd.DataFrame({"a": [1.0, 2.0], "y_0": [0.0, 0.0], "y_0.5": [0.5, 1.0], "y_1": [1.0, 2.0]})
        >>> wide.to_csv("runs.csv", index=False)
        >>> oc.RunTable.load("runs.csv", ["a"], ["x"], ["y"])
        RunTable(2 runs, 0 failed; parameters a; 3 points of x; outcomes y)
        """
        names = (parameter_names, input_names, outcome_names)
        form = TableForm(Dialect(separator, decimal), layout, points, columns, run, tuple(ignore))
        return _loaded(cls, Path(path), names, units, form)

    def _repr_html_(self) -> str:
        facts = {
            "runs": f"{self.s}, {int(self.failed.sum())} failed",
            "points": "each run has its own" if self.ragged else f"{self.m}",
            "inputs": listed(self.input_names),
            "outcomes": listed(self.outcome_names),
        }
        ends = zip(self.parameter_names, self.theta.min(axis=0), self.theta.max(axis=0), strict=True)
        rows = [[name, f"{low:.4g}", f"{high:.4g}"] for name, low, high in ends]
        return shown_html("Table of runs", facts, [Table(["parameter", "least", "most"], rows)])

    def __repr__(self) -> str:
        points = "points of their own" if self.ragged else f"{self.m} points"
        failed = int(self.failed.sum())
        return (
            f"RunTable({self.s} runs, {failed} failed; parameters {', '.join(self.parameter_names)}; "
            f"{points} of {', '.join(self.input_names)}; outcomes {', '.join(self.outcome_names)})"
        )


def _from_runs(
    kind: type[RunTable],
    found: pd.DataFrame | ReadRuns,
    names: Sequence[ColumnNames],
    units: Mapping[str, str] | None,
) -> RunTable:
    if isinstance(found, pd.DataFrame):
        own = [None if one is None else list(named(one)) for one in names]
        return kind.from_frame(found, own[0], own[1], own[2], units)
    parameters, inputs, outcomes = (list(named(one)) for one in names)
    table = kind(found.theta, found.output, found.x, parameters, inputs or [NO_INPUT], outcomes or ["y"], units)
    table.notes = found.notes
    return table


def _loaded(
    kind: type[RunTable],
    path: Path,
    names: Sequence[ColumnNames],
    units: Mapping[str, str] | None,
    form: TableForm,
) -> RunTable:
    if is_table(path):
        try:
            return _from_runs(kind, load_table(path, names, form), names, units)
        except InputError as error:
            raise FileError(f"{path}: {shortened(str(error))}") from None
    if units is not None or not form.plain or any(one is not None for one in names):
        raise InputError(f"{path}: a netCDF file has its own names and units, give none")
    parts = read_runs(path)
    try:
        return kind(*parts)
    except InputError as error:
        raise FileError(f"{path} is damaged: {error}") from None

"""Runs of the simulator: theta of each run, and its output at points that all runs share, or at its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray, Names, as_columns, as_floats, checked_names
from ..errors import FileError, InputError, shortened
from ..files.tables import Dialect
from ..problem.outputs import NO_INPUT
from .files import RunParts, read_csv, read_runs, write_csv, write_runs

#: the column of a long table that says which rows belong together
RUN = "run"


class LongRuns(NamedTuple):
    """All runs below each other, one row a run and point: run (N,), x (N, d) and output (N, q)."""

    run: IntArray
    x: Array
    output: Array


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
            output, x, input_names = _at_one_point(output), np.zeros((1, 1)), NO_INPUT
        self.theta = as_columns(theta, "theta")
        if not self.theta.size:
            raise InputError("theta holds no runs: give one row a run and one column a parameter")
        if not np.isfinite(self.theta).all():
            row = int(np.flatnonzero(~np.isfinite(self.theta).all(axis=1))[0])
            raise InputError(f"theta has a value that is not finite in run {row}")
        blocks = _own_points(output, x, self.s) if _per_run(x) else _common_points(output, x, self.s)
        self._x, self._output = blocks
        _refuse_infinite(self._x, self._output)
        self.parameter_names, self.input_names, self.outcome_names = _all_names(
            (parameter_names, self.p, "parameter_names", "theta", theta),
            (input_names, self.d, "input_names", "x", x[0] if _per_run(x) else x),
            (outcome_names, self.q, "outcome_names", "y", output[0] if _per_run(x) and _per_run(output) else None),
        )
        self.units = _checked_units(units or {}, (*self.parameter_names, *self.input_names, *self.outcome_names))
        for array in (self.theta, *self._x, *self._output):
            array.flags.writeable = False

    @property
    def s(self) -> int:
        """Number of runs."""
        return len(self.theta)

    @property
    def p(self) -> int:
        """Number of parameters."""
        return int(self.theta.shape[1])

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self._x[0].shape[1])

    @property
    def q(self) -> int:
        """Number of outcomes."""
        return int(self._output[0].shape[-1])

    @property
    def m(self) -> int:
        """Number of points that all runs share."""
        if self.ragged:
            raise InputError("each run has points of its own: there is no common m, see `points`")
        return len(self._x[0])

    @property
    def ragged(self) -> bool:
        """Whether each run has points of its own."""
        return len(self._x) > 1

    @property
    def points(self) -> IntArray:
        """Number of points of each run, (s,)."""
        counts = [len(one) for one in self._x] if self.ragged else [len(self._x[0])] * self.s
        return np.array(counts, dtype=np.intp)

    @property
    def x(self) -> Array | tuple[Array, ...]:
        """The points, (m, d); of a ragged table one (m_s, d) a run."""
        return self._x if self.ragged else self._x[0]

    @property
    def output(self) -> Array | tuple[Array, ...]:
        """The output, (s, m, q); of a ragged table one (m_s, q) a run."""
        return self._output if self.ragged else self._output[0]

    @property
    def failed(self) -> BoolArray:
        """Runs without any output, (s,)."""
        return np.array([bool(np.isnan(one).all()) for one in self._runs], dtype=np.bool_)

    @property
    def complete(self) -> BoolArray:
        """Runs without a missing cell, (s,)."""
        return np.array([not np.isnan(one).any() for one in self._runs], dtype=np.bool_)

    @property
    def long(self) -> LongRuns:
        """The runs below each other."""
        x = np.concatenate(self._x) if self.ragged else np.tile(self._x[0], (self.s, 1))
        return LongRuns(np.repeat(np.arange(self.s), self.points), x, np.concatenate(list(self._runs)))

    def subset(self, rows: IntArray | BoolArray | Sequence[int] | slice | int) -> RunTable:
        """The table with some of the runs: numbers or a mask, ``runs.subset(runs.complete)`` for instance."""
        try:
            kept = np.atleast_1d(np.arange(self.s)[rows])
        except IndexError as error:
            raise InputError(f"the table has {self.s} runs: {error}") from None
        if not kept.size:
            raise InputError("a table needs at least one run, and none is left")
        output: ArrayLike = [self._output[i] for i in kept] if self.ragged else self._output[0][kept]
        x: ArrayLike = [self._x[i] for i in kept] if self.ragged else self._x[0]
        return RunTable(
            self.theta[kept], output, x, self.parameter_names, self.input_names, self.outcome_names, self.units
        )

    def ordered(self, parameter_names: Sequence[str]) -> RunTable:
        """The table with its parameters in this order, by their names; one whose names say nothing is left as it is."""
        wanted = tuple(parameter_names)
        if set(wanted) != set(self.parameter_names):
            return self
        columns = [self.parameter_names.index(name) for name in wanted]
        return RunTable(
            self.theta[:, columns], self.output, self.x, wanted, self.input_names, self.outcome_names, self.units
        )

    def to_frame(self) -> pd.DataFrame:
        """A long pandas table: columns ``run``, parameters, inputs, outcomes; its ``attrs`` say which is which."""
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

        The column ``run`` says which rows belong together; without it, those with the same theta do. Names that
        are not given are those of a table from ``to_frame``. ``input_names=[]`` is for outputs without inputs.
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
        parameters, inputs, outcomes = (_floats_of(frame, names) for names in chosen)
        if not len(frame):
            raise InputError("the table has no rows")
        runs = _grouped(frame[RUN] if RUN in frame.columns else None, parameters)
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
        """Write the table: CSV where the name ends in ``.csv``, netCDF otherwise."""
        if Path(path).suffix.lower() == ".csv":
            return write_csv(self.to_frame(), Path(path))
        names = (self.parameter_names, self.input_names, self.outcome_names)
        return write_runs(RunParts(self.theta, self.output, self.x, *names, self.units), Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        parameter_names: Names = None,
        input_names: Names = None,
        outcome_names: Names = None,
        units: Mapping[str, str] | None = None,
        separator: str = ",",
        decimal: str = ".",
    ) -> RunTable:
        """Read a table: CSV where the name ends in ``.csv``, netCDF otherwise.

        A file that ``save`` wrote knows its names. For a CSV file from elsewhere say which columns they are, and where
        they differ what stands between cells (``separator``) and before a fraction (``decimal``).
        """
        given = (parameter_names, input_names, outcome_names, units)
        if Path(path).suffix.lower() == ".csv":
            frame = read_csv(Path(path), Dialect(separator, decimal), given[:3])
            try:
                return cls.from_frame(frame, *given)
            except InputError as error:
                raise FileError(f"{path}: {shortened(str(error))}") from None
        if any(one is not None for one in given):
            raise InputError(f"{path}: a netCDF file has its own names and units, give none")
        parts = read_runs(Path(path))
        try:
            return cls(*parts)
        except InputError as error:
            raise FileError(f"{path} is damaged: {error}") from None

    def __repr__(self) -> str:
        points = "points of their own" if self.ragged else f"{self.m} points"
        failed = int(self.failed.sum())
        return (
            f"RunTable({self.s} runs, {failed} failed; parameters {', '.join(self.parameter_names)}; "
            f"{points} of {', '.join(self.input_names)}; outcomes {', '.join(self.outcome_names)})"
        )

    @property
    def _runs(self) -> Sequence[Array]:
        return self._output if self.ragged else list(self._output[0])


def _at_one_point(output: ArrayLike) -> Array:
    """Outputs without inputs, (s, q), as outcomes at a single point, (s, 1, q)."""
    values = as_floats(output, "output")
    if values.ndim != 2:
        raise InputError(f"output has shape {values.shape}: without x, give one row a run and one column an output")
    return values[:, None]


def _per_run(x: ArrayLike) -> TypeGuard[Sequence[ArrayLike]]:
    """Whether ``x`` is one array a run: a list of arrays, not of numbers or of rows of numbers."""
    return isinstance(x, list | tuple) and bool(x) and all(hasattr(one, "__array__") and np.ndim(one) for one in x)


def _common_points(output: ArrayLike, x: ArrayLike, s: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    points, values = as_columns(x, "x"), as_floats(output, "output")
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[:2] != (s, len(points)) or not values.size:
        raise InputError(
            f"output has shape {np.shape(output)} for {s} runs at {len(points)} points: "
            f"give ({s}, {len(points)}), or ({s}, {len(points)}, q) for q outcomes"
        )
    return (points,), (values,)


def _own_points(output: ArrayLike, x: Sequence[ArrayLike], s: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    if not isinstance(output, list | tuple | np.ndarray) or len(x) != s or len(output) != s:
        raise InputError(
            f"x is a list of {len(x)} arrays, each the points of one run: give one array a run ({s}) in x and in output"
        )
    points = tuple(as_columns(one, f"x of run {i}") for i, one in enumerate(x))
    values = tuple(as_columns(one, f"output of run {i}") for i, one in enumerate(output))
    for i, (at, value) in enumerate(zip(points, values, strict=True)):
        if len(at) != len(value) or not value.size:
            raise InputError(f"run {i} has {len(at)} points and {len(value)} rows of output: give one row a point")
        if at.shape[1] != points[0].shape[1] or value.shape[1] != values[0].shape[1]:
            raise InputError(f"run {i} has another number of inputs or outcomes than run 0")
    if all(np.array_equal(at, points[0]) for at in points):
        return points[:1], (np.stack(values),)
    return points, values


def _refuse_infinite(x: tuple[Array, ...], output: tuple[Array, ...]) -> None:
    if not all(np.isfinite(one).all() for one in x):
        raise InputError("x has NaN or infinite values: the inputs of every point must be known")
    if any(np.isinf(one).any() for one in output):
        raise InputError("output has infinite values: set a cell to NaN where the simulator gave no number")


def _all_names(*kinds: tuple[Names, int, str, str, object]) -> list[tuple[str, ...]]:
    """The names of parameters, inputs and outcomes: one table has them all, so they must differ."""
    chosen = [checked_names(*kind) for kind in kinds]
    together = [name for names in chosen for name in names]
    for name in together:
        if not name.strip() or name != name.strip() or not name.isprintable() or name == RUN:
            raise InputError(f"name {name!r}: give a non-empty printable text without spaces around it, not {RUN!r}")
        if together.count(name) > 1:
            raise InputError(f"two of the parameters, inputs and outcomes are named {name!r}: give each its own name")
    return chosen


def _checked_units(units: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    unknown = sorted(set(units) - set(names))
    if unknown:
        raise InputError(f"units has {', '.join(map(repr, unknown))}: there are {', '.join(map(repr, names))}")
    if not all(isinstance(unit, str) and unit.isprintable() for unit in units.values()):
        raise InputError('units must be printable texts, for instance units={"g": "m/s^2"}')
    return {name: units[name] for name in names if name in units}


def _floats_of(frame: pd.DataFrame, names: list[str]) -> Array:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise InputError(f"the table has no column {', '.join(map(repr, missing))}; there are: {there}")
    return np.stack([as_floats(frame[name], f"column {name!r}") for name in names], axis=-1)


def _grouped(run: pd.Series | None, parameters: Array) -> list[IntArray]:
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

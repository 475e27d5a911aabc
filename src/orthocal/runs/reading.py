"""Tables of runs as people have them: long, one row a run and point, or wide, one row a run and one column a point.

Everything is found by its name. What order the rows and columns stand in says nothing, so it must not matter, to the
last bit: runs are put in the order of theta, those at one theta in that of their points and output, and the points of
a run in the order of x.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import Array, IntArray, Names, as_columns, as_floats, checked_names
from ..errors import FileError, InputError, shortened
from ..files.tables import ColumnTable, require_columns
from ..problem.outputs import NO_INPUT

# Headers of wide tables of runs, which have one column a point: ``y_0.5``, ``y[x=0.5]``, ``0.5``, ``speed @ 3``.
#
# A column is an outcome's name, which may be missing where there is one outcome, and the values of the inputs, each
# with its name before it where there are several inputs. Brackets and separators in between do not matter.

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
#: brackets around all of it, or none; what stands between the outcome's name and the point says nothing
_BODY = re.compile(r"[\s_:@|=]*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\{([^{}]*)\}|([^()\[\]{}]*))\s*")
_BETWEEN = r"[\s,;|&_]*"

#: a point of the header: the values of all inputs
Point = tuple[float, ...]


class Placed(NamedTuple):
    """The column of each outcome at each point, and whether the header names the inputs."""

    columns: dict[str, dict[Point, str]]
    named: bool

    @property
    def points(self) -> list[Point]:
        """Of the first outcome."""
        return list(next(iter(self.columns.values()), {}))

    @property
    def numbered(self) -> bool:
        """Whether the points may be nothing but numbers of the columns: 1, 2, 3 and so on."""
        points = self.points
        if self.named or len(points) < 3 or len(points[0]) != 1:
            return False
        values = sorted(point[0] for point in points)
        return values[0] in (0.0, 1.0) and bool(np.all(np.diff(values) == 1))


def placed_columns(names: Sequence[str], outcomes: Mapping[str, str], inputs: Sequence[str], decimal: str) -> Placed:
    """Which of the columns are which outcome (name -> name in the header) at which point."""
    found: dict[str, dict[Point, str]] = {outcome: {} for outcome in outcomes}
    named = False
    for name in names:
        for outcome, rest in _outcomes_of(name, outcomes):
            point = _point(rest, inputs, decimal)
            if point is None:
                continue
            named |= point[1]
            other = found[outcome].setdefault(point[0], name)
            if other != name:
                raise InputError(f"columns {other!r} and {name!r} are one point of {outcome!r}: leave one of them out")
            break
    for outcome, header in outcomes.items():
        _refuse_unclear(outcome, header, list(found[outcome].values()))
    return Placed(found, named)


def _refuse_unclear(outcome: str, header: str, columns: Sequence[str]) -> None:
    """Headers that can be read in two ways must not become other points in silence."""
    bare = [name for name in columns if not name.startswith(header)]
    if bare and len(bare) < len(columns):
        other = next(name for name in columns if name not in bare)
        raise InputError(
            f"columns {other!r} and {bare[0]!r} name points of {outcome!r} in two ways: if the header has decimal "
            "commas, write it with semicolons between cells, or with decimal points; else name them all alike"
        )
    if columns and all(re.match(rf"{re.escape(header)}-[\d.]", name) for name in columns):
        raise InputError(
            f"column {columns[0]!r} may be {outcome!r} at {columns[0][len(header) + 1 :]} or at "
            f"{columns[0][len(header) :]}: write {header}[{columns[0][len(header) + 1 :]}], or give the points"
        )


def _outcomes_of(name: str, outcomes: Mapping[str, str]) -> list[tuple[str, str]]:
    """The outcomes that a column may be of, the longest name first, and what is left of its name."""
    by_length = sorted(outcomes.items(), key=lambda pair: -len(pair[1]))
    own = [(outcome, name[len(header) :]) for outcome, header in by_length if name.startswith(header)]
    if len(outcomes) == 1:
        # names that must not begin with a digit get an X from some programs
        own += [(next(iter(outcomes)), re.sub(rf"^X(?={_NUMBER}$)", "", name))]
    return own


def _point(rest: str, inputs: Sequence[str], decimal: str) -> tuple[Point, bool] | None:
    """The values of the inputs, and whether their names stand before them; None for something else."""
    body = _BODY.fullmatch(rest)
    if body is None:
        return None
    text = next(part for part in body.groups() if part is not None).strip()
    if decimal == "," and len(inputs) == 1:
        text = text.replace(",", ".")
    names = "|".join(re.escape(one) for one in sorted(inputs, key=len, reverse=True))
    token = re.compile(rf"{_BETWEEN}(?:({names})\s*[=:]?\s*)?({_NUMBER})")
    values: dict[str | None, float] = {}
    at = 0
    while at < len(text):
        match = token.match(text, at)
        if match is None or match[1] in values:
            return None
        values[match[1]] = float(match[2])
        at = match.end()
    if set(values) == set(inputs):
        return tuple(values[one] for one in inputs), True
    return ((values[None],), False) if list(values) == [None] and len(inputs) == 1 else None


def numbered_columns(placed: Placed, count: int, file: str) -> dict[str, list[str]]:
    """The columns of each outcome in the order of their numbers, from 0 or from 1, for ``count`` points."""
    ordered = {}
    for outcome, columns in placed.columns.items():
        by_number = {int(point[0]): name for point, name in columns.items() if point[0] == int(point[0])}
        start = 0 if 0 in by_number else 1
        wanted = range(start, start + count)
        if len(by_number) != len(columns) or sorted(by_number) != list(wanted):
            there = shortened(", ".join(columns.values()) or "none", 100)
            raise InputError(
                f"points has {count} rows, and the columns of {outcome!r} in {file} are {there}: give points a column "
                f"with the names of these columns, or have them numbered from 1 to {count}"
            )
        ordered[outcome] = [by_number[number] for number in wanted]
    return ordered


def shared_points(placed: Placed, file: str) -> tuple[Array, dict[str, list[str]]]:
    """The points of all outcomes, (m, d), and the columns of each there."""
    points = placed.points
    for outcome, columns in placed.columns.items():
        other = set(points) ^ set(columns)
        if other:
            at = ", ".join(f"{value:g}" for value in min(other))
            lacking = outcome if min(other) not in columns else next(iter(placed.columns))
            raise InputError(f"{file} has no column of {lacking!r} at {at}, where another outcome has one")
    ordered = {outcome: [columns[point] for point in points] for outcome, columns in placed.columns.items()}
    return np.array(points), ordered


TableLayout = Literal["auto", "long", "wide"]
#: a column of this name says which rows belong together
RUN = "run"
#: share of the runs that may lack points of the others: components can do with four fifths
MOST_SHORT = 0.2


@dataclass(frozen=True)
class RunColumns:
    """Which columns are what: name -> column of the table, for parameters, inputs and outcomes.

    Attributes
    ----------
    inputs
        Empty for outputs without inputs, one row a run.
    run
        The column that says which rows of a long table are one run; None for ``run``, if there is one.
    points
        Of a wide table: "header", or a table of its points; None for the header, unless that may be numbers only.
    columns
        Of a wide table with points: outcome -> columns, in the order of the points.
    ignored
        Columns that are left out without a word.
    """

    parameters: Mapping[str, str]
    inputs: Mapping[str, str]
    outcomes: Mapping[str, str]
    layout: TableLayout = "auto"
    run: str | None = None
    points: Literal["header"] | WidePoints | None = None
    columns: Mapping[str, Sequence[str]] | None = None
    ignored: Sequence[str] = field(default_factory=tuple)


class WidePoints(NamedTuple):
    """WidePoints of a wide table, x (m, d), and the columns of each outcome there, where its table names them."""

    x: Array
    columns: Mapping[str, Sequence[str]] | None = None


class ReadRuns(NamedTuple):
    """theta (s, p), and output and x of each run, (m_s, q) and (m_s, d); what is to be said about the table."""

    theta: Array
    output: list[Array]
    x: list[Array]
    notes: tuple[str, ...]


def read_foreign(table: ColumnTable, asked: RunColumns) -> ReadRuns:
    """The runs of a table that is not ours, in their own order: that of theta, and of x."""
    if not len(table):
        raise FileError(f"{table.file} has no rows")
    require_columns(table, [*asked.parameters.values(), *([asked.run] if asked.run else []), *asked.ignored])
    theta = _finite(table, asked.parameters, "parameter")
    if _layout(table, asked) == "long":
        runs, used = _long(table, theta, asked)
        words = "one row a run and point" if asked.inputs else "one row a run"
    else:
        runs, used = _wide(table, theta, asked)
        words = "one row a run, one column a point"
    known = {*asked.parameters.values(), *used, *asked.ignored, asked.run or RUN}
    left = [name for name in table.names if name and name not in known]
    notes = [f"{table.file}: {len(runs)} runs, {words}"]
    if left:
        notes.append(f"columns of {table.file} that are not used: {shortened(', '.join(left))}")
    padded, said = _padded(runs)
    notes += said
    ordered = sorted(padded, key=lambda one: (tuple(one[0]), one[1].tobytes(), one[2].tobytes()))
    return ReadRuns(np.stack([one[0] for one in ordered]), [o[2] for o in ordered], [o[1] for o in ordered], (*notes,))


class Run(NamedTuple):
    """theta (p,), x (m, d) and output (m, q)."""

    theta: Array
    x: Array
    output: Array


def _padded(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """Runs at common points, of which some have no row for one: a missing cell there, where most runs have them all.

    Without it one row that is missing would make them runs at points of their own.
    """
    points = {run.x.tobytes(): run.x for run in runs}
    if len(points) == 1:
        return runs, []
    union = np.unique(np.vstack(list(points.values())), axis=0)
    short = [run for run in runs if len(run.x) < len(union)]
    if len(short) > MOST_SHORT * len(runs):
        return runs, []
    place = {point.tobytes(): i for i, point in enumerate(union)}
    found = []
    for run in runs:
        output = np.full((len(union), run.output.shape[1]), np.nan)
        output[[place[point.tobytes()] for point in run.x]] = run.output
        found.append(Run(run.theta, union, output))
    return found, [f"{len(short)} of {len(runs)} runs have no row for some of the points: missing cells"]


def _layout(table: ColumnTable, asked: RunColumns) -> Literal["long", "wide"]:
    """The layout that was asked for, or the one whose columns are there."""
    if asked.layout != "auto":
        return asked.layout
    missing = [name for name in asked.inputs.values() if name not in table.names]
    if not missing:
        return "long"
    given = asked.points is not None or asked.columns is not None
    if given or len(missing) == len(asked.inputs):
        return "wide"
    raise FileError(table.missing_words(missing))


def _finite(table: ColumnTable, columns: Mapping[str, str], kind: str) -> Array:
    """Columns without a hole, (n, k)."""
    values = []
    for name in columns.values():
        column = table.numbers(name)
        wrong = np.flatnonzero(~np.isfinite(column))
        if wrong.size:
            raise FileError(
                f"{kind} {name!r} is missing or infinite in {table.row_words(int(wrong[0]))} of {table.file}: give its "
                "value, or delete the row"
            )
        values.append(column)
    # -0.0 is 0.0
    return np.stack(values, axis=-1) + 0.0 if values else np.empty((len(table), 0))


def _long(table: ColumnTable, theta: Array, asked: RunColumns) -> tuple[list[Run], list[str]]:
    require_columns(table, [*asked.inputs.values(), *asked.outcomes.values()])
    x = _finite(table, asked.inputs, "input") if asked.inputs else np.zeros((len(table), 1))
    output = np.stack([table.numbers(name) for name in asked.outcomes.values()], axis=-1) + 0.0
    column = asked.run if asked.run is not None else RUN if RUN in table.names else None
    runs = [
        _one_run(table, rows, Run(theta[rows[0]], x[rows], output[rows]))
        for rows in _grouped(table, column, theta, x, bool(asked.inputs))
    ]
    return runs, [*asked.inputs.values(), *asked.outcomes.values()]


def _one_run(table: ColumnTable, rows: IntArray, run: Run) -> Run:
    """The points in their order."""
    order = np.lexsort((*run.output.T[::-1], *run.x.T[::-1]))
    x = run.x[order]
    twice = np.flatnonzero((x[1:] == x[:-1]).all(axis=1))
    if twice.size:
        one, other = sorted(int(rows[order[twice[0] + i]]) for i in (0, 1))
        raise FileError(
            f"{table.row_words(one)} and {table.row_words(other)} of {table.file} have the same parameters and inputs: "
            f"if they are replicates of a random simulator, name the column that tells the runs apart ({RUN!r}, or "
            'run = "..."); otherwise delete one of them'
        )
    return Run(run.theta, x, run.output[order])


def _grouped(table: ColumnTable, column: str | None, theta: Array, x: Array, inputs: bool) -> list[IntArray]:
    """The rows of each run: those of one label and theta, without labels of one theta."""
    keys = theta
    if column is None:
        if not inputs or len(np.unique(x, axis=0)) == 1:
            # one point: each row is a run, replicates or not
            return [np.array([row], dtype=np.intp) for row in range(len(theta))]
    else:
        labels = table.labels(column)
        empty = np.flatnonzero(labels.isna())
        if empty.size:
            raise FileError(f"column {column!r} of {table.file} is empty in {table.row_words(int(empty[0]))}")
        codes = pd.factorize(labels)[0]
        keys = np.column_stack([codes, theta])
        _refuse_changing(table, column, codes, theta)
    _, place = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(place.ravel()[order])) + 1)
    return [piece.astype(np.intp) for piece in pieces]


def _refuse_changing(table: ColumnTable, column: str, codes: IntArray, theta: Array) -> None:
    """A label may number the runs, or the replicates at each theta; where it does neither, something is wrong."""
    pairs = len(np.unique(np.column_stack([codes, theta]), axis=0))
    labels, thetas = int(codes.max()) + 1, len(np.unique(theta, axis=0))
    if pairs == labels or pairs == labels * thetas:
        return
    first = next(code for code in range(labels) if len(np.unique(theta[codes == code], axis=0)) > 1)
    rows = np.flatnonzero(codes == first)
    other = rows[np.flatnonzero((theta[rows] != theta[rows[0]]).any(axis=1))[0]]
    raise FileError(
        f"{column} {table.labels(column).iloc[rows[0]]} has several values of one parameter, in "
        f"{table.row_words(int(rows[0]))} and {table.row_words(int(other))} of {table.file}"
    )


def _wide(table: ColumnTable, theta: Array, asked: RunColumns) -> tuple[list[Run], list[str]]:
    x, columns = _points_and_columns(table, asked)
    order = np.lexsort(x.T[::-1])
    x = x[order] + 0.0
    if len(x) > 1 and (x[1:] == x[:-1]).all(axis=1).any():
        raise FileError(f"{table.file}: two of its points have the same x: leave one of them out")
    output = np.stack(
        [np.stack([table.numbers(columns[outcome][i]) for i in order], axis=-1) for outcome in asked.outcomes], axis=-1
    )
    used = [name for names in columns.values() for name in names]
    return [Run(one, x, values + 0.0) for one, values in zip(theta, output, strict=True)], used


def _points_and_columns(table: ColumnTable, asked: RunColumns) -> tuple[Array, Mapping[str, Sequence[str]]]:
    """The points (m, d), and the columns of each outcome there."""
    given = asked.points if isinstance(asked.points, WidePoints) else None
    named = asked.columns if asked.columns is not None else None if given is None else given.columns
    if named is not None:
        if given is None:
            raise InputError("columns of the outputs need points, one for each of them")
        _check_named(table, asked, named, len(given.x))
        return given.x, named
    parameters = set(asked.parameters.values())
    free = [name for name in table.names if name and name not in parameters and name not in asked.ignored]
    decimal = getattr(getattr(table, "dialect", None), "decimal", ".")
    if given is not None:
        return given.x, numbered_columns(
            placed_columns(free, asked.outcomes, [NO_INPUT], decimal), len(given.x), table.file
        )
    placed = placed_columns(free, asked.outcomes, list(asked.inputs), decimal)
    bare = [outcome for outcome, columns in placed.columns.items() if not columns]
    if bare:
        header, inputs = asked.outcomes[bare[0]], list(asked.inputs)
        example = f"{header}_0.5" if len(inputs) == 1 else f"{header}[{', '.join(f'{one}=0.5' for one in inputs)}]"
        said = table.missing_words(list(asked.inputs.values()))
        raise FileError(
            f"{said} (one row a run and point), and no column is {header!r} at a point as {example!r} is (one row a "
            "run): name them, or give the points"
        )
    if placed.numbered and asked.points != "header":
        columns, name = list(next(iter(placed.columns.values())).values()), next(iter(asked.inputs))
        raise FileError(
            f"the columns {columns[0]!r} to {columns[-1]!r} of {table.file} may be numbered, or at {name} = 1, 2, 3: "
            'give points = "header" if these are its values, or a table of the points'
        )
    return shared_points(placed, table.file)


def _check_named(table: ColumnTable, asked: RunColumns, named: Mapping[str, Sequence[str]], m: int) -> None:
    for outcome in asked.outcomes:
        if outcome not in named:
            raise InputError(f"columns has none for {outcome!r}: give one list for each outcome")
        if len(named[outcome]) != m:
            raise InputError(f"columns of {outcome!r} has {len(named[outcome])} names for {m} points")
        require_columns(table, named[outcome])


# The parts of a table of runs, checked: their shapes, numbers, names and units.


def at_one_point(output: ArrayLike) -> Array:
    """Outputs without inputs, (s, q), as outcomes at a single point, (s, 1, q)."""
    values = as_floats(output, "output")
    if values.ndim != 2:
        raise InputError(f"output has shape {values.shape}: without x, give one row a run and one column an output")
    return values[:, None]


def per_run(x: ArrayLike) -> TypeGuard[Sequence[ArrayLike]]:
    """Whether ``x`` is one array a run: a list of arrays, not of numbers or of rows of numbers."""
    return isinstance(x, list | tuple) and bool(x) and all(hasattr(one, "__array__") and np.ndim(one) for one in x)


def common_points(output: ArrayLike, x: ArrayLike, s: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    points, values = as_columns(x, "x"), as_floats(output, "output")
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[:2] != (s, len(points)) or not values.size:
        raise InputError(
            f"output has shape {np.shape(output)} for {s} runs at {len(points)} points: "
            f"give ({s}, {len(points)}), or ({s}, {len(points)}, q) for q outcomes"
        )
    return (points,), (values,)


def own_points(output: ArrayLike, x: Sequence[ArrayLike], s: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
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


def refuse_infinite(x: tuple[Array, ...], output: tuple[Array, ...]) -> None:
    if not all(np.isfinite(one).all() for one in x):
        raise InputError("x has NaN or infinite values: the inputs of every point must be known")
    if any(np.isinf(one).any() for one in output):
        raise InputError("output has infinite values: set a cell to NaN where the simulator gave no number")


def all_names(*kinds: tuple[Names, int, str, str, object]) -> list[tuple[str, ...]]:
    """The names of parameters, inputs and outcomes: one table has them all, so they must differ."""
    chosen = [checked_names(*kind) for kind in kinds]
    together = [name for names in chosen for name in names]
    for name in together:
        if not name.strip() or name != name.strip() or not name.isprintable() or name == RUN:
            raise InputError(f"name {name!r}: give a non-empty printable text without spaces around it, not {RUN!r}")
        if together.count(name) > 1:
            raise InputError(f"two of the parameters, inputs and outcomes are named {name!r}: give each its own name")
    return chosen


def checked_units(units: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    unknown = sorted(set(units) - set(names))
    if unknown:
        raise InputError(f"units has {', '.join(map(repr, unknown))}: there are {', '.join(map(repr, names))}")
    if not all(isinstance(unit, str) and unit.isprintable() for unit in units.values()):
        raise InputError('units must be printable texts, for instance units={"g": "m/s^2"}')
    return {name: units[name] for name in names if name in units}

"""What the columns of a table may be, guessed from its header and cells: inputs, outcomes, errors, parameters.

A guess is for a file that a person reads before it is used, and is said in words; nothing else guesses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, FileError
from ..files.tables import PLAIN, Dialect, TextTable, is_parquet, read_text_table, text_lines
from ..runs.files import knows_its_names
from ..runs.reading import placed_columns
from ..runs.table import RunTable

#: names that say what a column is, in small letters
_OUTCOMES = ("y", "outcome", "output", "response", "observed", "observation", "measured", "measurement")
_COUNTERS = ("", "id", "index", "no", "no.", "nr", "nr.", "number", "row", "run", "sample", "#")
#: a column of standard deviations has the name of another with one of these
_ERROR = re.compile(r"(?:(?:sigma|err|error|sd|std|se)_(.+)|(.+)_(?:sigma|err|error|sd|std|se|unc|uncertainty))", re.I)


@dataclass(frozen=True)
class Guess:
    """Columns of the field data; ``left_out`` are others, name -> why."""

    x: list[str]
    y: list[str]
    y_err: list[str]
    left_out: dict[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """What was guessed, for a person to look at."""
        said = [f"outcome {', '.join(self.y)}", f"inputs {', '.join(self.x) or 'none'}"]
        said += [f"standard deviations {', '.join(self.y_err)}"] if self.y_err else []
        said += ["not used: " + ", ".join(f"{name} ({why})" for name, why in self.left_out.items())] * bool(
            self.left_out
        )
        return "; ".join(said)


def guessed_dialect(path: Path) -> Dialect:
    """How a table is written: the one of the usual ways in which most columns are numbers."""
    if is_parquet(path):
        raise ConfigError(f"{path} is a Parquet table: init reads CSV; write the problem file by hand")
    header = next((line for line in text_lines(path) if line.strip() and not line.startswith("#")), "")
    separators = [one for one in ";\t|" if one in header] or [","]
    found: dict[Dialect, int] = {}
    for dialect in (Dialect(one, mark) for one in separators for mark in ".," if one != mark):
        try:
            table = read_text_table(path, dialect)
        except FileError:
            continue
        found[dialect] = sum(_numbers(table, name) is not None for name in table.names)
    # the first of the best: points before commas
    return max(found, key=lambda one: found[one], default=PLAIN)


def table_of(path: Path) -> TextTable:
    """A table in the dialect that it seems to have."""
    table = read_text_table(path, guessed_dialect(path))
    if not len(table):
        raise ConfigError(f"{path} has no rows below its header")
    return table


def guessed_columns(
    table: TextTable,
    runs: Sequence[str] | None = None,
    x: Sequence[str] | None = None,
    y: Sequence[str] | None = None,
) -> Guess:
    """Inputs and outcomes of field data, but for those that are given; ``runs`` are the columns of a table of runs."""
    unknown = [name for name in (*(x or ()), *(y or ())) if name not in table.names]
    if unknown:
        raise ConfigError(table.missing_words(unknown))
    left_out: dict[str, str] = {}
    usable, errors = [], {}
    # runs with one row a point have the data's columns; with one row a run their points are columns
    long = runs is not None and bool(set(runs) & set(table.names))
    for name in table.names:
        values, of = _numbers(table, name), _error_of(name, table.names)
        if name in (*(x or ()), *(y or ())):
            continue
        if of is not None:
            errors[of] = name
        elif values is None:
            left_out[name] = "words: give it in --x if its labels are an input"
        elif name.casefold() in _COUNTERS:
            left_out[name] = "it seems to number the rows"
        elif long and name not in (runs or ()):
            left_out[name] = "the runs have no such column"
        elif len(set(values[np.isfinite(values)].tolist())) < 2 and len(values) > 1:
            left_out[name] = "the same in all rows"
        else:
            usable.append(name)
    outcomes = list(y) if y else _outcomes(usable, table, runs)
    inputs = list(x) if x is not None else [name for name in usable if name not in outcomes]
    known = [errors[name] for name in outcomes if name in errors]
    y_err = known if len(known) == len(outcomes) else []
    left_out |= {name: "an error of no outcome" for name in errors.values() if name not in y_err}
    left_out |= {name: "not among --x" for name in usable if name not in (*inputs, *outcomes)}
    return Guess(inputs, outcomes, y_err, left_out)


def _outcomes(usable: list[str], table: TextTable, runs: Sequence[str] | None) -> list[str]:
    if not usable:
        raise ConfigError(
            f"{table.file} has no column of numbers that could be the outcome: give --y; there are {table.known}"
        )
    named = [name for name in usable if name.casefold() in _OUTCOMES]
    wide = [name for name in usable if any(re.match(rf"{re.escape(name)}\s*[_\[(@: =]", one) for one in runs or ())]
    return wide or [(named or usable)[-1]]


def _error_of(name: str, names: Sequence[str]) -> str | None:
    found = _ERROR.fullmatch(name)
    base = None if found is None else found[1] or found[2]
    return base if base in names else None


def _numbers(table: TextTable, name: str) -> Array | None:
    try:
        values = table.numbers(name)
    except FileError:
        return None
    return None if np.isnan(values).all() else values


@dataclass(frozen=True)
class RunsGuess:
    """A table of runs: its columns, parameters with the range of their runs, and how it is written."""

    columns: list[str]
    parameters: dict[str, tuple[float, float]]
    dialect: Dialect


def run_columns(path: Path) -> list[str]:
    """The names of the columns of a table of runs, or of what it says that it holds."""
    if knows_its_names(path):
        runs = RunTable.load(path)
        return [*runs.parameter_names, *runs.input_names, *runs.outcome_names]
    return list(table_of(path).names)


def guessed_runs(path: Path, x: Sequence[str], y: Sequence[str], names: Sequence[str] | None = None) -> RunsGuess:
    """The parameters of runs of these inputs and outcomes: columns that are neither, unless ``names`` says which."""
    if knows_its_names(path):
        runs = RunTable.load(path)
        ranges = zip(runs.parameter_names, runs.theta.min(axis=0), runs.theta.max(axis=0), strict=True)
        return RunsGuess(list(runs.parameter_names), {name: (float(a), float(b)) for name, a, b in ranges}, PLAIN)
    table = table_of(path)
    found = {}
    for name in _parameter_names(table, x, y) if names is None else names:
        values = _numbers(table, name)
        if name not in table.names or values is None:
            raise ConfigError(table.missing_words([name]) if name not in table.names else f"{name!r} holds no numbers")
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        # what was never varied cannot be calibrated
        if low < high:
            found[name] = (low, high)
    if not found:
        raise ConfigError(
            f"{path} has no columns that could be parameters beside {', '.join([*x, *y])}: there are {table.known}"
        )
    return RunsGuess(list(table.names), found, table.dialect)


def _parameter_names(table: TextTable, x: Sequence[str], y: Sequence[str]) -> list[str]:
    placed: set[str] = set()
    if not set(x) <= set(table.names):
        wide = placed_columns(table.names, {name: name for name in y}, x, table.dialect.decimal)
        placed = {column for points in wide.columns.values() for column in points.values()}
    taken = {*x, *y, *placed}
    return [
        name
        for name in table.names
        if name not in taken and name.casefold() not in _COUNTERS and _numbers(table, name) is not None
    ]

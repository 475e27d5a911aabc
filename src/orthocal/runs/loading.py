"""From a file to the parts of a table of runs: one of ours knows its names, of others they are to be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import Array, as_columns
from ..errors import FileError, InputError
from ..files.columns import ColumnTable, require_columns
from ..files.parquet import ParquetTable, is_parquet
from ..files.tables import PLAIN, Dialect, read_text_table
from .files import frame_of, read_csv
from .reading import Points, ReadRuns, RunColumns, TableLayout, read_foreign

#: names of columns, or name -> column where they differ
ColumnNames: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
#: what is read as text; other files but Parquet are netCDF
TEXT = (".csv", ".tsv", ".txt", ".dat")


@dataclass(frozen=True)
class TableForm:
    """How a table of runs is written; see ``oc.RunTable.load``."""

    dialect: Dialect = PLAIN
    layout: TableLayout = "auto"
    points: str | Path | ArrayLike | None = None
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    run: str | None = None
    ignore: Sequence[str] = ()

    @property
    def plain(self) -> bool:
        """Whether nothing is said but for the dialect."""
        return self == TableForm(self.dialect)


def is_table(path: Path) -> bool:
    """Whether a file is a table of text or Parquet by its name, and not netCDF."""
    return path.suffix.lower() in TEXT or is_parquet(path)


def knows_its_names(path: Path) -> bool:
    """Whether a file of runs says which of its columns are what, as those that we write do."""
    if not is_table(path):
        return True
    if is_parquet(path):
        return False
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return any(line.startswith("# columns:") for line in takewhile(lambda line: line.startswith("#"), file))
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def load_table(path: Path, names: Sequence[ColumnNames], form: TableForm) -> pd.DataFrame | ReadRuns:
    """A frame with its names, of a table that knows them; or the runs of another one, by the names that are given."""
    if form.layout not in ("auto", "long", "wide"):
        raise InputError(f"layout={form.layout!r}: give 'auto', 'long' or 'wide'")
    if is_parquet(path):
        table: ColumnTable = _parquet(path, form.dialect)
    else:
        text, notes = read_csv(path, form.dialect)
        table = text
        if notes.columns and form.plain and not any(isinstance(one, Mapping) for one in names):
            return frame_of(text, notes, [None if one is None else _columns(one) for one in names])
    return read_foreign(table, _asked(table, names, form, path))


def _parquet(path: Path, dialect: Dialect) -> ParquetTable:
    if dialect != PLAIN:
        raise FileError(f"{path} is a Parquet table: separator and decimal are for CSV, leave them out")
    return ParquetTable(path)


def _columns(names: ColumnNames) -> list[str]:
    return list(named(names).values())


def named(names: ColumnNames) -> dict[str, str]:
    """Name -> column."""
    if names is None:
        return {}
    if isinstance(names, Mapping):
        return {str(name): str(column) for name, column in names.items()}
    given = [names] if isinstance(names, str) else list(names)
    return {str(name): str(name) for name in given}


def _asked(table: ColumnTable, names: Sequence[ColumnNames], form: TableForm, path: Path) -> RunColumns:
    parameters, inputs, outcomes = names
    there = ", ".join(name for name in table.names if name)
    for what, given in (("parameter_names", parameters), ("input_names", inputs)):
        if not given and (given is None or what == "parameter_names"):
            raise InputError(f"{what} is missing: say which columns of the table they are; there are: {there}")
    at = named(inputs)
    wide = form.layout == "wide" or (form.layout == "auto" and not set(at.values()) <= set(table.names))
    if not outcomes and not (wide and outcomes is None):
        raise InputError(f"outcome_names is missing: say which columns of the table they are; there are: {there}")
    own = named(outcomes) or {"y": "y"}
    columns = form.columns
    if columns is not None and not isinstance(columns, Mapping):
        if len(own) > 1:
            raise InputError(f"columns: give one list for each outcome, {', '.join(own)}")
        columns = {next(iter(own)): list(columns)}
    points = _points(form, at, own, table, path)
    return RunColumns(named(parameters), at, own, form.layout, form.run, points, columns, tuple(form.ignore))


def _points(
    form: TableForm, inputs: Mapping[str, str], outcomes: Mapping[str, str], table: ColumnTable, path: Path
) -> Points | Literal["header"] | None:
    """Where the points of a wide table come from: its header, numbers, or a table beside it."""
    given = form.points
    if given is None:
        return None
    if isinstance(given, str) and given == "header":
        return "header"
    if not isinstance(given, str | Path):
        x = as_columns(given, "points")
        if x.shape[1] != len(inputs):
            raise InputError(
                f"points has {x.shape[1]} columns, and there are {len(inputs)} inputs: {', '.join(inputs)}"
            )
        return Points(_finite(x, "points"))
    file = Path(given)
    beside: ColumnTable = _parquet(file, PLAIN) if is_parquet(file) else read_text_table(file, form.dialect)
    require_columns(beside, inputs.values())
    x = np.stack([beside.numbers(name) for name in inputs.values()], axis=-1)
    return Points(_finite(x, str(file)), _named_columns(beside, inputs, outcomes, table))


def _finite(x: Array, what: str) -> Array:
    if not len(x) or not np.isfinite(x).all():
        raise InputError(f"{what}: give the inputs of every point, at least one, without holes")
    return x


def _named_columns(
    points: ColumnTable, inputs: Mapping[str, str], outcomes: Mapping[str, str], table: ColumnTable
) -> dict[str, list[str]] | None:
    """Columns of a table of points that hold names of the runs' columns, one an outcome; None where there is none."""
    found = {}
    for name in points.names:
        if not name or name in inputs.values():
            continue
        cells = [str(one) for one in points.labels(name)]
        if set(cells) <= set(table.names):
            found[name] = cells
    if len(outcomes) == 1 and len(found) == 1:
        return {next(iter(outcomes)): next(iter(found.values()))}
    chosen = {outcome: found[header] for outcome, header in outcomes.items() if header in found}
    return chosen if len(chosen) == len(outcomes) else None

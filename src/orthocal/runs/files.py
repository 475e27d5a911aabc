"""Tables of runs on disk: netCDF with a digest that shows damage, or CSV, one row a run and point."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import Array, as_columns
from ..errors import FileError, InputError
from ..files import checksum, whole_file
from ..files.netcdf import read_netcdf, write_netcdf
from ..files.tables import (
    PLAIN,
    ColumnTable,
    Dialect,
    ParquetTable,
    TextTable,
    is_parquet,
    read_text_table,
    require_columns,
    text_lines,
    text_table,
)
from .reading import ReadRuns, RunColumns, TableLayout, WidePoints, read_foreign

FORMAT = "orthocal runs 1"
#: the column of a CSV table with a checksum of each row, and the line above it with one of the header
CHECKSUM = "checksum"
#: what the lines above a CSV table call its columns, and what the attributes of a frame do
_KINDS = {"parameters": "parameter_names", "inputs": "input_names", "outcomes": "outcome_names"}


class RunParts(NamedTuple):
    """What ``oc.RunTable`` takes; x and output are sequences where each run has points of its own."""

    theta: Array
    output: Array | Sequence[Array]
    x: Array | Sequence[Array]
    parameter_names: Sequence[str]
    input_names: Sequence[str]
    outcome_names: Sequence[str]
    units: Mapping[str, str]


def write_runs(parts: RunParts, path: Path) -> Path:
    """Variables theta (run, parameter), x and output; a ragged table has its runs below each other, and their sizes."""
    # slow to import, and who only makes runs needs none
    import xarray as xr

    if isinstance(parts.x, np.ndarray):
        variables: dict[str, Any] = {
            "x": (("point", "input"), parts.x),
            "output": (("run", "point", "outcome"), parts.output),
        }
    else:
        variables = {
            "points": ("run", [len(one) for one in parts.x]),
            "x": (("row", "input"), np.concatenate(parts.x)),
            "output": (("row", "outcome"), np.concatenate(parts.output)),
        }
    data = xr.Dataset(
        {"theta": (("run", "parameter"), parts.theta), **variables},
        coords={
            "parameter": list(parts.parameter_names),
            "input": list(parts.input_names),
            "outcome": list(parts.outcome_names),
        },
        attrs={"format": FORMAT, "units": json.dumps(parts.units)},
    )
    return write_netcdf(xr.DataTree(data), path)


def read_runs(path: Path) -> RunParts:
    """Read the parts of a table and check that they are what ``write_runs`` wrote."""
    tree = read_netcdf(path, FORMAT, "is not a table of runs, or one of another version of the format")
    data = tree.to_dataset()
    try:
        x, output = data["x"].values, data["output"].values
        own = np.cumsum(data["points"].values)[:-1] if "points" in data else None
        parameters, inputs, outcomes = (
            [str(name) for name in data[kind].values] for kind in ("parameter", "input", "outcome")
        )
        return RunParts(
            data["theta"].values,
            output if own is None else np.split(output, own),
            x if own is None else np.split(x, own),
            parameters,
            inputs,
            outcomes,
            json.loads(data.attrs["units"]),
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise FileError(f"{path} is damaged: {error}") from None


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """A long table and its ``attrs``, which lines that begin with ``#`` hold; numbers have all their digits.

    The last column is a checksum of its row, and a line above the table one of what the other lines and the header say.
    """
    if CHECKSUM in frame.columns:
        raise InputError(
            f"a column is named {CHECKSUM!r}, as that of the rows' checksums: rename it, or save as netCDF"
        )
    columns = {kind: frame.attrs[attribute] for kind, attribute in _KINDS.items()}
    body = io.StringIO()
    frame.to_csv(body, index=False, lineterminator="\n")
    body.seek(0)
    header, *rows = csv.reader(body)
    lines = [
        f"# {FORMAT}",
        f"# rows: {len(frame)}",
        f"# columns: {json.dumps(columns, ensure_ascii=False)}",
        f"# units: {json.dumps(frame.attrs['units'], ensure_ascii=False)}",
    ]
    lines.append(f"# {CHECKSUM}: {json.dumps(checksum(*lines, *header))}")
    with whole_file(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*header, CHECKSUM])
        writer.writerows([*cells, checksum(row, *cells)] for row, cells in enumerate(rows))
    return path


def read_csv(path: Path, dialect: Dialect) -> tuple[TextTable, Preamble]:
    """A CSV table, and what the lines above it say; checksums of one that ``write_csv`` wrote are checked."""
    file = text_lines(path)
    preamble = _read_preamble(file, path)
    table = text_table(file, dialect, str(path), len(preamble.lines))
    if preamble.rows not in (None, len(table)):
        raise FileError(
            f"{path} has {len(table)} rows and its header says {preamble.rows}: it has been cut short or changed; "
            'if you changed it, fix or delete the line "# rows: "'
        )
    _verify(table, preamble)
    return table, preamble


def frame_of(table: TextTable, preamble: Preamble, names: Sequence[Sequence[str] | None]) -> pd.DataFrame:
    """The frame of a table of ``write_csv``, with its ``attrs``.

    ``names`` are those of the parameters, inputs and outcomes, None for what the table says itself.
    """
    stored = [preamble.columns.get(kind) for kind in _KINDS]
    chosen = [own if given is None else given for given, own in zip(names, stored, strict=True)]
    floats = {one for part in chosen if part for one in part}
    frame = pd.DataFrame({name: table.numbers(name) if name in floats else table.texts(name) for name in table.names})
    frame.attrs.update(dict(zip(_KINDS.values(), stored, strict=True)), units=preamble.units)
    return frame


class Preamble(NamedTuple):
    """What the lines above a table say; None and nothing where they do not."""

    lines: list[str]
    rows: int | None = None
    columns: dict[str, list[str]] = {}  # noqa: RUF012
    units: dict[str, str] | None = None
    checksum: str | None = None


def _read_preamble(file: TextIO, path: Path) -> Preamble:
    """The ``# name: value`` lines above the table; the file is left at its header."""
    lines: list[str] = []
    found: dict[str, Any] = {}
    while True:
        start = file.tell()
        line = file.readline()
        if not line.startswith("#"):
            file.seek(start)
            return Preamble(lines, **found)
        lines.append(line.rstrip("\r\n"))
        name, colon, value = line[1:].partition(":")
        name = name.strip()
        if line.startswith("# orthocal runs") and lines[-1] != f"# {FORMAT}":
            raise FileError(f"{path} is a table of runs of another version of the format: {lines[-1][:40]!r}")
        if colon and name in Preamble._fields[1:]:
            try:
                found[name] = _CHECKED[name](json.loads(value))
            except (ValueError, TypeError, AttributeError, RecursionError):
                said = f"line {len(lines)}, {lines[-1][:60]!r}, cannot be read"
                raise FileError(f"{path} is not a CSV table of runs: {said}; fix or delete it") from None


def _count(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError
    return [_text(one) for one in value]


#: how each of its values is checked; what does not fit raises
_CHECKED: dict[str, Callable[[Any], Any]] = {
    "rows": _count,
    "columns": lambda value: {kind: _texts(names) for kind, names in value.items()},
    "units": lambda value: {name: _text(unit) for name, unit in value.items()},
    CHECKSUM: _text,
}


def _verify(table: TextTable, preamble: Preamble) -> None:
    """Refuse what has changed since ``write_csv``; tables from elsewhere and of older versions have no checksums."""
    own = table.names[-1] == CHECKSUM
    if not preamble.lines or not (own or preamble.checksum):
        return
    cure = f'if you changed it yourself, delete the line "# {CHECKSUM}: " and the column {CHECKSUM!r}'
    said = [line for line in preamble.lines if not line.startswith(f"# {CHECKSUM}:")]
    if not own or preamble.checksum != checksum(*said, *table.names[:-1]):
        raise FileError(
            f"the lines above the table of {table.file}, or its header, have changed since it was saved; {cure}"
        )
    for row, (cells, line) in enumerate(zip(table.rows, table.lines, strict=True)):
        if cells[-1] != checksum(row, *cells[:-1]):
            raise FileError(f"line {line} of {table.file} has changed since it was saved, or is damaged; {cure}")


# From a file to the parts of a table of runs: one of ours knows its names, of others they are to be given.

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
        text, preamble = read_csv(path, form.dialect)
        table = text
        if preamble.columns and form.plain and not any(isinstance(one, Mapping) for one in names):
            return frame_of(text, preamble, [None if one is None else _columns(one) for one in names])
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
) -> WidePoints | Literal["header"] | None:
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
        return WidePoints(_finite(x, "points"))
    file = Path(given)
    beside: ColumnTable = _parquet(file, PLAIN) if is_parquet(file) else read_text_table(file, form.dialect)
    require_columns(beside, inputs.values())
    x = np.stack([beside.numbers(name) for name in inputs.values()], axis=-1)
    return WidePoints(_finite(x, str(file)), _named_columns(beside, inputs, outcomes, table))


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

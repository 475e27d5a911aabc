"""Tables of runs on disk: netCDF with a digest that shows damage, or CSV, one row a run and point."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import pandas as pd

from ..arrays import Array
from ..errors import FileError, InputError
from ..files import checksum, whole_file
from ..files.netcdf import read_netcdf, write_netcdf
from ..files.tables import Dialect, TextTable, text_lines, text_table

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


def read_csv(path: Path, dialect: Dialect) -> tuple[TextTable, Notes]:
    """A CSV table, and what the lines above it say; checksums of one that ``write_csv`` wrote are checked."""
    file = text_lines(path)
    notes = _read_notes(file, path)
    table = text_table(file, dialect, str(path), len(notes.lines))
    if notes.rows not in (None, len(table)):
        raise FileError(
            f"{path} has {len(table)} rows and its header says {notes.rows}: it has been cut short or changed; "
            'if you changed it, mend or delete the line "# rows: "'
        )
    _verify(table, notes)
    return table, notes


def frame_of(table: TextTable, notes: Notes, names: Sequence[Sequence[str] | None]) -> pd.DataFrame:
    """The frame of a table of ``write_csv``, with its ``attrs``.

    ``names`` are those of the parameters, inputs and outcomes, None for what the table says itself.
    """
    stored = [notes.columns.get(kind) for kind in _KINDS]
    chosen = [own if given is None else given for given, own in zip(names, stored, strict=True)]
    floats = {one for part in chosen if part for one in part}
    frame = pd.DataFrame({name: table.numbers(name) if name in floats else table.texts(name) for name in table.names})
    frame.attrs.update(dict(zip(_KINDS.values(), stored, strict=True)), units=notes.units)
    return frame


class Notes(NamedTuple):
    """What the lines above a table say; None and nothing where they do not."""

    lines: list[str]
    rows: int | None = None
    columns: dict[str, list[str]] = {}  # noqa: RUF012
    units: dict[str, str] | None = None
    checksum: str | None = None


def _read_notes(file: TextIO, path: Path) -> Notes:
    """The ``# name: value`` lines above the table; the file is left at its header."""
    lines: list[str] = []
    found: dict[str, Any] = {}
    while True:
        start = file.tell()
        line = file.readline()
        if not line.startswith("#"):
            file.seek(start)
            return Notes(lines, **found)
        lines.append(line.rstrip("\r\n"))
        name, colon, value = line[1:].partition(":")
        name = name.strip()
        if line.startswith("# orthocal runs") and lines[-1] != f"# {FORMAT}":
            raise FileError(f"{path} is a table of runs of another version of the format: {lines[-1][:40]!r}")
        if colon and name in Notes._fields[1:]:
            try:
                found[name] = _NOTE[name](json.loads(value))
            except (ValueError, TypeError, AttributeError, RecursionError):
                said = f"line {len(lines)}, {lines[-1][:60]!r}, cannot be read"
                raise FileError(f"{path} is not a CSV table of runs: {said}; mend or delete it") from None


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


#: how each of the notes is checked; what does not fit raises
_NOTE: dict[str, Callable[[Any], Any]] = {
    "rows": _count,
    "columns": lambda value: {kind: _texts(names) for kind, names in value.items()},
    "units": lambda value: {name: _text(unit) for name, unit in value.items()},
    CHECKSUM: _text,
}


def _verify(table: TextTable, notes: Notes) -> None:
    """Refuse what has changed since ``write_csv``; tables from elsewhere and of older versions have no checksums."""
    own = table.names[-1] == CHECKSUM
    if not notes.lines or not (own or notes.checksum):
        return
    cure = f'if you changed it yourself, delete the line "# {CHECKSUM}: " and the column {CHECKSUM!r}'
    said = [line for line in notes.lines if not line.startswith(f"# {CHECKSUM}:")]
    if not own or notes.checksum != checksum(*said, *table.names[:-1]):
        raise FileError(
            f"the lines above the table of {table.file}, or its header, have changed since it was saved; {cure}"
        )
    for row, (cells, line) in enumerate(zip(table.rows, table.lines, strict=True)):
        if cells[-1] != checksum(row, *cells[:-1]):
            raise FileError(f"line {line} of {table.file} has changed since it was saved, or is damaged; {cure}")

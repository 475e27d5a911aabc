"""Tables of runs on disk: netCDF with a digest that shows damage, or CSV, one row a run and point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
import xarray as xr

from ..errors import FileError, InputError
from ..files import digest, whole_file
from .table import Names, RunTable

FORMAT = "orthocal runs 1"


def write_netcdf(table: RunTable, path: Path) -> Path:
    """Variables theta (run, parameter), x and output; a ragged table has its runs below each other, and their sizes."""
    long = table.long
    if table.ragged:
        variables: dict[str, Any] = {
            "points": ("run", table.points),
            "x": (("row", "input"), long.x),
            "output": (("row", "outcome"), long.output),
        }
    else:
        variables = {"x": (("point", "input"), table.x), "output": (("run", "point", "outcome"), table.output)}
    data = xr.Dataset(
        {"theta": (("run", "parameter"), table.theta), **variables},
        coords={
            "parameter": list(table.parameter_names),
            "input": list(table.input_names),
            "outcome": list(table.outcome_names),
        },
        attrs={"format": FORMAT, "units": json.dumps(table.units)},
    )
    data.attrs["digest"] = digest(xr.DataTree(data))
    with whole_file(path) as draft:
        data.to_netcdf(draft, engine="h5netcdf")
    return path


def read_netcdf(path: Path) -> RunTable:
    """Read a table and check that it is what ``write_netcdf`` wrote."""
    if not path.is_file():
        raise FileError(f"there is no file {path}")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            data = opened.load()
    except Exception as error:  # whatever a damaged file makes the HDF5 reader raise
        raise FileError(f"{path} is not a netCDF file, or it is damaged ({type(error).__name__})") from None
    if data.attrs.get("format") != FORMAT:
        raise FileError(f"{path} is not a table of runs, or one of another version of the format")
    written = data.attrs.pop("digest", None)
    try:
        if written != digest(xr.DataTree(data)):
            raise FileError(f"{path} has been changed or damaged since it was written: its digest does not fit")
        x: Any = data["x"].values
        output: Any = data["output"].values
        if "points" in data:
            ends = np.cumsum(data["points"].values)[:-1]
            x, output = np.split(x, ends), np.split(output, ends)
        names = [[str(name) for name in data[kind].values] for kind in ("parameter", "input", "outcome")]
        units = json.loads(data.attrs["units"])
        return RunTable(data["theta"].values, output, x, names[0], names[1], names[2], units)
    except (KeyError, TypeError, InputError, json.JSONDecodeError) as error:
        raise FileError(f"{path} is damaged: {error}") from None


def write_csv(table: RunTable, path: Path) -> Path:
    """Lines that begin with ``#`` say what the columns are; numbers have all their digits."""
    frame = table.to_frame()
    columns = {
        "parameters": table.parameter_names,
        "inputs": table.input_names,
        "outcomes": table.outcome_names,
    }
    with whole_file(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {FORMAT}\n# rows: {len(frame)}\n")
        file.write(f"# columns: {json.dumps(columns, ensure_ascii=False)}\n")
        file.write(f"# units: {json.dumps(table.units, ensure_ascii=False)}\n")
        frame.to_csv(file, index=False, lineterminator="\n")
    return path


def read_csv(
    path: Path, parameter_names: Names, input_names: Names, outcome_names: Names, units: Mapping[str, str] | None
) -> RunTable:
    """Read a table of ``write_csv``, or any long CSV table whose columns are given by name."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            notes = _notes(file)
            # as texts: Python reads every digit of a number, pandas' own reader is off in the last one
            frame = pd.read_csv(file, dtype=str, index_col=False)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not a CSV table: {error}") from None
    if notes and notes.get("rows") not in (None, len(frame)):
        raise FileError(
            f"{path} has {len(frame)} rows and its header says {notes['rows']}: it has been cut short or changed; "
            'if you changed it, mend or delete the line "# rows: "'
        )
    columns = notes.get("columns", {})
    try:
        return RunTable.from_frame(
            frame,
            columns.get("parameters") if parameter_names is None else parameter_names,
            columns.get("inputs") if input_names is None else input_names,
            columns.get("outcomes") if outcome_names is None else outcome_names,
            notes.get("units") if units is None else units,
        )
    except InputError as error:
        raise FileError(f"{path}: {error}") from None


def _notes(file: TextIO) -> dict[str, Any]:
    """The ``# name: value`` lines above the table; the file is left at its header."""
    notes: dict[str, Any] = {}
    while True:
        start = file.tell()
        line = file.readline()
        if not line.startswith("#"):
            file.seek(start)
            return notes
        name, colon, value = line[1:].partition(":")
        if colon and name.strip() in ("rows", "columns", "units"):
            # json.JSONDecodeError is a ValueError: not a table of ours
            notes[name.strip()] = json.loads(value)

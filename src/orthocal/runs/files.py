"""Tables of runs on disk: netCDF with a digest that shows damage, or CSV, one row a run and point."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import pandas as pd

from ..arrays import Array
from ..errors import FileError
from ..files import read_netcdf, whole_file, write_netcdf

FORMAT = "orthocal runs 1"
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
    """A long table and its ``attrs``, which lines that begin with ``#`` hold; numbers have all their digits."""
    columns = {kind: frame.attrs[attribute] for kind, attribute in _KINDS.items()}
    with whole_file(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {FORMAT}\n# rows: {len(frame)}\n")
        file.write(f"# columns: {json.dumps(columns, ensure_ascii=False)}\n")
        file.write(f"# units: {json.dumps(frame.attrs['units'], ensure_ascii=False)}\n")
        frame.to_csv(file, index=False, lineterminator="\n")
    return path


def read_csv(path: Path) -> pd.DataFrame:
    """A long CSV table; one of ``write_csv`` has its ``attrs``."""
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
    frame.attrs.update({attribute: columns.get(kind) for kind, attribute in _KINDS.items()}, units=notes.get("units"))
    return frame


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

"""Results on disk: netCDF without pickle, written whole, with a digest that shows damage."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from ...errors import FileError
from ...files.netcdf import read_netcdf, write_netcdf
from ..predict.predictive_data import PREDICTIVE
from ..record import FORMAT
from . import migrations as older

_GROUPS = {"posterior", "sample_stats", "observed_data", "constant_data", "bias_state"}


def save(data: xr.DataTree, path: str | Path) -> Path:
    """Write the tree with its digest, without what is drawn anew when it is looked at."""
    return write_netcdf(stored_part(data), path)


def stored_part(data: xr.DataTree) -> xr.DataTree:
    """The tree without what a file does not hold."""
    if not any(node.name == PREDICTIVE for node in data.subtree):
        return data
    kept = {node.path: node.to_dataset(inherit=False) for node in data.subtree if node.name != PREDICTIVE}
    if "experiments" in data.attrs:
        # of all experiments together: each has its own
        kept.pop("/log_likelihood", None)
        kept["/observed_data"] = xr.Dataset()
    return xr.DataTree.from_dict(kept)


def load(path: str | Path) -> xr.DataTree:
    """Read a tree and check that it is what ``save`` wrote."""
    foreign = "was not written by orthocal, or by another version of its format"
    data = read_netcdf(path, (FORMAT, older.FORMAT), foreign)
    if not set(data.children) >= _GROUPS:
        raise FileError(f"{path} has been changed or damaged since it was written: a part is missing")
    return older.with_todays_groups(data) if data.attrs["format"] == older.FORMAT else data

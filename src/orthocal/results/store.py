"""Results on disk: netCDF without pickle, written whole, with a digest that shows damage."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from ..errors import FileError
from ..files.netcdf import read_netcdf, write_netcdf
from .record import FORMAT

_GROUPS = {"posterior", "sample_stats", "observed_data", "constant_data", "prior", "bias_state"}


def save(data: xr.DataTree, path: str | Path) -> Path:
    """Write the tree with its digest."""
    return write_netcdf(data, path)


def load(path: str | Path) -> xr.DataTree:
    """Read a tree and check that it is what ``save`` wrote."""
    data = read_netcdf(path, FORMAT, "was not written by orthocal, or by another version of its format")
    if not set(data.children) >= _GROUPS:
        raise FileError(f"{path} has been changed or damaged since it was written: a part is missing")
    return data

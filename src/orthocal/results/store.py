"""Results on disk: netCDF without pickle, written whole, with a digest that shows damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from ..arrays import Array
from ..errors import FileError
from ..files import read_netcdf, write_netcdf

FORMAT = "orthocal posterior 1"
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


def stored(data: xr.DataTree, group: str, name: str) -> Array:
    """The values of one variable of a result."""
    return np.asarray(data[group].to_dataset()[name].values)

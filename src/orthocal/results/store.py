"""Results on disk: netCDF without pickle, written whole, with a digest that shows damage."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from ..errors import FileError
from ..files import digest, whole_file
from .record import FORMAT

_GROUPS = {"posterior", "sample_stats", "observed_data", "constant_data", "prior", "bias_state"}


def save(data: xr.DataTree, path: str | Path) -> Path:
    """Write the tree with its digest."""
    marked = data.copy()
    marked.attrs = {**data.attrs, "digest": digest(data)}
    with whole_file(path) as draft:
        marked.to_netcdf(draft, engine="h5netcdf")
    return Path(path)


def load(path: str | Path) -> xr.DataTree:
    """Read a tree and check that it is what ``save`` wrote."""
    if not Path(path).is_file():
        raise FileError(f"there is no file {path}")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            data = opened.load()
            data.close()
    except Exception as error:  # whatever a damaged file makes the HDF5 reader raise
        raise FileError(f"{path} is not a netCDF file, or it is damaged ({type(error).__name__})") from None
    if data.attrs.get("format") != FORMAT:
        raise FileError(f"{path} was not written by orthocal, or by another version of its format")
    written = data.attrs.pop("digest", None)
    if not set(data.children) >= _GROUPS or written != digest(data):
        raise FileError(f"{path} has been changed or damaged since it was written: its digest does not fit")
    return data

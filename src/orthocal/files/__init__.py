"""Files: written whole or not at all, with a digest that shows damage."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FileError, InputError, WriteError

if TYPE_CHECKING:
    import xarray as xr


#: deflate, should somebody have compressed a file, makes nothing smaller than by this
MOST_COMPRESSED = 1032


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, which becomes ``path`` at the end, or nothing if the writing fails."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        problem = "is a folder" if target.is_dir() else "lies in a folder that does not exist"
        raise InputError(f"cannot write {target}: it {problem}")
    try:
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=target.parent) as folder:
            draft = Path(folder) / "draft"
            yield draft
            # some disks say only now that they are full
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(draft, target)
    except OSError as error:
        why = error.strerror or str(error)
        raise WriteError(f"cannot write {target}: {why}; make room, or give another folder") from error


def write_netcdf(data: xr.DataTree, path: str | Path) -> Path:
    """Write the tree with its digest."""
    marked = data.copy()
    marked.attrs = {**data.attrs, "digest": digest(data)}
    with whole_file(path) as draft:
        # made in memory: where the disk is full, the HDF5 library would end the whole process
        draft.write_bytes(marked.to_netcdf(engine="h5netcdf"))
    return Path(path)


def read_netcdf(path: str | Path, kind: str, foreign: str) -> xr.DataTree:
    """Read a tree and check that ``write_netcdf`` wrote it; ``foreign`` is said of one whose ``format`` is not kind."""
    # slow to import, and who only writes pages needs none
    import xarray as xr

    if not Path(path).is_file():
        raise FileError(f"there is no file {path}")
    try:
        _refuse_endless(path)
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            data = opened.load()
            data.close()
        found, written = str(data.attrs.get("format")), str(data.attrs.pop("digest", None))
        whole = written == digest(data)
    except FileError:
        raise
    except Exception as error:  # whatever a damaged file makes the HDF5 reader raise
        raise FileError(f"{path} is not a netCDF file, or it is damaged ({type(error).__name__})") from None
    if found != kind:
        raise FileError(f"{path} {foreign}")
    if not whole:
        raise FileError(f"{path} has been changed or damaged since it was written: its digest does not fit")
    return data


def _refuse_endless(path: str | Path) -> None:
    """Groups that contain themselves, and sizes that no file of this length can hold: reading them would not end."""
    import h5py

    limit = MOST_COMPRESSED * Path(path).stat().st_size
    with h5py.File(path, "r") as file:
        seen: set[object] = set()
        waiting: list[h5py.Group] = [file]
        while waiting:
            group = waiting.pop()
            place = h5py.h5o.get_info(group.id).addr
            if place in seen:
                raise FileError(f"{path} is damaged: a group of it is linked to from two places, or contains itself")
            seen.add(place)
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise FileError(f"{path} is damaged: {name!r} is a link to elsewhere")
                child = group[name]
                if isinstance(child, h5py.Group):
                    waiting.append(child)
                elif isinstance(child, h5py.Dataset):
                    limit -= child.nbytes
        if limit < 0:
            raise FileError(f"{path} is damaged: its arrays are larger than a file of this size can hold")


def digest(data: xr.DataTree) -> str:
    """SHA-256 of all names, dimensions, values and attributes. It shows damage, it is no signature."""
    total = hashlib.sha256()
    for node in sorted(data.subtree, key=lambda node: node.path):
        dataset = node.to_dataset(inherit=False)
        _add(total, node.path, _plain(node.attrs))
        for name in sorted(dataset.variables, key=str):
            variable = dataset.variables[name]
            _add(total, str(name), list(variable.dims), list(variable.shape), _plain(variable.attrs))
            values = np.asarray(variable.values)
            if values.dtype.kind in "biuf":
                total.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
            else:
                _add(total, [str(value) for value in values.ravel()])
    return total.hexdigest()


def checksum(*parts: object) -> str:
    """Twelve letters that change with what is kept, in the order given; it shows damage, it is no signature."""
    total = hashlib.sha256()
    for part in parts:
        # the kind as well: 1 is not "1", and None no text
        value = part if isinstance(part, bytes) else repr(part).encode()
        total.update(b"%s %d " % (type(part).__name__.encode(), len(value)) + value)
    return total.hexdigest()[:12]


def _add(total: hashlib._Hash, *parts: Any) -> None:
    total.update(json.dumps(parts, sort_keys=True).encode())


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(name): value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in attributes.items()
    }

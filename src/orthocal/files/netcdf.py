"""netCDF files of our own: their bytes are known by a digest at their end, before any other program looks at them.

A damaged file can keep the HDF5 library busy for ever, in compiled code that nothing interrupts. One without such an
end, as version 0.1 wrote them, is therefore first read by a process that can be ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FileError
from . import is_file, whole_file

if TYPE_CHECKING:
    import xarray as xr

#: deflate, should somebody have compressed a file, makes nothing smaller than by this
MOST_COMPRESSED = 1032
#: what the last line of a file begins with; the digest of all before it follows
STAMP = b"\northocal: blake2b of all before this line: "
#: what an HDF5 file begins with, and more bytes than any has
SIGNATURE, MOST_BYTES = b"\x89HDF\r\n\x1a\n", 2**60
#: bytes that are read at a time
BLOCK = 2**24
#: CPU seconds that the reading in a trial may take, and bytes that are read in one of them at least
PATIENCE, READ_A_SECOND = 3.0, 20e6
#: seconds by the clock after which one that computes nothing is given up
LONGEST = 60.0
#: a trial, which a signal ends: on a busy machine seconds by the clock say nothing of the file
TRIAL = """
import signal, sys, h5netcdf, xarray
from orthocal.files.netcdf import loaded
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))
loaded(sys.argv[1])
"""


def write_netcdf(data: xr.DataTree, path: str | Path) -> Path:
    """Write the tree with its digest."""
    marked = data.copy()
    marked.attrs = {**data.attrs, "digest": digest(data)}
    # made in memory: where the disk is full, the HDF5 library would end the whole process; released also after an error
    with whole_file(path) as draft, marked.to_netcdf(engine="h5netcdf") as content:
        draft.write_bytes(content)
        with draft.open("ab") as file:
            # HDF5 knows its own end, and does not look at what follows
            file.write(_stamp(hashlib.blake2b(content, digest_size=32)))
    return Path(path)


def read_netcdf(path: str | Path, kinds: str | tuple[str, ...], foreign: str) -> xr.DataTree:
    """Read a tree and check that ``write_netcdf`` wrote it; ``foreign`` is said of one whose ``format`` is another."""
    if not is_file(path):
        raise FileError(f"there is no file {path}")
    if not _stamped(path):
        _refuse_cut(path)
        _tried(path)
    data = loaded(path)
    found, written = str(data.attrs.get("format")), str(data.attrs.pop("digest", None))
    if found not in ((kinds,) if isinstance(kinds, str) else kinds):
        raise FileError(f"{path} {foreign}")
    if written != digest(data):
        raise FileError(CHANGED.format(path))
    return data


CHANGED = "{} has been changed or damaged since it was written: its digest does not fit"


def _stamp(total: hashlib.blake2b) -> bytes:
    return STAMP + total.hexdigest().encode() + b"\n"


def _stamped(path: str | Path) -> bool:
    """Whether the file ends with the digest of its bytes; an error where it is another one, or a part of it."""
    total = hashlib.blake2b(digest_size=32)
    length = len(_stamp(total))
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4 * length))
            end = file.read()
            file.seek(0)
            while left := size - length - file.tell():
                if left < 0 or not (block := file.read(min(left, BLOCK))):
                    break
                total.update(block)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    if end.endswith(_stamp(total)):
        return True
    # what is left of one, also where the file was cut or something was put behind it
    if STAMP[1:10] in end:
        raise FileError(CHANGED.format(path))
    return False


def _refuse_cut(path: str | Path) -> None:
    """A file that is shorter than its first bytes say: known without a process of its own."""
    with Path(path).open("rb") as file:
        first = file.read(64)
        size = file.seek(0, os.SEEK_END)
    if first[:8] != SIGNATURE or len(first) < 64:
        raise FileError(f"{path} is not a netCDF file, or it is damaged (its first bytes are others)")
    # the HDF5 specification's superblocks: where the address of the end stands, by version
    place = {0: 40, 1: 44, 2: 28, 3: 28}.get(first[8])
    end = 0 if place is None else int.from_bytes(first[place : place + 8], "little")
    if size < end < MOST_BYTES:
        raise FileError(f"{path} is damaged: {size} bytes are left of {end}")


def _tried(path: str | Path) -> None:
    """Read a file in a process of its own, which may hang or die."""
    limit = PATIENCE + Path(path).stat().st_size / READ_A_SECOND
    places = os.pathsep.join(place for place in sys.path if place)
    with subprocess.Popen(
        [sys.executable, "-c", TRIAL, str(path), str(limit)],
        env={**os.environ, "PYTHONPATH": places},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as trial:
        try:
            code = trial.wait(LONGEST + limit)
        except subprocess.TimeoutExpired:
            code = -signal.SIGPROF
        finally:
            trial.kill()
    if code == -signal.SIGPROF:
        raise FileError(f"{path} is damaged: its reading does not end")
    if code < 0:
        raise FileError(f"{path} is damaged: the HDF5 library crashes on it")


def loaded(path: str | Path) -> xr.DataTree:
    """What is in a file, or an error."""
    # slow to import, and who only writes pages needs none
    import xarray as xr

    try:
        _refuse_endless(path)
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            data = opened.load()
            data.close()
        # its values are looked at, too: they may be of a kind that cannot be compared
        digest(data)
    except FileError:
        raise
    except Exception as error:  # whatever a damaged file makes the HDF5 reader raise
        raise FileError(f"{path} is not a netCDF file, or it is damaged ({type(error).__name__})") from None
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
                # not copied where they lie so: they may be half of all memory in use
                numbers: Any = np.ascontiguousarray(values, dtype="<f8").reshape(-1).view(np.uint8)
                total.update(numbers)
            else:
                _add(total, [str(value) for value in values.ravel()])
    return total.hexdigest()


def _add(total: hashlib._Hash, *parts: Any) -> None:
    total.update(json.dumps(parts, sort_keys=True).encode())


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(name): value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in attributes.items()
    }

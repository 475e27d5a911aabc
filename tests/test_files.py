"""Files are whole or not there, and a disk that is full costs the file only."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from orthocal.errors import FileError, OrthocalError, WriteError
from orthocal.files import netcdf, whole_file

FULL = """
import resource, sys
import numpy as np
import xarray as xr
from orthocal.errors import WriteError
from orthocal.files.netcdf import read_netcdf, write_netcdf

tree = xr.DataTree(xr.Dataset({"values": ("n", np.arange(1e5))}, attrs={"format": "test"}))
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
try:
    write_netcdf(tree, sys.argv[1])
except WriteError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
write_netcdf(tree, sys.argv[1])
print(read_netcdf(sys.argv[1], "test", "").identical(tree))
"""


def test_a_full_disk_is_one_sentence_and_the_process_lives(tmp_path):
    """A limit on the size of files fails as a full disk does, in the midst of the writing."""
    path = tmp_path / "fit.nc"
    run = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"cannot write {path}: File too large; make room, or give another folder\nTrue\n"
    assert [one.name for one in tmp_path.iterdir()] == ["fit.nc"]


def test_what_was_there_stays_where_writing_fails(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")

    def write():
        with whole_file(path) as draft:
            draft.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(WriteError, match=r"page\.html: No space left") as raised:
        write()
    assert isinstance(raised.value, OrthocalError)
    assert isinstance(raised.value, OSError)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_a_disk_that_says_late_that_it_is_full(tmp_path, monkeypatch):
    def fails(_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("orthocal.files.os.fsync", fails)
    with pytest.raises(WriteError, match="Disk quota exceeded"), whole_file(tmp_path / "page.html") as draft:
        draft.write_text("all")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("orthocal.files.tempfile.TemporaryDirectory", fails)
    with pytest.raises(WriteError, match="Permission denied"), whole_file(tmp_path / "page.html") as draft:
        Path(draft).write_text("all")


def test_memory_is_released_where_a_file_cannot_be_written(tmp_path, monkeypatch):
    """Also while the error is held; the collector of Python 3.13 reports a buffer that is in use at its end."""
    contents = []

    def fails(_, content):
        contents.append(content)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("orthocal.files.netcdf.Path.write_bytes", fails)
    with pytest.raises(WriteError, match="No space left"):
        netcdf.write_netcdf(a_tree(), tmp_path / "tree.nc")
    with pytest.raises(ValueError, match="released"):
        contents[0].tobytes()


def a_tree():
    import numpy as np
    import xarray as xr

    return xr.DataTree(xr.Dataset({"values": ("n", np.arange(10.0))}, attrs={"format": "test"}))


@pytest.fixture
def stored(tmp_path):
    return netcdf.write_netcdf(a_tree(), tmp_path / "tree.nc")


def test_a_file_without_a_stamp_is_tried_first(stored, monkeypatch):
    """As version 0.1 wrote them; one that the HDF5 library never ends with is ended."""
    content = stored.read_bytes()
    stored.write_bytes(content[: content.rindex(netcdf.STAMP)])
    assert netcdf.read_netcdf(stored, "test", "")["values"].sum() == 45
    monkeypatch.setattr(netcdf, "PATIENCE", 0.001)
    with pytest.raises(FileError, match="its reading does not end"):
        netcdf.read_netcdf(stored, "test", "")


SLOW = """
import sys, time
time.sleep(2)

class Slow:
    def find_spec(self, name, *_):
        if name == "dask":
            time.sleep(2)

sys.meta_path.insert(0, Slow())
"""


@pytest.mark.slow
def test_a_trial_that_is_slow_to_start_is_no_fault_of_the_file(stored, monkeypatch, tmp_path):
    """Patience is with what the reading computes: a busy machine makes no good file a damaged one."""
    content = stored.read_bytes()
    stored.write_bytes(content[: content.rindex(netcdf.STAMP)])
    # before it reads and while it does
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(netcdf, "PATIENCE", 1.9)
    assert netcdf.read_netcdf(stored, "test", "")["values"].sum() == 45


def test_a_file_whose_bytes_have_changed_is_never_opened(stored, monkeypatch):
    monkeypatch.delattr(netcdf, "loaded")
    good = stored.read_bytes()
    for changed in (good[:100] + b"\0" + good[101:], good + b" ", good[:-1], good[:-80], good[:50] + good):
        stored.write_bytes(changed)
        with pytest.raises(FileError, match="its digest does not fit"):
            netcdf.read_netcdf(stored, "test", "")

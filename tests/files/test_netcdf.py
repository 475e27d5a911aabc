"""netCDF files that are damaged: groups without an end, files cut short."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.errors import FileError

h5py = pytest.importorskip("h5py")


def runs(path):
    return oc.RunTable([1.0, 2.0], np.ones((2, 3)), np.arange(3.0)).save(path)


@pytest.mark.parametrize("load", [oc.load, oc.RunTable.load])
def test_a_group_that_contains_itself(tmp_path, load):
    with h5py.File(runs(tmp_path / "runs.nc"), "a") as file:
        group = file.create_group("group")
        group["up"], group["again"] = file["/"], group
    with pytest.raises(FileError, match="is damaged: a group of it is linked to from two places, or contains itself"):
        load(tmp_path / "runs.nc")


def test_links_to_elsewhere(tmp_path):
    with h5py.File(runs(tmp_path / "runs.nc"), "a") as file:
        file["other"] = h5py.ExternalLink(str(runs(tmp_path / "other.nc")), "/")
    with pytest.raises(FileError, match="'other' is a link to elsewhere"):
        oc.RunTable.load(tmp_path / "runs.nc")


def test_sizes_that_no_file_can_hold(tmp_path):
    with h5py.File(tmp_path / "large.nc", "w") as file:
        file.create_dataset("x", (10**9, 10**3), dtype="f8")
    with pytest.raises(FileError, match="larger than a file of this size can hold"):
        oc.load(tmp_path / "large.nc")


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_file_that_was_cut(tmp_path, libver, monkeypatch):
    monkeypatch.setattr("orthocal.files.netcdf._tried", lambda path: pytest.fail("a process is not needed"))
    path = tmp_path / "cut.nc"
    with h5py.File(path, "w", libver=libver) as file:
        file["x"] = np.arange(1000.0)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size // 2])
    with pytest.raises(FileError, match=f"cut.nc is damaged: {size // 2} bytes are left of {size}"):
        oc.load(path)

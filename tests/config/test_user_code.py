"""Functions of the user's files: importable neighbours, and no trace of them where other code runs."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from orthocal.config.simulators import FileFunction
from orthocal.errors import ConfigError

X = np.linspace(0, 1, 3)

SIMULATOR = """
from __future__ import annotations
from dataclasses import dataclass
import helpers_of_a_test

@dataclass
class Line:
    slope: float

def simulate(x, theta):
    return Line(helpers_of_a_test.slope * theta[0]).slope * x

def later(x, theta):
    import lazy_of_a_test.inner
    return lazy_of_a_test.inner.slope * theta[0] * x

def kept(x, theta):
    return Line(theta[0])
"""


@pytest.fixture
def folders(tmp_path):
    """Two folders whose files have the same names and different slopes."""
    for name, slope in (("one", 1.0), ("two", 2.0)):
        package = tmp_path / name / "lazy_of_a_test"
        package.mkdir(parents=True)
        (tmp_path / name / "sim.py").write_text(SIMULATOR)
        (tmp_path / name / "helpers_of_a_test.py").write_text(f"slope = {slope}\n")
        (package / "__init__.py").write_text("")
        (package / "inner.py").write_text(f"slope = {slope}\n")
    return tmp_path / "one", tmp_path / "two"


def test_the_path_is_as_it_was_after_loading_and_after_a_call(folders):
    before = list(sys.path)
    function = FileFunction("sim.py:later", folders[0]).loaded()
    assert sys.path == before
    assert np.array_equal(function(X, np.array([3.0])), 3 * X)
    assert sys.path == before


def test_the_path_is_as_it_was_after_a_file_that_fails(tmp_path):
    (tmp_path / "sim.py").write_text("import nothing_of_this_name\n")
    before, modules = list(sys.path), set(sys.modules)
    with pytest.raises(ConfigError, match="cannot be loaded: ModuleNotFoundError"):
        FileFunction("sim.py:f", tmp_path).loaded()
    assert sys.path == before
    assert set(sys.modules) <= modules


def test_files_of_one_name_in_two_folders(folders):
    """Neither their modules nor those of their neighbours are mixed up, at first or in a later call."""
    theta = np.array([1.0])
    at_once = [FileFunction("sim.py:simulate", folder).loaded() for folder in folders]
    lazy = [FileFunction("sim.py:later", folder).loaded() for folder in folders]
    for _ in range(2):
        for functions in (at_once, lazy):
            assert [function(X, theta)[-1] for function in functions] == [1.0, 2.0]


def test_pickle_finds_the_classes_of_files_of_one_name(folders):
    lines = [FileFunction("sim.py:kept", folder)(X, np.array([5.0])) for folder in folders]
    assert type(lines[0]) is not type(lines[1])
    for line in lines:
        assert pickle.loads(pickle.dumps(line)) == line


def test_calls_in_threads(folders):
    before = list(sys.path)
    function = FileFunction("sim.py:later", folders[1]).loaded()
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda slope: function(X, np.array([slope]))[-1], range(200)))
    assert values == [2 * slope for slope in range(200)]
    assert sys.path == before


def test_a_function_goes_to_another_process_by_its_reference(folders, tmp_path):
    function = FileFunction("sim.py:later", folders[1]).loaded()
    (tmp_path / "sent").write_bytes(pickle.dumps(function))
    call = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))(1.0, [4.0]))"
    run = subprocess.run([sys.executable, "-c", call, tmp_path / "sent"], capture_output=True, text=True, check=True)
    assert run.stdout == "8.0\n"


def test_modules_that_are_installed_below_the_folder_stay_known(tmp_path, folders, monkeypatch):
    """An environment may lie in the folder: only what is beside the file is its neighbour."""
    site = folders[0] / "env" / "site-packages"
    site.mkdir(parents=True)
    (site / "installed_of_a_test.py").write_text("")
    monkeypatch.syspath_prepend(site)
    (folders[0] / "sim.py").write_text("import installed_of_a_test\ndef f(x, theta):\n    return x\n")
    FileFunction("sim.py:f", folders[0]).loaded()
    FileFunction("sim.py:later", folders[1]).loaded()
    assert "installed_of_a_test" in sys.modules
    monkeypatch.delitem(sys.modules, "installed_of_a_test")


@pytest.mark.parametrize("reference", ["sim.py", "sim.py:", ":simulate"])
def test_references_without_a_file_or_a_function(reference):
    with pytest.raises(ConfigError, match=r'give it as "file\.py:function"'):
        FileFunction(reference, Path()).loaded()

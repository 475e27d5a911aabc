"""A small problem as a file, and the program run in this process."""

import shutil
import sys
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from orthocal.cli import app, main
from orthocal.cli.demo import PROBLEM, SIMULATOR

FIELD = "x,y\n" + "\n".join(f"{i / 9},{3 * i / 9 + 0.1 * (-1) ** i}" for i in range(10)) + "\n"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def write_small(folder, method='name = "none"'):
    """A problem that is calibrated in a moment."""
    (folder / "field.csv").write_text(FIELD)
    (folder / "simulator.py").write_text(SIMULATOR)
    quick = "draws = 20\nwarmup = 5\nchains = 1\nstarts = 2\n[noise]\ncov = 0.04\n"
    (folder / "problem.toml").write_text(f"{PROBLEM}{quick}[method]\n{method}\n[compare]\nfolds = 0\n")


@pytest.fixture
def small(tmp_path):
    """A folder with such a problem."""
    write_small(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fitted_once(tmp_path_factory):
    """The same with a Gaussian process whose settings are given, calibrated."""
    folder = tmp_path_factory.mktemp("fitted")
    write_small(folder, 'name = "gp"\nsd = 0.3\nlengthscale = 0.3')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("orthocal.results.report.report.render", lambda *_: "a page\n" * 200)
        done = CliRunner().invoke(app, ["run", str(folder / "problem.toml")])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def fitted(fitted_once, small):
    """A folder of a test's own with its files, also the result."""
    shutil.copytree(fitted_once, small, dirs_exist_ok=True)
    return small


@pytest.fixture
def plain_pages(monkeypatch):
    """Pages without figures, which take most of the time of so small a problem."""
    for module in ("results.report.report", "comparison.page"):
        monkeypatch.setattr(f"orthocal.{module}.render", lambda *_: "a page\n" * 200)


@pytest.fixture
def program(monkeypatch, capfd, small, plain_pages):
    def run(*words):
        monkeypatch.chdir(small)
        monkeypatch.setattr(sys, "argv", ["orthocal", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capfd.readouterr())

    return run

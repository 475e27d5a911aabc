"""A small problem as a file, and the program run in this process."""

import sys
from typing import NamedTuple

import pytest

from orthocal.cli import main
from orthocal.cli.demo import PROBLEM, SIMULATOR

FIELD = "x,y\n" + "\n".join(f"{i / 9},{3 * i / 9 + 0.1 * (-1) ** i}" for i in range(10)) + "\n"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def small(tmp_path):
    """A folder with a problem that is calibrated in a moment."""
    (tmp_path / "field.csv").write_text(FIELD)
    (tmp_path / "simulator.py").write_text(SIMULATOR)
    quick = "draws = 20\nwarmup = 5\nchains = 1\nstarts = 2\n[noise]\ncov = 0.04\n"
    (tmp_path / "problem.toml").write_text(PROBLEM + quick + '[method]\nname = "none"\n[compare]\nfolds = 0\n')
    return tmp_path


@pytest.fixture
def plain_pages(monkeypatch):
    """Pages without figures, which take most of the time of so small a problem."""
    for module in ("results.report", "comparison.page"):
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

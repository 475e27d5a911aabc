import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import fake_studies
from orthocal.cli import main


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def fake_folder(tmp_path, monkeypatch) -> Path:
    """Where the fake methods leave signs, also from other processes."""
    folder = tmp_path / "signs"
    folder.mkdir()
    monkeypatch.setenv(fake_studies.FOLDER, str(folder))
    return folder


@pytest.fixture
def orthocal(monkeypatch, capfd, tmp_path):
    """Run the program in this process, as its entry point does."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["orthocal", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Result(int(ended.value.code or 0), *capfd.readouterr())

    return run

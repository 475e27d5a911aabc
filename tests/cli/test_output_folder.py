"""Finished work is not lost: its place is tried before, it is written before it is printed, what is read stays."""

import errno
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orthocal as oc

COMMANDS = ["run", "compare"]
#: what each command writes, the first under a name that the file can choose
FILES = {"run": ("fit.nc", "fit.html"), "compare": ("compare.html", "compare-scores.csv")}
NEVER = 'def simulate(x, theta):\n    raise RuntimeError("it was called")\n'


def refused(ended, message):
    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert message in ended.err
    assert "it was called" not in ended.err


@pytest.fixture
def uncalled(small):
    """The simulator must not be called: what is wrong is known before."""
    (small / "simulator.py").write_text(NEVER)
    return small


def replaced(folder, old, new):
    file = folder / "problem.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("command", COMMANDS)
class TestBeforeTheWork:
    def test_a_folder_that_cannot_be_made(self, uncalled, program, command):
        (uncalled / "there").write_text("a file")
        refused(program(command, "problem.toml", "--out", "there/deep"), "cannot make the folder 'there/deep'")

    def test_a_folder_that_cannot_be_written(self, uncalled, program, command, monkeypatch):
        def fails(*_, **__):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr("orthocal.cli.outputs.tempfile.TemporaryDirectory", fails)
        refused(program(command, "problem.toml"), "cannot write to the folder .: Read-only file system")

    def test_a_file_that_is_a_folder(self, uncalled, program, command):
        (uncalled / FILES[command][0]).mkdir()
        refused(program(command, "problem.toml"), "it is a folder")

    @pytest.mark.parametrize("link", ["the file itself", "a hard link", "a symbolic link"])
    def test_what_is_read_is_not_replaced(self, uncalled, program, command, link):
        for target in FILES[command]:
            old, new = uncalled / "field.csv", uncalled / target
            content = old.read_text()
            if link == "the file itself":
                shutil.copy(old, new)
                replaced(uncalled, "field.csv", target)
            else:
                (os.link if link == "a hard link" else os.symlink)(old, new)
            refused(program(command, "problem.toml"), f"would replace {target if 'itself' in link else 'field.csv'}")
            assert new.read_text() == content
            if link == "the file itself":
                replaced(uncalled, target, "field.csv")
            new.unlink()

    def test_folders_that_were_made_for_nothing_go_again(self, uncalled, program, command):
        ended = program(command, "problem.toml", "--out", "new/deep")
        assert ended.code == 1
        assert "it was called" in ended.err
        assert not (uncalled / "new").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("x" * 300, "File name too long"), ("a\\u0000b", "NUL"), ("fit/x", "without folders")]
)
def test_names_that_no_file_can_have(uncalled, program, name, message):
    replaced(uncalled, "[noise]", f'[output]\nname = "{name}"\n[noise]')
    refused(program("run", "problem.toml"), message)


def test_a_disk_without_room_for_the_draws(uncalled, program, monkeypatch):
    """20 draws of one parameter and of model and bias at 10 points are 3360 bytes."""
    usage = shutil.disk_usage(uncalled)
    monkeypatch.setattr("orthocal.cli.outputs.shutil.disk_usage", lambda _: usage._replace(free=3359))
    refused(program("run", "problem.toml"), "has 0.0 MB left")
    monkeypatch.setattr("orthocal.cli.outputs.shutil.disk_usage", lambda _: usage._replace(free=3360))
    assert "it was called" in program("run", "problem.toml").err


class Failing(io.TextIOBase):
    """A standard output that cannot be written to."""

    def __init__(self, number):
        self.number = number

    def write(self, text):
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    ("command", "number", "code"), [("run", errno.EPIPE, 0), ("run", errno.ENOSPC, 1), ("compare", errno.EPIPE, 0)]
)
def test_a_terminal_that_has_gone_loses_words_only(small, program, monkeypatch, command, number, code):
    monkeypatch.setattr(sys, "stdout", Failing(number))
    ended = program(command, "problem.toml")
    assert ended.code == code
    assert ("standard output could not be written (No space left on device)" in ended.err) == bool(code)
    assert "Traceback" not in ended.err
    for name in FILES[command][:1]:
        assert (small / name).stat().st_size > 1000
    if command == "run":
        assert oc.load(small / "fit.nc").theta.shape == (1, 20, 1)


def test_warnings_that_cannot_be_shown_do_not_end_the_work(small, program, monkeypatch):
    (small / "simulator.py").write_text(
        "import warnings\nimport orthocal as oc\n\ndef simulate(x, theta):\n    with warnings.catch_warnings():\n"
        "        warnings.simplefilter('always')\n        warnings.warn('a word', oc.OrthocalWarning)\n"
        "    return theta[0] * x[:, 0]\n"
    )
    monkeypatch.setattr(sys, "stderr", Failing(errno.ENOSPC))
    assert program("run", "problem.toml").code == 0
    assert (small / "fit.nc").is_file()


def full(folder, monkeypatch):
    """A disk that is full below ``folder`` while files of some size are written."""
    write = Path.write_bytes

    def fails(path, data):
        if folder in path.resolve().parents and len(data) > 4096:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fails)


def test_a_disk_that_is_full_at_the_end_sends_the_result_elsewhere(small, program, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    full(small, monkeypatch)
    ended = program("run", "problem.toml")
    assert ended.code == 1
    assert ended.err == "error: cannot write fit.nc: No space left on device; make room, or give another folder\n"
    (kept,) = elsewhere.rglob("fit.nc")
    assert f"Result: {kept}" in ended.out
    assert "theta" in ended.out
    assert oc.load(kept).theta.shape == (1, 20, 1)
    assert (small / "fit.html").is_file()
    assert not (small / "fit.nc").exists()


def test_a_disk_that_is_full_everywhere_still_shows_the_result(small, program, monkeypatch):
    full(Path("/"), monkeypatch)
    ended = program("run", "problem.toml")
    assert ended.code == 1
    assert "Result: not written, nor elsewhere" in ended.out
    assert "theta" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("end", ["| head -1", "> /dev/full", ">&-", "> /dev/full 2>&1", ">&- 2>&- <&-"])
def test_in_a_real_shell(small, command, end):
    line = f"{sys.executable} -c 'from orthocal.cli import main; main()' {command} problem.toml {end}"
    run = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], cwd=small, capture_output=True, text=True, check=False
    )
    assert run.returncode == int("full" in end), run.stderr
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr
    assert (small / FILES[command][0]).stat().st_size > 1000

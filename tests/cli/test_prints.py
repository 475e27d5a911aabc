"""What a simulator prints does not bury the result: it is left out, counted, and shown on request."""

import pytest

from orthocal.cli.documents import prints_left_out

LOUD = """
import os, sys

def simulate(x, theta):
    print("of Python")
    os.write(1, b"of compiled code\\n")
    if not os.path.exists("once"):
        open("once", "w").close()
        os.system("echo of another process")
    return theta[0] * x[:, 0]
"""


COUNTING = """
import time
from pathlib import Path

calls = []

def simulate(x, theta):
    calls.append(1)
    print(len(calls), flush=True)
    if len(calls) == 3:
        time.sleep(1.2)
    Path("calls").write_text(str(len(calls)))
    return theta[0] * x[:, 0]
"""


@pytest.fixture
def loud(small):
    (small / "simulator.py").write_text(LOUD)
    return small


@pytest.mark.parametrize("command", ["run", "compare"])
def test_prints_are_left_out_and_counted(loud, program, command):
    (loud / "once").unlink(missing_ok=True)
    ended = program(command, "problem.toml")
    assert ended.code == 0, ended.err
    for words in ("of Python", "of compiled code", "of another process"):
        assert words not in ended.out + ended.err
    (note,) = [line for line in ended.err.splitlines() if "the simulator printed" in line]
    lines = int(note.split("printed ")[1].split(" line")[0])
    assert lines > 10
    # two of every call, and one
    assert lines % 2 == 1
    assert "--prints shows them" in note


def test_prints_are_shown_on_request(loud, program):
    ended = program("run", "problem.toml", "--prints")
    assert ended.code == 0, ended.err
    for words in ("of Python", "of compiled code", "of another process"):
        assert words in ended.out
    assert "printed" not in ended.err


def test_a_quiet_simulator_has_no_note(small, program):
    ended = program("run", "problem.toml")
    assert ended.code == 0
    assert ended.err == ""


def test_a_file_of_prints_does_not_grow_without_end(loud, program, monkeypatch):
    """Emptied at every look, and no line is lost."""
    monkeypatch.setattr("orthocal.cli.documents.MOST_KEPT", 0)
    (loud / "simulator.py").write_text(COUNTING)
    ended = program("run", "problem.toml")
    assert f"printed {(loud / 'calls').read_text()} lines" in ended.err


def test_a_failure_says_that_there_were_prints(loud, program):
    (loud / "simulator.py").write_text('def simulate(x, theta):\n    print("why")\n    raise ValueError("no")\n')
    ended = program("run", "problem.toml")
    assert ended.code == 1
    assert "the simulator printed" in ended.err
    assert "raised ValueError" in ended.err


def test_without_a_place_for_temporary_files(monkeypatch, capfd):
    def fails(**_):
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("orthocal.cli.documents.tempfile.TemporaryDirectory", fails)
    with prints_left_out(False):
        print("a word")
    print("the result")
    assert capfd.readouterr() == ("the result\n", "")

"""``orthocal run`` keeps its work: what Ctrl-C and SIGTERM say and leave, and ``orthocal resume``."""

import json
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli import app, results as checkpoints
from orthocal.errors import FileError

PROBLEM = """[data]
file = "field.csv"
x = "x"
y = "y"

[simulator]
function = "simulator.py:simulate"

[parameters]
a = { distribution = "norm", loc = 0, scale = 10 }

[noise]
cov = 0.04

[method]
name = "none"

[sampling]
seed = 4
draws = DRAWS
warmup = 10
chains = 1
"""
DRIVER = """import sys
from orthocal.cli import checkpoints, main

checkpoints.AFTER = 0.0
sys.argv = ["orthocal", "run", "problem.toml"]
main()
"""


@pytest.fixture
def folder(tmp_path):
    x = np.linspace(0.0, 1.0, 8)
    rows = [f"{a!r},{b!r}" for a, b in zip(x.tolist(), (2 * x + 0.1 * (-1) ** np.arange(8)).tolist(), strict=True)]
    (tmp_path / "field.csv").write_text("\n".join(["x,y", *rows, ""]))
    (tmp_path / "simulator.py").write_text("def simulate(x, theta):\n    return theta[0] * x[:, 0]\n")
    (tmp_path / "problem.toml").write_text(PROBLEM.replace("DRAWS", "6"))
    (tmp_path / "driver.py").write_text(DRIVER)
    return tmp_path


def test_a_run_is_resumed_from_anywhere(folder, monkeypatch):
    """An interrupt among the draws; then the checkpoint alone says what to do."""
    monkeypatch.setattr(checkpoints, "AFTER", 0.0)
    from orthocal.execution.checkpoints.checkpoint_file import CheckpointFile

    def offered(self, loop, iteration, state, draws):
        if iteration == 13:
            self._write(loop, iteration, state, draws)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "offered", offered)
        ended = CliRunner().invoke(app, ["run", str(folder / "problem.toml"), "--out", str(folder / "out")])
    checkpoint = folder / "out" / "fit.ckpt"
    assert ended.exit_code == 130
    words = f"error: interrupted: {checkpoint} keeps the first 13 iterations, and the same command goes on from there\n"
    assert ended.stderr == words
    resumed = CliRunner().invoke(app, ["resume", str(checkpoint)], catch_exceptions=False)
    assert resumed.exit_code == 0
    assert not checkpoint.exists()
    whole = CliRunner().invoke(app, ["run", str(folder / "problem.toml"), "--out", str(folder / "whole")])
    assert whole.exit_code == 0
    one, other = (oc.load(folder / name / "fit.nc").theta for name in ("out", "whole"))
    assert one.tobytes() == other.tobytes()


def test_a_checkpoint_without_its_problem_says_so(folder):
    def made(origin):
        path = folder / "fit.ckpt"
        path.unlink(missing_ok=True)
        from orthocal.execution.checkpoints.checkpoint_file import _File

        with _File(path, 1.0, "") as file:
            file.write([("INSERT INTO work VALUES ('origin', ?)", (origin,))])
        return path

    with pytest.raises(FileError, match="was written by a program of your own"):
        checkpoints.began(made(""))
    with pytest.raises(FileError, match=r"belongs to /nowhere/problem\.toml, which is not there"):
        checkpoints.began(made(json.dumps({"command": "run", "problem_file": "/nowhere/problem.toml", "out": None})))
    with pytest.raises(FileError, match="there is no checkpoint"):
        checkpoints.began(folder / "other.ckpt")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_the_checkpoint(folder, number):
    (folder / "problem.toml").write_text(PROBLEM.replace("DRAWS", "1000000"))
    process = subprocess.Popen([sys.executable, "driver.py"], cwd=folder, stderr=subprocess.PIPE, text=True)
    checkpoint = folder / "fit.ckpt"
    # an empty one has some pages of 64 kB
    while not checkpoint.exists() or checkpoint.stat().st_size < 600_000:
        assert process.poll() is None
        time.sleep(0.5)
    process.send_signal(number)
    _, words = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert words.startswith("error: interrupted: ")
    assert words.endswith("iterations, and the same command goes on from there\n")
    assert words.count("\n") == 1
    with sqlite3.connect(checkpoint) as connection:
        assert connection.execute("SELECT iteration FROM loop").fetchone()[0] > 10


@pytest.mark.slow
def test_a_comparison_is_resumed(folder, monkeypatch):
    """Ended in the second fit, which is that of the first fold; its tables are those of one that was not."""
    monkeypatch.setattr(checkpoints, "AFTER", 0.0)
    from orthocal.execution.checkpoints.checkpoint_file import CheckpointFile

    begun, offered = [], CheckpointFile.offered

    def interrupting(self, loop, iteration, state, draws):
        begun.append(loop)
        offered(self, loop, iteration, state, draws)
        if (loop, iteration) == (2, 12):
            raise KeyboardInterrupt

    compared = ["compare", str(folder / "problem.toml"), "--methods", "none,ko", "--out"]
    checkpoint = folder / "out" / "compare.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "offered", interrupting)
        ended = CliRunner().invoke(app, [*compared, str(folder / "out")])
        words = f"interrupted: {checkpoint} keeps the fits that were done, and the same command goes on from there"
        assert (ended.exit_code, ended.stderr) == (130, f"error: {words}\n")
        begun.clear()
        assert CliRunner().invoke(app, ["resume", str(checkpoint)], catch_exceptions=False).exit_code == 130
        assert 1 not in begun
    assert CliRunner().invoke(app, ["resume", str(checkpoint)], catch_exceptions=False).exit_code == 0
    assert not checkpoint.exists()
    assert CliRunner().invoke(app, [*compared, str(folder / "whole")]).exit_code == 0
    for name in ("parameters", "scores"):
        one, other = ((folder / at / f"compare-{name}.csv").read_text() for at in ("out", "whole"))
        assert one == other

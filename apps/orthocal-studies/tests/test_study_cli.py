"""``orthocal study`` as a user meets it, killed and interrupted ones too."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fake_studies
from orthocal_studies.results import FILE, Results

PROGRAM = Path(sys.executable).with_name("orthocal")


def refused(run, message):
    """One line on standard error, no traceback, exit code 1."""
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert message in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "there is no study 'table9'"),
        (["table1", "--methods", "magic"], "table1 has no method magic"),
        (["table1", "--methods", ","], "table1 has no method (none given)"),
        (["all", "--methods", "magic"], "no study has a method magic"),
        (["table1", "--jobs", "0"], "--jobs 0"),
        (["table1", "--draws", "5001"], "--draws 5001: give a multiple of 4"),
        (["table1", "--replications", "0"], "--replications 0"),
        (["table1", "--seed", "-3"], "--seed -3"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(orthocal, tmp_path, arguments, message):
    refused(orthocal("study", *arguments), message)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(orthocal, tmp_path):
    (tmp_path / "file").write_text("mine")
    refused(orthocal("study", "table1", "--out", "file/below"), "cannot make the folder file/below: Not a directory")
    refused(orthocal("study", "table1", "--out", "file"), "cannot make the folder file: File exists")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(orthocal, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    refused(orthocal("study", "table1", "--out", "closed"), "cannot open closed/results.db")


def test_a_file_that_is_not_ours(orthocal, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FILE).write_text("not a database at all" * 100)
    refused(orthocal("study", "table1", "--out", "out"), "is not a results file")


def test_a_folder_in_use(orthocal, tmp_path, monkeypatch):
    monkeypatch.setattr("orthocal_studies.results.PATIENCE", 0.1)
    with Results(tmp_path / "out"):
        refused(orthocal("study", "table1", "--out", "out"), "out/results.db is in use by another run")


@pytest.mark.slow
def test_a_study_from_start_to_end(orthocal, tmp_path, fake_folder):
    run = orthocal("study", "fake_studies:RAISING", "--replications", 4, "--draws", 40, "--jobs", 1)
    assert run.returncode == 1
    folder = tmp_path / "study-raising"
    names = {path.name for path in folder.iterdir()}
    assert names == {FILE, *(f"raising.{ending}" for ending in ("md", "csv", "html", "svg", "png"))}
    failed = len(re.findall("RuntimeError: the first x is small", run.stderr))
    assert f"error: raising: {failed} replication" in run.stderr
    assert "Run them again with: orthocal study fake_studies:RAISING --out study-raising --retry" in run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    (fake_folder / "mended").touch()
    again = orthocal("study", "fake_studies:RAISING", "--out", "study-raising", "--retry")
    assert again.returncode == 0, again.stderr
    assert f"raising: {failed} of 8 replications to run" in again.stdout
    assert again.stderr == ""
    nothing = orthocal("study", "fake_studies:RAISING", "--out", "study-raising")
    assert nothing.returncode == 0
    assert "raising: all 8 replications are there" in nothing.stdout


def environment(signs):
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, fake_studies.FOLDER: str(signs)}


def started(folder, signs, replications):
    """The program as a process of its own."""
    command = [PROGRAM, "study", "fake_studies:SLOW", "--out", folder, "--draws", 40, "--jobs", 2]
    return subprocess.Popen(
        [str(part) for part in (*command, "--replications", replications)],
        env=environment(signs),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    process.communicate(timeout=120)
    return process.returncode


def executions(signs):
    log = signs / "log"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def parameters(folder):
    with Results(folder) as results:
        return {row["replication"]: row["parameters"] for row in results.rows("slow")}


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, fake_folder):
    """Four kills at random moments of 40 replications: 40 distinct rows, the figures of an uninterrupted run."""
    whole_signs = tmp_path / "whole-signs"
    whole_signs.mkdir()
    whole = started(tmp_path / "whole", whole_signs, 40)
    assert finished(whole) == 0
    rng = random.Random(1)
    kills = 0
    for _ in range(4):
        before = len(executions(fake_folder))
        process = started(tmp_path / "killed", fake_folder, 40)
        wait_for(lambda before=before: len(executions(fake_folder)) > before + rng.randrange(6))
        time.sleep(rng.uniform(0, 0.15))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=10)
        kills += 1
        # the workers end with their parent
        pids = {int(pid) for pid, _ in executions(fake_folder)[before:]}
        wait_for(lambda pids=pids: all(gone(pid) for pid in pids), 10)
        rows = parameters(tmp_path / "killed")
        assert rows == {key: value for key, value in parameters(tmp_path / "whole").items() if key in rows}
    last = started(tmp_path / "killed", fake_folder, 40)
    assert finished(last) == 0
    assert len(parameters(tmp_path / "killed")) == 40
    assert parameters(tmp_path / "killed") == parameters(tmp_path / "whole")
    # only what was in flight at a kill (two) or waited to be written (two) ran twice
    assert 40 <= len(executions(fake_folder)) <= 40 + 4 * kills
    assert (tmp_path / "killed" / "slow.csv").read_text().splitlines()[0].startswith("parameter,theta_star")


@pytest.mark.slow
def test_an_interrupted_run_says_that_it_can_go_on(tmp_path, fake_folder):
    process = started(tmp_path / "out", fake_folder, 400)
    wait_for(lambda: len(executions(fake_folder)) > 4)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr == "error: interrupted; what had finished is kept: the same command goes on from there\n"
    assert len(parameters(tmp_path / "out")) >= 3
    wait_for(lambda: all(gone(int(pid)) for pid, _ in executions(fake_folder)), 10)

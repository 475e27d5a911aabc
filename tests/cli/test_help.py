"""What the program says about itself: help in groups, the nearest command, completion, and a document for scripts."""

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from orthocal.cli import app
from orthocal.cli.commands import GROUPS


def test_help_shows_every_command_in_its_group_and_examples():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.output)
    for group, commands in GROUPS.items():
        assert f"─ {group} ─" in plain
        for name in commands:
            assert re.search(rf"│ {name} ", plain), name
    assert plain.count("orthocal run problem.toml") == 2
    alone = CliRunner().invoke(app, [], env={"COLUMNS": "120"})
    assert "─ Calibrate ─" in re.sub(r"\x1b\[[0-9;]*m", "", alone.output)


@pytest.mark.parametrize("name", [name for commands in GROUPS.values() for name in commands])
def test_every_command_has_help(name):
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    assert "Usage: " in shown.output


def test_a_wrong_command_is_answered_with_the_nearest(program):
    wrong = program("nxt-runs")
    assert wrong.code == 2
    assert "Did you mean 'next-runs'?" in wrong.err


def complete(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["orthocal"])
    given = {"_ORTHOCAL_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(app, [], prog_name="orthocal", env=given).output.split()


def test_shells_complete_commands_methods_and_problem_files(small, monkeypatch):
    monkeypatch.chdir(small)
    (small / "cases").mkdir()
    assert complete(monkeypatch, "orthocal", "pre") == ["predict"]
    assert complete(monkeypatch, "orthocal", "run", "--method", "ps") == ["psoftbart"]
    assert complete(monkeypatch, "orthocal", "compare", "--methods", "gp,og") == ["gp,ogp"]
    assert complete(monkeypatch, "orthocal", "run", "") == ["cases/", "problem.toml"]
    assert complete(monkeypatch, "orthocal", "run", "p") == ["problem.toml"]


WITH_DOCUMENT = ("run", "compare", "check", "predict", "next-runs", "emulate", "simulate", "init", "resume")


@pytest.mark.parametrize("name", WITH_DOCUMENT)
def test_what_fails_is_one_document_too(name, program):
    done = program(name, *([] if name == "init" else ["absent"]), *(["--runs", "absent"] * (name == "init")), "--json")
    assert done.code == 1
    assert list(json.loads(done.out)) == ["error"]
    assert done.err.startswith("error: ")


def test_wrong_usage_is_a_document_too(program):
    done = program("run", "--json")
    assert done.code == 2
    assert list(json.loads(done.out)) == ["error"]
    assert "Missing argument" in done.err


def test_prints_of_the_simulator_stay_out_of_the_document(small, program):
    code = (small / "simulator.py").read_text()
    (small / "simulator.py").write_text(code.replace("    return", "    print('here I am')\n    return"))
    done = program("run", "problem.toml", "--json", "--prints")
    assert json.loads(done.out)["files"]["result"] == "fit.nc"
    assert "here I am" in done.err
    quiet = program("run", "problem.toml", "--quiet")
    assert (quiet.code, quiet.out) == (0, "")

"""``orthocal init``: what it guesses, asks, writes, and never overwrites; what it writes runs."""

import json
import tomllib

import numpy as np
import pytest

from orthocal.cli import starting
from orthocal.config.campaign_file import read_campaign_file
from orthocal.config.experiments_file import read_any_file
from orthocal.config.guesses import guessed_columns, guessed_dialect, guessed_runs, run_columns, table_of
from orthocal.errors import ConfigError
from orthocal.files.tables import Dialect, text_table


@pytest.fixture
def empty(small):
    for one in small.iterdir():
        one.unlink()
    return small


def table(text):
    return text_table(text.splitlines(), Dialect(), "field.csv")


HEADERS = {
    "the last is the outcome": ("a,b,c\n1,2,3\n2,3,5\n", ["a", "b"], ["c"], []),
    "a name says it": ("t,Y,z\n1,2,3\n2,3,5\n", ["t", "z"], ["Y"], []),
    "errors": ("t,v,v_err\n1,2,.1\n2,3,.1\n", ["t"], ["v"], ["v_err"]),
    "errors before": ("sigma_v,t,v\n.1,1,2\n.2,2,3\n", ["t"], ["v"], ["sigma_v"]),
    "numbers of rows, words and constants": ("id,t,rig,g,v\n1,1,A,9,2\n2,2,B,9,3\n", ["t"], ["v"], []),
    "missing cells": ("t,v\n1,\n2,3\n3,4\n", ["t"], ["v"], []),
    "one column": ("v\n1\n2\n", [], ["v"], []),
}


@pytest.mark.parametrize("case", HEADERS)
def test_inputs_and_outcomes_are_guessed_from_the_header(case):
    text, x, y, errors = HEADERS[case]
    guess = guessed_columns(table(text))
    assert (guess.x, guess.y, guess.y_err) == (x, y, errors)
    for name in set(table(text).names) - {*x, *y, *errors}:
        assert f"{name} (" in guess.words(), "what is left out is said, with the reason"


def test_what_is_given_is_not_guessed():
    data = table("a,b,rig,c\n1,2,A,3\n2,3,B,5\n")
    assert guessed_columns(data, x=["rig", "a"], y=["b"]).x == ["rig", "a"]
    assert guessed_columns(data, y=["a"]).x == ["b", "c"]
    with pytest.raises(ConfigError, match="no column 'd'"):
        guessed_columns(data, x=["d"])
    with pytest.raises(ConfigError, match="no column of numbers"):
        guessed_columns(table("a\nx\n"))


def test_tables_in_other_dialects(tmp_path):
    for text, dialect in (
        ("a;b\n1,5;2\n2,5;3\n", Dialect(";", ",")),
        ("a;b\n1.5;2\n", Dialect(";", ".")),
        ("a\tb\n1.5\t2\n", Dialect("\t", ".")),
        ("a,b\n1.5,2\n", Dialect()),
    ):
        (tmp_path / "field.csv").write_text(text)
        assert guessed_dialect(tmp_path / "field.csv") == dialect


def test_parameters_of_long_and_wide_runs(tmp_path):
    data = table("t,v\n0.5,2\n1,3\n")
    (tmp_path / "long.csv").write_text("run,g,k,t,v,pi\n1,8,.1,.5,2,3\n1,8,.1,1,3,3\n2,9,.2,.5,2,3\n2,9,.2,1,4,3\n")
    (tmp_path / "wide.csv").write_text("g,k,v_0.5,v_1\n8,.1,2,3\n9,.2,2,4\n")
    for name in ("long.csv", "wide.csv"):
        path = tmp_path / name
        guess = guessed_columns(data, run_columns(path))
        assert (guess.x, guess.y) == (["t"], ["v"])
        assert guessed_runs(path, guess.x, guess.y).parameters == {"g": (8.0, 9.0), "k": (0.1, 0.2)}
    with pytest.raises(ConfigError, match="no columns that could be parameters"):
        guessed_runs(tmp_path / "long.csv", ["t", "g", "k"], ["v"])


def test_an_example_that_is_read_and_never_overwritten(empty, program):
    done = program("init")
    assert done.code == 0, done.err
    assert {one.name for one in empty.iterdir()} == {"problem.toml", "field.csv", "simulator.py", "new.csv"}
    assert "Next:    orthocal run problem.toml\n" in done.out
    read_any_file(empty / "problem.toml")
    before = {one.name: one.read_bytes() for one in empty.iterdir()}
    again = program("init", "--example")
    assert again.err.startswith("error: problem.toml is there already, and init overwrites nothing")
    assert {one.name: one.read_bytes() for one in empty.iterdir()} == before
    other = program("init", "new/deep", "--json")
    document = json.loads(other.out)
    assert document["next"] == [
        "orthocal run new/deep/problem.toml",
        "orthocal predict new/deep/fit.nc new/deep/new.csv",
    ]
    assert (empty / "new" / "deep" / "field.csv").is_file()


def write_field(folder, name="field.csv"):
    t = np.linspace(0, 2, 8)
    wobble = 0.1 * np.random.default_rng(0).standard_normal((8, 2))
    lines = [f"{a:g};{3 * a + 1 + u:g};{2 - a + v:g}".replace(".", ",") for a, (u, v) in zip(t, wobble, strict=True)]
    (folder / name).write_text("\n".join(["time (s);height;class", *lines]) + "\n")


def test_a_function_that_is_not_there_becomes_a_stand_in_that_runs(empty, program):
    write_field(empty)
    words = ("--data", "field.csv", "--function", "model.py:f", "-p", "k=0:2", "-p", "b=-1:1", "-p", "lambda=0:1")
    done = program("init", "project", *words, "--y", "height,class")
    assert done.code == 0, done.err
    assert "inputs time (s)" in done.out
    assert "model.py is a stand-in, which runs and models nothing" in done.out
    config = tomllib.loads((empty / "project" / "problem.toml").read_text())
    assert config["data"]["file"] == "../field.csv"
    assert (config["data"]["separator"], config["data"]["decimal"]) == (";", ",")
    assert config["parameters"]["b"] == {"distribution": "uniform", "loc": -1.0, "scale": 2.0}
    looked = program("check", "project/problem.toml")
    assert looked.code == 0, looked.out + looked.err
    # a function that is there is taken
    again = program("init", "second", "--data", "field.csv", "--function", "project/model.py:f", "-p", "k=0:2")
    assert again.code == 0
    assert 'function = "../project/model.py:f"' in (empty / "second" / "problem.toml").read_text()


def test_a_program_becomes_a_campaign_and_a_stand_in_that_runs(empty, program):
    write_field(empty)
    done = program("init", "--data", "field.csv", "--program", "", "-p", "k=0:2", "-p", "b=0:1", "--y", "height")
    assert done.code == 0, done.err
    assert "orthocal simulate campaign.toml --export runs.csv" in done.out
    text = (empty / "campaign.toml").read_text()
    assert read_campaign_file(empty / "campaign.toml").design.n == 32
    (empty / "campaign.toml").write_text(text.replace("n = 32", "n = 2"))
    ran = program("simulate", "campaign.toml", "--export", "runs.csv")
    assert ran.code == 0, ran.err
    assert "done 2, failed 0" in ran.out
    config = tomllib.loads((empty / "problem.toml").read_text())
    assert config["simulator"]["runs"] == "runs.csv"
    given = program("init", "own", "--data", "field.csv", "--program", "mysim {input} {output}", "-p", "k=0:2")
    assert given.code == 0
    assert not (empty / "own" / "simulator.py").exists()


def test_a_server(empty, program):
    write_field(empty)
    done = program("init", "--data", "field.csv", "--umbridge", "http://localhost:4242", "--model", "m", "-p", "k=0:2")
    assert done.code == 0, done.err
    config = tomllib.loads((empty / "problem.toml").read_text())
    assert config["simulator"]["umbridge"] == {"url": "http://localhost:4242", "model": "m"}


WRONG = {
    "no simulator": (("--data", "field.csv"), "give the simulator: --function, --program, --runs or --umbridge, for"),
    "no data": (("--function", "a.py:f", "-p", "k=0:1"), "give --data field.csv"),
    "no parameters": (("--data", "field.csv", "--function", "a.py:f"), "give the parameters: --parameter name=lower"),
    "two simulators": (("--function", "a.py:f", "--runs", "r.csv"), "--function and --runs: give one simulator"),
    "a range that is none": (("-p", "k=1"), "parameter 'k=1': give it as name=lower:upper"),
    "bounds the wrong way": (("-p", "k=2:1"), "a lower bound below the upper one"),
    "a function without a name": (
        ("--data", "field.csv", "--function", "a.py", "-p", "k=0:1"),
        "the function 'a.py': give it as FILE.py:name",
    ),
    "data that are not there": (("--data", "absent.csv", "--function", "a.py:f"), "cannot read absent.csv"),
    "runs of something else": (("--data", "field.csv", "--runs", "other.csv"), "no columns that could be parameters"),
    "an example with data": (("--example", "--data", "field.csv"), "--example takes no data"),
}


def test_what_is_missing_is_one_sentence_and_nothing_is_written(empty, program):
    write_field(empty)
    (empty / "other.csv").write_text("time (s);height;class\n0,1;2;3\n0,2;4;5\n")
    for words, message in WRONG.values():
        done = program("init", *words)
        assert (done.code, done.err.count("\n")) == (1, 1), done.err
        assert message in done.err
    assert {one.name for one in empty.iterdir()} == {"field.csv", "other.csv"}


def test_on_a_terminal_it_asks(empty, program, monkeypatch):
    write_field(empty)
    answers = iter(
        ["absent.csv", "field.csv", "something", "func", "model.py:f", "height", "time (s)", "k=1", "k=0:2, b=0:1"]
    )
    asked = []

    def prompt(question, **_):
        asked.append(question)
        return next(answers)

    monkeypatch.setattr(starting, "_interactive", lambda: True)
    monkeypatch.setattr("typer.prompt", prompt)
    done = program("init")
    assert done.code == 0, done.err
    assert next(answers, None) is None
    assert asked.count("CSV table of the field data (Enter for an example)") == 2
    assert "cannot read absent.csv" in done.out, "what is wrong is said, and it is asked again"
    config = tomllib.loads((empty / "problem.toml").read_text())
    assert (config["data"]["x"], config["data"]["y"]) == (["time (s)"], ["height"])
    assert list(config["parameters"]) == ["k", "b"]
    assert table_of(empty / "field.csv").dialect == Dialect(";", ",")

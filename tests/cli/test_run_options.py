"""Settings of the file that a command changes, what is kept of them, and the tables beside the page."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli import app, results as checkpoints
from orthocal.cli.outputs import METHOD_NAMES
from orthocal.config.experiments_file import method_change, with_changes
from orthocal.errors import ConfigError
from orthocal.methods.base import METHODS

CONTENT = {"data": {"file": "a.csv"}, "parameters": {"k": {"distribution": "norm", "loc": 0}}}


@pytest.mark.parametrize(
    ("change", "place", "value"),
    [
        ("sampling.draws=5", ("sampling", "draws"), 5),
        ("noise.cov = [1, 2.5]", ("noise", "cov"), [1, 2.5]),
        ("data.file=b.csv", ("data", "file"), "b.csv"),
        ('data.file="b.csv"', ("data", "file"), "b.csv"),
        ("simulator.error=true", ("simulator", "error"), True),
        ("parameters.k.loc=-1e-3", ("parameters", "k", "loc"), -1e-3),
        ('parameters."a b".loc=1', ("parameters", "a b", "loc"), 1),
        ("constraint=k < 1", ("constraint",), None),
        ('constraint="k < 1"', ("constraint",), "k < 1"),
        ('method={name="pgp"}', ("method",), {"name": "pgp"}),
        ('simulator.settings={a=1, b="c=d"}', ("simulator", "settings"), {"a": 1, "b": "c=d"}),
    ],
)
def test_a_change_is_a_dotted_key_and_a_value_of_toml(change, place, value):
    if value is None:
        with pytest.raises(ConfigError, match="not valid TOML"):
            with_changes(CONTENT, [change])
        return
    found = with_changes(CONTENT, [change])
    for part in place:
        found = found[part]
    assert found == value
    assert CONTENT["data"] == {"file": "a.csv"}, "what was given is not changed"


def test_later_changes_come_over_earlier_ones_and_leave_the_others():
    found = with_changes(CONTENT, ["parameters.k.loc=1", "parameters.k.scale=2", "parameters.k.loc=3"])
    assert found["parameters"]["k"] == {"distribution": "norm", "loc": 3, "scale": 2}
    with pytest.raises(ConfigError, match=r"data\.file is 'a\.csv' in the file, and no table of keys"):
        with_changes(CONTENT, ["data.file.name=1"])


def test_another_method_has_its_own_defaults():
    content = {"method": {"name": "gp", "nu": 2.5}}
    assert with_changes(content, [method_change(content, "pbart")])["method"] == {"name": "pbart"}
    assert with_changes(content, [method_change(content, "gp")])["method"] == {"name": "gp", "nu": 2.5}
    assert with_changes({}, [method_change({}, "ko")])["method"] == {"name": "ko"}


def test_completion_knows_all_methods():
    assert set(METHOD_NAMES) == set(METHODS)


def test_the_result_remembers_the_changes(small, program):
    done = program("run", "problem.toml", "--draws", "7", "--seed", "5", "--chains", "2", "--set", "noise.cov=0.09")
    assert done.code == 0, done.err
    posterior = oc.load(small / "fit.nc")
    assert posterior.theta.shape == (2, 7, 1)
    assert posterior.record.seed == 5
    assert float(posterior.record.noise_cov[0, 0]) == 0.09
    changes = json.loads(posterior.data.attrs["changed_settings"])
    assert changes == ["sampling.seed=5", "sampling.draws=7", "sampling.chains=2", "noise.cov=0.09"]
    assert posterior.data.attrs["problem_path"] == "problem.toml"
    from orthocal.results.report.report import settings_of

    assert ("changed by the command", "noise.cov=0.09") in list(settings_of(posterior.record))


def test_tables_beside_the_page(small, program):
    done = program("run", "problem.toml", "--json")
    document = json.loads(done.out)
    assert set(document["files"]) == {"result", "report", "parameters", "predictions"}
    posterior = oc.load(small / "fit.nc")
    parameters = pd.read_csv(small / "fit-parameters.csv").set_index("parameter")
    assert parameters.loc["theta", "mean"] == pytest.approx(posterior.theta.mean())
    assert document["parameters"]["theta"]["sd"] == pytest.approx(posterior.summary()["sd"].iloc[0])
    # 20 draws of one chain: R-hat is not known, which is null and no NaN
    assert "NaN" not in done.out
    predictions = pd.read_csv(small / "fit-predictions.csv")
    assert np.allclose(predictions["mean"], posterior.predict()["mean"].mean(("chain", "draw")).values[:, 0])
    assert np.allclose(predictions["observed"], pd.read_csv(small / "field.csv")["y"])
    assert document["ok"] is bool(posterior.check())
    assert "Result: fit.nc" in done.err


def test_tables_never_replace_what_is_read(small, program):
    (small / "field.csv").rename(small / "fit-predictions.csv")
    done = program("run", "problem.toml", "--set", "data.file=fit-predictions.csv")
    assert done.code == 1
    assert "the results would replace fit-predictions.csv, which is read" in done.err
    assert not (small / "fit.nc").exists()


WRONG = {
    "sampling.drws=3": "unknown key 'sampling.drws', there are draws, warmup, chains, seed",
    "smpling.draws=3": "unknown key 'smpling', there are data, simulator",
    "sampling.draws=many": "sampling.draws: input should be a valid integer",
    "method.nuu=1": "method 'none' has no nuu",
    "sampling.draws": "give it as key=value",
    "sampling..draws=3": "is not valid TOML",
}


def test_settings_that_there_are_not(small, program):
    for setting, message in WRONG.items():
        done = program("run", "problem.toml", "--set", setting)
        assert (done.code, done.err.count("\n")) == (1, 1), done.err
        assert message in done.err
    assert "no method 'magic'" in program("run", "problem.toml", "--method", "magic").err
    assert not (small / "fit.nc").exists()


def test_a_checkpoint_goes_on_with_its_own_settings_alone(small, monkeypatch, plain_pages):
    monkeypatch.setattr(checkpoints, "AFTER", 0.0)
    monkeypatch.chdir(small)
    from orthocal.execution.checkpoints.checkpoint_file import CheckpointFile

    def offered(self, loop, iteration, state, draws):
        if iteration == 13:
            self._write(loop, iteration, state, draws)
            raise KeyboardInterrupt

    def run(*words):
        return CliRunner().invoke(app, list(words))

    changed = ("run", "problem.toml", "--seed", "8", "--set", "noise.cov=0.09", "--out", "out")
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "offered", offered)
        assert run(*changed).exit_code == 130
    for other in (("run", "problem.toml", "--out", "out"), (*changed, "--draws", "9")):
        refused = run(*other)
        assert isinstance(refused.exception, ConfigError)
        assert "was begun with other settings, sampling.seed=8, noise.cov=0.09, and this command" in str(
            refused.exception
        )
    resumed = run("resume", "out/fit.ckpt", "--json")
    assert resumed.exit_code == 0, resumed.output
    assert json.loads(resumed.stdout)["settings"] == ["sampling.seed=8", "noise.cov=0.09"]
    whole = run(*changed[:-1], "whole")
    assert whole.exit_code == 0
    one, other = (oc.load(small / name / "fit.nc").theta for name in ("out", "whole"))
    assert one.tobytes() == other.tobytes()


def test_compare_takes_settings_and_gives_a_document(small, program):
    done = program("compare", "problem.toml", "--methods", "none", "--draws", "8", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["parameters"][0]["parameter"] == "theta"
    assert document["failures"] == {}
    assert (small / "compare.html").is_file()

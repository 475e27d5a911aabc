"""`orthocal emulate`, and a problem file with runs in the simulator's place."""

import json

import numpy as np
import pytest
from scipy.stats import uniform
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli import app
from orthocal.config.problem_file import build_problem, read_problem_file
from orthocal.errors import ConfigError, InputError

X = np.linspace(0, 1, 8)

PROBLEM = """
[data]
file = "field.csv"
x = "place"
y = "speed"

[simulator]
runs = "{file}"
{more}

[parameters]
a = {{ distribution = "uniform", loc = 0, scale = 2 }}

[domain]
lower = 0
upper = 1

[noise]
cov = 0.01

[sampling]
draws = 100
seed = 1
"""


@pytest.fixture
def folder(tmp_path):
    theta = oc.design({"a": uniform(0, 2)}, 12).to_numpy()
    runs = oc.RunTable(theta, [np.sin(2 * one * X) for one in theta], X, "a", "place", "speed")
    runs.save(tmp_path / "runs.nc")
    runs.save(tmp_path / "runs.csv")
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 30)
    y = np.sin(2 * 0.8 * x) + rng.normal(0, 0.1, 30)
    (tmp_path / "field.csv").write_text("place,speed\n" + "\n".join(f"{a},{b}" for a, b in zip(x, y, strict=True)))
    return tmp_path


def write(folder, file="runs.nc", more=""):
    (folder / "problem.toml").write_text(PROBLEM.format(file=file, more=more))
    return folder / "problem.toml"


def test_emulate(folder):
    out = folder / "out"
    result = CliRunner().invoke(
        app, ["emulate", str(folder / "runs.nc"), "--emulators", "gp, forest", "--folds", "3", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "12 held-out runs" in result.output
    assert "The best: gp" in result.output
    assert "relative_rmse" in (out / "emulators.csv").read_text()
    assert (out / "emulators.svg").stat().st_size > 1000
    page = (out / "emulators.html").read_text()
    assert "<strong>gp</strong> comes closest" in page
    assert '<td class="name">forest</td>' in page
    assert "<script" not in page
    again = CliRunner().invoke(
        app, ["emulate", str(folder / "runs.nc"), "--emulators", "gp", "--folds", "2", "--out", str(out), "--json"]
    )
    document = json.loads(again.stdout)
    assert document["best"] == "gp"
    assert document["errors"][0]["relative_rmse"] == pytest.approx(document["relative_error"])
    assert document["rmse"].keys() == {"speed"}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["runs.nc", "runs.csv"])
def test_run_with_runs(folder, file):
    problem = write(folder, file, 'emulator = "gp"')
    result = CliRunner().invoke(app, ["run", str(problem), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    posterior = oc.load(folder / "fit.nc")
    assert abs(posterior.theta.mean() - 0.8) < 0.1
    assert "have runs nearby" in result.output


def test_the_emulators_error(folder):
    problem = build_problem(read_problem_file(write(folder, more='emulator = "gp"\nerror = true')), folder)
    assert (problem.noise.by_point[:, 0, 0] > 0.01).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('function = "f.py:f"', "either a function to call, or runs"),
        ('gradient = "jax"', "an emulator brings its own"),
        ('emulator = "magic"', "there is no emulator 'magic'"),
    ],
)
def test_refused(folder, more, message):
    with pytest.raises((ConfigError, InputError), match=message):
        build_problem(read_problem_file(write(folder, more=more)), folder)


def test_settings_of_an_emulator_with_a_function(folder):
    path = write(folder, more="error = true")
    path.write_text(path.read_text().replace('runs = "runs.nc"', 'function = "f.py:f"'))
    with pytest.raises(ConfigError, match="these go with runs"):
        build_problem(read_problem_file(path), folder)

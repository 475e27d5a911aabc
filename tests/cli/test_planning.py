"""``orthocal next-runs``, and campaigns that take its table."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc

X = np.linspace(0, 1, 6)
PROBLEM = """
[data]
file = "field.csv"
x = "x"
y = "y"
[simulator]
runs = "runs.csv"
emulator = "gp"
[parameters]
a = { distribution = "uniform", loc = 0, scale = 2 }
[noise]
cov = 0.01
[method]
sd = 0.1
lengthscale = 0.3
[sampling]
draws = 100
chains = 2
starts = 2
seed = 1
"""
CAMPAIGN = """
[simulator]
function = "wave.py:wave"
[parameters]
a = { distribution = "uniform", loc = 0, scale = 2 }
[design]
kind = "grid"
n = 6
[x]
file = "points.csv"
columns = "x"
[run]
jobs = 1
"""


@pytest.fixture
def emulated(small, program):
    theta = np.linspace(0, 2, 6)[:, None]
    runs = [f"{a},{x},{np.sin(2 * a * x)}" for (a,) in theta for x in X]
    (small / "runs.csv").write_text("\n".join(["a,x,y", *runs]) + "\n")
    rng = np.random.default_rng(0)
    field = [f"{x},{np.sin(1.6 * x) + 0.1 * rng.standard_normal()}" for x in np.linspace(0, 1, 12)]
    (small / "field.csv").write_text("\n".join(["x,y", *field]) + "\n")
    (small / "problem.toml").write_text(PROBLEM)
    assert "orthocal run problem.toml writes it" in program("next-runs", "problem.toml").err
    assert program("run", "problem.toml").code == 0
    return small


@pytest.mark.slow
def test_next_runs_are_those_of_python_and_a_campaign_takes_them(emulated, program):
    done = program("next-runs", "problem.toml", "-n", "3", "--json")
    assert done.code == 0, done.err
    table = pd.read_csv(emulated / "next-runs.csv")
    posterior = oc.load(emulated / "fit.nc")
    runs = oc.RunTable.load(emulated / "runs.csv", ["a"], "x", "y")
    assert np.allclose(table, oc.next_runs(posterior, runs, 3, progress=False))
    assert json.loads(done.out)["runs"][0]["a"] == pytest.approx(table["a"][0])
    again = program("next-runs", "fit.nc", "-n", "1")
    assert again.err == "error: next-runs.csv is there already: --append adds to it, --out writes another\n"
    assert program("next-runs", "fit.nc", "-n", "1", "--append").code == 0
    longer = pd.read_csv(emulated / "next-runs.csv")
    assert len(longer) == 4
    assert longer["a"][:3].tolist() == table["a"].tolist()
    assert stats.uniform(0, 2).pdf(longer["a"]).all()
    # the table goes on with the campaign that made the first runs
    (emulated / "points.csv").write_text("\n".join(["x", *map(str, X)]) + "\n")
    (emulated / "wave.py").write_text("import numpy as np\ndef wave(x, t): return np.sin(2 * t[0] * x[:, 0])\n")
    (emulated / "campaign.toml").write_text(CAMPAIGN)
    assert "done 6, failed 0" in program("simulate", "campaign.toml").out
    more = CAMPAIGN.replace("n = 6", 'n = 6\nmore = "next-runs.csv"')
    (emulated / "campaign.toml").write_text(more)
    grown = program("simulate", "campaign.toml", "--export", "all.csv", "--json")
    assert grown.code == 0, grown.err
    document = json.loads(grown.out)
    assert {name: document[name] for name in ("done", "failed", "missing")} == {"done": 10, "failed": 0, "missing": 0}
    assert len(oc.RunTable.load(emulated / "all.csv").theta) == 10


def test_a_simulator_that_is_called_needs_no_runs(fitted, program):
    done = program("next-runs", "fit.nc")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "next-runs is for problems with runs in [simulator]" in done.err

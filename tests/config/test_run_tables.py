"""A calibration from two tables alone: field data, and runs from elsewhere, matched by name."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import qmc

import orthocal as oc
from orthocal.cli import main
from orthocal.config.problem_file import build_problem, problem_runs, read_problem_file
from orthocal.errors import ConfigError, FileError

PROBLEM = """
[data]
file = "field.csv"
x = ["t", "z"]
y = "v"

[simulator]
runs = "{file}"
emulator = "gp"

[parameters]
a = {{ distribution = "uniform", loc = 0, scale = 2 }}
b = {{ distribution = "uniform", loc = -1, scale = 2 }}

[noise]
cov = 0.0004

[sampling]
draws = 40
chains = 1
seed = 1
starts = 2
"""


def simulate(t, z, a, b):
    return np.exp(-a * t) + b * z * t


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    t, z = rng.random(40), rng.random(40)
    field = pd.DataFrame({"z": z, "v": simulate(t, z, 0.9, 0.3) + rng.normal(0, 0.02, 40), "t": t, "who": "me"})
    field.to_csv(tmp_path / "field.csv", index=False)
    design = qmc.Sobol(2, rng=rng).random_base2(4) * 2 - [0, 1]
    points = np.stack(np.meshgrid([0, 0.3, 0.7, 1], [0, 0.5, 1]), axis=-1).reshape(-1, 2)
    rows = [(one, a, b, *at, simulate(*at, a, b)) for one, (a, b) in enumerate(design) for at in points]
    long = pd.DataFrame(rows, columns=["id", "a", "b", "t", "z", "v"])
    wide = pd.DataFrame({"b": design[:, 1], "a": design[:, 0], "seconds": 2.5})
    for at in points:
        wide[f"v[z={at[1]}, t={at[0]}]"] = [simulate(*at, a, b) for a, b in design]
    long[["v", "z", "b", "id", "t", "a"]].sample(frac=1, random_state=1).to_csv(tmp_path / "long.csv", index=False)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    return tmp_path


def written(folder, file, more=""):
    (folder / "problem.toml").write_text(PROBLEM.format(file=file) + more)
    return folder / "problem.toml"


def emulated(folder, file, more=""):
    path = written(folder, file, more)
    return build_problem(read_problem_file(path), folder).simulator.emulator


def test_long_and_wide_tables_give_the_same_emulator(folder):
    long, wide = (emulated(folder, f"{name}.csv") for name in ("long", "wide"))
    x, theta = np.array([[0.2, 0.4], [0.3, 0.5]]), np.array([0.9, 0.3])
    assert long(x, theta).tobytes() == wide(x, theta).tobytes()
    np.testing.assert_allclose(long(x, theta)[:, 0], simulate(*x.T, *theta), atol=0.01)


def test_our_own_tables_are_matched_by_name_too(folder):
    """Inputs as well: those of the field data stand in another order than those of the runs."""
    runs = problem_runs(read_problem_file(written(folder, "long.csv")), folder)
    runs.ordered(["b", "a"], ["z", "t"]).save(folder / "own.nc")
    again = problem_runs(read_problem_file(written(folder, "own.nc")), folder)
    for one, other in ((runs.theta, again.theta), (runs.x, again.x), (runs.output, again.output)):
        np.testing.assert_array_equal(one, other)


def test_columns_of_other_names(folder):
    table = pd.read_csv(folder / "long.csv").rename(columns={"a": "decay", "t": "time", "v": "speed"})
    table.to_csv(folder / "theirs.csv", index=False)
    section = '[runs]\nparameters = { a = "decay", b = "b" }\nx = { t = "time", z = "z" }\ny = "speed"\nignore = "id"\n'
    runs = problem_runs(read_problem_file(written(folder, "theirs.csv", section)), folder)
    plain = problem_runs(read_problem_file(written(folder, "long.csv")), folder)
    np.testing.assert_array_equal(runs.output, plain.output)
    assert runs.parameter_names == ("a", "b")
    assert len(runs.notes) == 1
    assert "not used: id" in plain.notes[1]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ('parameters = ["decay", "b"]', r'runs.parameters has decay, b, and the problem a, b: give { a = "..."'),
        ('x = { t = "tme", z = "z" }', r"no column 'tme'; there are: v, z, b, id, t, a"),
        ('ignore = "nothing"', "no column 'nothing'"),
        ('layout = "tall"', "layout"),
        ('points = "nowhere.csv"\nlayout = "wide"', "cannot read .*nowhere.csv"),
    ],
)
def test_what_does_not_fit_is_said(folder, section, message):
    with pytest.raises((ConfigError, FileError), match=message):
        problem_runs(read_problem_file(written(folder, "long.csv", f"[runs]\n{section}\n")), folder)


def test_runs_keys_go_with_runs(folder):
    (folder / "f.py").write_text("def f(x, theta):\n    return x[:, 0] * theta[0]\n")
    text = PROBLEM.replace('runs = "{file}"\nemulator = "gp"', 'function = "f.py:f"').format()
    (folder / "problem.toml").write_text(text + '[runs]\nrun = "id"\n')
    with pytest.raises(ConfigError, match=r"\[runs\] .* goes with simulator.runs"):
        build_problem(read_problem_file(folder / "problem.toml"), folder)


@pytest.mark.slow
def test_the_whole_way_without_python(folder, capsys, monkeypatch):
    """Two CSV tables and a TOML file: the parameters of the truth are found."""
    monkeypatch.setattr("orthocal.results.report.report.render", lambda *_: "a page\n" * 200)
    path = written(folder, "wide.csv", "[output]\nfolder = 'out'\n")
    monkeypatch.setattr("sys.argv", ["orthocal", "run", str(path), "--no-checkpoint"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    said = capsys.readouterr().out
    assert "16 runs, one row a run, one column a point" in said
    assert "not used: seconds" in said
    means = oc.load(folder / "out" / "fit.nc").summary()["mean"].astype(float)
    np.testing.assert_allclose(means, [0.9, 0.3], atol=0.1)

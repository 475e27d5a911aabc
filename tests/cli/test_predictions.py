"""``orthocal predict``: a table of new inputs in, the same table with predictions out."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import orthocal as oc

NEW = 'id,x,note\n1,0.5,"a, b"\n2,0.25,\n'


def rows(path, **dialect):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, **dialect))


@pytest.fixture(autouse=True)
def new(small):
    (small / "new.csv").write_text(NEW)


def test_the_columns_stay_and_the_predictions_are_those_of_python(fitted, program):
    done = program("predict", "fit.nc", "new.csv")
    assert done.code == 0, done.err
    assert "new-predictions.csv (2 rows)" in done.out
    assert done.err == ""
    table = rows(fitted / "new-predictions.csv")
    assert [(row["id"], row["x"], row["note"]) for row in table] == [("1", "0.5", "a, b"), ("2", "0.25", "")]
    posterior = oc.load(fitted / "fit.nc", lambda x, theta: theta[0] * x[:, 0])
    found = posterior.predict([0.5, 0.25])
    for name in ("model", "bias", "mean"):
        values = found[name].values.reshape(20, 2)
        assert np.allclose([float(row[name]) for row in table], values.mean(axis=0), rtol=1e-8)
        assert np.allclose(
            [float(row[f"{name}_lower"]) for row in table], np.quantile(values, 0.025, axis=0), rtol=1e-8
        )
    noisy = np.quantile(found["observation"].values.reshape(20, 2), 0.975, axis=0)
    assert np.allclose([float(row["observation_upper"]) for row in table], noisy, rtol=1e-8)
    assert [row["far"] for row in table] == ["False", "False"]


def test_what_the_options_do(fitted, program):
    wide = program("predict", "fit.nc", "new.csv", "--out", "-", "--interval", "0.5", "--prefix", "p_")
    narrow = next(csv.DictReader(wide.out.splitlines()))
    assert program("predict", "fit.nc", "new.csv").code == 0
    own = rows(fitted / "new-predictions.csv")[0]
    assert narrow["p_mean"] == own["mean"]
    assert float(own["mean_lower"]) < float(narrow["p_mean_lower"]) < float(own["mean"])
    again = program("predict", "fit.nc", "new-predictions.csv")
    assert again.err == (
        "error: new-predictions.csv has a column 'model' already: give the predictions names of their own, --prefix "
        "predicted_ for instance\n"
    )
    done = program("predict", "fit.nc", "new.csv", "--json", "--draws", "5")
    document = json.loads(done.out)
    assert document["file"] == "new-predictions.csv"
    assert document["rows"][0]["id"] == 1
    assert document["rows"][1]["note"] is None
    assert document["rows"][0]["far"] is False
    assert "Predictions: " in done.err


def test_points_far_from_the_data_are_noted(fitted, program):
    (fitted / "new.csv").write_text("x\n0.5\n3\n")
    done = program("predict", "fit.nc", "new.csv", "--quiet")
    assert done.out == ""
    assert done.err.startswith("note: 1 of 2 points of new.csv lie far from the data, up to 2 times their width")
    assert [row["far"] for row in rows(fitted / "new-predictions.csv")] == ["False", "True"]


def test_at_the_data_no_simulator_is_needed(fitted, program):
    (fitted / "problem.toml").unlink()
    assert program("predict", "fit.nc", "--out", "at.csv").code == 0
    table = pd.read_csv(fitted / "at.csv")
    data = pd.read_csv(fitted / "field.csv")
    assert np.allclose(table["x"], data["x"])
    assert np.allclose(table["observed"], data["y"])
    assert np.allclose(table["mean"], table["model"] + table["bias"])


WRONG = {
    "no such column": ("z\n1\n", "new.csv has no column 'x'; there are: z"),
    "a text": ("x\n1\ntwo\n", "column 'x' of new.csv, line 3: 'two' is not a number"),
    "a missing cell": ("x,z\n1,2\n,3\n", "column 'x' of new.csv, line 3: a value is missing or infinite"),
    "no rows": ("x\n", "new.csv has no rows below its header"),
    "nothing": ("", "new.csv is not a CSV table: it is empty"),
    "a row that is too long": ("x\n1,2\n", "line 2 of new.csv has 2 cells"),
}


def test_what_is_wrong_with_a_table_is_one_sentence(fitted, program):
    for text, message in WRONG.values():
        (fitted / "new.csv").write_text(text)
        done = program("predict", "fit.nc", "new.csv")
        assert (done.code, done.err.count("\n")) == (1, 1), done.err
        assert message in done.err
        assert not (fitted / "new-predictions.csv").exists()
    (fitted / "new.csv").write_bytes(b"\xff\xfex\x00")
    assert "new.csv is not a CSV table" in program("predict", "fit.nc", "new.csv").err
    assert "cannot read absent.csv" in program("predict", "fit.nc", "absent.csv").err
    (fitted / "new.csv").write_text(NEW)
    assert "the results would replace new.csv" in program("predict", "fit.nc", "new.csv", "--out", "new.csv").err
    assert "the level of the intervals is 2" in program("predict", "fit.nc", "new.csv", "--interval", "2").err
    assert "is not" in program("predict", "field.csv", "new.csv").err


@pytest.mark.slow
def test_where_the_simulator_is_looked_for(fitted, program):
    assert program("run", "problem.toml", "--out", "elsewhere").code == 0
    assert program("predict", "elsewhere/fit.nc", "new.csv").code == 0
    (fitted / "elsewhere" / "fit.nc").rename(fitted / "elsewhere" / "moved.nc")
    (fitted / "problem.toml").rename(fitted / "other.toml")
    lost = program("predict", "elsewhere/moved.nc", "new.csv")
    assert lost.code == 1
    assert "cannot find the simulator of elsewhere/moved.nc: it was made from problem.toml, and there is no" in lost.err
    assert program("predict", "elsewhere/moved.nc", "new.csv", "--problem", "other.toml").code == 0
    text = (fitted / "other.toml").read_text()
    (fitted / "other.toml").write_text(text.replace("theta = {", "slope = {"))
    other = program("predict", "fit.nc", "new.csv", "--problem", "other.toml")
    assert "has the parameters slope, and fit.nc has theta" in other.err


def test_a_simulator_that_has_changed_is_refused(fitted, program):
    code = (fitted / "simulator.py").read_text()
    (fitted / "simulator.py").write_text(code.replace("theta[0] * x[:, 0]", "theta[0] * x[:, 0] + 1"))
    done = program("predict", "fit.nc", "new.csv")
    assert done.code == 1
    assert "the simulator of problem.toml is not the one of the fit any more" in done.err
    assert "up to 5 standard deviations of the noise" in done.err


SEVERAL = """
[data]
file = "field.csv"
separator = ";"
decimal = ","
x = ["x", "machine"]
y = ["u", "v"]
transform = { v = "log" }
[simulator]
function = "simulator.py:simulate"
[parameters]
a = { distribution = "norm", loc = 1, scale = 2 }
[noise]
cov = [0.01, 0.01]
[method]
name = "none"
[sampling]
draws = 20
warmup = 5
chains = 1
starts = 2
seed = 1
"""
CODE = """import numpy as np
def simulate(x, theta):
    return np.column_stack([theta[0] * x[:, 0] + x[:, 1], np.exp(theta[0] * x[:, 0])])
"""


def test_labels_outcomes_transforms_and_decimal_commas(small, program):
    lines = [
        f"{i / 9:.3f};{'AB'[i % 2]};{i / 9 + i % 2 + 0.1 * (-1) ** (i // 2):.3f};{np.exp(i / 9):.3f}".replace(".", ",")
        for i in range(10)
    ]
    (small / "field.csv").write_text("\n".join(["x;machine;u;v", *lines]) + "\n")
    (small / "problem.toml").write_text(SEVERAL)
    (small / "simulator.py").write_text(CODE)
    ran = program("run", "problem.toml")
    assert ran.code == 0, ran.err
    (small / "new.csv").write_text("machine;x;own\nB;0,5;1\nA;0,5;2\n")
    done = program("predict", "fit.nc", "new.csv")
    assert done.code == 0, done.err
    first, second = rows(small / "new-predictions.csv", delimiter=";")
    number = {name: float(value.replace(",", ".")) for name, value in first.items() if name[:2] in ("u_", "v_")}
    assert abs(number["u_mean"] - 1.5) < 0.1
    assert abs(number["v_model"] - np.exp(0.5)) < 0.1
    assert abs(float(second["u_mean"].replace(",", ".")) - 0.5) < 0.1
    # medians and quantiles go through the transform
    theta = oc.load(small / "fit.nc").theta.ravel()
    assert number["v_model"] == pytest.approx(np.exp(0.5 * np.median(theta)), rel=1e-3)
    (small / "new.csv").write_text("machine;x\nC;0,5\n")
    wrong = program("predict", "fit.nc", "new.csv")
    assert "new.csv has machine = 'C' in row 0, which is none of its labels: give one of" in wrong.err


@pytest.mark.slow
def test_several_experiments_one_at_a_time(small, program):
    lines = [f"{r},{i / 9},{3 * i / 9 + 0.1 * (-1) ** i + r}" for r in (0, 1) for i in range(10)]
    (small / "field.csv").write_text("\n".join(["rig,x,y", *lines]) + "\n")
    text = (small / "problem.toml").read_text().replace('y = "y"', 'y = "y"\nexperiment = "rig"')
    (small / "problem.toml").write_text(text.replace('name = "none"', 'name = "gp"\nsd = 0.3\nlengthscale = 0.3'))
    ran = program("run", "problem.toml")
    assert ran.code == 0, ran.err
    (small / "new.csv").write_text("x\n0.5\n")
    which = program("predict", "fit.nc", "new.csv")
    assert which.err == "error: fit.nc has the experiments 0, 1: say which by --experiment\n"
    assert "no experiment '2'" in program("predict", "fit.nc", "new.csv", "--experiment", "2").err
    done = program("predict", "fit.nc", "new.csv", "--experiment", "1", "--json")
    assert done.code == 0, done.err
    both = oc.load(small / "fit.nc", lambda x, theta: theta[0] * x[:, 0])
    assert json.loads(done.out)["rows"][0]["mean"] == pytest.approx(float(both["1"].predict([0.5])["mean"].mean()))

"""Outputs without inputs through everything that a posterior has: predictions, checks, files, pages, comparisons."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli.commands import app
from orthocal.config.problem_file import build_method, build_problem, compared_methods, read_problem_file
from orthocal.errors import InputError

NAMES = ("peak", "rise time", "volume", "ratio", "flow", "delay")
UNITS = np.array([1e3, 1e-2, 50.0, 1.0, 1e5, 0.1])
DESIGN = np.array([[1.0, 0.2], [0.5, -1.0], [1.0, 1.0], [-0.3, 0.8], [0.9, 0.1], [0.2, 0.6]])
SD = 0.2 * UNITS
PRIORS = {"a": stats.norm(0, 5), "b": stats.norm(0, 5)}
RUN = {"draws": 100, "chains": 2, "seed": 1, "progress": False}


def simulator(theta):
    return UNITS * (DESIGN @ theta)


def observed(missing=True):
    y = simulator(np.array([1.0, 2.0])) + UNITS * np.array([0.1, -0.3, 3.0, 0.2, 0.1, -0.2])
    if missing:
        y[3] = np.nan
    return pd.Series(y, index=NAMES)


def problem(**changes):
    return oc.Problem(None, observed(), simulator, PRIORS, **({"y_err": SD, "starts": 4} | changes))


@pytest.fixture(scope="module")
def posterior():
    return oc.calibrate(problem(), **RUN)


@pytest.mark.parametrize("method", ["gp", "pgp", "ogp", "ko", "none", oc.methods.Projected(projection="finite")])
def test_methods_also_from_a_file(method, tmp_path):
    made = oc.calibrate(problem(), method, **(RUN | {"draws": 20}))
    predicted = made.predict()
    assert dict(predicted.sizes) == {"chain": 2, "draw": 20, "point": 1, "outcome": 6}
    assert list(predicted["outcome"].values) == list(NAMES)
    assert "x" not in predicted.coords
    loaded = oc.load(made.save(tmp_path / "fit.nc"), simulator)
    assert loaded.predict().equals(predicted)
    assert str(loaded.check()) == str(made.check())
    assert loaded.bias_size().equals(made.bias_size())
    assert "share" not in made.bias_size()


@pytest.mark.slow
def test_the_page_has_a_bar_for_each_output(posterior, tmp_path):
    """Also from a file, without the simulator."""
    page = oc.load(posterior.save(tmp_path / "fit.nc")).report(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "Each output stands in units of its noise" in page
    assert ">Outputs</h2>" in page
    assert "the 6 outputs" in page


def test_the_prior_that_was_used_is_the_one_that_is_described(posterior):
    assert posterior.record.method["bias"] == {"kind": "independent", "noise_sds": None, "sd": None}
    assert {one["noise_sds"] for one in posterior.record.run_facts.bias} == {posterior.record.samplers[0]["sd"]}


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("bart", "BART learns how the bias depends on x, and there is no x"),
        ("sgasp", "the method 'sgasp' learns how the bias depends on x"),
        ("pcal", "take gp, pgp, ko, ogp or none"),
        (oc.methods.KO(sd=2.0), "the settings of 'ko' belong to a bias that depends on x"),
        (oc.methods.Joint(loss="absolute"), "outputs without x take the squared loss"),
        (oc.methods.Joint(oc.bias.GP(nu=2.5)), "oc.bias.GP learns how the bias depends on x"),
        (oc.methods.Joint(oc.bias.Independent(sd=[1.0, 2.0])), r"sd has shape \(2,\) for 6 outputs"),
        (oc.methods.Joint(oc.bias.Independent(sd={"peak": 1.0})), "sd has peak: give one for each of peak, rise time"),
    ],
)
def test_methods_that_need_x_are_refused(method, words):
    with pytest.raises(InputError, match=words):
        oc.calibrate(problem(), method, **RUN)


@pytest.mark.parametrize("wrong", [{"noise_sds": -1.0}, {"sd": [1.0, 0.0]}, {"sd": [1.0], "noise_sds": 1.0}])
def test_a_wrong_size_of_the_biases_is_refused(wrong):
    with pytest.raises(InputError, match=r"a positive number|both say how large"):
        oc.bias.Independent(**wrong)


def test_independent_biases_are_for_outputs_without_inputs():
    x = np.linspace(0, 1, 10)
    with_x = oc.Problem(x, x, lambda x, t: t[0] * x, {"t": stats.norm(0, 1)}, noise_cov=0.1, starts=2)
    with pytest.raises(InputError, match="for outputs without x"):
        oc.calibrate(with_x, oc.methods.Joint(oc.bias.Independent()), **RUN)


def test_there_is_nowhere_else_to_predict(posterior):
    with pytest.raises(InputError, match="the outputs have no x"):
        posterior.predict([0.5])


def test_findings_name_what_is_missed_and_what_cannot_be_told(posterior):
    words = str(posterior.check())
    assert "5 outputs have one observation, which cannot tell noise from bias" in words
    assert "misses" in words
    assert "volume (+" in words
    assert "the scatter of all outputs around model + bias" in words
    assert "pattern in x" not in words


def test_without_a_bias_the_misfit_is_a_problem():
    problems = oc.calibrate(problem(), "none", **(RUN | {"draws": 200})).check().problems
    assert any("the residuals of all outputs are not noise" in one.message for one in problems)


def test_few_replicates_are_a_problem():
    rows = observed(missing=False).to_numpy() + np.random.default_rng(0).normal(size=(4, 6)) * SD
    made = oc.calibrate(oc.Problem(None, rows, simulator, PRIORS, starts=4), **RUN)
    assert any("from as few as 4 observations" in one.message for one in made.check().problems)
    assert made.predict()["mean"].sizes["point"] == 1


def test_leave_one_out_is_by_observation(posterior):
    assert posterior.log_likelihood["y"].shape == (2, 100, 5)
    model, bias = (posterior.record.at_data(name) for name in ("model", "bias"))
    left = (observed().to_numpy() - model - bias)[:, :, 0][..., [0, 1, 2, 4, 5]]
    expected = stats.norm.logpdf(left, scale=SD[[0, 1, 2, 4, 5]])
    np.testing.assert_allclose(posterior.log_likelihood["y"].values, expected)
    assert len(posterior.loo().pareto_k) == 5


def test_the_likelihood_of_correlated_outputs_is_given_the_others():
    cov = np.outer(SD, SD) * (0.5 + 0.5 * np.eye(6))
    made = oc.calibrate(problem(y_err=None, noise_cov=cov), **RUN)
    left = (made.record.y - made.record.at_data("model") - made.record.at_data("bias"))[0, 0, 0]
    seen = [0, 1, 2, 4, 5]
    others = [1, 2, 4, 5]
    slope = np.linalg.solve(cov[np.ix_(others, others)], cov[others, 0])
    var = cov[0, 0] - cov[0, others] @ slope
    expected = stats.norm.logpdf(left[0], left[others] @ slope, np.sqrt(var))
    assert made.log_likelihood["y"].values[0, 0, seen.index(0)] == pytest.approx(expected)


def test_outputs_are_left_out_in_folds(tmp_path):
    """What is held out is predicted through theta, with a bias of the prior's size."""
    compared = oc.compare(problem(), ["gp", "none", "bart"], folds=3, **(RUN | {"draws": 40, "warmup": 50}))
    assert list(compared.posteriors) == ["gp", "none"]
    assert "there is no x" in compared.failures["bart"]
    assert compared.fold_of_row.shape == (6,)
    assert compared.held_out["gp"].with_bias.crps.shape == (6, 1)
    assert np.isnan(compared.held_out["gp"].with_bias.error[3]).all()
    scores = compared.scores()
    assert list(scores.index.unique("outcome")) == ["all outputs, in noise sds"]
    page = compared.report(tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "predicted from the others" in page
    assert "What the simulator misses of each output" in page
    assert compared.assumptions["gp"].startswith("Each output has a bias of its own")
    with pytest.raises(InputError, match="from 2 to the number of outputs, 6"):
        oc.compare(problem(), folds=7, **RUN)


def test_a_held_out_output_has_a_bias_of_the_prior():
    """Theta has no effect on the last output: its prediction is N(0, s^2 + 1) noise sds, exactly."""
    design = np.vstack([DESIGN[:5], [[0.0, 0.0]]])
    y = observed(missing=False).to_numpy()
    made = oc.Problem(None, y, lambda theta: UNITS * (design @ theta), PRIORS, y_err=SD, starts=4)
    part = made.subset(np.arange(1), hidden=np.arange(6) == 5)
    method = oc.methods.Joint(oc.bias.Independent(noise_sds=3.0))
    drawn = oc.calibrate(part, method, draws=2000, chains=2, seed=1, progress=False).predict()
    values = drawn["observation"].values[..., 5].ravel() / SD[5]
    # 4000 independent draws: 4.5 standard errors
    assert values.std() == pytest.approx(np.sqrt(10.0), rel=4.5 / np.sqrt(8000))
    assert abs(values.mean()) < 4.5 * np.sqrt(10.0 / 4000)


def test_replicated_rows_are_scored_cell_by_cell():
    rows = observed(missing=False).to_numpy() + np.random.default_rng(0).normal(size=(3, 6)) * SD
    compared = oc.compare(oc.Problem(None, rows, simulator, PRIORS, y_err=SD, starts=4), ["gp"], folds=2, **RUN)
    error = compared.held_out["gp"].with_bias.error
    assert error.shape == (18, 1)
    # replicates of one output differ by their noise alone
    np.testing.assert_allclose(np.diff(error[:3, 0]), np.diff(rows[:, 0]) / SD[0], atol=0.3)


def test_simulators_and_outcomes_are_compared():
    other = oc.Problem(None, observed(), lambda t: UNITS * DESIGN[:, 1] * t[0], {"b": PRIORS["b"]}, y_err=SD, starts=4)
    assert oc.compare_simulators({"two": problem(), "one": other}, **RUN).probability("two", "one") > 0.9
    each = oc.compare_outcomes(other, **RUN)
    assert "ratio" in each.failures
    assert len(each.posteriors) == 6


@pytest.mark.slow
def test_runs_without_inputs_become_an_emulator(tmp_path):
    design = oc.design({"a": stats.uniform(-4, 12), "b": stats.uniform(-4, 12)}, 40, seed=1)
    output = pd.DataFrame([simulator(theta) for theta in design.to_numpy()], columns=list(NAMES))
    runs = oc.RunTable(design, output, None)
    assert (runs.m, runs.q, runs.outcome_names) == (1, 6, NAMES)
    for name in ("runs.nc", "runs.csv"):
        np.testing.assert_allclose(oc.RunTable.load(runs.save(tmp_path / name)).output, runs.output)
    frame = pd.concat([design, output], axis=1)
    again = oc.RunTable.from_frame(frame, ["a", "b"], [], list(NAMES))
    assert again.q == 6
    assert again.s == 40
    with pytest.raises(InputError, match="without x, give one row a run and one column an output"):
        oc.RunTable(design, output.to_numpy()[:, :, None], None)
    emulator = oc.emulate(runs, "gp", progress=False)
    found = oc.calibrate(oc.Problem(None, observed(), emulator, PRIORS, y_err=SD, starts=4), **RUN)
    direct = oc.calibrate(problem(), **RUN)
    np.testing.assert_allclose(found.theta.mean(axis=(0, 1)), direct.theta.mean(axis=(0, 1)), atol=0.02)
    with pytest.raises(InputError, match="in the order peak"):
        oc.Problem(None, observed()[::-1], emulator, PRIORS, y_err=SD)


FILE = """
[data]
file = "field.csv"
y = ["peak", "rise time", "volume", "ratio", "flow", "delay"]

[simulator]
function = "simulator.py:simulate"

[parameters]
a = { distribution = "norm", loc = 0, scale = 5 }
b = { distribution = "norm", loc = 0, scale = 5 }

[noise]
cov = [4e4, 4e-6, 100.0, 0.04, 4e8, 4e-4]

[method]
name = "gp"
noise_sds = 3.0

[sampling]
draws = 50
chains = 2
seed = 1
starts = 4

[compare]
folds = 3
"""
CODE = f"""
import numpy as np

def simulate(theta):
    return np.array({UNITS.tolist()}) * (np.array({DESIGN.tolist()}) @ theta)
"""


@pytest.fixture
def folder(tmp_path):
    observed().to_frame().T.to_csv(tmp_path / "field.csv", index=False)
    (tmp_path / "simulator.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "problem.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def test_the_problem_file(folder):
    config = read_problem_file(folder / "problem.toml")
    assert compared_methods(config) == ["gp", "ogp", "ko", "none"]
    made = build_problem(config, folder)
    assert made.data.without_inputs
    assert made.data.outcome_names == NAMES
    assert build_method(config.method) == oc.methods.Joint(oc.bias.Independent(noise_sds=3.0))
    np.testing.assert_allclose(made.fit, simulator(made.theta_tilde)[None])


@pytest.mark.slow
def test_the_command_line(folder):
    done = CliRunner().invoke(app, ["run", str(folder / "problem.toml")])
    assert done.exit_code == 0, done.output
    made = oc.load(folder / "fit.nc")
    assert made.outcome_names == NAMES
    assert made.record.samplers[0]["sd"] == 3.0
    done = CliRunner().invoke(app, ["compare", str(folder / "problem.toml")])
    assert done.exit_code == 0
    assert "all outputs" in done.output
    assert "bart" not in done.output

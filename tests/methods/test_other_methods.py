"""KO, OGP, S-GaSP, PCAL and no bias as users meet them: the same problem in, the same posterior out."""

import json

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import IdentifiabilityError, InputError
from orthocal.examples import MODEL1, MODEL2, TWO_OUTCOMES

NAMES = ["ko", "ogp", "sgasp", "pcal", "none"]


def short(problem, method, draws=50):
    return oc.calibrate(problem, method, draws=draws, warmup=50, chains=2, seed=1, progress=False)


@pytest.fixture(scope="module", params=NAMES)
def posterior(request):
    x, y = MODEL1.simulate(np.random.default_rng(0), 40)
    return short(MODEL1.problem(x, y), request.param)


def test_the_posterior_is_that_of_the_other_methods(posterior, tmp_path):
    assert posterior.theta.shape == (2, 50, 1)
    assert set(posterior.data.children) >= {"posterior", "sample_stats", "observed_data", "constant_data", "prior"}
    assert np.isfinite(posterior.summary().to_numpy()).all()
    assert "mixing" in {finding.topic for finding in posterior.check()}
    html = posterior.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "Data and fit" in html


def test_predictions_continue_the_draws_also_from_a_file(posterior, tmp_path):
    x = posterior.data["constant_data"]["x"].values
    stored = posterior.data["posterior"]["bias"].values
    np.testing.assert_allclose(posterior.predict(x)["bias"].values, stored, atol=1e-4)
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"), MODEL1.simulator)
    new = np.array([[0.123], [0.77]])
    one, other = (each.predict(new) for each in (posterior, loaded))
    for name in ("model", "bias", "observation"):
        np.testing.assert_array_equal(one[name].values, other[name].values)


def test_the_method_is_described(posterior):
    kind = json.loads(posterior.data.attrs["method"])["kind"]
    assert kind in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sampled_noise_is_refused_in_one_sentence(name):
    x, y = MODEL1.simulate(np.random.default_rng(0), 40)
    with pytest.raises(InputError, match="projected methods"):
        short(MODEL1.problem(x, y, noise_cov="sample"), name)


@pytest.mark.parametrize("name", ["ko", "ogp", "sgasp"])
def test_too_many_cells_are_refused_with_advice(name, monkeypatch):
    monkeypatch.setattr("orthocal.methods.marginal.MOST_CELLS", 30)
    x, y = MODEL1.simulate(np.random.default_rng(0), 40)
    with pytest.raises(InputError, match="use a projected method"):
        short(MODEL1.problem(x, y), name)


@pytest.mark.parametrize("name", NAMES)
def test_two_outcomes_with_missing_cells(name):
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(0), 50)
    y[np.random.default_rng(1).random(y.shape) < 0.2] = np.nan
    posterior = short(TWO_OUTCOMES.problem(x, y), name)
    assert np.isfinite(posterior.theta).all()
    assert posterior.predict(np.array([[0.3]]))["mean"].shape == (2, 50, 1, 2)
    if name == "ogp":
        assert float(posterior.data["sample_stats"]["orthogonality_error"].max()) < 1e-10


def test_ogp_is_orthogonal_at_its_own_theta():
    """From the definition, for a simulator whose gradient depends on theta."""
    x, y = MODEL2.simulate(np.random.default_rng(0), 60)
    problem = MODEL2.problem(x, y)
    posterior = short(problem, "ogp")
    nodes, weights = problem.rule.nodes, problem.rule.weights
    bias = posterior.predict(nodes)["bias"].values[..., 0]
    for theta, b in zip(posterior.theta.reshape(-1, 2)[::10], bias.reshape(100, -1)[::10], strict=True):
        gradient = problem.simulator.gradient(nodes, theta)[:, 0]
        inner = gradient.T @ (weights * b)
        size = np.sqrt(np.einsum("mp,m->p", gradient**2, weights) * np.sum(weights * b**2))
        assert np.max(np.abs(inner) / size) < 1e-5


@pytest.mark.parametrize("name", ["ogp", "pcal"])
def test_parameters_that_cannot_be_told_apart_are_named(name):
    x, y = MODEL1.simulate(np.random.default_rng(0), 40)
    parameters = {"a": stats.norm(), "b": stats.norm()}
    problem = oc.Problem(x, y, lambda x, t: (t[0] + t[1]) * x[:, 0], parameters, oc.Box(0, 1), noise_cov=0.04)
    with pytest.raises(IdentifiabilityError, match="'a', 'b' are collinear"):
        short(problem, name)


def test_ko_says_that_theta_is_not_identified():
    x, y = MODEL1.simulate(np.random.default_rng(0), 40)
    findings = short(MODEL1.problem(x, y), oc.methods.KO(1.5, 1.0, 0.5), draws=200).check()
    assert any("cannot be told apart" in finding.message for finding in findings)


def test_no_bias_is_a_problem_where_the_simulator_is_wrong():
    x, y = MODEL1.simulate(np.random.default_rng(0), 60)
    findings = short(MODEL1.problem(x, y), "none", draws=200).check()
    assert any(finding.topic == "noise" for finding in findings.problems)


def test_ogp_and_pgp_agree_on_model_2():
    """Both are sharp: the means lie within a fifth of an sd, the sds within 15 %."""
    x, y = MODEL2.simulate(np.random.default_rng(3))
    prior = (1.5, 1.0, 0.5)
    one = oc.calibrate(MODEL2.problem(x, y), oc.methods.OGP(*prior), draws=500, seed=1).summary()
    other = oc.calibrate(MODEL2.problem(x, y), oc.methods.Projected(oc.bias.GP(*prior)), draws=500, seed=1).summary()
    assert np.all(np.abs(one["mean"] - other["mean"]) < 0.2 * other["sd"])
    assert np.all(np.abs(one["sd"] / other["sd"] - 1) < 0.15)
    assert one["ess_bulk"].min() > 1000


def test_the_scale_of_sgasp_moves_it_between_free_and_no_bias():
    x, y = MODEL1.simulate(np.random.default_rng(0), 60)
    sds = [
        short(MODEL1.problem(x, y), oc.methods.SGaSP(1.5, 1.0, 0.5, scale=scale), draws=200).theta.std()
        for scale in (1e-6, 10.0, 1e9)
    ]
    free = short(MODEL1.problem(x, y), oc.methods.KO(1.5, 1.0, 0.5), draws=200).theta.std()
    none = short(MODEL1.problem(x, y), "none", draws=200).theta.std()
    assert sds[0] == pytest.approx(free, rel=0.05)
    assert sds[0] > sds[1] > sds[2]
    assert sds[2] == pytest.approx(none, rel=0.15)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(InputError, match="lambda"):
        oc.methods.SGaSP(scale=scale)


@pytest.mark.parametrize("name", ["KO", "OGP", "SGaSP", "PCAL"])
def test_a_smoothness_that_is_none_is_refused(name):
    with pytest.raises(InputError, match="nu=2"):
        getattr(oc.methods, name)(nu=2)

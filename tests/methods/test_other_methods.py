"""KO, OGP, S-GaSP and no bias: what each is known for."""

import numpy as np
import pytest

import orthocal as oc
from helpers import short
from orthocal.examples import MODEL1, MODEL2


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


def test_ko_says_that_theta_is_not_identified():
    x, y = MODEL1.simulate(np.random.default_rng(0), 40)
    findings = short(MODEL1.problem(x, y), oc.methods.KO(1.5, 1.0, 0.5), draws=200).check()
    assert any("cannot be told apart" in finding.message for finding in findings)


def test_no_bias_is_a_problem_where_the_simulator_is_wrong():
    x, y = MODEL1.simulate(np.random.default_rng(0), 60)
    findings = short(MODEL1.problem(x, y), "none", draws=200).check()
    assert any(finding.topic == "noise" for finding in findings.problems)


@pytest.mark.slow
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

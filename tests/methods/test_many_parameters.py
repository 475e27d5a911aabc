"""More parameters than anybody would search by hand."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc


def heights(t):
    return t + 0.05 * t**2


def waves(x, p, module=np):
    k = np.arange(p)
    return module.where(k % 2 == 0, module.cos(np.pi * k * x[:, None]), module.sin(np.pi * (k + 1) * x[:, None]))


def data(p, n):
    rng = np.random.default_rng(p)
    truth, x = 0.5 * rng.standard_normal(p), rng.random(n)
    return truth, x, waves(x, p) @ heights(truth) + 0.1 * rng.standard_normal(n)


def calibrated(p, n, simulator, **given):
    truth, x, y = data(p, n)
    priors = {f"t{j}": stats.norm(0, 1) for j in range(p)}
    problem = oc.Problem(x, y, simulator, priors, oc.Box(0, 1), noise_cov=0.01, **given)
    posterior = oc.calibrate(problem, "gp", draws=250, chains=4, seed=1, progress=False)
    return truth, problem, posterior


@pytest.mark.slow
@pytest.mark.parametrize("p", [20, 50])
def test_many_parameters_in_one_input_with_the_usual_nodes(p):
    truth, problem, posterior = calibrated(p, 400, lambda x, t: waves(x, p) @ heights(t), starts=12)
    assert len(problem.minima) == 1
    low, high = np.quantile(posterior.theta.reshape(-1, p), [0.0005, 0.9995], axis=0)
    # there is no bias: each is inside of nearly all of its draws
    assert np.mean((low < truth) & (truth < high)) > 0.95
    assert not [one for one in posterior.check() if one.level == "problem"]


def test_the_search_ends_where_many_starts_have_come_to_one_place():
    p, n = 20, 200
    _, x, y = data(p, n)
    priors = {f"t{j}": stats.norm(0, 1) for j in range(p)}
    few, many = (
        oc.Problem(x, y, lambda x, t: waves(x, p) @ heights(t), priors, oc.Box(0, 1), noise_cov=0.01, starts=starts)
        for starts in (10, 32)
    )
    assert few.theta_tilde == pytest.approx(many.theta_tilde, abs=1e-6)
    # the starts are tried, and no more of them are followed
    assert many.simulator.calls < few.simulator.calls + 60


@pytest.mark.slow
def test_many_parameters_of_a_simulator_in_jax():
    jax = pytest.importorskip("jax", reason="needs jax, the extra jax")
    p = 30
    truth, problem, posterior = calibrated(p, 400, lambda x, t: waves(x, p, jax.numpy) @ heights(t), starts=12)
    assert problem.simulator.gradient_kind == "jax"
    low, high = np.quantile(posterior.theta.reshape(-1, p), [0.0005, 0.9995], axis=0)
    assert np.mean((low < truth) & (truth < high)) > 0.95

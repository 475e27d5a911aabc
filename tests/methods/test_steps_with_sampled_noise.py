"""One step of a method with sampled noise far from where it began, at four times Sigma: exact, from the formulas."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import generators
from orthocal.methods.base import Plan
from orthocal.methods.bias_samplers import fitted_bias
from orthocal.methods.chain_noise import ChainNoise
from orthocal.methods.projected import _functional, _ProjectedRun

FACTORS = np.array([[[4.0, 0.0], [0.0, 4.0]], [[0.5, 0.3], [0.3, 2.0]]])


def line(x, theta):
    return np.column_stack([theta[0] * x, theta[1] + theta[0] * x**2])


@pytest.fixture(scope="module")
def run():
    """A run of two chains whose noise is FACTORS in whitened units, with missing cells."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 12)
    y = line(x, [1.0, 2.0]) + 0.3 * rng.standard_normal((12, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    y[[2, 7], [0, 1]] = np.nan
    priors = {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}
    problem = oc.Problem(x, y, line, priors, oc.Box(0, 1, nodes=10), noise_cov="sample")
    method = oc.methods.Projected(oc.bias.GP(nu=1.5, sd=0.5, lengthscale=0.3))
    bias = fitted_bias(method.bias, problem, problem.rule.nodes)
    own = _ProjectedRun(method, problem, Plan(1, 0, generators(2)), bias, _functional(problem))
    own._noise_state = own._noise_state._replace(cov=FACTORS)
    return own, problem


def covariances(problem):
    """Sigma of each chain, in the outcomes' units."""
    T = problem.noise.unwhitener
    return T @ FACTORS @ T.T


def test_theta_is_drawn_with_each_chains_own_noise(run):
    """log N(y - b; f, Sigma_c) of the observed cells, plus the prior, up to a constant."""
    own, problem = run
    theta = np.array([[0.5, 1.0], [1.5, 2.5], [0.9, 2.2], [1.1, 1.8]])
    rng = np.random.default_rng(1)
    bias = 0.2 * rng.standard_normal((12, 2))
    density = own._conditional(np.tile(problem.whiten(bias), (2, 1, 1)))
    exact = np.zeros((2, 4))
    for c, Sigma in enumerate(covariances(problem)):
        for k, one in enumerate(theta):
            left = problem.data.y - bias - line(problem.data.x[:, 0], one)
            seen = ~np.isnan(left)
            exact[c, k] = stats.norm(0, 3).logpdf(one).sum() + sum(
                -0.5 * row[s] @ np.linalg.solve(Sigma[np.ix_(s, s)], row[s]) for row, s in zip(left, seen, strict=True)
            )
    states = (own._model.state(np.tile(one, (2, 1))) for one in theta)
    found = np.array([density.log_density(state) for state in states]).T
    np.testing.assert_allclose(found - found[:, :1], exact - exact[:, :1], rtol=1e-6)


def test_missing_cells_are_drawn_about_the_bias_of_before(run, monkeypatch):
    """y - f there has the mean b + Sigma_mo Sigma_oo^-1 (y - f - b)_o, over many draws with the same bias."""
    own, problem = run
    rng = np.random.default_rng(2)
    before = rng.standard_normal((12, 2)) + np.array([3.0, -2.0])
    given = []
    state = own._bias.draw(generators(2), None, np.zeros((2, 12, 2)), own._noise.of_rows(own._noise_state))[0]
    kept = state._replace(bias=np.tile(problem.whiten(before), (2, 1, 1)))
    noise = own._noise_state

    def draw(rngs, state, residual, noise):
        given.append(problem.unwhiten(residual))
        return kept, np.zeros((2, 22, 2))

    monkeypatch.setattr(own._bias, "draw", draw)
    theta = own._model.state(np.tile([1.0, 2.0], (2, 1)))
    for _ in range(400):
        own._bias_state, own._noise_state = kept, noise
        own._draw_bias(theta)
    own._noise_state = noise
    left = problem.data.y - line(problem.data.x[:, 0], [1.0, 2.0])
    for c, Sigma in enumerate(covariances(problem)):
        drawn = np.array([one[c] for one in given])
        seen = ~np.isnan(left)
        np.testing.assert_allclose(drawn[:, seen], np.tile(left[seen], (400, 1)), atol=1e-9)
        for row, m in ((2, 0), (7, 1)):
            o = 1 - m
            mean = before[row, m] + Sigma[m, o] / Sigma[o, o] * (left - before)[row, o]
            sd = np.sqrt(Sigma[m, m] - Sigma[m, o] ** 2 / Sigma[o, o])
            # 5 standard errors: 6e-7 for each of four
            assert abs(drawn[:, row, m].mean() - mean) < 5 * sd / 20
            assert drawn[:, row, m].std() == pytest.approx(sd, rel=0.18)


def test_the_rows_of_a_chain_have_its_own_precision(run):
    _, problem = run
    sampler = ChainNoise(problem)
    state = sampler.start(2)._replace(cov=FACTORS)
    both = sampler.of_observed(state)
    for c in range(2):
        one = state._replace(cov=FACTORS[c : c + 1], groups=state.groups[:1])
        np.testing.assert_allclose(both[c], sampler.of_observed(one)[0])
    assert np.abs(both[0] - both[1]).max() > 0.1

"""Projected calibration: the theta that is closest to a given real process, by hand."""

import numpy as np
from scipy import stats

import orthocal as oc
from orthocal.methods.rivals.pcal import closest

X = np.linspace(0, 1, 20)
NORMAL = {"a": stats.norm(0, 10)}


def test_it_is_closest_in_the_metric_of_the_loss():
    """For a linear simulator (G'WG)^-1 G'W t, with a W that is not the noise's precision."""
    W = np.array([[3.0, 1.0], [1.0, 0.5]])

    def linear(x, theta):
        return np.column_stack([theta[0] * x, theta[0] * (1 - x)])

    y = linear(X, [1.0]) + 0.1 * np.random.default_rng(0).standard_normal((20, 2))
    problem = oc.Problem(X, y, linear, NORMAL, oc.Box(0, 1), noise_cov=[0.01, 0.04], loss_weight=W)
    nodes, weights = problem.rule.nodes[:, 0], problem.rule.weights
    target = np.column_stack([2 + nodes, -np.exp(nodes)])
    G = np.column_stack([nodes, 1 - nodes])
    exact = (weights * np.einsum("mk,kl,ml->m", G, W, target)).sum() / (
        weights * np.einsum("mk,kl,ml->m", G, W, G)
    ).sum()
    theta, loss, barred = closest(problem, problem.whiten(target)[None])
    np.testing.assert_allclose(theta, [[exact]], rtol=1e-8)
    left = target - exact * G
    np.testing.assert_allclose(loss, (weights * np.einsum("mk,kl,ml->m", left, W, left)).sum(), rtol=1e-8)
    assert not barred.any()


def test_a_step_that_goes_too_far_is_halved():
    """Whole Gauss-Newton steps for arctan(theta) = 0 from theta = 2 lead away for ever."""

    def bent(x, theta):
        return np.arctan(theta[0]) * np.ones_like(x)

    problem = oc.Problem(X, bent(X, [2.0]), bent, NORMAL, oc.Box(0, 1), noise_cov=1e-4)
    np.testing.assert_allclose(problem.theta_tilde, 2.0, atol=0.02)
    theta, loss, _ = closest(problem, np.zeros((1, len(problem.rule.nodes), 1)))
    np.testing.assert_allclose(theta, 0.0, atol=1e-6)
    assert loss[0] < 1e-6

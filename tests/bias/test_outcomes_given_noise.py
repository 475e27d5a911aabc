"""The bias of several outcomes under sampled noise: one round's means, from the conditional law of Gaussians."""

import numpy as np
from closed_form import matern

import orthocal as oc
from orthocal.bias.outcomes import DrawnNoise, OutcomesBias, OutcomesState, Residuals
from orthocal.problem.noise.noise import Noise


class Middle:
    """A generator whose normals are zero, so that a draw is its mean."""

    def standard_normal(self, size):
        return np.zeros(size)


def test_a_round_gives_each_outcome_the_noise_that_was_drawn():
    """Given the other's bias, outcome k has the noise variance 1 / L_kk and a response that is moved by the other's."""
    rng = np.random.default_rng(0)
    x, n = rng.random((8, 1)), 8
    noise = Noise(np.eye(2), np.ones((n, 2), dtype=bool), "unknown")
    prior = oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.4)
    values = Residuals(x, noise, np.zeros((n, 2)), np.zeros((n, 2, 1)))
    bias = OutcomesBias(prior, values, x[:0], np.ones(1))
    residual, before = rng.standard_normal((2, 2, n, 2))
    # four times the noise that the sampler began with, and another one for the second chain
    precision = np.stack([np.linalg.inv(4 * np.array([[1.0, 0.5], [0.5, 1.0]])), np.array([[3.0, -1.0], [-1.0, 2.0]])])
    state = OutcomesState([None, None], before)
    _, found = bias.draw([Middle(), Middle()], state, residual, DrawnNoise(precision[:, None], np.ones((2, 2))))
    K = matern(x, x, 1.5, 1.0, 0.4)
    for c, L in enumerate(precision):
        first = residual[c, :, 0] + L[0, 1] * (residual[c, :, 1] - before[c, :, 1]) / L[0, 0]
        mean = K @ np.linalg.solve(K + np.eye(n) / L[0, 0], first)
        np.testing.assert_allclose(found[c, :, 0], mean, atol=1e-7)
        second = residual[c, :, 1] + L[1, 0] * (residual[c, :, 0] - mean) / L[1, 1]
        np.testing.assert_allclose(found[c, :, 1], K @ np.linalg.solve(K + np.eye(n) / L[1, 1], second), atol=1e-7)

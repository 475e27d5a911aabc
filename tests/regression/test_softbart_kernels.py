"""The compiled steps of soft BART against their definitions.

False alarms: means are compared at 5 standard errors, 1.2e-5 a comparison; seeds are fixed.
"""

import numpy as np
from scipy import stats

from helpers import batch_means, setting
from orthocal.bias.softbart import SoftBART
from orthocal.regression import softbart_kernels as kernels


def test_the_shares_are_drawn_from_their_full_conditional():
    """Dirichlet(a p + number of splits): mean and second moments, of variables of a fixed forest."""
    rng, prior = np.random.default_rng(15), np.array([1 / 3, 1 / 2, 1 / 6])
    sampler = SoftBART(trees=3, sparsity=1.5).prepare(setting(rng.random((5, 3)), noise_var=np.full(5, 1e200))).own
    state, _ = sampler.draw([rng], None, np.zeros((1, 5)))
    nodes, draws = state[0].nodes, np.empty((40_000, 3))
    inner = (nodes[:, :, kernels.PARENT] != kernels.FREE) & (nodes[:, :, kernels.CHILD] != kernels.LEAF)
    for row in draws:
        kernels.draw_shares(rng, nodes, 1.5 * prior, row)
    exact = stats.dirichlet(1.5 * prior + np.bincount(nodes[inner][:, kernels.VARIABLE], minlength=3))
    assert inner.sum() > 2
    mean, error = batch_means(np.hstack([draws, draws**2]))
    assert np.all(np.abs(mean - np.append(exact.mean(), exact.var() + exact.mean() ** 2)) < 5 * error)


def test_the_marginal_likelihood_and_the_leaves_are_those_of_the_gaussian_model():
    """Log evidence against scipy's N(0, diag(noise) + v Phi Phi'), the leaves' mean and covariance."""
    rng = np.random.default_rng(3)
    noise_var, response, leaf_var = rng.uniform(0.5, 2, 20), rng.standard_normal(20), 0.7
    factor, half, ours, exact = np.empty((16, 16)), np.empty(16), [], []
    for size in (1, 2, 5):
        phi = rng.dirichlet(np.ones(size), 20)
        reach = np.ascontiguousarray(phi.T)
        leaves = np.arange(size)
        ours.append(kernels.log_evidence(reach, leaves, response, 1 / noise_var, leaf_var, factor, half))
        exact.append(stats.multivariate_normal(cov=np.diag(noise_var) + leaf_var * phi @ phi.T).logpdf(response))
    np.testing.assert_allclose(np.diff(ours), np.diff(exact), rtol=1e-10)
    draws = np.empty((40_000, 5))
    for row in draws:
        kernels.draw_leaves(rng, leaves, leaf_var, factor, half, row)
    covariance = np.linalg.inv(phi.T / noise_var @ phi + np.eye(5) / leaf_var)
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - covariance @ phi.T @ (response / noise_var)).T)
    np.testing.assert_allclose(white.mean(axis=1), 0, atol=5 / 200)
    np.testing.assert_allclose(np.cov(white), np.eye(5), atol=5 * np.sqrt(2) / 200)

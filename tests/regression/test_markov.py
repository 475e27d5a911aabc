"""Matern processes along one input by one pass, against the same with dense matrices: equal to rounding."""

import numpy as np
import pytest

from orthocal.regression.gaussian_process import correlation, restricted_deviance
from orthocal.regression.markov import Bridges, Ordered, condensed

SD, LENGTH = 1.3, 0.4


def kernel(a, b, nu):
    return SD**2 * correlation(a[:, None], b[:, None], np.array([LENGTH]), nu)


@pytest.fixture(params=[0.5, 1.5, 2.5])
def nu(request):
    return request.param


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.random(60)
    # a repeated point, one almost repeated, and a gap that is longer than the length-scale
    x[5], x[7] = x[6], x[8] + 1e-9
    x[x > 0.6] += 1.0
    gradient = np.column_stack([x, np.cos(3 * x)])
    return x, 0.5 + rng.random(60), rng.standard_normal(60) + 3 * x, gradient


def passed(data, nu, support):
    x, noise_var, z, gradient = data
    return condensed(Ordered.of(x, 1 / noise_var, np.column_stack([z, gradient]), support), nu, SD, LENGTH)


def test_products_and_deviance(data, nu):
    x, noise_var, z, gradient = data
    found = passed(data, nu, np.linspace(0, 2, 13))
    S, V = kernel(x, x, nu) + np.diag(noise_var), np.column_stack([z, gradient])
    np.testing.assert_allclose(found.gram, V.T @ np.linalg.solve(S, V), rtol=1e-8)
    deviance, _ = restricted_deviance(np.log([SD, LENGTH, 1.0]), x[:, None], z, nu, gradient, noise_var)
    np.testing.assert_allclose(found.deviance + np.log(noise_var).sum(), deviance, rtol=1e-9)


def test_the_law_at_the_support_points(data, nu):
    x, noise_var, z, gradient = data
    support = np.array([-0.3, 0.0, 0.21, 0.5, 1.0, 1.2, 1.9, 2.5])
    found = passed(data, nu, support)
    S, cross = kernel(x, x, nu) + np.diag(noise_var), kernel(support, x, nu)
    means = cross @ np.linalg.solve(S, np.column_stack([z, gradient]))
    np.testing.assert_allclose(found.means()[:, 0], means, atol=1e-8)
    functional = np.zeros((len(support), len(support), found.links.shape[1]))
    functional[np.arange(len(support)), np.arange(len(support)), 0] = 1.0
    cov = kernel(support, support, nu) - cross @ np.linalg.solve(S, cross.T)
    np.testing.assert_allclose(found.covariance_with(functional)[:, 0], cov, atol=1e-8)


def test_draws_have_this_law(data, nu):
    found = passed(data, nu, np.linspace(0, 2, 7))
    beta = np.tile([0.3, -0.2], (20_000, 1))
    drawn = found.draw([np.random.default_rng(1)], len(beta), beta)[:, :, 0]
    means = found.means()[:, 0] @ [1.0, -0.3, 0.2]
    functional = np.zeros((7, 7, found.links.shape[1]))
    functional[np.arange(7), np.arange(7), 0] = 1.0
    cov = found.covariance_with(functional)[:, 0]
    z = (drawn.mean(axis=0) - means) / np.sqrt(np.diag(cov) / len(beta))
    # seven means and seven variances: one of a million
    assert np.abs(z).max() < 5.5
    assert np.abs(drawn.var(axis=0) / np.diag(cov) - 1).max() < 5.5 * np.sqrt(2 / len(beta))


def test_between_support_points_without_data_nothing_is_lost(nu):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.random(20) * 0.4, 0.6 + 0.4 * rng.random(20)])
    data = x, np.full(40, 0.1), rng.standard_normal(40), np.ones((40, 1))
    coarse, new = np.array([0.0, 0.41, 0.59, 1.0]), np.array([0.47, 0.55])
    found = passed(data, nu, coarse)
    bridges = Bridges.of(new, coarse, nu, SD, LENGTH)
    k = found.links.shape[1]
    functional = np.zeros((2, 4, k))
    for row in range(2):
        functional[row, bridges.left[row]] = bridges.from_left[row]
        functional[row, bridges.right[row]] = bridges.from_right[row]
    mean = np.einsum("prk,rkc->pc", functional, found.means())
    var = np.einsum("prk,rkp->p", functional, found.covariance_with(functional)) + bridges.sd**2
    S, cross = kernel(x, x, nu) + 0.1 * np.eye(40), kernel(new, x, nu)
    np.testing.assert_allclose(mean[:, 0], cross @ np.linalg.solve(S, data[2]), atol=1e-8)
    np.testing.assert_allclose(var, SD**2 - np.einsum("ij,ji->i", cross, np.linalg.solve(S, cross.T)), atol=1e-8)


def test_beyond_the_ends_the_process_goes_on(nu):
    support, new = np.array([0.0, 0.5, 1.0]), np.array([-0.2, 0.0, 0.5, 1.0, 1.3])
    bridges = Bridges.of(new, support, nu, SD, LENGTH)
    states = np.random.default_rng(0).standard_normal((5, 3, {0.5: 1, 1.5: 2, 2.5: 3}[nu]))
    found = bridges.at(states, np.zeros((5, 5)))
    np.testing.assert_allclose(found[:, 1:4], states[:, :, 0], atol=1e-12)
    np.testing.assert_allclose(bridges.sd[1:4], 0, atol=1e-7)
    assert (bridges.sd[[0, 4]] > 0).all()
    # stationary beyond: the variance of what is added is that of the process less what is known
    far = Bridges.of(np.array([60.0]), support, nu, SD, LENGTH)
    np.testing.assert_allclose(far.sd, SD, rtol=1e-9)


def test_points_that_almost_touch_keep_their_digits(nu):
    rng = np.random.default_rng(4)
    x = np.sort(rng.random(20_000)) * 1e-9
    z = rng.standard_normal(20_000)
    found = condensed(Ordered.of(x, np.ones(20_000), z[:, None], np.array([0.0, 5e-10, 1e-9])), nu, SD, LENGTH)
    assert np.isfinite(found.gram).all()
    # over so short a stretch the process is a constant, all but: its posterior is that of a mean, with a prior
    precision = 20_000 + 1 / SD**2
    assert abs(found.means()[1, 0, 0] - z.sum() / precision) < 0.01 / np.sqrt(precision)

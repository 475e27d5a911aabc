"""The GP bias: exact posterior, one function at data and nodes, predictions of the same function."""

import numpy as np
import pytest
from closed_form import matern

import orthocal as oc
from helpers import setting
from orthocal.errors import InputError


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.random((12, 2)), rng.random((5, 2))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_posterior_mean_and_covariance_are_the_textbook_ones(points, nu):
    x, nodes = points
    noise_var = np.linspace(0.5, 2, len(x))
    sampler = oc.bias.GP(nu=nu, sd=0.7, lengthscale=0.4).prepare(setting(x, nodes, noise_var))
    every = np.vstack([x, nodes])
    K = matern(every, every, nu, 0.7, 0.4)
    n = len(x)
    regression = np.linalg.solve(K[:n, :n] + np.diag(noise_var), K[:n]).T
    z = np.random.default_rng(1).standard_normal(n)
    rngs = [np.random.default_rng(s) for s in range(3)]
    _, zero = sampler.draw(rngs, None, np.zeros((3, n)))
    _, shifted = sampler.draw([np.random.default_rng(s) for s in range(3)], None, np.tile(z, (3, 1)))
    np.testing.assert_allclose(shifted - zero, np.tile(regression @ z, (3, 1)), atol=1e-8)
    factor = sampler.covariance_factor()
    np.testing.assert_allclose(factor @ factor.T, K - regression @ K[:n], atol=1e-8)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_a_scale_on_the_noise_gives_what_a_sampler_with_that_noise_gives(points, scale):
    """Mean and covariance of the spectral form, exactly: the draws are linear in the residual and the normals."""
    x, nodes = points
    x = np.vstack([x, x[:3]])
    noise_var = np.linspace(0.5, 2, len(x))
    prior = oc.bias.GP(nu=1.5, sd=0.7, lengthscale=0.4)
    sampler = prior.prepare(setting(x, nodes, noise_var))
    scaled = prior.prepare(setting(x, nodes, scale * noise_var))
    z = np.random.default_rng(1).standard_normal(len(x))
    rng = [np.random.default_rng(0)]
    _, zero = sampler.draw([np.random.default_rng(0)], None, np.zeros((1, len(x))), np.array([scale]))
    _, shifted = sampler.draw(rng, None, z[None], np.array([scale]))
    _, other_zero = scaled.draw([np.random.default_rng(0)], None, np.zeros((1, len(x))))
    _, other = scaled.draw([np.random.default_rng(0)], None, z[None])
    np.testing.assert_allclose(shifted - zero, other - other_zero, atol=1e-8)
    factor = scaled.covariance_factor()
    rngs = [np.random.default_rng(s) for s in range(20_000)]
    _, draws = sampler.draw(rngs, None, np.zeros((20_000, len(x))), np.full(20_000, scale))
    exact = factor @ factor.T
    size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.max(np.abs(np.cov(draws, rowvar=False) - exact) / size) < 0.05


def test_a_direction_of_the_bias_goes_on_as_its_covariance_does(points):
    """Cov(b(x_new), b | y) a is what the values Cov(b, b | y) a are extended to."""
    x, nodes = points
    x_new = np.random.default_rng(2).random((6, 2))
    sampler = oc.bias.GP(nu=1.5, sd=0.7, lengthscale=0.4).prepare(setting(x, nodes))
    whole = np.vstack([x, nodes, x_new])
    K, n = matern(whole, whole, 1.5, 0.7, 0.4), len(x)
    S = K - np.linalg.solve(K[:n, :n] + np.eye(n), K[:n]).T @ K[:n]
    known = len(x) + len(nodes)
    a = np.random.default_rng(3).standard_normal((known, 2))
    np.testing.assert_allclose(sampler.extended(S[:known, :known] @ a, x_new), S[known:, :known] @ a, atol=1e-7)


def test_draws_have_the_posterior_covariance_jointly_at_data_and_nodes(points):
    """20000 draws: an entry's error is about sqrt(2 / 20000) = 0.01 of the variance; 5 of these are allowed."""
    x, nodes = points
    sampler = oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.5).prepare(setting(x, nodes, np.full(len(x), 0.1)))
    rngs = [np.random.default_rng(s) for s in range(20_000)]
    _, draws = sampler.draw(rngs, None, np.zeros((20_000, len(x))))
    every = np.vstack([x, nodes])
    K = matern(every, every, 1.5, 1.0, 0.5)
    n = len(x)
    exact = K - np.linalg.solve(K[:n, :n] + 0.1 * np.eye(n), K[:n]).T @ K[:n]
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.max(np.abs(np.cov(draws, rowvar=False) - exact) / scale) < 0.05


def test_without_data_the_draws_follow_the_prior(points):
    x, nodes = points
    sampler = oc.bias.GP(nu=2.5, sd=1.3, lengthscale=0.5).prepare(setting(x, nodes, np.full(len(x), 1e12)))
    factor = sampler.covariance_factor()
    every = np.vstack([x, nodes])
    np.testing.assert_allclose(factor @ factor.T, matern(every, every, 2.5, 1.3, 0.5), atol=1e-6)


def test_replicated_points_share_one_value(points):
    x, nodes = points
    x = np.vstack([x, x[:4]])
    sampler = oc.bias.GP(nu=0.5, sd=1.0, lengthscale=0.5).prepare(setting(x, nodes))
    _, draws = sampler.draw([np.random.default_rng(0)], None, np.zeros((1, len(x))))
    np.testing.assert_array_equal(draws[:, :4], draws[:, 12:16])
    assert sampler.findings()["jitter"] == 0.0


def test_sd_is_in_the_units_of_the_outcome(points):
    x, nodes = points
    sampler = oc.bias.GP(sd=2.0, lengthscale=0.5).prepare(setting(x, nodes, unit=5.0))
    assert sampler.sd == 10.0
    assert sampler.findings()["sd"] == 2.0


def test_squared_exponential_needs_and_reports_a_tiny_jitter():
    x = np.linspace(0, 1, 150)[:, None]
    sampler = oc.bias.GP(nu=np.inf, sd=1.0, lengthscale=0.5).prepare(setting(x, x[:0]))
    assert 0 < sampler.findings()["jitter"] < 1e-10


def test_hyperparameters_by_marginal_likelihood_recover_the_truth():
    """A smooth bias of sd 3 and length-scale 0.3, noise 1: the estimates lie within a factor of 2.5 (fixed seed)."""
    rng = np.random.default_rng(2)
    x = rng.random((200, 1))
    bias = np.linalg.cholesky(matern(x, x, 1.5, 3.0, 0.3) + 1e-10 * np.eye(200)) @ rng.standard_normal(200)
    sampler = oc.bias.GP(nu=1.5).prepare(setting(x, x[:0], residual=bias + rng.standard_normal(200)))
    assert 3 / 2.5 < sampler.sd < 3 * 2.5
    assert 0.3 / 2.5 < sampler.lengthscale[0] < 0.3 * 2.5


def test_an_input_without_influence_gets_a_long_lengthscale():
    rng = np.random.default_rng(3)
    x = rng.random((150, 2))
    residual = 5 * np.sin(8 * x[:, 0]) + rng.standard_normal(150)
    sampler = oc.bias.GP(nu=2.5).prepare(setting(x, x[:0], residual=residual))
    assert sampler.lengthscale[1] > 5 * sampler.lengthscale[0]


def test_predictions_continue_the_drawn_function(points):
    """At known points predict returns the drawn values; between them the joint law is that of one function."""
    x, nodes = points
    sampler = oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.5).prepare(setting(x, nodes, np.full(len(x), 0.1)))
    count = 20_000
    state, draws = sampler.draw([np.random.default_rng(s) for s in range(count)], None, np.zeros((count, len(x))))
    records = sampler.record(state)
    rng = np.random.default_rng(5)
    np.testing.assert_allclose(sampler.predict(rng, records, np.vstack([x, nodes])), draws, atol=1e-5)
    new = np.array([[0.3, 0.3], [0.35, 0.3], [0.3, 0.3]])
    predicted = sampler.predict(rng, records, new)
    np.testing.assert_array_equal(predicted[:, 0], predicted[:, 2])
    every = np.vstack([x, new[:2]])
    K = matern(every, every, 1.5, 1.0, 0.5)
    n = len(x)
    exact = K - np.linalg.solve(K[:n, :n] + 0.1 * np.eye(n), K[:n]).T @ K[:n]
    sampled = np.cov(np.column_stack([draws[:, :n], predicted[:, :2]]), rowvar=False)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.max(np.abs(sampled - exact) / scale) < 0.05


def test_a_lengthscale_for_another_number_of_inputs_is_refused(points):
    with pytest.raises(InputError, match="3 values but x has 2 inputs"):
        oc.bias.GP(sd=1.0, lengthscale=[1, 1, 1]).prepare(setting(*points))


def test_too_many_points_are_refused_before_the_memory_is_gone():
    x = np.linspace(0, 1, 10_001)[:, None]
    with pytest.raises(InputError, match="at most 10000 points"):
        oc.bias.GP(sd=1.0, lengthscale=1.0).prepare(setting(x, x[:0]))


def test_hyperparameters_know_how_noisy_each_point_is():
    """Three observations at each x, or their mean with a third of the variance, say the same about sd and length."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.random((15, 1)), axis=0)
    times = np.where(np.arange(15) < 7, 1, 9)
    y = 3 * np.sin(5 * x[:, 0]) + 2 * rng.standard_normal(15) / np.sqrt(times)
    merged = setting(x, noise_var=4.0 / times, residual=y)
    # observations around their mean that scatter: only a constant of the likelihood knows of it
    rows = np.repeat(np.arange(15), times)
    apart = rng.standard_normal(len(rows))
    apart -= (np.bincount(rows, apart) / times)[rows]
    every = setting(x[rows], noise_var=np.full(len(rows), 4.0), residual=y[rows] + apart)
    one, other = (oc.bias.GP(nu=1.5).prepare(own) for own in (merged, every))
    assert one.at_bound == other.at_bound == ()
    assert one.sd == pytest.approx(other.sd, rel=1e-3)
    assert one.lengthscale == pytest.approx(other.lengthscale, rel=1e-3)

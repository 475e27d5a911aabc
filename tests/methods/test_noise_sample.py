"""Sampled noise against its full conditionals, from their definitions.

Monte-Carlo limits are 5 standard errors: a false alarm has probability 6e-7 for each number compared.
"""

import numpy as np
import pytest
from scipy.stats import invgamma, kstest

from helpers import generators
from orthocal.methods.sampled_noise import NoiseSampler, noise_sampler
from orthocal.problem.noise.noise import Noise, observed_precision

COV = np.array([[4.0, 1.2, -0.3], [1.2, 1.0, 0.1], [-0.3, 0.1, 0.25]])
CHAINS = 2000


def noise(observed, cov=COV):
    return Noise(cov, np.asarray(observed), "unknown")


def test_the_covariance_given_the_errors_is_inverse_wishart():
    errors = np.random.default_rng(1).standard_normal((30, 3)) @ np.diag([1.0, 2.0, 0.5])
    sampler = NoiseSampler(noise(np.ones((30, 3), dtype=bool)))
    drawn = sampler.covariance(sampler.draw(generators(CHAINS), np.broadcast_to(errors, (CHAINS, 30, 3))))
    T = np.linalg.inv(noise(np.ones((1, 3), dtype=bool)).whitener)
    # q + 2 + n degrees of freedom, scale I + E'E, in the outcomes' units
    exact = T @ ((np.eye(3) + errors.T @ errors) / (30 + 1)) @ T.T
    error = drawn.std(axis=0) / np.sqrt(CHAINS)
    assert np.all(np.abs(drawn.mean(axis=0) - exact) < 5 * error)


def test_without_errors_the_covariance_follows_its_prior():
    """Kolmogorov and Smirnov at level 1e-4."""
    sampler = NoiseSampler(noise(np.zeros((5, 3), dtype=bool)))
    precision = sampler.draw(generators(CHAINS), np.full((CHAINS, 5, 3), 7.0))
    drawn = np.linalg.inv(precision)[:, 0, 0]
    # a diagonal cell of an inverse Wishart is inverse gamma, with half of q + 2 - (q - 1) as its shape
    assert kstest(drawn, invgamma(1.5, scale=0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("holes", [[1], [0, 2], [0, 1, 2]])
def test_missing_errors_are_drawn_given_the_others(holes):
    observed = np.ones((2, 3), dtype=bool)
    observed[1, holes] = False
    sampler = NoiseSampler(noise(observed))
    T = noise(observed).whitener
    errors = np.array([[1.0, -2.0, 0.5], [0.7, 1.5, -0.2]])
    precision = np.linalg.inv(np.array([[1.3, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 1.1]]))
    whitened = np.broadcast_to(errors @ T.T, (CHAINS, 2, 3))
    drawn = (
        sampler.completed(generators(CHAINS), whitened, np.broadcast_to(precision, (CHAINS, 3, 3))) @ np.linalg.inv(T).T
    )
    np.testing.assert_allclose(drawn[:, observed], np.tile(errors[observed], (CHAINS, 1)), atol=1e-10)
    Sigma = np.linalg.inv(T) @ np.linalg.inv(precision) @ np.linalg.inv(T).T
    seen = np.setdiff1d(np.arange(3), holes)
    between = Sigma[np.ix_(holes, seen)] @ np.linalg.inv(Sigma[np.ix_(seen, seen)])
    mean = between @ errors[1, seen]
    cov = Sigma[np.ix_(holes, holes)] - between @ Sigma[np.ix_(seen, holes)]
    cells = drawn[:, 1, holes]
    assert np.all(np.abs(cells.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(cov) / CHAINS))
    size = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    assert np.all(np.abs(np.cov(cells, rowvar=False) - cov) < 5 * size * np.sqrt(2 / CHAINS))


def test_drawing_errors_and_covariance_in_turn_leaves_the_prior():
    """Geweke's test: from the prior, errors | covariance and covariance | errors must lead back to the prior."""
    empty = NoiseSampler(noise(np.zeros((4, 3), dtype=bool)))
    counted = NoiseSampler(noise(np.ones((4, 3), dtype=bool)))
    rngs = generators(CHAINS, 3)
    precision = empty.draw(rngs, np.zeros((CHAINS, 4, 3)))
    for _ in range(3):
        errors = empty.completed(rngs, np.zeros((CHAINS, 4, 3)), precision)
        precision = counted.draw(rngs, errors)
    drawn = np.linalg.inv(precision)
    for k in range(3):
        assert kstest(drawn[:, k, k], invgamma(1.5, scale=0.5).cdf).pvalue > 1e-4


def test_the_precision_of_rows_is_that_of_the_observed_cells():
    observed = np.array([[True, True, True], [True, False, True]])
    sampler = NoiseSampler(noise(observed))
    precision = np.linalg.inv(np.array([[1.3, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 1.1]]))[None]
    rows = sampler.row_precision(precision)
    T = noise(observed).whitener
    Sigma = sampler.covariance(precision)[0]
    np.testing.assert_allclose(T.T @ rows[0, 0] @ T, np.linalg.inv(Sigma), atol=1e-8)
    seen = [0, 2]
    expected = np.zeros((3, 3))
    expected[np.ix_(seen, seen)] = np.linalg.inv(Sigma[np.ix_(seen, seen)])
    np.testing.assert_allclose(T.T @ rows[0, 1] @ T, expected, atol=1e-8)
    complete = NoiseSampler(noise(np.ones((2, 3), dtype=bool)))
    np.testing.assert_array_equal(complete.row_precision(precision), precision[:, None])


def grouped(observed):
    """Two groups: the typical covariance, and one of its own."""
    own = np.array([[1.0, 0.2, 0.1], [0.2, 2.0, 0.4], [0.1, 0.4, 0.5]])
    groups = np.array([0, 1, 1, 0, 1, 0])
    return Noise(COV, np.asarray(observed), "unknown", np.stack([COV, own])[groups], groups=groups), own, groups


def test_the_covariances_of_groups_are_inverse_wishart_around_their_estimates():
    given, own, groups = grouped(np.ones((6, 3), dtype=bool))
    errors = np.random.default_rng(1).standard_normal((6, 3)) @ np.diag([1.0, 2.0, 0.5])
    sampler = noise_sampler(given)
    whitened = np.broadcast_to(errors @ given.whitener.T, (CHAINS, 6, 3))
    drawn = sampler.fields(sampler.draw(generators(CHAINS), whitened))
    for g, estimate in enumerate((COV, own)):
        exact = (estimate + errors[groups == g].T @ errors[groups == g]) / (3 + 1)
        error = drawn["noise_by_group"][:, g].std(axis=0) / np.sqrt(CHAINS)
        assert np.all(np.abs(drawn["noise_by_group"][:, g].mean(axis=0) - exact) < 5 * error)
    np.testing.assert_allclose(drawn["noise_cov"], drawn["noise_by_group"].mean(axis=1))


def test_rows_of_groups_say_what_their_observed_cells_say():
    observed = np.ones((6, 3), dtype=bool)
    observed[[1, 3, 3], [0, 1, 2]] = False
    given, *_, groups = grouped(observed)
    sampler = noise_sampler(given)
    precision = sampler.draw(generators(2), np.random.default_rng(1).standard_normal((2, 6, 3)))
    covs = sampler.fields(precision)["noise_by_group"]
    back = given.unwhitener
    expected = [back.T @ observed_precision(one[groups], observed) @ back for one in covs]
    np.testing.assert_allclose(sampler.row_precision(precision), expected, atol=1e-10)
    whole = sampler.completed(generators(2), np.ones((2, 6, 3)), precision)
    missing = (whole - 1) @ back.T
    np.testing.assert_allclose(missing[:, observed], 0, atol=1e-10)
    assert np.abs(missing[:, ~observed]).min() > 0


def test_one_group_of_all_rows_is_the_covariance_of_all_rows():
    observed = np.ones((6, 3), dtype=bool)
    observed[2, 1] = False
    alone = NoiseSampler(noise(observed))
    group = noise_sampler(Noise(COV, observed, "unknown", np.tile(COV, (6, 1, 1)), groups=np.zeros(6, dtype=int)))
    errors = np.random.default_rng(1).standard_normal((4, 6, 3))
    single, only = alone.draw(generators(4), errors), group.draw(generators(4), errors)
    np.testing.assert_allclose(only[:, 0], single)
    np.testing.assert_allclose(
        group.completed(generators(4), errors, only), alone.completed(generators(4), errors, single)
    )

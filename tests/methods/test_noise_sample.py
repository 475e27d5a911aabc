"""What draws of the noise say about rows, from its definition."""

import numpy as np

from orthocal.methods.sampled_noise import NoiseDraws
from orthocal.problem.noise.noise import Noise, observed_precision

COV = np.array([[4.0, 1.2, -0.3], [1.2, 1.0, 0.1], [-0.3, 0.1, 0.25]])


def noise(observed, cov=COV):
    return Noise(cov, np.asarray(observed), "unknown")


def test_the_precision_of_rows_is_that_of_the_observed_cells():
    observed = np.array([[True, True, True], [True, False, True]])
    sampler = NoiseDraws(noise(observed))
    precision = np.linalg.inv(np.array([[1.3, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 1.1]]))[None]
    rows = sampler.row_precision(precision)
    T = noise(observed).whitener
    Sigma = sampler.fields(precision)["noise_cov"][0]
    np.testing.assert_allclose(T.T @ rows[0, 0] @ T, np.linalg.inv(Sigma), atol=1e-8)
    seen = [0, 2]
    expected = np.zeros((3, 3))
    expected[np.ix_(seen, seen)] = np.linalg.inv(Sigma[np.ix_(seen, seen)])
    np.testing.assert_allclose(T.T @ rows[0, 1] @ T, expected, atol=1e-8)
    complete = NoiseDraws(noise(np.ones((2, 3), dtype=bool)))
    np.testing.assert_array_equal(complete.row_precision(precision), precision[:, None])


def grouped(observed):
    """Two groups: the typical covariance, and one of its own."""
    own = np.array([[1.0, 0.2, 0.1], [0.2, 2.0, 0.4], [0.1, 0.4, 0.5]])
    groups = np.array([0, 1, 1, 0, 1, 0])
    return Noise(COV, np.asarray(observed), "unknown", np.stack([COV, own])[groups], groups=groups), own, groups


def test_rows_of_groups_say_what_their_observed_cells_say():
    observed = np.ones((6, 3), dtype=bool)
    observed[[1, 3, 3], [0, 1, 2]] = False
    given, own, groups = grouped(observed)
    draws, T = NoiseDraws(given), given.whitener
    precision = draws.precision(np.stack([T @ np.stack([COV, own]) @ T.T, T @ np.stack([own, 2 * COV]) @ T.T]))
    kept = draws.fields(precision)
    np.testing.assert_allclose(kept["noise_by_group"], [[COV, own], [own, 2 * COV]], atol=1e-10)
    np.testing.assert_allclose(kept["noise_cov"], kept["noise_by_group"].mean(axis=1))
    back = given.unwhitener
    expected = [back.T @ observed_precision(one[groups], observed) @ back for one in kept["noise_by_group"]]
    np.testing.assert_allclose(draws.row_precision(precision), expected, atol=1e-10)

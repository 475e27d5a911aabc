"""The noise of predicted observations: each point's own covariance, each draw's own, the right way round.

Monte-Carlo limits are 5 standard errors: 6e-7 for each number compared.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short

COV = np.array([[1.0, 1.5], [1.5, 4.0]])
X = np.linspace(0, 1, 10)


def line(x, theta):
    return np.column_stack([theta[0] * x, theta[0] + 0 * x])


def fitted(noise_cov, draws=200):
    rng = np.random.default_rng(0)
    y = line(X, [2.0]) + rng.standard_normal((10, 2)) @ np.linalg.cholesky(COV).T
    return short(oc.Problem(X, y, line, {"a": stats.norm(0, 9)}, oc.Box(0, 1), noise_cov=noise_cov), "none", draws)


def white(prediction, covariances):
    """What was added to the mean, whitened by each point's covariance, as rows."""
    noise = (prediction["observation"] - prediction["mean"]).values
    return np.linalg.solve(np.linalg.cholesky(covariances), noise[..., None])[..., 0].reshape(-1, 2)


def assert_standard(rows):
    count = len(rows)
    assert np.all(np.abs(rows.mean(axis=0)) < 5 / np.sqrt(count))
    assert np.all(np.abs(np.cov(rows.T) - np.eye(2)) < 5 * np.sqrt([[2, 1], [1, 2]]) / np.sqrt(count))


def test_at_the_data_every_point_has_its_own_noise():
    own = COV * np.geomspace(0.1, 10, 10)[:, None, None]
    own[5:] = own[5:, ::-1, ::-1]
    assert_standard(white(fitted(own).predict(), own))


@pytest.mark.parametrize("x_new", [None, np.linspace(0, 1, 7)], ids=["data", "new"])
def test_outcomes_are_correlated_as_their_noise_is(x_new):
    posterior = fitted(COV)
    assert_standard(white(posterior.predict() if x_new is None else posterior.predict(x_new), COV))


def test_sampled_noise_is_that_of_the_draws_that_are_kept():
    record = fitted("sample", 50).record
    keep = np.array([3, 20, 41])
    roots = record.noise_roots(keep, X[:2, None])
    every = record.data["posterior"]["noise_cov"].values
    np.testing.assert_allclose(roots[:, :, 0] @ roots[:, :, 0].swapaxes(-1, -2), every[:, keep], rtol=1e-10)
    assert np.abs(every[:, keep] / every[:, :3] - 1).min() > 1e-6

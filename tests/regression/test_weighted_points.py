"""Weighted points against moments in closed form."""

import numpy as np
import pytest
from scipy import stats

from orthocal.regression.weighted_points import weighted_points


@pytest.mark.parametrize(("k", "away"), [(1, 3.0), (3, 3.0), (7, 0.2)])
def test_a_normal_away_from_the_start(k, away):
    rng = np.random.default_rng(k)
    root = np.tril(rng.standard_normal((k, k))) * 0.1 + 0.1 * np.eye(k)
    centre = rng.uniform(-away, away, k)
    law = stats.multivariate_normal(centre, root @ root.T)
    density = law.logpdf if k > 1 else lambda v: law.logpdf(v[:, 0])
    found = weighted_points(density, np.zeros(k), max(away / 2, 0.3) * np.eye(k), 200)
    mean, covariance = found.moments()
    sd = np.sqrt(np.diag(root @ root.T))
    assert found.effective >= 200
    assert np.abs((mean - centre) / sd).max() < 0.15
    assert np.abs(np.sqrt(np.diag(covariance)) / sd - 1).max() < 0.15


def test_a_bent_density():
    """x ~ N(0, 1), y - x^2 ~ N(0, .25): the mean of y is 1."""
    found = weighted_points(
        lambda v: -0.5 * v[:, 0] ** 2 - 2 * (v[:, 1] - v[:, 0] ** 2) ** 2, np.zeros(2), 2 * np.eye(2), 300
    )
    mean, covariance = found.moments()
    assert mean == pytest.approx([0.0, 1.0], abs=0.2)
    assert covariance[0, 0] == pytest.approx(1.0, rel=0.2)


def test_nothing_unknown_is_one_point():
    found = weighted_points(lambda v: np.zeros(len(v)), np.zeros(0), np.zeros((0, 0)), 100)
    assert found.points.shape == (1, 0)
    assert found.weights == pytest.approx([1.0])


def test_a_half_that_is_impossible():
    """An exponential: the density is zero below 0."""
    found = weighted_points(lambda v: np.where(v[:, 0] > 0, -v[:, 0], -np.inf), np.zeros(1), np.eye(1), 300)
    assert found.moments()[0] == pytest.approx([1.0], abs=0.05)

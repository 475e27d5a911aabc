"""The weights of the orbits: exact non-negative least squares."""

import numpy as np
import pytest
from scipy.optimize import nnls

from orthocal.errors import InputError
from orthocal_galaxy.weights import Rows, fit_weights, nonnegative


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("m", "n"), [(40, 15), (60, 60), (30, 80)])
def test_against_scipy(seed, m, n):
    rng = np.random.default_rng(seed)
    matrix, target = rng.standard_normal((m, n)) + 0.3, rng.standard_normal(m) + 1
    ridge = 0.01
    found = fit_weights(Rows(matrix, target), ridge)
    # the ridge as further rows
    root = np.sqrt(ridge * n)
    expected, _ = nnls(np.vstack([matrix, root * np.eye(n)]), np.concatenate([target, np.full(n, root / n)]))
    assert found == pytest.approx(expected, abs=1e-7)
    assert (found == 0).any()


def test_orbit_like_problem_meets_the_conditions_of_a_minimum():
    """Non-negative, strongly correlated columns: gradient zero where w > 0, and not negative where w = 0."""
    rng = np.random.default_rng(1)
    place = rng.random(400)
    matrix = np.exp(-0.5 * ((np.linspace(0, 1, 150)[:, None] - place) / 0.05) ** 2)
    rows = Rows(matrix, matrix @ rng.exponential(size=400) / 400 + 0.05 * rng.standard_normal(150))
    w = fit_weights(rows, 1e-4)
    slope = matrix.T @ (matrix @ w - rows.target) + 1e-4 * 400 * (w - 1 / 400)
    assert (w >= 0).all()
    assert np.abs(slope[w > 0]).max() < 1e-9
    assert slope[w == 0].min() > -1e-8


def test_extremes():
    assert np.array_equal(nonnegative(np.eye(3), np.array([-1.0, -2.0, -3.0])), np.zeros(3))
    assert nonnegative(2 * np.eye(2), np.array([2.0, 4.0])) == pytest.approx([1, 2])
    rows = Rows(np.ones((1, 4)), np.ones(1))
    assert fit_weights(rows, 1e9) == pytest.approx(np.full(4, 0.25))
    with pytest.raises(InputError, match="ridge=0"):
        fit_weights(rows, 0)

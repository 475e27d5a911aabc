"""Values on a grid: interpolation, sums over the data, covariance."""

import numpy as np
import pytest

from orthocal.regression.gaussian_process import correlation
from orthocal.regression.inducing import Inducing, RegularGrid, spread_points


@pytest.fixture(params=[1, 2, 3])
def grid(request):
    d = request.param
    return RegularGrid.over(np.full(d, -1.0), np.array([1.0, 2.0, 0.5])[:d], np.array([0.4, 0.5, 0.3])[:d])


def points_in(grid, n=50, seed=0):
    d = len(grid.step)
    return -1 + np.random.default_rng(seed).random((n, d)) * (np.array([1.0, 2.0, 0.5])[:d] + 1)


def test_cubics_are_interpolated_exactly(grid):
    def cubic(x):
        return np.prod(1 + x - 0.5 * x**2 + 0.25 * x**3, axis=1)

    x = points_in(grid)
    np.testing.assert_allclose(grid.at(x, cubic(grid.points)[None])[0], cubic(x), atol=1e-12)


def test_the_grid_covers_the_box_with_steps_that_are_no_longer_than_asked_for(grid):
    assert (grid.step <= np.array([0.4, 0.5, 0.3])[: len(grid.step)] + 1e-12).all()
    assert (grid.points.min(axis=0) < -1).all()
    assert grid.size == len(grid.points)


def test_sums_are_those_of_the_whole_design_matrix(grid):
    x, rng = points_in(grid), np.random.default_rng(1)
    weight, values = rng.random(50), rng.standard_normal((50, 3))
    weight[7] = 0.0
    phi = grid.at(x, np.eye(grid.size)).T
    found = grid.sums(x, weight, values)
    np.testing.assert_allclose(found.functions, phi.T @ (weight[:, None] * phi), atol=1e-12)
    np.testing.assert_allclose(found.mixed, phi.T @ (weight[:, None] * values), atol=1e-12)
    np.testing.assert_allclose(found.own, values.T @ (weight[:, None] * values), atol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
def test_the_covariance_is_the_process_s(grid, nu):
    length = np.array([0.3, 0.7, 2.0])[: len(grid.step)]
    expected = 2.25 * correlation(grid.points, grid.points, length, nu)
    np.testing.assert_allclose(grid.covariance(1.5, length, nu), expected, atol=1e-12)


def test_inducing_points_are_spread_and_distinct():
    x = np.repeat(np.random.default_rng(0).random((40, 2)), 3, axis=0)
    chosen = spread_points(x, np.ones(2), 100)
    assert len(chosen) == 40
    assert len(np.unique(x[chosen], axis=0)) == 40
    few, more = spread_points(x, np.ones(2), 5), spread_points(x, np.ones(2), 10)
    np.testing.assert_array_equal(few, more[:5])


def test_what_inducing_points_say_and_do_not_say_is_the_process():
    rng = np.random.default_rng(2)
    process = Inducing.at(rng.random((30, 4)), 0.7, np.full(4, 0.8), 1.5)
    x = rng.random((10, 4))
    functions = process.functions(x)
    whole = functions @ functions.T + process.unsaid_covariance(x)
    np.testing.assert_allclose(whole, 0.49 * correlation(x, x, np.full(4, 0.8), 1.5), atol=1e-12)
    np.testing.assert_allclose(process.unsaid(functions), np.diag(process.unsaid_covariance(x)), atol=1e-12)
    np.testing.assert_allclose(process.unsaid(process.functions(process.points)), 0, atol=1e-8)

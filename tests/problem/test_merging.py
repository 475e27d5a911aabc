"""Merged rows: their likelihood and their sum of squares are those of all rows, whatever is missing."""

from dataclasses import is_dataclass
from functools import cached_property
from inspect import getmembers_static

import numpy as np
import pytest
from scipy import stats
from scipy.stats import multivariate_normal

import orthocal as oc
from orthocal.problem.search.best_fit import row_weights

POINTS = np.array([0.1, 0.4, 0.5, 0.9])


def two(x, theta):
    return np.column_stack([theta[0] * x, theta[1] + x**2])


def problem(noise_cov=None):
    """23 rows at 4 points with covariances of their own; cells are missing, a whole row, and an outcome at a point."""
    rng = np.random.default_rng(1)
    x = POINTS[np.concatenate([np.arange(4), rng.integers(0, 4, 19)])]
    y = two(x, [1.0, 2.0]) + rng.standard_normal((23, 2))
    y[rng.random((23, 2)) < 0.3] = np.nan
    y[5] = np.nan
    y[x == 0.5, 1] = np.nan
    roots = rng.standard_normal((23, 2, 2))
    own = roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(2)
    priors = {"a": stats.uniform(-4, 10), "b": stats.uniform(-4, 10)}
    return oc.Problem(x, y, two, priors, domain=oc.Box(0, 1), noise_cov=own if noise_cov is None else noise_cov)


def log_likelihood(given, mean):
    """By the density of each row's observed cells."""
    total = 0.0
    for row, observed, cov, centre in zip(given.data.y, given.data.observed, given.noise.by_point, mean, strict=True):
        if observed.any():
            density = multivariate_normal(centre[observed], cov[np.ix_(observed, observed)])
            total += density.logpdf(row[observed])
    return total


def test_the_likelihood_is_that_of_all_rows():
    given = problem()
    merged = given.merged
    assert merged.data.n == 4
    assert merged.unmerged is given
    np.testing.assert_array_equal(merged.data.observed, [[True, True], [True, True], [True, False], [True, True]])
    differences = []
    for mean in np.random.default_rng(2).standard_normal((5, 4, 2)):
        every = mean[merged.rows.repeats.place]
        differences.append(log_likelihood(given, every) - log_likelihood(merged, mean))
    np.testing.assert_allclose(differences, differences[0], rtol=1e-10)


def test_the_scatter_is_what_the_means_leave():
    given = problem()
    mean = np.where(given.merged.data.observed, given.merged.data.y, 0.0)[given.merged.rows.repeats.place]
    left = sum(
        (row - centre)[seen] @ np.linalg.solve(cov[np.ix_(seen, seen)], (row - centre)[seen])
        for row, seen, cov, centre in zip(given.data.y, given.data.observed, given.noise.by_point, mean, strict=True)
        if seen.any()
    )
    assert given.merged.rows.scatter == pytest.approx(left, rel=1e-12)


@pytest.mark.parametrize("noise_cov", [None, np.array([[1.0, 0.6], [0.6, 2.0]])])
def test_the_loss_is_that_of_all_rows(noise_cov):
    given = problem(noise_cov)
    theta = np.array([0.3, 1.7])
    left = np.where(given.data.observed, given.data.y - two(given.data.x[:, 0], theta), 0.0)
    weights = row_weights(given.weight, given.data.observed, given.volumes)
    expected = np.einsum("nk,nkl,nl", left, weights, left) / 23
    assert given._criterion.loss(theta) == pytest.approx(expected, rel=1e-12)
    assert len(given._criterion.x) == 4


def arrays_in(value):
    """All arrays in a value and its fields."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from arrays_in(one)
    elif is_dataclass(value):
        for one in vars(value).values():
            yield from arrays_in(one)


def test_what_a_merged_problem_knows_of_rows_is_of_its_own():
    """All that can be asked of both: nothing that was computed of all rows stays."""
    x = np.repeat(np.linspace(0.1, 0.9, 10), 4)
    y = np.exp(-2 * x) + 0.05 * np.random.default_rng(3).standard_normal(40)
    decay = lambda x, theta: np.exp(-theta[0] * x)  # noqa: E731
    given = oc.Problem(x, y, decay, {"a": stats.norm(1, 2)}, oc.Box(0, 1), noise_cov=0.05**2, x_err=0.01)
    # of parts that others share, and of what it was merged from, the rows are others
    elsewhere = ("merged", "unmerged", "_setup")
    names = [
        name
        for name, kind in getmembers_static(oc.Problem)
        if isinstance(kind, cached_property | property) and name not in elsewhere
    ]
    rows = {name: {one.shape[:1] for one in arrays_in(getattr(given, name))} for name in names}
    of_rows = {name for name, shapes in rows.items() if (40,) in shapes}
    assert of_rows >= {"volumes", "noise", "fit", "complete_y", "gradient_at_data", "input_errors", "_added_noise"}
    merged = given.merged
    assert merged.data.n == 10
    kept = {name for name in names if (40,) in {one.shape[:1] for one in arrays_in(getattr(merged, name))}}
    assert not kept
    for name in of_rows - {"input_errors", "_added_noise"}:
        assert (10,) in {one.shape[:1] for one in arrays_in(getattr(merged, name))}, name
    # the noise of the merged rows has the errors of x already
    assert merged.input_errors is merged._added_noise is None
    np.testing.assert_allclose(merged.noise.by_point, given.noise.by_point[::4] / 4)


def test_the_volumes_add_up():
    given = problem()
    np.testing.assert_allclose(given.merged.volumes, given.merged.rows.repeats.sums(given.volumes), rtol=1e-12)
    np.testing.assert_array_equal(given.merged.rows.repeats.counts, np.bincount(given.merged.rows.repeats.place))


def test_what_is_left_of_the_loss_where_a_cell_is_missing():
    """((W^-1)_oo)^-1: the loss at the cell's best value, not W with the cell struck out."""
    W = np.array([[2.0, 1.0], [1.0, 3.0]])
    observed = np.array([[True, True], [True, False], [False, True]])
    found = row_weights(W, observed, np.full(3, 1 / 3))
    np.testing.assert_allclose(found[0], W)
    # min over e_2 of e' W e with e_1 = 1
    np.testing.assert_allclose(found[1], [[2 - 1 / 3, 0], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(found[2], [[0, 0], [0, 3 - 1 / 2]], atol=1e-12)

"""Errors of x: what they add to the noise, exactly where f is a parabola in x."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 4, (15, 2))
X[0], X[1] = 0.0, 4.0
ERRORS = RNG.uniform(0.01, 0.9, (15, 2))
ERRORS[4] = 0.0
PRIORS = {"a": stats.norm(1, 2), "b": stats.norm(1, 2)}


def parabola(x, theta):
    """Two outcomes, (m, 2), within the box only."""
    if (x < 0).any() or (x > 4).any():
        raise ValueError("outside of the box")
    one, other = x.T
    return np.stack([theta[0] * one + 0.5 * other**2, theta[1] * other - one], axis=1)


def problem(x_err, noise_cov=0.04, **options):
    y = parabola(X, [1.2, 0.7]) + 0.2 * np.random.default_rng(1).standard_normal((15, 2))
    return oc.Problem(X, y, parabola, PRIORS, oc.Box(0, 4), noise_cov, x_err=x_err, starts=4, **options)


def expected(theta, errors):
    """sum_j g_j g_j' s_j^2, from derivatives by hand."""
    slopes = np.zeros((15, 2, 2))
    slopes[:, 0, 0], slopes[:, 0, 1] = theta[0], X[:, 1]
    slopes[:, 1, 0], slopes[:, 1, 1] = -1.0, theta[1]
    return np.einsum("nkj,nlj,nj->nkl", slopes, slopes, np.broadcast_to(errors, (15, 2)) ** 2)


@pytest.mark.parametrize("x_err", [0.3, [0.3, 0.0], [0.2, 0.1], ERRORS], ids=["number", "one exact", "each", "cells"])
def test_noise_of_every_point(x_err):
    made = problem(x_err)
    added = expected(made.theta_tilde, np.asarray(x_err))
    np.testing.assert_allclose(made.noise.by_point, 0.04 * np.eye(2) + added, rtol=1e-9, atol=1e-12)
    assert made.noise.by_point[2, 0, 1] != 0
    # the mean of 0.5 u^2 and 0
    shift = np.stack([0.5 * np.broadcast_to(x_err, (15, 2))[:, 1] ** 2, np.zeros(15)], axis=1)
    np.testing.assert_allclose(made.input_errors.curvature, shift, atol=1e-12)


def test_the_weight_and_the_best_fit_stay():
    with_errors, without = problem(ERRORS), problem(None)
    np.testing.assert_array_equal(with_errors.weight, without.weight)
    np.testing.assert_array_equal(with_errors.theta_tilde, without.theta_tilde)
    assert with_errors.misfit < without.misfit
    assert without.input_errors is None


def test_parts_keep_the_noise():
    whole = problem(ERRORS)
    np.testing.assert_array_equal(whole.subset(np.arange(10)).noise.by_point, whole.noise.by_point[:10])
    np.testing.assert_array_equal(whole.outcome(1).noise.by_point, whole.noise.by_point[:, 1:, 1:])


def test_a_transform_carries_errors_of_x():
    """log f of f = exp(a + b x) is a line."""
    x = np.linspace(0, 1, 12)
    made = oc.Problem(
        x,
        np.exp(1 + 2 * x),
        lambda x, t: np.exp(t[0] + t[1] * x),
        PRIORS,
        noise_cov=0.01,
        transform="log",
        x_err=np.full(12, 0.05),
    )
    np.testing.assert_allclose(made.noise.by_point[:, 0, 0], 0.01 + (0.05 * made.theta_tilde[1]) ** 2, rtol=1e-8)


def test_a_step_function_has_a_slope_over_an_error():
    """An emulator by trees: differences shorter than its steps would see none."""
    x = np.linspace(0, 10, 41)
    made = oc.Problem(
        x, x, lambda x, t: t[0] * np.floor(20 * x) / 20, {"a": stats.norm(1, 1)}, noise_cov=0.1, x_err=0.5
    )
    np.testing.assert_allclose(made.noise.by_point[:, 0, 0], 0.1 + 0.25 * made.theta_tilde[0] ** 2, rtol=0.15)


def test_errors_of_zero_are_none():
    assert problem(0.0).noise.by_point is None


def test_huge_units():
    x = 1e9 + 1e3 * np.linspace(0, 1, 12)
    made = oc.Problem(
        x, (x - 1e9) / 1e3, lambda x, t: t[0] * (x - 1e9) / 1e3, {"a": stats.norm(1, 1)}, noise_cov=0.1, x_err=10.0
    )
    np.testing.assert_allclose(made.noise.by_point[:, 0, 0], 0.1 + (0.01 * made.theta_tilde[0]) ** 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("x_err", "noise", "words"),
    [
        (0.1, "estimate", "the scatter of y, which has the errors of x in it already"),
        (0.1, "sample", "the scatter of y"),
        (0.1, oc.LowRankNoise(1), "the scatter of y"),
        (-0.1, 0.04, "negative or not finite"),
        (np.nan, 0.04, "negative or not finite"),
        ([0.1, 0.1, 0.1], 0.04, r"shape \(3,\) but x has 15 rows and 2 columns"),
        ("a", 0.04, "x_err must be numbers"),
    ],
)
def test_bad_input(x_err, noise, words):
    with pytest.raises(InputError, match=words):
        problem(x_err, noise)


def test_a_simulator_that_knows_the_data_points_only():
    x = np.linspace(0, 1, 12)

    def table(at, theta):
        if not np.isin(at, x).all():
            raise KeyError("no such point")
        return theta[0] * at

    made = oc.Problem(x, x, table, {"a": stats.norm(1, 1)}, noise_cov=0.1, x_err=0.1)
    with pytest.raises(InputError, match=r"needs the simulator beside the data points.*no such point"):
        _ = made.noise

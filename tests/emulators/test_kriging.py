"""The Gaussian-process emulator against textbook universal kriging, and the errors of components against the simulator.

Only the fitted hyperparameters are taken from the package.
"""

from functools import cache

import numpy as np
import pytest
from closed_form import matern
from scipy.stats import qmc

import orthocal as oc
from orthocal.emulators.components import ComponentEmulator


@pytest.fixture(scope="module")
def kriging():
    """A fitted process with a linear trend and noise, and the same from the textbook, at new inputs."""
    rng = np.random.default_rng(0)
    inputs, new = rng.random((25, 2)), rng.uniform(-0.5, 1.5, (6, 2))
    targets = np.sin(4 * inputs[:, :1]) + 2 * inputs[:, 1:] + 0.2 * rng.standard_normal((25, 1))
    fitted = oc.emulators.GP(nu=2.5).fit(inputs, targets)
    (process,) = fitted.processes
    assert process.noise_var > 1e-3

    def k(a, b):
        return matern(a / process.lengthscale, b / process.lengthscale, 2.5, process.sd, 1.0)

    K = k(inputs, inputs) + process.noise_var * np.eye(25)
    cross, solved = k(new, inputs), np.linalg.inv(K)
    F, f = (np.column_stack([np.ones(len(one)), one]) for one in (inputs, new))
    beta = np.linalg.solve(F.T @ solved @ F, F.T @ solved @ targets)
    mean = f @ beta + cross @ solved @ (targets - F @ beta)
    # what is not known of the trend adds to the variance
    left = f - cross @ solved @ F
    cov = k(new, new) - cross @ solved @ cross.T + left @ np.linalg.inv(F.T @ solved @ F) @ left.T
    return fitted, process, new, mean, cov


def test_mean_and_variance_are_those_of_universal_kriging(kriging):
    fitted, process, new, mean, cov = kriging
    np.testing.assert_allclose(fitted.predict(new), mean, atol=1e-6)
    # of a run, so with its noise
    np.testing.assert_allclose(fitted.variance(new)[:, 0], np.diag(cov) + process.noise_var, rtol=1e-5)


def test_errors_are_correlated_as_in_universal_kriging(kriging):
    fitted, process, new, _, cov = kriging
    np.testing.assert_allclose(fitted.covariance(process, new), cov, atol=1e-6)


X = np.linspace(0, 1, 7)


def wave(x, theta):
    return np.sin(9 * x + 2 * theta[0]) + theta[1] * x


@cache
def emulator(unit=1.0):
    theta = qmc.Sobol(2, rng=np.random.default_rng(0)).random(16)
    table = oc.RunTable(theta, unit * np.stack([wave(X, one) for one in theta]), X, ["a", "b"])
    return oc.emulate(table, "gp", layout="components", progress=False)


def test_errors_follow_the_unit_of_the_output():
    """At the points of the runs and between them: a thousand times the output has a million times the variance."""
    one, other = emulator(), emulator(1000.0)
    assert isinstance(one, ComponentEmulator)
    theta = np.array([0.31, 0.72])
    for x in (X[:, None], np.linspace(0.05, 0.95, 5)[:, None]):
        np.testing.assert_allclose(other.error_var(x, theta), 1e6 * one.error_var(x, theta), rtol=1e-3)


def test_the_error_of_a_score_is_that_of_its_kriging():
    one, theta = emulator(), np.array([0.31, 0.72])
    (fitted,), (scale,), (basis,) = one.fitted, one.scores, one._bases
    sd = np.sqrt(fitted.variance(one.unit.apply(theta)[None])[0]) * scale.scale
    exact = ((sd[:, None] * basis.functions) ** 2).sum(axis=0) + basis.left_var
    np.testing.assert_allclose(one.error_var(X[:, None], theta)[:, 0], exact, rtol=1e-8)


def test_between_the_points_of_the_runs_their_distance_counts():
    """A wave with five points a period: what interpolation misses is covered by five of the errors that are stated."""
    one, theta = emulator(), np.array([0.31, 0.72])
    between = (X[1:] + X[:-1])[:, None] / 2
    error = np.abs(one.mean(between, theta)[:, 0] - wave(between[:, 0], theta))
    at_points = np.abs(one.mean(X[:, None], theta)[:, 0] - wave(X, theta))
    assert error.max() > 10 * at_points.max()
    assert np.all(error < 5 * np.sqrt(one.error_var(between, theta)[:, 0]))

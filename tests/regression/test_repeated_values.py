"""Values at points that repeat: the likelihood of their means and scatter is that of all values."""

import numpy as np
from scipy.stats import multivariate_normal

from orthocal.regression.gaussian_process import correlation, merged_values, restricted_deviance

RNG = np.random.default_rng(0)
X = RNG.random((6, 2))[RNG.integers(0, 6, 25)]
Z = RNG.standard_normal(25)
VAR = RNG.uniform(0.5, 2, 25)
VALUES = np.log([0.8, 0.4, 0.6, 0.3])


def test_the_deviance_of_merged_values_is_that_of_all():
    """Of a process without a basis: the density of a multivariate normal."""
    merged = merged_values(X, Z, np.empty((25, 0)), VAR)
    assert len(merged.x) == 6
    for values in (VALUES, VALUES + np.array([0.5, -0.2, 0.3, -0.7])):
        sd, length, noise = np.exp(values[0]), np.exp(values[1:3]), np.exp(values[3])
        whole = sd**2 * correlation(X, X, length, 1.5) + noise * np.diag(VAR)
        expected = -2 * multivariate_normal(cov=whole).logpdf(Z) - 25 * np.log(2 * np.pi)
        own, _ = restricted_deviance(values, merged.x, merged.z, 1.5, merged.basis, merged.relative_var)
        np.testing.assert_allclose(own + merged.scatter_deviance(values[3])[0], expected, rtol=1e-12)


def test_deviance_and_slopes_beside_a_basis():
    basis = np.column_stack([np.ones(25), X[:, 0]])
    merged = merged_values(X, Z, basis, VAR)
    own, slope = restricted_deviance(VALUES, merged.x, merged.z, 1.5, merged.basis, merged.relative_var)
    scatter, along = merged.scatter_deviance(VALUES[3])
    value, gradient = restricted_deviance(VALUES, X, Z, 1.5, basis, VAR)
    np.testing.assert_allclose(own + scatter, value, rtol=1e-12)
    np.testing.assert_allclose(slope + np.array([0, 0, 0, along]), gradient, rtol=1e-10)


def test_values_at_distinct_points_stay_as_they_are():
    x = RNG.random((5, 2))
    merged = merged_values(x, Z[:5], x, VAR[:5])
    assert merged.x is x
    assert merged.scatter_deviance(0.7) == (0.0, 0.0)

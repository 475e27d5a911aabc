import numpy as np
import pytest

from orthocal.regression.gaussian_process import RestrictedDensity, restricted_deviance


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("functions", [1, 3])
def test_it_is_the_deviance_that_the_search_for_hyperparameters_has(nu, columns, functions):
    rng = np.random.default_rng(1)
    x, z, relative_var = rng.random((15, 2)), rng.standard_normal((15, columns)), rng.random(15) + 0.5
    basis = np.hstack([np.ones((15, 1)), x])[:, :functions]
    density = RestrictedDensity(x, z, nu, basis, relative_var)
    for values in np.log([[1.0, 0.4, 0.7, 0.1], [3.0, 2.0, 0.2, 0.02]]):
        expected = -restricted_deviance(values, x, z, nu, basis, relative_var)[0] / 2
        assert density(values) == pytest.approx(expected, rel=1e-10)


def test_where_rounding_leaves_no_covariance_nothing_is_likely():
    x = np.array([[0.1], [0.1 + 1e-12], [0.9]])
    density = RestrictedDensity(x, np.ones((3, 1)), np.inf, np.ones((3, 1)), np.ones(3))
    assert density(np.log([1e3, 30.0, 1e-30])) == -np.inf

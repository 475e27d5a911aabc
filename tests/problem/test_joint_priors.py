"""Joint priors: a multivariate normal by its formulas, others by their density and a sample."""

import numpy as np
import pytest
from scipy import stats

from orthocal.errors import InputError
from orthocal.problem.prior.parameters import Parameters

MEAN, COV = np.array([10.0, -300.0]), np.array([[4.0, -90.0], [-90.0, 2500.0]])
NORMAL = stats.multivariate_normal(MEAN, COV)
STUDENT = stats.multivariate_t(MEAN, COV, df=5)


class Triangle:
    """Uniform where 0 < x < y < 1; one theta at a time."""

    def logpdf(self, x):
        assert np.shape(x) == (2,)
        return np.log(2) if 0 < x[0] < x[1] < 1 else -np.inf

    def rvs(self, size, random_state):
        return np.sort(random_state.random((size, 2)), axis=1)


def with_single(prior):
    return Parameters({"c": stats.norm(2, 0.5), ("a", "b"): prior, "d": stats.uniform(0, 1)})


def test_names_and_order_are_those_of_the_keys():
    parameters = with_single(NORMAL)
    assert parameters.names == ("c", "a", "b", "d")
    np.testing.assert_allclose(parameters.median, [2, 10, -300, 0.5])
    np.testing.assert_allclose(parameters.spread[1:3], stats.norm.ppf(0.84) * np.sqrt(np.diag(COV)))


@pytest.mark.parametrize("prior", [NORMAL, STUDENT], ids=["normal", "student"])
def test_the_density_and_its_slopes(prior):
    parameters = with_single(prior)
    theta = np.random.default_rng(1).normal([2, 10, -300, 0.5], [0.5, 2, 50, 0.05], (3, 4, 4))
    single = stats.norm(2, 0.5).logpdf(theta[..., 0])
    np.testing.assert_allclose(parameters.log_prior(theta), single + prior.logpdf(theta[..., 1:3]), rtol=1e-10)
    # those of the Student t are -(df + 2) P (x - m) / (df + q), with q = (x - m)' P (x - m)
    P, left = np.linalg.inv(COV), theta[..., 1:3] - MEAN
    weight = 1.0 if prior is NORMAL else 7 / (5 + np.einsum("...i,ij,...j->...", left, P, left)[..., None])
    gradient = parameters.log_prior_gradient(theta)
    np.testing.assert_allclose(gradient[..., 1:3], -weight * (left @ P), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gradient[..., 0], -(theta[..., 0] - 2) / 0.25, rtol=1e-6, atol=1e-6)


def test_the_curvature_has_the_joint_block():
    theta = np.array([2.0, 10.0, -300.0, 0.5])
    expected = np.zeros((4, 4))
    expected[0, 0], expected[1:3, 1:3] = 4.0, np.linalg.inv(COV)
    np.testing.assert_allclose(with_single(NORMAL).log_prior_curvature(theta), expected, rtol=1e-5)
    # at its centre that of the Student t is (df + 2) / df P
    expected[1:3, 1:3] *= 7 / 5
    np.testing.assert_allclose(with_single(STUDENT).log_prior_curvature(theta), expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("prior", [NORMAL, STUDENT], ids=["normal", "student"])
def test_the_root_is_that_of_the_log_density(prior):
    parameters = with_single(prior)
    top = parameters.log_prior(np.array([2.0, 10.0, -300.0, 0.5]))
    for theta in np.random.default_rng(2).normal([2, 10, -300, 0.5], [0.5, 2, 50, 0.05], (5, 4)):
        root, slope = parameters.prior_root(theta), parameters.prior_root_slope(theta)
        drop = 2 * (top - parameters.log_prior(theta))
        assert root @ root == pytest.approx(drop, rel=1e-5, abs=1e-5)
        # and so r' dr = -d log pi
        np.testing.assert_allclose(
            root @ slope * parameters.spread, -parameters.log_prior_gradient(theta) * parameters.spread, atol=2e-3
        )


def test_a_sampled_prior_knows_where_it_lies():
    parameters = with_single(STUDENT)
    scale = np.sqrt(np.diag(COV))
    np.testing.assert_allclose((parameters.median[1:3] - MEAN) / scale, 0, atol=0.05)
    np.testing.assert_allclose(parameters.spread[1:3] / scale, stats.t(5).ppf(0.84), rtol=0.05)
    starts = parameters.starts(32)
    assert parameters.inside(starts).all()
    assert np.abs((starts[0, 1:3] - MEAN) / scale).max() < 0.3
    white = np.linalg.solve(np.linalg.cholesky(COV), (starts[:, 1:3] - MEAN).T)
    assert np.abs(np.corrcoef(white)[0, 1]) < 0.4


def test_what_a_joint_prior_excludes_is_outside():
    parameters = Parameters({("x", "y"): Triangle()})
    theta = np.array([[0.2, 0.7], [0.7, 0.2], [0.5, 1.5]])
    np.testing.assert_array_equal(parameters.inside(theta), [True, False, False])
    np.testing.assert_allclose(parameters.log_prior(theta), [np.log(2), -np.inf, -np.inf])
    assert parameters.inside(parameters.starts(64)).all()
    assert np.isfinite(parameters.log_prior_gradient(np.array([0.5, 0.5 + 1e-9]))).all()


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({("a", "b"): stats.norm(0, 1)}, "joint prior of a, b"),
        ({("a", "b"): 3.0}, "joint prior of a, b is float"),
        ({("a", "b"): stats.multivariate_normal}, "joint prior of a, b"),
        ({("a", "b", "c"): NORMAL}, "2 dimensions for 3 names"),
        ({("a", "b"): stats.multivariate_normal([0, 0], [[1, 1], [1, 1]], allow_singular=True)}, "positive definite"),
        ({("a",): NORMAL}, "tuple of two or more names"),
        ({("a", "a"): NORMAL}, "stored under one name"),
        ({("a", "b"): NORMAL, "a": stats.norm(0, 1)}, "stored under one name"),
        ({("a", 2): NORMAL}, "parameter name 2"),
        ({("a", "b"): stats.multivariate_t([0, 0, 0], np.eye(3))}, "shape"),
        ({("a", "b"): stats.dirichlet([1.0, 2.0])}, "joint prior of a, b"),
    ],
)
def test_joint_priors_that_do_not_fit_are_refused(priors, words):
    with pytest.raises(InputError, match=words):
        Parameters(priors)

"""Priors as users have them: scipy's new distributions, kernel densities, and joint priors by ``oc.JointPrior``."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.prior.parameters import Parameters

SAMPLE = np.random.default_rng(3).gamma(3.0, 1.0, 400)
PAIRS = np.random.default_rng(4).multivariate_normal([1.0, -2.0], [[1.0, 0.6], [0.6, 2.0]], 300).T
U = np.array([0.001, 0.03, 0.4, 0.5, 0.77, 0.999])

#: new -> the same of the older ones
TWINS = {
    "normal": (stats.Normal(mu=2.0, sigma=3.0), stats.norm(2, 3)),
    "uniform": (stats.Uniform(a=-1.0, b=4.0), stats.uniform(-1, 5)),
    "truncated": (stats.truncate(stats.Normal(mu=1.0, sigma=2.0), lb=0.0, ub=4.0), stats.truncnorm(-0.5, 1.5, 1, 2)),
    "lognormal": (stats.exp(stats.Normal(mu=0.3, sigma=0.5)), stats.lognorm(0.5, scale=np.exp(0.3))),
    "moved": (2 * stats.Normal(mu=0.0, sigma=1.0) - 1, stats.norm(-1, 2)),
    "made": (stats.make_distribution(stats.weibull_min)(c=2.0), stats.weibull_min(2.0)),
}


@pytest.mark.parametrize(("new", "old"), TWINS.values(), ids=TWINS)
def test_new_distributions_are_what_the_older_ones_are(new, old):
    one, other = Parameters({"a": new}), Parameters({"a": old})
    for part in ("lower", "upper", "median", "spread"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-8, atol=1e-12)
    theta = old.ppf(U)[:, None]
    np.testing.assert_allclose(one.quantile(U[:, None]), theta, rtol=1e-7)
    for what in ("log_prior", "log_prior_gradient", "log_prior_curvature"):
        np.testing.assert_allclose(getattr(one, what)(theta), getattr(other, what)(theta), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one.prior_root(theta[1]), other.prior_root(theta[1]), rtol=1e-4)
    assert one.flat is other.flat
    outside = np.array([old.support()[0] - 1.0])
    assert np.isneginf(one.log_prior(outside)) or not np.isfinite(outside)


def test_the_kernel_density_of_a_sample():
    given = stats.gaussian_kde(SAMPLE, weights=np.linspace(1, 2, 400))
    parameters = Parameters({"a": given})
    theta = parameters.quantile(U[:, None])
    below = [given.integrate_box_1d(-np.inf, one) for one in theta[:, 0]]
    np.testing.assert_allclose(below, U, rtol=1e-4)
    np.testing.assert_allclose(parameters.log_prior(theta.reshape(2, 3, 1)).ravel(), given.logpdf(theta[:, 0]))
    assert np.isinf(parameters.lower).all()
    # far out, where the density itself is zero in floating-point numbers, its logarithm still falls
    assert np.isfinite(parameters.log_prior(np.array([[-30.0], [60.0]]))).all()
    assert parameters.quantile(np.array([[0.0], [1.0]])).shape == (2, 1)


def test_the_kernel_density_of_several_numbers():
    given = stats.gaussian_kde(PAIRS)
    parameters = Parameters({("a", "b"): given})
    theta = PAIRS.T[:6].reshape(2, 3, 2)
    np.testing.assert_allclose(parameters.log_prior(theta), given.logpdf(PAIRS[:, :6]).reshape(2, 3))
    drawn = parameters.prior_draws(4000, np.random.default_rng(0))
    expected = np.cov(PAIRS) + given.covariance
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=5 * expected.max() * np.sqrt(2 / 4000))


def test_a_joint_prior_is_an_entry_of_parameters():
    normal = stats.multivariate_normal([0, 1], [[1, 0.5], [0.5, 2]])
    joint = oc.JointPrior(["a", "b"], normal)
    for given in ({**joint, "c": stats.norm(0, 1)}, joint | {"c": stats.norm(0, 1)}):
        assert Parameters(given).names == ("a", "b", "c")
    assert Parameters({"c": stats.norm(0, 1)} | joint).names == ("c", "a", "b")
    alone = Parameters(joint)
    theta = np.array([[0.3, 0.4], [-1.0, 2.0]])
    np.testing.assert_allclose(alone.log_prior(theta), normal.logpdf(theta))
    assert repr(joint) == "<JointPrior of a, b: multivariate_normal_frozen>"
    assert joint["a", "b"] is normal
    with pytest.raises(KeyError):
        joint["a"]


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({"a": stats.Normal}, "is ABCMeta|is type|give a frozen"),
        ({"a": stats.Binomial(n=4, p=0.3) if hasattr(stats, "Binomial") else stats.Normal}, "discrete|frozen"),
        ({"a": stats.Normal(mu=[0.0, 1.0], sigma=1.0)}, "length 2"),
        ({"a": stats.gaussian_kde(PAIRS)}, "gaussian_kde of 2 numbers.*oc.JointPrior"),
        ({"a": stats.multivariate_normal([0, 0])}, "several numbers.*oc.JointPrior"),
        ({("a", "b"): stats.gaussian_kde(SAMPLE)}, "gaussian_kde of 1 numbers"),
        ({("a", "b"): stats.Normal(mu=0.0, sigma=1.0)}, "joint prior of a, b is Normal"),
        ({"a": stats.truncate(stats.Normal(mu=0.0, sigma=1.0), lb=60.0, ub=61.0)}, "not a proper distribution"),
    ],
)
def test_what_is_no_prior_is_refused(priors, words):
    with pytest.raises(InputError, match=words):
        Parameters(priors)


@pytest.mark.parametrize("names", ["ab", ("a",), 3])
def test_names_of_a_joint_prior_are_two_or_more(names):
    with pytest.raises(InputError, match="two names or more"):
        oc.JointPrior(names, stats.multivariate_normal([0, 0]))


def test_a_joint_prior_that_does_not_fit_is_refused_where_it_is_made():
    with pytest.raises(InputError, match="3 dimensions for 2 names"):
        oc.JointPrior(("a", "b"), stats.multivariate_normal([0, 0, 0]))


@pytest.mark.parametrize("method", ["gp", "none", "pgp"])
def test_calibrations_with_them_are_those_with_the_older_ones(method):
    x = np.linspace(0, 1, 20)
    y = 1.5 * x + 0.4 + 0.1 * np.random.default_rng(0).standard_normal(20)
    found = []
    for number in (0, 1):
        priors = {"a": TWINS["truncated"][number], "b": TWINS["normal"][number]}
        problem = oc.Problem(x, y, lambda x, t: t[0] * x + t[1], priors, oc.Box(0, 1), noise_cov=0.01, starts=4)
        assert "problem" not in {one.level for one in problem.check()}
        found.append(oc.calibrate(problem, method, draws=20, warmup=20, chains=2, seed=1, progress=False).theta)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-3)

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.prior.parameters import RESERVED_NAMES, Parameters, variable_name

PRIORS = {
    "norm": stats.norm(-3, 0.7),
    "uniform": stats.uniform(2, 5),
    "gamma": stats.gamma(3.0, scale=2.0),
    "beta": stats.beta(2.5, 4.0),
    "truncnorm": stats.truncnorm(-1.0, 2.0, loc=1.0, scale=3.0),
}


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (stats.multivariate_normal([0, 0]), "multivariate_normal_frozen"),
        (stats.norm([0, 0], 1), "length 2"),
        (stats.norm([0], [1]), "length 1"),
        (stats.poisson(3), "continuous"),
        (stats.randint(0, 5), "continuous"),
        ("norm(0, 1)", "is str"),
        (3.0, "is float"),
        (None, "is NoneType"),
        (lambda x: x, "is function"),
    ],
)
def test_priors_that_are_no_distribution_of_one_number_are_refused(prior, message):
    with pytest.raises(InputError, match=f"prior of 'g'.*{message}"):
        Parameters({"g": prior})


def test_a_distribution_without_its_shape_is_refused():
    with pytest.raises(InputError, match="prior of 'g'"):
        Parameters({"g": stats.gamma})


@pytest.mark.parametrize(
    "prior",
    [
        stats.norm(0, 0),
        stats.norm(0, -1),
        stats.norm(np.nan, 1),
        stats.norm(0, np.inf),
        stats.uniform(0, 0),
        stats.uniform(0, -1),
        stats.gamma(-1),
    ],
)
def test_degenerate_priors_are_refused(prior):
    with pytest.raises(InputError, match="prior of 'g' is not a proper distribution"):
        Parameters({"g": prior})


@pytest.mark.parametrize("priors", [{}, [], None, stats.norm(0, 1), [("g", stats.norm(0, 1))], "g"])
def test_parameters_that_are_no_dictionary_are_refused(priors):
    with pytest.raises(InputError, match="dictionary of name and prior"):
        Parameters(priors)


@pytest.mark.parametrize("name", ["", " ", " g", "g ", "g\n", "a\tb", "\x00", 1, None, ("g",)])
def test_names_that_are_no_printable_text_are_refused(name):
    with pytest.raises(InputError, match="parameter name"):
        Parameters({name: stats.norm(0, 1)})


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_names_that_the_results_use_are_refused(name):
    with pytest.raises(InputError, match=f"parameter name '{name}' is used"):
        Parameters({name: stats.norm(0, 1)})


def test_the_dimensions_and_variables_of_the_results_are_reserved():
    assert {"chain", "draw", "point", "outcome", "bias", "model", "noise_cov", "other_outcome"} <= RESERVED_NAMES


def test_nothing_is_stored_beside_the_parameters_under_a_name_that_is_free():
    """Of a run that stores all there is: sampled noise of two outcomes, a projection."""
    rng = np.random.default_rng(0)
    x = rng.random((20, 1))
    y = np.column_stack([x, 2 * x]) + 0.1 * rng.standard_normal((20, 2))
    problem = oc.Problem(x, y, lambda x, t: t[0] * np.column_stack([x, x]), {"t": stats.norm(0, 1)}, noise_cov="sample")
    stored = oc.calibrate(problem, "pgp", draws=4, warmup=4, chains=1, seed=0).data["posterior"].to_dataset()
    assert {str(name) for name in (*stored.variables, *stored.sizes)} - {"t"} <= RESERVED_NAMES


@pytest.mark.parametrize("name", ["g", "drag coefficient", "θ₁", "k[0]", "a.b", "M/L"])
def test_other_names_are_kept(name):
    parameters = Parameters({name: stats.norm(0, 1), "other": stats.norm(0, 1)})
    assert parameters.names == (name, "other")
    assert parameters.p == 2


def test_a_slash_is_replaced_in_the_name_of_the_variable():
    parameters = Parameters({"M/L": stats.norm(0, 1)})
    assert parameters.variables == ("M\N{DIVISION SLASH}L",)
    assert variable_name("M/L") == parameters.variables[0]
    assert variable_name("g") == "g"


def test_names_that_are_one_without_the_slash_are_refused():
    with pytest.raises(InputError, match="stored under one name"):
        Parameters({"M/L": stats.norm(0, 1), "M\N{DIVISION SLASH}L": stats.norm(0, 1)})


@pytest.mark.parametrize("family", PRIORS)
def test_range_of_a_prior(family):
    prior = PRIORS[family]
    parameters = Parameters({"g": prior})
    assert (parameters.lower[0], parameters.upper[0]) == prior.support()
    assert parameters.median[0] == pytest.approx(prior.median())
    low, high = prior.ppf([0.16, 0.84])
    assert parameters.spread[0] == pytest.approx((high - low) / 2)


@pytest.mark.parametrize("family", PRIORS)
def test_log_prior_is_that_of_scipy(family):
    prior = PRIORS[family]
    points = np.concatenate([prior.ppf(np.linspace(0.001, 0.999, 41)), [-50.0, 50.0]])
    value = Parameters({"g": prior}).log_prior(points[:, None])
    np.testing.assert_allclose(value, prior.logpdf(points), rtol=1e-12)


def test_log_prior_is_minus_infinity_outside_the_support_only():
    parameters = Parameters({"g": PRIORS["uniform"]})
    value = parameters.log_prior(np.array([[1.99], [2.0], [7.0], [7.01]]))
    np.testing.assert_allclose(value, [-np.inf, -np.log(5), -np.log(5), -np.inf])


def test_log_prior_of_several_parameters_is_a_sum_over_the_last_axis():
    parameters = Parameters(PRIORS)
    u = np.random.default_rng(1).uniform(0.05, 0.95, (3, 4, 5))
    theta = parameters.quantile(u)
    assert theta.shape == (3, 4, 5)
    expected = sum(prior.logpdf(theta[..., j]) for j, prior in enumerate(PRIORS.values()))
    np.testing.assert_allclose(parameters.log_prior(theta), expected, rtol=1e-12)
    one = parameters.log_prior(theta[0, 0])
    assert one.shape == ()
    assert one == pytest.approx(expected[0, 0])


def test_quantiles_are_those_of_each_prior():
    theta = Parameters(PRIORS).quantile(np.full(5, 0.3))
    np.testing.assert_allclose(theta, [prior.ppf(0.3) for prior in PRIORS.values()])


@pytest.mark.parametrize("u", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_gradient_and_curvature_of_a_normal_prior(u):
    mean, sd = -3.0, 0.7
    parameters = Parameters({"g": stats.norm(mean, sd)})
    theta = parameters.quantile(np.array([u]))
    np.testing.assert_allclose(parameters.log_prior_gradient(theta), -(theta - mean) / sd**2, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(parameters.log_prior_curvature(theta), [[1 / sd**2]], rtol=1e-5)


@pytest.mark.parametrize("u", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_gradient_and_curvature_of_a_gamma_prior(u):
    shape, scale = 3.0, 2.0
    parameters = Parameters({"g": stats.gamma(shape, scale=scale)})
    theta = parameters.quantile(np.array([u]))
    np.testing.assert_allclose(
        parameters.log_prior_gradient(theta), (shape - 1) / theta - 1 / scale, rtol=1e-5, atol=1e-8
    )
    np.testing.assert_allclose(parameters.log_prior_curvature(theta), [(shape - 1) / theta**2], rtol=1e-4)


def test_gradient_and_curvature_of_several_parameters_at_many_points():
    parameters = Parameters({"a": stats.norm(1, 2), "b": stats.norm(-5, 0.1)})
    theta = np.random.default_rng(2).normal([1, -5], [2, 0.1], (3, 4, 2))
    gradient = parameters.log_prior_gradient(theta)
    np.testing.assert_allclose(gradient, -(theta - [1, -5]) / [4, 0.01], rtol=1e-6, atol=1e-6)
    expected = np.broadcast_to(np.diag([0.25, 100]), (*theta.shape, 2))
    np.testing.assert_allclose(parameters.log_prior_curvature(theta), expected, rtol=1e-5)


def test_a_prior_that_bends_upwards_gives_no_negative_curvature():
    # the log density of gamma(1/2) is convex
    parameters = Parameters({"g": stats.gamma(0.5)})
    np.testing.assert_array_equal(parameters.log_prior_curvature(np.array([[0.2], [1.0], [5.0]])), 0.0)


@pytest.mark.parametrize("room", [1e-3, 1e-6, 1e-9, 0.0])
def test_gradient_of_a_flat_prior_is_zero_up_to_its_bounds(room):
    parameters = Parameters({"g": stats.uniform(2, 5)})
    theta = np.array([[2 + room], [7 - room]])
    np.testing.assert_array_equal(parameters.log_prior_gradient(theta), 0.0)
    np.testing.assert_array_equal(parameters.log_prior_curvature(theta), 0.0)


def test_gradient_and_curvature_of_a_gamma_prior_are_finite_and_steep_at_zero():
    parameters = Parameters({"g": stats.gamma(3.0)})
    theta = np.array([[1e-5], [1e-8], [0.0]])
    gradient, curvature = parameters.log_prior_gradient(theta), parameters.log_prior_curvature(theta)
    assert np.isfinite(gradient).all()
    assert np.isfinite(curvature).all()
    # those of theta = 0.01 are 199 and 20000
    assert (gradient > 199).all()
    assert (curvature > 20000).all()


def test_inside_is_the_interior_of_the_support():
    parameters = Parameters({"a": stats.uniform(0, 1), "b": stats.norm(0, 1)})
    theta = np.array([[0.5, 99.0], [0.0, 0.0], [1.0, 0.0], [-0.1, 0.0], [0.5, np.nan]])
    np.testing.assert_array_equal(parameters.inside(theta), [True, False, False, False, False])
    assert parameters.inside(theta[0]).shape == ()


@pytest.mark.parametrize("count", [1, 2, 7, 32, 100])
def test_starts_lie_inside_the_support_and_are_distinct(count):
    parameters = Parameters(PRIORS)
    starts = parameters.starts(count)
    assert starts.shape == (count, 5)
    assert parameters.inside(starts).all()
    assert len(np.unique(starts, axis=0)) == count
    np.testing.assert_array_equal(starts, Parameters(PRIORS).starts(count))


def test_starts_fill_the_priors_and_their_bulk():
    starts = Parameters(PRIORS).starts(64)
    for j, prior in enumerate(PRIORS.values()):
        # the first is near the middle; those from the bulk of a prior that is not uniform are between its quartiles
        u = prior.cdf(starts[:, j])
        assert u[0] == pytest.approx(0.51)
        bulk = (u[32:] > 0.24) & (u[32:] < 0.76)
        assert bulk.all() or prior.dist.name == "uniform"
        counts, _ = np.histogram(u[:32], bins=4, range=(0, 1))
        assert counts.min() >= 7


def test_support_describes_theta_by_name():
    support = Parameters({"a": stats.uniform(0, 1), "M/L": stats.norm(0, 1)}).support
    assert support.describe(np.array([0.25, -1.5])) == "a = 0.25, M/L = -1.5"

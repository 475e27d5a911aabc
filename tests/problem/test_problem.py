import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orthocal import Box, Points, Problem, Simulator
from orthocal.errors import IdentifiabilityError, InputError, SimulatorError
from orthocal.examples import MODEL1, MODEL2, MODEL3
from orthocal.projection import quadrature_error

X = np.linspace(0, 1, 21)
Y = 1 + 2 * X + 0.05 * np.sin(25 * X)
LINE = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
COV = np.array([[0.09, 0.02], [0.02, 0.04]])


def line(x, theta):
    return theta[0] + theta[1] * x


def line_gradient(x, theta):
    return np.stack([np.ones_like(x), x], axis=1)


def pair(x, theta):
    """Two outcomes of two parameters."""
    return np.stack([theta[0] + theta[1] * x, theta[1] * x**2], axis=1)


def pair_gradient(x):
    zero = np.zeros_like(x)
    return np.stack([np.stack([zero + 1, x], axis=1), np.stack([zero, x**2], axis=1)], axis=1)


PAIR = np.stack([Y, 2 * X**2 + 0.1], axis=1)


def make(**changes):
    settings = {"x": X, "y": Y, "simulator": line, "parameters": LINE, "noise_cov": 0.01, "starts": 4}
    return Problem(**{**settings, **changes})


def make_pair(**changes):
    return make(**{"y": PAIR, "simulator": pair, "noise_cov": COV, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": Y[:-1]}, "x has 21 rows but y has 20"),
        ({"x": [], "y": []}, "no data"),
        ({"x": np.where(X > 0.9, np.nan, X)}, "x has NaN or infinite values in 2 of 21 rows.*row 19"),
        ({"y": np.full(len(X), np.nan)}, "outcome 'y' has no observation"),
        ({"y": np.where(X > 0.9, np.inf, Y)}, "y is infinite in row 19"),
        ({"input_names": ("u", "v")}, "input_names has 2 names"),
        ({"outcome_names": ("u", "v")}, "outcome_names has 2 names"),
        ({"simulator": 3}, r"give a function f\(x, theta\)"),
        ({"parameters": {}}, "dictionary of name and prior"),
        ({"parameters": {"a": 3}}, "prior of 'a'"),
        ({"parameters": {"draw": stats.norm(0, 1)}}, "'draw' is used"),
        ({"domain": Box(0, 0.5)}, "outside the domain.*row 11"),
        ({"domain": Box([0, 0], [1, 1])}, "box has 2 dimensions but x has 1"),
        ({"domain": Points(np.zeros((3, 2)))}, "nodes have 2 dimensions but x has 1"),
        ({"x": np.full(21, 0.5)}, "input 1 of x is constant: give the domain"),
        ({"x": np.stack([X, 0 * X], axis=1)}, "input 2 of x is constant: give the domain"),
        ({"y_err": np.ones(20), "noise_cov": "estimate"}, r"y_err has shape \(20,\) but y has 21 rows"),
        ({"y_err": np.ones(21)}, "both give the noise"),
        ({"noise_cov": "guess"}, "noise_cov='guess'"),
        ({"noise_cov": -1.0}, "variance must be positive"),
        ({"noise_cov": [1.0, 2.0]}, "y has 1 outcome but noise_cov is 2"),
        ({"loss_weight": "precision"}, "loss_weight='precision'"),
        ({"loss_weight": np.eye(2)}, r"loss_weight has shape \(2, 2\): give a \(1, 1\) matrix"),
        ({"loss_weight": 0.0}, "loss_weight is not symmetric and positive definite"),
        ({"loss_weight": -1.0}, "loss_weight is not symmetric and positive definite"),
        ({"loss_weight": np.nan}, "loss_weight"),
        ({"loss_weight": np.inf}, "loss_weight"),
        ({"loss_weight": [["much"]]}, "loss_weight must be numbers"),
        ({"starts": 0}, "starts=0"),
        ({"starts": -3}, "starts=-3"),
        ({"starts": np.zeros((4, 3))}, r"starts has shape \(4, 3\).*\(2\)"),
        ({"starts": np.zeros((2, 2, 2))}, "starts has shape"),
        ({"starts": np.zeros((0, 2))}, "start"),
        ({"starts": [[np.nan, 0.0]]}, "start.* outside the support"),
        ({"starts": "many"}, "starts must be numbers"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_constructor(changes, message):
    with pytest.raises(InputError, match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise_cov": np.eye(3)}, "y has 2 outcomes but noise_cov is 3 x 3"),
        ({"noise_cov": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
        ({"noise_cov": [[1.0, 0.5], [0.1, 1.0]]}, "not symmetric"),
        ({"loss_weight": [1.0, 2.0]}, r"y has 2 outcomes but loss_weight has shape \(1, 2\)"),
        ({"loss_weight": 2.0}, r"y has 2 outcomes but loss_weight has shape \(1, 1\)"),
        ({"loss_weight": [[1.0, 0.2], [0.1, 1.0]]}, "loss_weight is not symmetric and positive definite"),
        (
            {"loss_weight": [[1e-10, 9e-11], [0.0, 1e-10]]},
            "loss_weight is not symmetric and positive definite",
        ),
        ({"loss_weight": [[1.0, 2.0], [2.0, 1.0]]}, "loss_weight is not symmetric and positive definite"),
    ],
)
def test_what_does_not_fit_two_outcomes_is_refused_by_the_constructor(changes, message):
    with pytest.raises(InputError, match=message):
        make_pair(**changes)


@pytest.mark.parametrize("domain", [(0, 1), "unit", 3])
def test_a_domain_that_is_none_is_refused(domain):
    with pytest.raises(InputError, match="domain"):
        make(domain=domain)


def test_a_start_outside_the_support_is_refused():
    with pytest.raises(InputError, match=r"start.* outside the support"):
        make(parameters={"a": stats.uniform(0, 1), "b": stats.norm(0, 1)}, starts=[[0.5, 0.0], [1.5, 0.0]])


def test_fewer_observations_than_parameters_are_refused():
    with pytest.raises(IdentifiabilityError, match="1 observations cannot determine 2 parameters"):
        make(x=[0.5], y=[1.0])


def test_every_outcome_of_an_observation_counts():
    problem = make_pair(x=[0.5], y=[[2.0, 0.5]], domain=Box(0, 1))
    np.testing.assert_allclose(problem.loss_minima[0].theta, [1.0, 2.0], rtol=1e-6)


def test_as_many_observations_as_parameters_are_enough():
    problem = make(x=[0.0, 1.0], y=[1.0, 3.0])
    np.testing.assert_allclose(problem.loss_minima[0].theta, [1.0, 2.0], rtol=1e-8)


def test_an_error_of_the_simulator_shows_at_the_first_use():
    problem = make(simulator=lambda x, theta: x[:3])
    with pytest.raises(SimulatorError, match=r"shape \(3,\) for 21 points"):
        _ = problem.theta_tilde


def test_two_collinear_parameters_are_named():
    problem = make(
        simulator=lambda x, theta: (theta[0] + 2 * theta[1]) * x + theta[2],
        parameters={"mass": stats.norm(0, 1), "drag": stats.norm(0, 1), "level": stats.norm(0, 1)},
    )
    with pytest.raises(IdentifiabilityError, match="parameters 'mass', 'drag' are collinear") as caught:
        _ = problem.sensitivity
    assert "level" not in str(caught.value)
    with pytest.raises(IdentifiabilityError, match="parameters 'mass', 'drag' are collinear"):
        _ = problem.sensitivity_at_data


def test_parameters_that_act_as_a_product_are_collinear():
    problem = make(simulator=lambda x, theta: theta[0] * theta[1] * x, y=2 * X + 0.1)
    with pytest.raises(IdentifiabilityError, match="parameters 'a', 'b' are collinear"):
        _ = problem.sensitivity


@pytest.mark.parametrize("gradient", ["difference", lambda x, theta: np.stack([x, 0 * x], axis=1)])
def test_a_parameter_without_effect_is_named(gradient):
    problem = make(simulator=Simulator(lambda x, theta: theta[0] * x, gradient))
    with pytest.raises(IdentifiabilityError, match="parameter 'b' has no effect"):
        _ = problem.sensitivity


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("noise_var", [1e-8, 1.0])
@pytest.mark.parametrize(("effect", "none"), [(5e-8, False), (2e-9, True)])
def test_an_effect_counts_as_none_relative_to_y_and_to_the_prior(unit, noise_var, effect, none):
    # a change of b by its prior sd changes the model by the share ``effect`` of the size of y
    slope = effect * np.sqrt(np.mean(Y**2)) / unit
    problem = make(
        simulator=Simulator(
            lambda x, theta: theta[0] * x + slope * theta[1],
            lambda x, theta: np.stack([x, np.full_like(x, slope)], axis=1),
        ),
        parameters={"a": stats.norm(0, 10), "b": stats.norm(0, unit)},
        noise_cov=noise_var,
    )
    if none:
        with pytest.raises(IdentifiabilityError, match="parameter 'b' has no effect"):
            _ = problem.sensitivity
    else:
        assert problem.sensitivity.weakest > 0.1


def test_a_parameter_that_acts_outside_the_data_only_is_named():
    # theta_b acts on x > 1, the data end there: the finite projection cannot see it
    problem = make(
        simulator=Simulator(lambda x, theta: theta[0] * x + theta[1] * np.maximum(x - 1, 0), "difference"),
        domain=Box(0, 2),
    )
    assert problem.sensitivity.weakest > 0.1
    with pytest.raises(IdentifiabilityError, match="parameter 'b' has no effect"):
        _ = problem.sensitivity_at_data


def test_more_parameters_than_nodes_are_an_error():
    problem = make(domain=Points([0.5]))
    with pytest.raises(IdentifiabilityError, match="2 parameters need at least as many nodes, there are 1"):
        _ = problem.sensitivity


def test_gram_matrix_is_the_integral_of_the_gradients():
    # in units of the noise: Q = 1/0.01 [[1, 1/2], [1/2, 1/3]]
    problem = make(domain=Box(0, 1))
    expected = 100 * np.array([[1, 1 / 2], [1 / 2, 1 / 3]])
    np.testing.assert_allclose(problem.sensitivity.gram, expected, rtol=1e-6)
    triangle = problem.sensitivity.triangle
    np.testing.assert_allclose(triangle.T @ triangle, expected, rtol=1e-6)
    cosine = 0.5 / np.sqrt(1 / 3)
    assert problem.sensitivity.weakest == pytest.approx(np.sqrt(1 - cosine), rel=1e-5)


@pytest.mark.parametrize(
    ("loss_weight", "W"),
    [
        ("noise-precision", np.linalg.inv(COV)),
        ("identity", np.eye(2)),
        ([[2.0, 0.5], [0.5, 1.0]], np.array([[2.0, 0.5], [0.5, 1.0]])),
    ],
)
def test_choices_of_the_loss_weight(loss_weight, W):
    problem = make_pair(loss_weight=loss_weight, domain=Box(0, 1))
    assert problem.loss_weight == (loss_weight if isinstance(loss_weight, str) else "matrix")
    np.testing.assert_allclose(problem.weight, W)
    # Q is the same in native and in whitened coordinates
    nodes, weights = problem.rule
    at_nodes = pair_gradient(nodes[:, 0])
    expected = np.einsum("m,mkp,kl,mlr->pr", weights, at_nodes, W, at_nodes)
    np.testing.assert_allclose(problem.sensitivity.gram, expected, rtol=1e-6)
    # theta_tilde is weighted least squares with the same W, and each row's share of the domain
    at_data = pair_gradient(X)
    precision = np.einsum("n,nkp,kl,nlr->pr", problem.volumes, at_data, W, at_data)
    expected = np.linalg.solve(precision, np.einsum("n,nkp,kl,nl->p", problem.volumes, at_data, W, PAIR))
    np.testing.assert_allclose(problem.loss_minima[0].theta, expected, rtol=1e-7)


def test_the_default_loss_weight_is_the_noise_precision():
    problem = make_pair()
    assert problem.loss_weight == "noise-precision"
    np.testing.assert_allclose(problem.metric, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("loss_weight", ["noise-precision", "identity", 7.0, [[7.0]]])
def test_all_loss_weights_give_one_best_fit_for_one_outcome(loss_weight):
    problem = make(loss_weight=loss_weight)
    root = np.sqrt(problem.volumes)
    expected = np.linalg.lstsq(root[:, None] * line_gradient(X, None), root * Y, rcond=None)[0]
    np.testing.assert_allclose(problem.loss_minima[0].theta, expected, rtol=1e-7)


def test_whitening_there_and_back():
    problem = make_pair()
    values = np.random.default_rng(0).standard_normal((3, 4, 2))
    whitened = problem.whiten(values)
    np.testing.assert_allclose(problem.unwhiten(whitened), values)
    # |T v|^2 = v' Sigma^-1 v
    expected = np.einsum("...k,kl,...l->...", values, np.linalg.inv(COV), values)
    np.testing.assert_allclose((whitened**2).sum(axis=-1), expected)


def test_gradients_are_whitened():
    problem = make_pair()
    np.testing.assert_allclose(
        problem.gradient_at_data, problem.noise.whitener @ pair_gradient(X), rtol=1e-6, atol=1e-8
    )
    nodes = problem.rule.nodes[:, 0]
    np.testing.assert_allclose(
        problem.gradient_at_nodes, problem.noise.whitener @ pair_gradient(nodes), rtol=1e-6, atol=1e-8
    )


def test_the_default_domain_is_the_smallest_box_around_x():
    x = np.random.default_rng(1).uniform([-3, 10], [5, 11], (30, 2))
    problem = make(x=x, y=x @ [1.0, 2.0], simulator=lambda x, theta: x @ theta)
    assert not problem.domain_given
    lower, upper = problem.domain.bounds(2)
    np.testing.assert_array_equal(lower, x.min(axis=0))
    np.testing.assert_array_equal(upper, x.max(axis=0))
    np.testing.assert_allclose(problem.span, np.ptp(x, axis=0))


def test_a_given_domain_is_used():
    problem = make(domain=Box(-1, 3))
    assert problem.domain_given
    np.testing.assert_array_equal(problem.span, [4.0])
    assert problem.rule.weights @ problem.rule.nodes[:, 0] == pytest.approx(1.0)
    assert problem.volumes.sum() == pytest.approx(1.0)
    assert problem.volumes[0] == pytest.approx((1 + 0.025) / 4)


def test_a_domain_given_as_points_is_used():
    problem = make(domain=Points([0.0, 0.5, 2.0], [1, 1, 2]))
    np.testing.assert_array_equal(problem.span, [2.0])
    np.testing.assert_allclose(problem.rule.weights, [0.25, 0.25, 0.5])
    assert problem.quadrature_error is None


def test_pandas_objects_give_names_and_a_column_gives_columns_to_the_simulator():
    frame = pd.DataFrame({"time": X, "height": Y})
    problem = make(x=frame[["time"]], y=frame["height"], simulator=lambda x, theta: theta[0] + theta[1] * x[:, 0])
    assert problem.data.input_names == ("time",)
    assert problem.data.outcome_names == ("height",)
    np.testing.assert_allclose(problem.theta_tilde, make().theta_tilde, rtol=1e-8)


def test_replicated_x_work():
    rng = np.random.default_rng(2)
    x = np.repeat(np.linspace(0, 1, 8), 4)
    y = 1 + 2 * x + 0.1 * rng.standard_normal(32)
    problem = make(x=x, y=y, noise_cov="estimate", domain=Box(0, 1))
    # the ends have half a cell, and every replicate a quarter of its cell
    cells = np.repeat(np.array([0.5, 1, 1, 1, 1, 1, 1, 0.5]) / 7, 4) / 4
    np.testing.assert_allclose(problem.volumes, cells)
    root = np.sqrt(cells)
    expected = np.linalg.lstsq(root[:, None] * line_gradient(x, None), root * y, rcond=None)[0]
    np.testing.assert_allclose(problem.loss_minima[0].theta, expected, rtol=1e-7)
    assert problem.noise.source == "estimated"
    assert 0.004 < problem.noise.cov[0, 0] < 0.02
    assert problem.sensitivity_at_data.weakest > 0.1


def test_the_noise_is_unknown_by_default():
    x, y = MODEL1.simulate(np.random.default_rng(3))
    problem = Problem(x, y, MODEL1.simulator, MODEL1.parameters, domain=Box(0, 1))
    assert problem.noise.source == "unknown"
    assert 0.028 < problem.noise.cov[0, 0] < 0.055
    assert make().noise.source == "known"


def test_minima_are_searched_once():
    problem = make()
    first = problem.minima
    calls = problem.simulator.calls
    assert problem.minima is first
    assert problem.theta_tilde is first[0].theta
    assert problem.simulator.calls == calls


def test_the_constructor_does_not_call_the_simulator():
    assert make().simulator.calls == 0


def test_one_start_is_enough():
    np.testing.assert_allclose(make(starts=1).theta_tilde, make(starts=8).theta_tilde, rtol=1e-7)


def test_given_starts_are_used():
    x, y = MODEL2.simulate(np.random.default_rng(4))
    problem = MODEL2.problem(x, y, starts=[[0.78, 0.72]])
    assert len(problem.minima) == 1
    np.testing.assert_allclose(problem.theta_tilde, [0.8, 0.7], atol=0.01)


@pytest.mark.parametrize("model", [MODEL1, MODEL2], ids=lambda model: model.name)
def test_quadrature_error_of_a_smooth_simulator_is_small(model):
    problem = model.problem(*model.simulate(np.random.default_rng(5)), starts=4)
    assert 0 <= problem.quadrature_error < 1e-4


def test_quadrature_error_of_a_sobol_rule():
    problem = MODEL3.problem(*MODEL3.simulate(np.random.default_rng(6)), starts=2)
    assert len(problem.rule.nodes) == 256
    assert 0 < problem.quadrature_error < 0.05


def test_quadrature_error_of_a_too_coarse_rule_is_large():
    simulator = Simulator(lambda x, theta: theta[0] * np.sin(60 * x), "difference")
    problem = make(simulator=simulator, parameters={"a": stats.norm(0, 1)}, domain=Box(0, 1, nodes=6))
    assert problem.quadrature_error > 0.05


def test_quadrature_error_where_half_the_nodes_are_fewer_than_the_parameters():
    problem = make(domain=Box(0, 1, nodes=2))
    assert problem.sensitivity.weakest > 0.1
    # half the rule is the midpoint, Q = [[1, 1/2], [1/2, 1/4]] instead of [[1, 1/2], [1/2, 1/3]]; all of it is exact
    assert problem.quadrature_error < 1e-9


def test_quadrature_error_is_that_of_all_nodes_where_half_of_them_are_useless():
    """15 nodes an input integrate the squares of cosines up to the sixth to 5e-5, and eight do not."""
    waves = Simulator(lambda x, t: sum(t[j] * np.cos(np.pi * (j + 3) * x[:, 0]) for j in range(4)), "difference")
    parameters = {name: stats.norm(0, 1) for name in "abcd"}
    rng = np.random.default_rng(1)
    x = rng.random((30, 2))
    problem = Problem(x, rng.standard_normal(30), waves, parameters, Box([0, 0], [1, 1]), noise_cov=1.0, starts=1)
    gram = problem.directions.gram
    assert quadrature_error(gram, problem._gram(problem.domain.rules(2)[1])) > 0.02
    assert problem.quadrature_error < 1e-4


def test_gradient_error_of_a_right_gradient_is_small():
    assert make(simulator=Simulator(line, line_gradient)).gradient_error < 1e-6


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, theta: line_gradient(x, theta) * [1.0, 1.1],
        lambda x, theta: line_gradient(x, theta) * [0.8, 1.0],
        lambda x, theta: -line_gradient(x, theta),
        lambda x, theta: line_gradient(x, theta)[:, ::-1],
        lambda x, theta: line_gradient(x, theta) + 0.01,
    ],
    ids=["second scaled", "first scaled", "sign", "order", "shift"],
)
def test_gradient_error_flags_a_wrong_gradient(wrong):
    # relative to the root mean square of each parameter's gradient
    right = line_gradient(X, None)
    expected = np.max(np.abs(wrong(X, None) - right) / np.sqrt(np.mean(right**2, axis=0)))
    assert expected >= 0.01
    assert make(simulator=Simulator(line, wrong)).gradient_error == pytest.approx(expected, rel=1e-4)


def test_gradient_error_of_two_outcomes_is_relative_to_both():
    right = pair_gradient(X)
    wrong = right.copy()
    wrong[7, 1, 1] += 0.5
    problem = make_pair(simulator=Simulator(pair, lambda x, theta: wrong))
    expected = 0.5 / np.sqrt(np.mean(right[:, :, 1] ** 2))
    assert problem.gradient_error == pytest.approx(expected, rel=1e-4)


def test_gradient_error_flags_the_gradient_of_a_parameter_without_effect():
    problem = make(
        simulator=Simulator(
            lambda x, theta: theta[0] * x + 0 * theta[1], lambda x, theta: line_gradient(x, theta)[:, ::-1] * [1, 0.3]
        )
    )
    assert problem.gradient_error == pytest.approx(0.3)


def test_gradient_error_of_differences_shows_a_rounded_output():
    assert make(simulator=Simulator(line, "difference")).gradient_error < 1e-6

    def rounded(x, theta):
        return np.round(line(x, theta), 4)

    assert make(simulator=Simulator(rounded, "difference")).gradient_error > 0.01
    assert make(simulator=Simulator(rounded, "difference", step=0.03)).gradient_error < 0.01


def test_gradient_error_by_jax_is_small_whatever_was_asked_before():
    pytest.importorskip("jax", reason="needs jax, the extra jax")
    import jax.numpy as jnp

    def function(x, theta):
        return theta[0] + jnp.sinh(theta[1] * x)

    asked_first = make(simulator=function)
    error = asked_first.gradient_error
    assert asked_first.simulator.gradient_kind == "jax"
    asked_later = make(simulator=function)
    assert len(asked_later.minima) >= 1
    assert asked_later.gradient_error == error
    assert error < 1e-6

"""A constraint restricts the search, its starts and designs; the simulator is never called elsewhere."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.prior.parameters import Parameters

X = np.linspace(0, 1, 25)
Y = 0.8 + 0.9 * X + 0.1 * np.random.default_rng(0).standard_normal(25)
PRIORS = {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}


def line(x, theta):
    return theta[0] + theta[1] * x


def problem(constraint, simulator=line, **options):
    options = {"domain": oc.Box(0, 1), "noise_cov": 0.01, "starts": 6} | options
    return oc.Problem(X, Y, simulator, PRIORS, constraint=constraint, **options)


CASES = {
    "a line": ("a + b < 1.5", lambda t: 1.5 - t[0] - t[1]),
    "a circle": (lambda t: t[0] ** 2 + t[1] ** 2 < 1, lambda t: 1 - t[0] ** 2 - t[1] ** 2),
    "not in the way": ("a + b < 9", lambda t: 9 - t[0] - t[1]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_best_fit_is_the_best_that_is_allowed(case):
    """Against SLSQP, which knows the constraint's slope; there is one minimum, also along an edge."""
    given, room = CASES[case]
    found = problem(given)

    def criterion(theta):
        return np.sum((Y - line(X, theta)) ** 2 * 25 * found.volumes) / 0.01 + np.sum(theta**2) / 4

    best = minimize(criterion, [0.2, 0.2], method="SLSQP", constraints={"type": "ineq", "fun": room}, tol=1e-12)
    assert room(found.theta_tilde) > 0
    np.testing.assert_allclose(found.theta_tilde, best.x, atol=2e-4)
    assert criterion(found.theta_tilde) < best.fun * (1 + 1e-6)
    assert len(found.minima) == 1
    assert found.parameters.on_edge(found.theta_tilde) == (case != "not in the way")


def test_the_simulator_is_never_called_where_theta_is_not_allowed():
    def strict(x, theta):
        assert theta[0] + theta[1] < 1.5
        return line(x, theta)

    found = problem("a + b < 1.5", strict)
    _ = found.theta_tilde, found.gradient_at_data, found.gradient_error
    assert found.simulator.failures == 0
    assert np.isnan(found.simulator.batch(found.data.x, np.array([[2.0, 2.0], [0.0, 0.0]]))[:, 0, 0]).tolist() == [
        True,
        False,
    ]


def test_parts_of_a_problem_have_its_constraint():
    whole = oc.Problem(
        X,
        np.column_stack([Y, Y]),
        lambda x, t: np.column_stack([line(x, t)] * 2),
        PRIORS,
        oc.Box(0, 1),
        0.01,
        starts=4,
        constraint="a + b < 1.5",
    )
    for part in (whole.subset(np.arange(12)), whole.outcome(1)):
        assert part.parameters.constraint.text == "a + b < 1.5"
        assert part.theta_tilde.sum() < 1.5


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (lambda t: 1 / 0, "the constraint raised ZeroDivisionError at a = .*, b = "),
        (lambda t: t[7] > 0, "the constraint raised IndexError"),
        (lambda t: t > 0, "the constraint returned array.*the 2 parameters as one array"),
        (lambda t: 1, "the constraint returned 1 "),
        (lambda t: None, "the constraint returned None"),
        (lambda t: "yes", "the constraint returned 'yes'"),
        (lambda a, b: True, "the constraint raised TypeError"),
        (lambda t: False, "none of 131072 draws of the priors is allowed.*order a, b"),
        ("a < b < a", "none of 131072 draws"),
        (3.0, "constraint=3.0: give a function"),
        ("a + b", "is not a condition"),
    ],
)
def test_constraints_that_are_none_are_refused(constraint, words):
    with pytest.raises(InputError, match=words):
        problem(constraint)


@pytest.mark.parametrize("answer", [True, np.True_, np.array([True]), np.array(True), pd.Series([True])])
def test_answers_that_are_one_truth_value_are_taken(answer):
    assert Parameters(PRIORS, lambda t: answer).inside(np.zeros(2))


def test_log_prior_and_starts_know_the_constraint():
    parameters = Parameters(PRIORS, "0 < a < b")
    theta = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 2.0]])
    plain = Parameters(PRIORS).log_prior(theta)
    np.testing.assert_allclose(parameters.log_prior(theta), [plain[0], -np.inf, -np.inf])
    assert parameters.allowed_share == pytest.approx(1 / 8, abs=0.02)
    starts = parameters.starts(32)
    assert parameters.inside(starts).all()
    assert len(np.unique(starts, axis=0)) == 32


def test_an_order_of_eight_parameters_has_starts():
    """One prior draw in 40320 is allowed."""
    names = "abcdefgh"
    parameters = Parameters({name: stats.norm(0, 1) for name in names}, " < ".join(names))
    assert parameters.inside(parameters.starts(32)).all()


def test_a_start_that_is_not_allowed_is_refused():
    with pytest.raises(InputError, match="outside the support of the priors, or of the constraint"):
        problem("a + b < 1.5", starts=[[2.0, 2.0]])


def test_the_shown_prior_is_what_the_constraint_leaves():
    u = np.tile(np.linspace(0.05, 0.95, 19)[:, None], 2)
    shown = Parameters(PRIORS, "a > 0").marginal_quantile(u)
    np.testing.assert_allclose(shown[:, 0], stats.halfnorm(0, 2).ppf(u[:, 0]), atol=0.25)
    np.testing.assert_allclose(shown[:, 1], stats.norm(0, 2).ppf(u[:, 0]), atol=0.4)

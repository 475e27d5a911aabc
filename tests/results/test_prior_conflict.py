"""Priors and data that contradict each other are found, and those that do not are left alone."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.results.checks.prior_conflict import FALSE_ALARM, prior_tails

X = np.linspace(0, 1, 30)


def line(prior, truth=2.0, sd=0.1, unit=1.0, rng=None):
    y = truth * X + sd * (rng or np.random.default_rng(5)).standard_normal(30)
    domain = oc.Box(0, 1, nodes=20)
    return oc.Problem(X, y, lambda x, t: t[0] / unit * x, {"a": prior}, domain, noise_cov=sd**2, starts=2)


def test_the_p_value_is_that_of_the_normal_law():
    """z = (theta_ls - c) / sqrt(s0^2 + s^2), with the weights of the rows 1: written without the package."""
    problem = line(stats.norm(1.95, 0.03))
    weight = problem.volumes * len(X)
    y = problem.data.y[:, 0]
    best = np.sum(weight * X * y) / np.sum(weight * X**2)
    var = 0.01 * np.sum((weight * X) ** 2) / np.sum(weight * X**2) ** 2
    worse = max(1.0, np.mean(weight * (y - best * X) ** 2) / 0.01)
    z, alone = (best - 1.95) / np.sqrt(0.03**2 + worse * var), (best - 1.95) / 0.03
    # a share of 8000 values, four standard errors; without least squares' own variance it would be another
    error = 4 * np.sqrt(0.25 / 8000)
    assert prior_tails(problem) == pytest.approx([2 * stats.norm.sf(abs(z))], abs=error)
    assert abs(2 * stats.norm.sf(abs(alone)) - 2 * stats.norm.sf(abs(z))) > error


def test_a_sure_prior_in_other_units_beside_a_wide_one():
    """However sure it is: units of prior sds would make its effect look like rounding."""
    y = 2 * X + 1 + 0.1 * np.random.default_rng(5).standard_normal(30)
    priors = {"a": stats.norm(0.002, 1e-9), "b": stats.norm(0, 10)}
    problem = oc.Problem(X, y, lambda x, t: t[0] * x + t[1], priors, oc.Box(0, 1, nodes=20), noise_cov=0.01, starts=2)
    tails = prior_tails(problem)
    assert tails[0] < FALSE_ALARM < tails[1]


def test_a_simulator_that_answers_to_a_sum_only_has_no_p_value():
    priors = {"a": stats.norm(50, 0.1), "b": stats.norm(50, 0.1)}
    domain = oc.Box(0, 1, nodes=20)
    problem = oc.Problem(X, 2 * X, lambda x, t: (t[0] + t[1]) * x, priors, domain, noise_cov=0.01, starts=2)
    assert prior_tails(problem) is None


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("sure", [1e-4, 0.05, 1.0], ids=["surer than the data", "as sure", "less sure"])
def test_a_prior_in_other_units_is_found(unit, sure):
    """A thousandth of what is meant. Where the prior is surer than the data, the posterior is the prior."""
    problem = line(stats.norm(0.002 * unit, 0.002 * sure * unit), unit=unit)
    assert prior_tails(problem)[0] < FALSE_ALARM


@pytest.mark.parametrize(
    "prior",
    [
        stats.norm(0, 3),
        stats.norm(2.05, 0.01),
        stats.uniform(0, 2.0),
        stats.uniform(2.05, 5),
        stats.halfnorm(0, 50),
        stats.lognorm(1.0, scale=2.5),
        stats.cauchy(0, 0.1),
    ],
    ids=["wide", "sure and near", "lower bound", "upper bound", "at the peak of a half", "log", "heavy tails"],
)
def test_a_prior_that_is_right_is_left_alone(prior):
    noisy = line(prior, sd=0.3)
    assert prior_tails(noisy)[0] > FALSE_ALARM


def test_a_log_normal_prior_in_other_units():
    """Near its bound at 0 it has hardly any density, a half-normal one has much."""
    assert prior_tails(line(stats.lognorm(0.3, scale=2000.0)))[0] < FALSE_ALARM
    assert prior_tails(line(stats.halfnorm(0, 2000.0)))[0] > FALSE_ALARM


def test_a_joint_prior():
    law = stats.multivariate_normal([1.0, 1.0], [[0.04, 0.039], [0.039, 0.04]])
    two = {("a", "b"): law}
    sum_of = lambda x, t: t[0] * x + t[1] * x**2  # noqa: E731
    # each of 1.6 and 0.4 is likely by itself, but not both
    x_both = 1.6 * X + 0.4 * X**2 + 0.001 * np.random.default_rng(5).standard_normal(30)
    problem = oc.Problem(X, x_both, sum_of, two, oc.Box(0, 1, nodes=20), noise_cov=1e-6, starts=2)
    tails = prior_tails(problem)
    assert tails[0] == tails[1] < FALSE_ALARM


@pytest.mark.slow
def test_the_rate_of_false_alarms():
    """150 data sets with theta from its prior: the p-values are uniform (Kolmogorov-Smirnov, one alarm in 10 000)."""
    rng = np.random.default_rng(6)
    prior, tails = stats.norm(0, 0.05), []
    for _ in range(150):
        tails += prior_tails(line(prior, float(rng.normal(0, 0.05)), rng=rng))
    assert stats.kstest(tails, "uniform").pvalue > 1e-4


def test_check_names_it_with_units_first():
    posterior = short(line(stats.norm(0.002, 0.0001)), "none", draws=20)
    (found,) = [one for one in posterior.check().problems if "contradict each other" in one.message]
    assert found.topic == "prior of theta"
    assert "units of a" in found.advice
    assert "0.002: they contradict" in found.message
    # that the data say little would be wrong
    assert "there the data say little" not in str(posterior.check())

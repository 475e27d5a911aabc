"""Several outcomes and unknown noise: coverage of the 95 % intervals over 200 data sets.

A coverage must lie between 0.90 and 0.99: with a true one of 0.95 it falls outside with probability 0.003 (binomial),
with 0.92 with probability 0.12, with 0.98 with probability 0.1. Seeds are fixed.
"""

import numpy as np
import pytest

import orthocal as oc
from helpers import largest_error
from orthocal.examples import MODEL1, TWO_OUTCOMES, TWO_OUTCOMES_PRECISION, TWO_OUTCOMES_SECOND
from orthocal.problem.noise.estimate import estimated_noise

DATA_SETS = 200
THETA_STAR = {"identity": TWO_OUTCOMES.theta_star[0], "noise-precision": TWO_OUTCOMES_PRECISION}


def field_data(data_set, model=TWO_OUTCOMES):
    return model.simulate(np.random.default_rng(80_000 + data_set))


def fit(problem, data_set, method="pgp"):
    posterior = oc.calibrate(problem, method, draws=500, seed=data_set, progress=False)
    assert largest_error(posterior) < 1e-10
    return posterior


def covers(draws, truth):
    low, high = np.quantile(draws, [0.025, 0.975])
    return low < truth < high


@pytest.mark.slow
@pytest.mark.parametrize("weight", THETA_STAR)
def test_the_joint_fit_covers_the_theta_star_of_its_weight(weight):
    covered, sds = [], []
    for data_set in range(DATA_SETS):
        x, y = field_data(data_set)
        theta = fit(TWO_OUTCOMES.problem(x, y, loss_weight=weight), data_set).theta
        covered.append(covers(theta, THETA_STAR[weight]))
        sds.append(theta.std())
    print(f"{weight}: coverage {np.mean(covered):.3f}, sd {min(sds):.4f} to {max(sds):.4f}")
    assert 0.90 <= np.mean(covered) <= 0.99


@pytest.mark.slow
def test_the_second_outcome_alone_is_much_wider_than_the_joint_fit():
    ratios, covered = [], []
    for data_set in range(40):
        x, y = field_data(data_set)
        problem = TWO_OUTCOMES.problem(x, y)
        alone, joint = fit(problem.outcome(1), data_set).theta, fit(problem, data_set).theta
        ratios.append(alone.std() / joint.std())
        covered.append(covers(alone, TWO_OUTCOMES_SECOND))
    print(f"width {min(ratios):.1f} to {max(ratios):.1f} times the joint one, coverage {np.mean(covered):.3f}")
    assert min(ratios) > 3


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL1, TWO_OUTCOMES], ids=lambda model: model.name)
def test_the_estimated_noise_is_right_on_average(model):
    """The mean of 200 estimates has a relative error of about 0.15 / sqrt(200) = 0.01 (covariance: 0.03).

    A correlation r is drawn towards zero by the share of it that its variance (1 - r^2)^2 / 90 makes up: 10 % of .3.
    """
    estimates = []
    for data_set in range(DATA_SETS):
        problem = model.problem(*field_data(data_set, model))
        estimates.append(estimated_noise(problem.data, problem.span).cov)
    mean = np.mean(estimates, axis=0)
    print(f"{model.name}: mean {mean.tolist()}, truth {model.noise_cov.tolist()}")
    r = model.noise_correlation
    drawn = 1 - (1 - r**2) ** 2 / 90 / r**2 if r else 1.0
    expected = np.where(np.eye(model.q) > 0, 1.0, drawn) * model.noise_cov
    np.testing.assert_allclose(mean, expected, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL1, TWO_OUTCOMES], ids=lambda model: model.name)
def test_sampled_noise_covers_the_truth(model):
    cells = [(k, m) for k in range(model.q) for m in range(k + 1)]
    covered, theta = [], []
    star = TWO_OUTCOMES_PRECISION if model.q > 1 else model.theta_star[0]
    for data_set in range(DATA_SETS):
        posterior = fit(model.problem(*field_data(data_set, model), noise_cov="sample"), data_set)
        draws = posterior.data["posterior"]["noise_cov"].values
        covered.append([covers(draws[:, :, k, m], model.noise_cov[k, m]) for k, m in cells])
        theta.append(covers(posterior.theta, star))
    share = np.mean(covered, axis=0)
    print(f"{model.name}: coverage of the noise's {cells} is {share}, of theta {np.mean(theta):.3f}")
    assert np.all((share >= 0.90) & (share <= 0.99))
    assert 0.90 <= np.mean(theta) <= 0.99

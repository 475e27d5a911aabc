"""Several outcomes with a GP bias against the exact law, for simulators that are linear in theta.

False alarms: as in test_projected_gp.py, |z| > 4.5 has probability 7e-6 for each of the means and sds compared.
"""

import numpy as np
import pytest
from closed_form import Law, projected_law_of_outcomes
from scipy import stats
from test_projected_gp import Z_LIMIT, z_scores

import orthocal as oc
from helpers import largest_error, with_holes

COVARIANCE = {
    2: np.array([[0.04, 0.012], [0.012, 0.09]]),
    3: np.array([[0.04, 0.03, -0.01], [0.03, 0.09, 0.01], [-0.01, 0.01, 0.02]]),
}
PRIOR = oc.bias.GP(nu=1.5, sd=0.8, lengthscale=0.4)
N = 40


def design(x, q):
    """df/dtheta of q outcomes and two parameters, (n, q, 2)."""
    rows = [
        np.column_stack([np.ones(len(x)), x[:, 0]]),
        np.column_stack([x[:, 0] ** 2, np.zeros(len(x))]),
        np.column_stack([np.cos(x[:, 0]), 1 - x[:, 0]]),
    ]
    return np.stack(rows[:q], axis=1)


def field_data(q, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((N, 1))
    truth = np.column_stack([np.sin(4 * x), x + x**3, np.exp(-x)])[:, :q]
    return x, truth + rng.multivariate_normal(np.zeros(q), COVARIANCE[q], N)


def problem_of(x, y, **changes):
    q = y.shape[1]
    settings = {"domain": oc.Box(0, 1), "noise_cov": COVARIANCE[q], "starts": 4, **changes}
    parameters = {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}
    return oc.Problem(x, y, lambda x, theta: design(x, q) @ theta, parameters, **settings)


def exact_law(problem, projection="functional", noise_cov=None) -> Law:
    q = problem.data.q
    typical = COVARIANCE[q] if noise_cov is None else problem.noise.cov
    return projected_law_of_outcomes(
        problem.data.x,
        problem.data.y,
        design(problem.data.x, q),
        problem.rule.nodes,
        problem.rule.weights,
        design(problem.rule.nodes, q),
        problem.volumes,
        noise_cov=np.broadcast_to(COVARIANCE[q], (N, q, q)) if noise_cov is None else noise_cov,
        typical_cov=typical,
        loss_weight=problem.weight,
        nu=1.5,
        sd=0.8,
        lengthscale=0.4,
        prior_var=4.0,
        finite=projection == "finite",
    )


def assert_agrees(problem, law, projection="functional", prior=PRIOR, draws=1000):
    posterior = oc.calibrate(problem, oc.methods.Projected(prior, projection), draws=draws, chains=4, seed=5)
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)
    assert largest_error(posterior) < 1e-10


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "a fifth missing"])
@pytest.mark.parametrize("projection", ["functional", "finite"])
@pytest.mark.parametrize("weight", ["noise-precision", "identity"])
@pytest.mark.parametrize("q", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_correlated_outcomes(q, weight, projection, holes):
    x, y = field_data(q)
    problem = problem_of(x, with_holes(y) if holes else y, loss_weight=weight)
    assert_agrees(problem, exact_law(problem, projection), projection)


@pytest.mark.parametrize("projection", ["functional", "finite"])
def test_outcomes_measured_at_different_points(projection):
    """No row is complete: every other row has one outcome only."""
    x, y = field_data(2)
    y[::2, 0] = np.nan
    y[1::2, 1] = np.nan
    problem = problem_of(x, y)
    assert_agrees(problem, exact_law(problem, projection), projection)


def test_an_empty_row_says_nothing_but_is_kept():
    x, y = field_data(2)
    y[7] = np.nan
    problem = problem_of(x, y)
    assert_agrees(problem, exact_law(problem))


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "a fifth missing"])
def test_a_covariance_for_every_point(holes):
    x, y = field_data(2)
    rng = np.random.default_rng(3)
    size, tilt = np.exp(rng.normal(0, 0.5, (N, 2))), rng.uniform(-0.8, 0.8, N)
    covs = np.einsum("ni,nj->nij", size, size) * 0.06
    covs[:, 0, 1] = covs[:, 1, 0] = covs[:, 0, 1] * tilt
    problem = problem_of(x, with_holes(y) if holes else y, noise_cov=covs)
    assert_agrees(problem, exact_law(problem, noise_cov=covs))


def test_an_error_for_every_cell():
    x, y = field_data(2)
    errors = np.exp(np.random.default_rng(3).normal(-1, 0.5, (N, 2)))
    problem = problem_of(x, with_holes(y), noise_cov="estimate", y_err=errors)
    assert_agrees(problem, exact_law(problem, noise_cov=np.einsum("ni,ij->nij", errors**2, np.eye(2))))

"""The orthogonal Gaussian process against its definition: the likelihood with the kernel K - h' H^-1 h, written out."""

import numpy as np
import pytest
from closed_form import matern
from scipy import stats

import orthocal as oc
from helpers import batch_z, generators
from orthocal.methods.base import Plan
from orthocal.methods.joint.expansion import Expansion
from orthocal.methods.rivals.marginal import WithBias
from orthocal.methods.rivals.ogp import OrthogonalLaw, _Constraint

SD, LENGTH, NOISE_VAR = 0.6, 0.3, 0.04


def curve(x, theta):
    return np.exp(theta[0] * x) + 0.3 * theta[0] * np.sin(6 * x)


def curve_gradient(x, theta):
    return (x * np.exp(theta[0] * x) + 0.3 * np.sin(6 * x))[:, None]


def two(x, theta):
    return theta[1] * np.exp(theta[0] * x)


def two_gradient(x, theta):
    grown = np.exp(theta[0] * x)
    return np.column_stack([theta[1] * x * grown, grown])


def problem_of(f, gradient, truth):
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(15))
    y = f(x, truth) + 0.5 * np.cos(9 * x) + 0.2 * rng.standard_normal(15)
    priors = {f"t{j}": stats.norm(1, 1) for j in range(len(truth))}
    return oc.Problem(x, y, oc.Simulator(f, gradient), priors, oc.Box(0, 1, nodes=25), noise_cov=NOISE_VAR, starts=4)


def log_likelihood(problem, f, gradient, theta):
    """log N(y - f; 0, K - h' H^-1 h + noise) with h = sum w g K, H = sum w g K g' w over the nodes."""
    x, nodes, weights = problem.data.x, problem.rule.nodes, problem.rule.weights
    A = weights[:, None] * gradient(nodes[:, 0], theta)
    h = A.T @ matern(nodes, x, 1.5, SD, LENGTH)
    H = A.T @ matern(nodes, nodes, 1.5, SD, LENGTH) @ A
    cov = matern(x, x, 1.5, SD, LENGTH) - h.T @ np.linalg.solve(H, h) + NOISE_VAR * np.eye(len(x))
    return stats.multivariate_normal(cov=cov).logpdf(problem.data.y[:, 0] - f(x[:, 0], theta))


@pytest.mark.parametrize(("f", "gradient", "p"), [(curve, curve_gradient, 1), (two, two_gradient, 2)])
def test_the_density_of_each_chain_is_that_of_the_definition(f, gradient, p):
    problem = problem_of(f, gradient, np.array([1.0, 1.5])[:p])
    constraint = _Constraint(problem, 4)
    beside = WithBias(
        problem,
        Plan(1, 0, generators(4)),
        oc.bias.GP(1.5, SD, LENGTH),
        problem.rule.nodes,
        lambda *given: OrthogonalLaw(constraint, *given),
        extra=constraint.extra,
    )
    theta = np.array([[0.8, 1.4], [1.0, 1.5], [1.4, 0.9], [0.2, 2.0]])[:, :p]
    target, state = beside.target(), beside.model.state(theta)
    found = target.log_density(state) - problem.parameters.log_prior(theta)
    exact = np.array([log_likelihood(problem, f, gradient, one) for one in theta])
    np.testing.assert_allclose(found - found[0], exact - exact[0], atol=1e-6)
    np.testing.assert_allclose(
        target.part([2]).extra(theta[2:3], state.model[2:3]), target.extra(theta, state.model)[2]
    )
    # what the delayed step knows of it: the gradient at each theta by an expansion around it
    for c, one in enumerate(theta):
        slopes = constraint.gradients.at(one).reshape(-1, p)
        nodes = Expansion(one, np.ones(p), np.zeros(len(slopes)), slopes, np.zeros((p, p, p)))
        expanded = target.extra.expanded(nodes)(theta, state.model)
        # up to what does not depend on theta
        shift = target.extra(theta, state.model)[0] - first_of(target, constraint, theta, state)
        assert expanded[c] + shift == pytest.approx(target.extra(theta, state.model)[c], abs=1e-6)


def first_of(target, constraint, theta, state):
    """The expanded density at the first theta."""
    slopes = constraint.gradients.at(theta[0]).reshape(-1, theta.shape[1])
    p = theta.shape[1]
    nodes = Expansion(theta[0], np.ones(p), np.zeros(len(slopes)), slopes, np.zeros((p, p, p)))
    return target.extra.expanded(nodes)(theta, state.model)[0]


@pytest.mark.slow
def test_draws_of_a_curved_simulator_follow_a_grid():
    """Mean and mean square of theta, |z| < 4.5; no draw of this problem lies where the loss is not least."""
    problem = problem_of(curve, curve_gradient, np.array([1.0]))
    posterior = oc.calibrate(
        problem, oc.methods.OGP(1.5, SD, LENGTH), draws=1000, warmup=100, chains=2, seed=1, progress=False
    )
    grid = np.linspace(0.2, 2.2, 400)
    log = np.array([log_likelihood(problem, curve, curve_gradient, np.array([t])) for t in grid])
    log += stats.norm(1, 1).logpdf(grid)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    assert weights[[0, -1]].max() < 1e-8
    mean = weights @ grid
    draws = posterior.theta[:, :, 0].T
    deviations = np.column_stack([(draws - mean).mean(axis=1), ((draws - mean) ** 2).mean(axis=1)])
    assert np.all(np.abs(batch_z(deviations, [0.0, weights @ (grid - mean) ** 2])) < 4.5)

"""Informative Gaussian priors, independent and joint, where the data say nothing about one combination of theta.

f = a + b x + c x^2 is linear, and the data lie at two values of x: one direction of theta is left to the prior. With
y - G theta ~ N(0, S) and theta ~ N(m, C) the posterior is N(V (G'S^-1 y + C^-1 m), V), V = (G'S^-1 G + C^-1)^-1. Each
S is written from the method's definition, with none of the package's formulas.

False alarms: |z| > 4.5 has probability 7e-6 for each mean and sd compared; seeds are fixed.
"""

import numpy as np
import pytest
from closed_form import Law, matern
from scipy import stats
from scipy.linalg import block_diag, solve_discrete_lyapunov
from test_projected_gp import Z_LIMIT, z_scores

import orthocal as oc
from orthocal.errors import IdentifiabilityError
from orthocal.methods.base import Plan
from orthocal.methods.bias_samplers import fitted_bias
from orthocal.methods.joint.gibbs import gibbs_draws
from orthocal.methods.joint.joint import Joint
from orthocal.methods.joint.regress import Linear

SD, LENGTH, NOISE_VAR = 0.6, 0.4, 0.04
MEAN = np.array([0.5, 0.2, -0.4])
COV = block_diag([[0.25, -0.21], [-0.21, 0.36]], [[0.09]])
PRIORS = {
    "independent": {name: stats.norm(MEAN[j], np.sqrt(COV[j, j])) for j, name in enumerate("abc")},
    "joint": {
        **oc.JointPrior(("a", "b"), stats.multivariate_normal(MEAN[:2], COV[:2, :2])),
        "c": stats.Normal(mu=MEAN[2], sigma=0.3),
    },
}
COVS = {"independent": np.diag(np.diag(COV)), "joint": COV}


def design(x):
    return np.column_stack([np.ones(len(x)), x, x**2])


def problem_of(kind, x, seed=0):
    rng = np.random.default_rng(seed)
    y = 1 + np.sin(3 * x) + np.sqrt(NOISE_VAR) * rng.standard_normal(len(x))
    parameters = PRIORS[kind]
    return oc.Problem(x, y, lambda x, t: design(x) @ t, parameters, oc.Box(0, 1, nodes=20), NOISE_VAR, starts=4)


TWO_PLACES = np.repeat([0.2, 0.8], 8)


def kernel(a, b):
    return matern(a[:, None], b[:, None], 1.5, SD, LENGTH)


def projector(problem, x):
    """b at the data less its projection on the gradients over the domain, from b at the data and the nodes."""
    nodes, weights = problem.rule.nodes[:, 0], problem.rule.weights
    weighted = weights[:, None] * design(nodes)
    return np.hstack([np.eye(len(x)), -design(x) @ np.linalg.solve(design(nodes).T @ weighted, weighted.T)])


def bias_covariance(name, problem, x):
    """Of the bias at the data, before theta and y are known."""
    nodes, n = problem.rule.nodes[:, 0], len(x)
    K = kernel(x, x)
    if name == "none":
        return 0 * K
    if name == "sgasp":
        return K - K @ np.linalg.solve(K + np.sqrt(n) * SD**2 * np.eye(n), K)
    if name == "ogp":
        g = problem.rule.weights[:, None] * design(nodes)
        h = g.T @ kernel(nodes, x)
        return K - h.T @ np.linalg.solve(g.T @ kernel(nodes, nodes) @ g, h)
    if name == "gp":
        points = np.concatenate([x, nodes])
        P = projector(problem, x)
        return P @ kernel(points, points) @ P.T
    return K


def posterior_law(y, x, S, cov):
    G, prior = design(x), np.linalg.inv(cov)
    V = np.linalg.inv(G.T @ np.linalg.solve(S, G) + prior)
    return Law(V @ (G.T @ np.linalg.solve(S, y) + prior @ MEAN), V, np.zeros_like(V))


def algorithm_1_law(problem, y, x, cov):
    """The autoregression of ``closed_form``, with theta ~ N(m, C)."""
    G, prior, n = design(x), np.linalg.inv(cov), len(x)
    points = np.concatenate([x, problem.rule.nodes[:, 0]])
    K, P = kernel(points, points), projector(problem, x)
    B = np.linalg.solve(K[:n, :n] + NOISE_VAR * np.eye(n), K[:n]).T
    V = np.linalg.inv(G.T @ G / NOISE_VAR + prior)
    gain = V @ G.T / NOISE_VAR
    A = gain @ P @ B @ G
    step = V + gain @ P @ (K - B @ K[:n]) @ P.T @ gain.T
    constant = gain @ (y - P @ B @ y) + V @ prior @ MEAN
    return Law(np.linalg.solve(np.eye(3) - A, constant), solve_discrete_lyapunov(A, step), A)


METHODS = {
    "none": oc.methods.NoBias(),
    "ko": oc.methods.KO(1.5, SD, LENGTH),
    "sgasp": oc.methods.SGaSP(1.5, SD, LENGTH),
    "ogp": oc.methods.OGP(1.5, SD, LENGTH),
    "gp": oc.methods.Joint(oc.bias.GP(1.5, SD, LENGTH)),
    "pgp": oc.methods.Projected(oc.bias.GP(1.5, SD, LENGTH)),
}


@pytest.mark.parametrize("kind", ["joint", pytest.param("independent", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one == "ogp")) for one in METHODS])
def test_what_the_data_leave_open_is_left_to_the_prior(name, kind):
    problem, x = problem_of(kind, TWO_PLACES), TWO_PLACES
    y, cov = problem.data.y[:, 0], COVS[kind]
    S = bias_covariance(name, problem, x) + NOISE_VAR * np.eye(len(x))
    law = algorithm_1_law(problem, y, x, cov) if name == "pgp" else posterior_law(y, x, S, cov)
    posterior = oc.calibrate(problem, METHODS[name], draws=500, seed=3, progress=False)
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)
    # the direction that no data point sees has the prior's law
    open_one = np.linalg.svd(design(np.array([0.2, 0.8])))[2][-1]
    unseen = posterior.theta.reshape(-1, 3) @ open_one
    expected = open_one @ law.mean, np.sqrt(open_one @ law.cov @ open_one)
    assert abs(unseen.mean() - expected[0]) < Z_LIMIT * expected[1] / np.sqrt(1000)
    if name != "pgp" and kind == "independent":
        assert expected[1] > 0.15
    if name == "gp":
        # nothing is left to importance weights
        assert posterior.record.run_facts.pareto_k is None


@pytest.mark.parametrize("kind", ["joint", pytest.param("independent", marks=pytest.mark.slow)])
def test_a_chain_of_the_regression_has_the_same_law_where_the_data_determine_theta(kind):
    """The prior is put in after a chain with a flat one: exact where all is Gaussian."""
    x = np.linspace(0, 1, 25)
    problem = problem_of(kind, x)
    law = posterior_law(problem.data.y[:, 0], x, bias_covariance("gp", problem, x) + NOISE_VAR * np.eye(25), COVS[kind])
    plan = Plan(1000, 100, [np.random.default_rng(one) for one in np.random.SeedSequence(5).spawn(4)])
    method = Joint(oc.bias.GP(1.5, SD, LENGTH))
    drawn = gibbs_draws(problem, plan, fitted_bias(method.bias, problem, problem.rule.nodes), Linear.of(problem))
    theta = (problem.theta_tilde + drawn.moved).reshape(4, 1000, 3)
    # the chain's own memory, beside an exact law without any
    from arviz_stats.base import array_stats

    size = min(array_stats.ess(theta[:, :, j], chain_axis=0, draw_axis=1) for j in range(3))
    error = z_scores(theta, law) * np.sqrt(min(1.0, size / 4000))
    assert size > 400
    assert np.all(np.abs(error) < Z_LIMIT)


def test_priors_that_need_a_chain_say_that_they_cannot_leave_it_to_the_prior():
    with pytest.raises(
        IdentifiabilityError, match='take a Gaussian process, "gp", which can leave them to their prior'
    ):
        oc.calibrate(problem_of("joint", TWO_PLACES), "bart", draws=10, warmup=10, seed=1, progress=False)


def test_pcal_does_not_use_the_prior():
    """Its answer is the same with either prior: theta is where f is closest to y_R, whatever the prior says."""
    means = [
        oc.calibrate(
            problem_of(kind, TWO_PLACES), oc.methods.PCAL(1.5, SD, LENGTH), draws=20, seed=1, progress=False
        ).theta
        for kind in PRIORS
    ]
    np.testing.assert_allclose(means[0], means[1], atol=1e-6)

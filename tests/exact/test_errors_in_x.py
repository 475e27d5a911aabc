"""A line in x whose inputs have errors, against closed forms written without the package.

With f = a + b x, theta_tilde is least squares with the points' shares of the domain, errors s_i of x add (b~ s_i)^2 to
the noise variance, and theta | y is Gaussian. Every z is that of a mean of draws: |z| < 4.5 fails in 7 of a million.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

import orthocal as oc

VAR, PRIOR_VAR, SD, LENGTH, NODES = 0.01, 100.0, 0.4, 0.4, 40
RNG = np.random.default_rng(8)
X = np.sort(RNG.random(25))
X_ERR = RNG.uniform(0.01, 0.15, 25)
Y = 1 + 2 * X + 0.3 * np.sin(7 * X) + 0.1 * RNG.standard_normal(25)
PRIORS = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}


def problem(**options):
    def line(x, theta):
        return theta[0] + theta[1] * x

    return oc.Problem(X, Y, line, PRIORS, oc.Box(0, 1, nodes=NODES), VAR, x_err=X_ERR, **options)


def best_fit():
    middles = np.r_[0, (X[1:] + X[:-1]) / 2, 1]
    shares = np.diff(middles)
    G = np.stack([np.ones(25), X], axis=1)
    information = G.T @ (25 * shares[:, None] * G) / VAR + np.eye(2) / PRIOR_VAR
    return np.linalg.solve(information, G.T @ (25 * shares * Y) / VAR)


def law(bias):
    """Mean and covariance of theta, without a bias or with a projected Matern 3/2 process."""
    variances = VAR + (best_fit()[1] * X_ERR) ** 2
    nodes, w = np.polynomial.legendre.leggauss(NODES)
    nodes, w = (nodes + 1) / 2, w / 2
    G, at_nodes = (np.stack([np.ones(len(x)), x], axis=1) for x in (X, nodes))
    design = G
    if bias:
        points = np.r_[X, nodes]
        r = np.sqrt(3) * np.abs(points[:, None] - points) / LENGTH
        L = np.linalg.cholesky(SD**2 * (1 + r) * np.exp(-r) + 1e-10 * np.eye(len(points)))
        weighted = at_nodes.T * w
        star = L[:25] - G @ np.linalg.solve(weighted @ at_nodes, weighted @ L[25:])
        design = np.hstack([G, star])
    prior = np.r_[np.full(2, 1 / PRIOR_VAR), np.ones(design.shape[1] - 2)]
    covariance = np.linalg.inv(design.T @ (design / variances[:, None]) + np.diag(prior))
    return (covariance @ design.T @ (Y / variances))[:2], covariance[:2, :2]


def test_the_best_fit_and_the_noise():
    made = problem()
    np.testing.assert_allclose(made.theta_tilde, best_fit(), rtol=1e-6)
    np.testing.assert_allclose(made.noise.by_point[:, 0, 0], VAR + (best_fit()[1] * X_ERR) ** 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "bias"),
    [(oc.methods.NoBias(), False), (oc.methods.Joint(oc.bias.GP(nu=1.5, sd=SD, lengthscale=LENGTH)), True)],
    ids=["none", "gp"],
)
def test_the_posterior(method, bias):
    mean, cov = law(bias)
    theta = oc.calibrate(problem(), method, draws=1000, seed=4, progress=False).theta
    for j in range(2):
        error = array_stats.mcse(theta[:, :, j], method="mean")
        assert abs(theta[:, :, j].mean() - mean[j]) < 4.5 * error
        size = array_stats.ess(theta[:, :, j], method="sd")
        assert abs(theta[:, :, j].std() / np.sqrt(cov[j, j]) - 1) < 4.5 / np.sqrt(2 * size)


def test_without_the_errors_the_law_is_another():
    """The negative control: the closed form tells the two apart."""
    made = oc.Problem(X, Y, lambda x, t: t[0] + t[1] * x, PRIORS, oc.Box(0, 1, nodes=NODES), VAR)
    theta = oc.calibrate(made, "none", draws=1000, seed=4, progress=False).theta
    assert theta[:, :, 1].std() < 0.7 * np.sqrt(law(False)[1][1, 1])

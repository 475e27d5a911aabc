"""Gaussian processes in the form for large data, several inputs, against the exact posterior of a linear simulator.

The closed form is written without the package: y = G theta + b - G lambda(b) + e with all covariances dense. A grid and
inducing points are approximations: beside the Monte-Carlo error (|z| < 4.5 fails in 7 of a million) theta's mean may be
off by .05 sds and its sd by 2 %.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

DRAWS, NOISE = 4000, 0.2


def correlation(a, b, length, nu):
    r = np.sqrt(2 * nu if nu < np.inf else 1) * np.sqrt((((a[:, None] - b[None]) / length) ** 2).sum(axis=-1))
    if nu == np.inf:
        return np.exp(-(r**2) / 2)
    return {1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[nu] * np.exp(-r)


def slopes(x):
    return np.stack([np.sin(x.sum(axis=1)), 1 + x[:, 0] ** 2], axis=1)


def simulator(x, theta):
    return slopes(x.reshape(len(x), -1)) @ theta


def data_set(n, d, seed=0, gap=False):
    rng = np.random.default_rng(seed)
    x = rng.random((4 * n, d))
    x = x[(x[:, 0] < 0.4) | (x[:, 0] > 0.7)] if gap else x
    x = x[:n]
    noise_sd = NOISE * (0.5 + rng.random(n))
    y = slopes(x) @ [1.0, 1.5] + 0.4 * np.sin(6 * x[:, 0]) * np.cos(3 * x[:, -1]) + noise_sd * rng.standard_normal(n)
    return x, y, noise_sd


def exact(x, y, noise_sd, prior, sd, length, nu, nodes, weights):
    """Mean and covariance of theta."""
    points = np.vstack([x, nodes])
    L = np.linalg.cholesky(sd**2 * correlation(points, points, length, nu) + 1e-10 * np.eye(len(points)))
    G, Gu = slopes(x), slopes(nodes)
    taken = np.linalg.solve(Gu.T @ (weights[:, None] * Gu), Gu.T @ (weights[:, None] * L[len(x) :]))
    design = np.hstack([G, L[: len(x)] - G @ taken]) / noise_sd[:, None]
    precision = design.T @ design + np.diag([1 / prior[1] ** 2] * 2 + [1.0] * L.shape[1])
    information = design.T @ (y / noise_sd)
    information[:2] += prior[0] / prior[1] ** 2
    covariance = np.linalg.inv(precision)
    return (covariance @ information)[:2], covariance[:2, :2]


def tensor(count, d):
    points, weights = np.polynomial.legendre.leggauss(count)
    grids = np.meshgrid(*[(points + 1) / 2] * d, indexing="ij")
    shares = np.meshgrid(*[weights / 2] * d, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1), np.prod(shares, axis=0).ravel()


def differences(posterior, centre, covariance):
    """Of the means, in sds, and relative ones of the sds, less what Monte Carlo may do to them."""
    draws, sd = posterior.theta.reshape(-1, 2), np.sqrt(np.diag(covariance))
    off = np.abs(draws.mean(axis=0) - centre) / sd - 4.5 / np.sqrt(DRAWS)
    wide = np.abs(draws.std(axis=0) / sd - 1) - 4.5 / np.sqrt(2 * DRAWS)
    return off.max(), wide.max()


@pytest.mark.parametrize("prior", [(0.0, 1e4), (1.2, 0.05)], ids=["flat", "informative"])
@pytest.mark.parametrize(
    ("d", "nu", "length", "gap"),
    [
        (1, np.inf, 0.2, False),
        pytest.param(2, 1.5, 0.25, False, marks=pytest.mark.slow),
        (2, 1.5, 0.25, True),
        pytest.param(2, 2.5, 1.5, True, marks=pytest.mark.slow),
        pytest.param(2, np.inf, 0.4, False, marks=pytest.mark.slow),
    ],
)
def test_a_grid_has_the_law_of_the_process(d, nu, length, gap, prior):
    x, y, noise_sd = data_set(300, d, gap=gap)
    nodes, weights = tensor(24 if d == 2 else 60, d)
    problem = oc.Problem(
        x,
        y,
        simulator,
        {name: stats.norm(*prior) for name in ("a", "b")},
        domain=oc.Box(np.zeros(d), np.ones(d)),
        y_err=noise_sd,
    )
    method = oc.methods.Joint(oc.bias.GP(nu, 0.5, length, form="large"))
    posterior = oc.calibrate(problem, method, draws=DRAWS // 4, seed=1, progress=False)
    off, wide = differences(posterior, *exact(x, y, noise_sd, prior, 0.5, length, nu, nodes, weights))
    assert off < 0.05
    assert wide < 0.02
    assert posterior.record.run_facts.bias[0]["form"] == "values on a grid"


@pytest.mark.slow
def test_as_many_inducing_points_as_data_have_the_law_of_the_process():
    x, y, noise_sd = data_set(250, 4)
    domain = oc.Box(np.zeros(4), np.ones(4), nodes=1024)
    problem = oc.Problem(
        x, y, simulator, {name: stats.norm(1, 100) for name in ("a", "b")}, domain=domain, y_err=noise_sd
    )
    method = oc.methods.Joint(oc.bias.GP(1.5, 0.5, 0.8, form="large"))
    posterior = oc.calibrate(problem, method, draws=DRAWS // 4, seed=1, progress=False)
    # the law with the nodes that the bias was integrated at, a longer Sobol sequence
    rule = domain.sobol(4, 4096)
    off, wide = differences(posterior, *exact(x, y, noise_sd, (1.0, 100.0), 0.5, 0.8, 1.5, rule.nodes, rule.weights))
    assert off < 0.05
    assert wide < 0.02
    assert posterior.record.run_facts.bias[0]["form"] == "values at inducing points"


@pytest.mark.slow
def test_too_few_functions_would_be_seen(monkeypatch):
    """A negative control: a grid as coarse as the length-scale is off, and says that it is."""
    monkeypatch.setattr("orthocal.methods.joint.regress_basis.A_LENGTH", {1.5: 1.6})
    x, y, noise_sd = data_set(1000, 2)
    nodes, weights = tensor(24, 2)
    problem = oc.Problem(
        x,
        y,
        simulator,
        {name: stats.norm(0, 1e4) for name in ("a", "b")},
        domain=oc.Box([0, 0], [1, 1]),
        y_err=0.05 * noise_sd,
    )
    method = oc.methods.Joint(oc.bias.GP(1.5, 0.5, 0.2, form="large"))
    posterior = oc.calibrate(problem, method, draws=DRAWS // 4, seed=1, progress=False)
    off, wide = differences(posterior, *exact(x, y, 0.05 * noise_sd, (0, 1e4), 0.5, 0.2, 1.5, nodes, weights))
    assert max(off, wide) > 0.1
    assert posterior.record.run_facts.bias[0]["moved"] > 0.1

"""Simulation-based calibration: data from the model itself, and probabilities that mean what they say.

For a simulator that is linear in theta the joint projection is the posterior of y = f(theta) + b* + e with
b* = b - G lambda(b), theta ~ N(0, 1), b a Gaussian process. So the rank of the truth among posterior draws is uniform
(Talts and others 2018): each of six ranks is tested by chi-squared in ten bins at the level 1e-4, so that all hold but
for 6 in 10 000.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.methods.joint import closest as projection

SETS, DRAWS, N, NOISE = 300, 99, 40, 0.3
SD, LENGTH = 0.5, 0.3
AT = (3, 20, 36)


def matern32(a, b):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None]) / LENGTH
    return SD**2 * (1 + r) * np.exp(-r)


def slopes(x):
    return np.stack([1 + x, np.cos(4 * x)], axis=1)


def ranks():
    """Of both parameters, b* at three points and the bias size, over data sets of the model: (sets, 6)."""
    u, w = np.polynomial.legendre.leggauss(40)
    u, w = (u + 1) / 2, w / 2
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        x = np.sort(rng.random(N))
        points = np.concatenate([x, u])
        b = np.linalg.cholesky(matern32(points, points) + 1e-9 * np.eye(len(points))) @ rng.standard_normal(len(points))
        G, Gu = slopes(x), slopes(u)
        taken = np.linalg.solve(Gu.T @ (w[:, None] * Gu), Gu.T @ (w * b[N:]))
        star, at_nodes = b[:N] - G @ taken, b[N:] - Gu @ taken
        theta = rng.standard_normal(2)
        y = G @ theta + star + NOISE * rng.standard_normal(N)
        problem = oc.Problem(
            x,
            y,
            lambda x, t: slopes(x) @ t,
            {"a": stats.norm(0, 1), "b": stats.norm(0, 1)},
            domain=oc.Box(0, 1, nodes=40),
            noise_cov=NOISE**2,
            starts=2,
        )
        method = oc.methods.Joint(oc.bias.GP(1.5, SD, LENGTH))
        posterior = oc.calibrate(problem, method, draws=DRAWS, chains=1, seed=seed, progress=False)
        bias = posterior.data["bias"]["bias"].values[0, :, :, 0]
        size = np.sqrt(posterior.data["bias"]["bias_square"].values[0, :, 0])
        drawn = np.column_stack([posterior.theta[0], bias[:, AT], size])
        true = np.concatenate([theta, star[list(AT)], [np.sqrt(w @ at_nodes**2)]])
        found.append((drawn < true).sum(axis=0))
    return np.array(found)


def p_values(found):
    counts = np.array([np.bincount(one * 10 // (DRAWS + 1), minlength=10) for one in found.T])
    return stats.chisquare(counts, axis=1).pvalue


@pytest.mark.slow
def test_ranks_are_uniform():
    found = p_values(ranks())
    print("p-values of theta, b* and the size:", found.round(3))
    assert found.min() > 1e-4


@pytest.mark.slow
def test_a_broken_projection_is_seen(monkeypatch):
    """Without the quadrature weights the closest theta is another one."""
    whole = projection.closest

    def broken(problem, real, spread, loss=None):
        rule = problem.rule
        problem.__dict__["rule"] = rule._replace(weights=np.where(rule.nodes[:, 0] < 0.5, 1.9, 0.1) * rule.weights)
        try:
            return whole(problem, real, spread, loss)
        finally:
            problem.__dict__["rule"] = rule

    monkeypatch.setattr("orthocal.methods.joint.joint.closest", broken)
    assert p_values(ranks()).min() < 1e-4


def pair(seed):
    """P(A closer | y) and whether it is, for random smooth shapes and a random real process."""
    rng = np.random.default_rng([seed, 7])
    fine = (np.arange(400) + 0.5) / 400
    basis = np.array([np.cos(np.pi * k * fine) / (1 + k) for k in range(6)])
    shapes = 1 + 0.5 * rng.standard_normal((2, 6)) @ basis
    true = 2 * shapes.mean(axis=0) + 0.5 * rng.standard_normal(6) @ basis
    x = np.sort(rng.random(40))
    y = np.interp(x, fine, true) + 0.25 * rng.standard_normal(40)
    losses = [np.mean((true - shape * (shape @ true) / (shape @ shape)) ** 2) for shape in shapes]
    problems = {
        name: oc.Problem(
            x,
            y,
            lambda x, t, own=shape: t[0] * np.interp(x, fine, own),
            {"t": stats.norm(0, 10)},
            domain=oc.Box(0, 1, nodes=40),
            noise_cov=0.25**2,
            starts=2,
        )
        for name, shape in zip("AB", shapes, strict=True)
    }
    compared = oc.compare_simulators(problems, draws=250, chains=2, seed=seed, progress=False)
    return compared.probability("A", "B"), losses[0] < losses[1]


@pytest.mark.slow
def test_the_probability_to_be_closer_is_calibrated():
    """200 pairs in bins of ten percent: the share that is closer is within three binomial errors of what was said."""
    said, closer = (np.array(part, dtype=float) for part in zip(*(pair(seed) for seed in range(200)), strict=True))
    bins = np.minimum((said * 10).astype(int), 9)
    for k in range(10):
        own = bins == k
        if own.any():
            expected = said[own].mean()
            error = np.sqrt(max(expected * (1 - expected), 0.01) / own.sum())
            print(f"bin {k}: {own.sum()} pairs, said {expected:.3f}, closer {closer[own].mean():.3f}")
            assert abs(closer[own].mean() - expected) < 3 * error
    # and it says something
    assert np.mean(np.abs(said - 0.5)) > 0.25

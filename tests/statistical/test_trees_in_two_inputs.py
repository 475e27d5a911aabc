"""Sums of trees in two inputs, with few data and with many: coverage, width and mixing of theta.

The problem has two parameters, noise .2 and a bias of .5 sin 9 x_1 cos 4 x_2. Coverage over 100 data sets must lie
between .90 and .99 for each parameter (false alarms as in ``test_coverage_of_priors.py``), over 30 be at least 25: a
sampler with .95 has fewer with probability .003. Seeds are fixed.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.methods import fitted

THETA = np.array([1.0, 1.5])


def waves(x):
    return np.sin(np.outer(x[:, 0], [1, 2]) + x[:, 1:] * [1, 2])


def bias(x):
    return 0.5 * np.sin(9 * x[:, 0]) * np.cos(4 * x[:, 1])


def theta_star():
    rule = oc.Box(0, 1, nodes=60).rules(2)[0]
    G, weighted = waves(rule.nodes), rule.weights[:, None] * waves(rule.nodes)
    return THETA + np.linalg.solve(G.T @ weighted, weighted.T @ bias(rule.nodes))


def posterior(n, seed, method="bart", draws=250):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    y = waves(x) @ THETA + bias(x) + 0.2 * rng.standard_normal(n)
    priors = {"a": stats.norm(1, 10), "b": stats.norm(1, 10)}
    problem = oc.Problem(x, y, lambda x, theta: waves(x) @ theta, priors, oc.Box(0, 1), noise_cov=0.04)
    return oc.calibrate(problem, method, draws=draws, seed=seed, progress=False).summary()


def over_data_sets(n, count, method="bart"):
    """Share of intervals that hold theta*, mean sd and scatter of the means for each parameter, and all summaries."""
    found = [posterior(n, 40_000 + seed, method) for seed in range(count)]
    inside = [(one["eti95_lb"] < theta_star()) & (theta_star() < one["eti95_ub"]) for one in found]
    width, means = (np.array([one[name] for one in found]) for name in ("sd", "mean"))
    share, sd, scatter = np.mean(inside, axis=0), width.mean(axis=0), means.std(axis=0, ddof=1)
    print(f"{method}, n = {n}: coverage {share}, mean sd {sd}, scatter {scatter}")
    return share, sd, scatter, found


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bart", "pbart"])
def test_few_data(method):
    share, sd, scatter, _ = over_data_sets(200, 100, method)
    assert np.all((share >= 0.90) & (share <= 0.99))
    # a scatter over 100 data sets is known to 7 %
    assert np.all((sd / scatter > 0.8) & (sd / scatter < 1.3))


@pytest.mark.slow
def test_many_data():
    """Draws of four chains are almost independent, and intervals are right."""
    share, _, _, found = over_data_sets(4000, 30)
    assert np.all(share >= 25 / 30)
    assert np.median([one["ess_bulk"].min() for one in found]) > 500
    assert max(one["r_hat"].max() for one in found) < 1.05


@pytest.mark.slow
def test_the_nodes_of_the_box_alone_would_not_do():
    """The negative control: b at 15 x 15 nodes."""
    exact = posterior(1000, 1, draws=500)
    with patch.object(fitted, "fine_integrals", lambda *given: None):
        coarse = posterior(1000, 1, draws=500)
    assert np.all(coarse["sd"] > 1.4 * exact["sd"])

"""How often 95 % intervals hold theta* where x has errors, with and without ``x_err``.

A coverage is allowed three binomial errors: for 100 data sets that fails by chance in 3 of 1000.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

pytestmark = pytest.mark.slow

SETS, N, TRUTH = 100, 40, np.array([2.0, 1.5])
NOISE_SD, X_SD = 0.03, 0.03
SLACK = 3 * np.sqrt(0.95 * 0.05 / SETS)
PRIORS = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}


def simulator(x, theta):
    return theta[0] * x + theta[1] * x**2


def coverage(method, x_err):
    """Share of data sets whose intervals hold theta*, (p,): x was set, and what was measured lies beside it."""
    covered = []
    for seed in range(SETS):
        rng = np.random.default_rng([seed, 15])
        x = rng.random(N)
        y = simulator(x + X_SD * rng.standard_normal(N), TRUTH) + NOISE_SD * rng.standard_normal(N)
        problem = oc.Problem(x, y, simulator, PRIORS, oc.Box(0, 1), NOISE_SD**2, x_err=x_err, starts=4)
        theta = oc.calibrate(problem, method, draws=250, seed=seed, progress=False).theta.reshape(-1, 2)
        low, high = np.quantile(theta, [0.025, 0.975], axis=0)
        covered.append((low < TRUTH) & (high > TRUTH))
    found = np.mean(covered, axis=0)
    print(f"{method}, x_err {x_err}: coverage {found}")
    return found


@pytest.mark.parametrize("method", ["none", "gp"])
def test_with_the_errors(method):
    found = coverage(method, X_SD)
    assert (found > 0.95 - SLACK).all()
    if method == "none":
        assert (found <= 0.95 + SLACK).all()


def test_without_them():
    """The negative control."""
    assert (coverage("none", None) < 0.75).all()

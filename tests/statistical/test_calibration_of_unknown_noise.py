"""Simulation-based calibration of noise, size and length-scale of the bias that are integrated over.

Size and length-scale are drawn from their priors. Theta and the noise have the prior that does not change with the
origin and the unit of y, so that their ranks are uniform whatever they are (Berger 1985, section 6.6): they stay as
they are. Of five ranks of 300 data sets, each by a test of Kolmogorov and Smirnov, one fails in a thousand cases.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.methods.joint.gaussian_model import GaussianModel

pytestmark = pytest.mark.slow

SETS, N, NOISE_SD, THETA = 300, 12, 0.3, np.array([1.0, 2.0])
FALSE_ALARM = 0.001 / 5
NODES, WEIGHTS = (part / 2 + shift for part, shift in zip(np.polynomial.legendre.leggauss(20), (0.5, 0.0), strict=True))
WIDE = {"a": stats.norm(0, 1e4), "b": stats.norm(0, 1e4)}


def matern32(a, b, length):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None]) / length
    return (1 + r) * np.exp(-r)


def line(x, theta):
    return theta[0] + theta[1] * x


def ranks(number):
    """Of theta, log r, log length and log s among the draws, in (0, 1)."""
    rng = np.random.default_rng(number)
    x, length = rng.random(N), np.exp(np.log(0.4) + 0.8 * rng.standard_normal())
    ratio = abs(np.tan(np.pi * (rng.random() - 0.5)))
    points = np.concatenate([x, NODES])
    root = np.linalg.cholesky(matern32(points, points, length) + 1e-10 * np.eye(len(points)))
    bias = ratio * NOISE_SD * root @ rng.standard_normal(len(points))
    # what is left of the bias on a line belongs to theta
    G = np.stack([np.ones_like(NODES), NODES], axis=1)
    added = np.linalg.solve(G.T @ (WEIGHTS[:, None] * G), G.T @ (WEIGHTS * bias[N:]))
    y = line(x, THETA) + bias[:N] - line(x, added) + NOISE_SD * rng.standard_normal(N)
    problem = oc.Problem(x, y, line, WIDE, oc.Box(0, 1, nodes=20), starts=1)
    fit = oc.calibrate(problem, "gp", draws=250, chains=2, seed=number, progress=False)
    drawn = [*np.moveaxis(fit.theta, -1, 0), fit.data["sample_stats"]["sd_0"].values]
    noise = np.sqrt(fit.data["posterior"]["noise_cov"].values[..., 0, 0])
    drawn = [*drawn[:2], drawn[2] / noise, fit.data["sample_stats"]["lengthscale_0_0"].values, noise]
    truth = [*THETA, ratio, length, NOISE_SD]
    each = zip(drawn, truth, strict=True)
    return [(np.sum(values < true) + rng.random()) / (values.size + 1) for values, true in each]


def p_values():
    found = np.array([ranks(number) for number in range(SETS)])
    return np.array([stats.kstest(column, "uniform").pvalue for column in found.T])


def test_ranks_are_uniform():
    assert (p_values() > FALSE_ALARM).all()


def test_a_broken_weight_is_noticed(monkeypatch):
    """Negative control: points that are weighted by the fourth root of the determinant of their covariance."""
    own = GaussianModel._whitened

    def without_size(self, vectors):
        slopes, left, log_det = own(self, vectors)
        return slopes, left, 0.5 * log_det

    monkeypatch.setattr(GaussianModel, "_whitened", without_size)
    assert p_values().min() < FALSE_ALARM

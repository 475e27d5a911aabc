"""The closed forms of linear examples: against figures from elsewhere, and ``gp`` against them.

False alarms: means and sds of independent draws are compared in units of their Monte-Carlo error; |z| > 4.5 has
probability 7e-6, and there are 16 of them. Seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.examples import MODEL1, curved, curved_draws

LINEAR = [example for example in oc.examples.all() if example.linear]


def test_figures_of_another_program():
    """Model 1, GP 3/2 with sd 1 and length 1/2, 60 nodes, generator 5: computed without this package."""
    example = replace(MODEL1, nodes=60)
    x, y = example.simulate(np.random.default_rng(5))
    flat = example.exact(x, y, flat=True)
    assert flat.mean[0] == pytest.approx(3.565473, abs=1e-6)
    assert flat.sd[0] == pytest.approx(0.03445, abs=5e-6)
    informed = replace(example, parameters={"theta": stats.norm(3.4, 0.03)}).exact(x, y)
    assert informed.mean[0] == pytest.approx(3.471355, abs=1e-6)
    assert informed.sd[0] == pytest.approx(0.022625, abs=1e-6)


@pytest.mark.parametrize("example", LINEAR, ids=lambda example: example.name)
@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_gp_has_the_exact_law(example, nu):
    x, y = example.simulate(np.random.default_rng(7))
    exact = example.exact(x, y, nu=nu)
    method = oc.methods.Joint(oc.bias.GP(nu=nu, sd=1.0, lengthscale=0.5))
    posterior = oc.calibrate(example.problem(x, y), method, draws=1000, seed=3, progress=False)
    theta = posterior.theta.reshape(-1, len(exact.mean))
    z = (theta.mean(axis=0) - exact.mean) / (exact.sd / np.sqrt(len(theta)))
    assert np.abs(z).max() < 4.5
    z = (theta.std(axis=0) - exact.sd) / (exact.sd / np.sqrt(2 * len(theta)))
    assert np.abs(z).max() < 4.5


def test_reference_draws_follow_the_law():
    x, y = MODEL1.simulate(np.random.default_rng(7))
    exact = MODEL1.exact(x, y, nu=np.inf)
    draws = exact.draws(np.random.default_rng(0), 4000)
    assert draws.shape == (4000, 1)
    assert stats.kstest(draws[:, 0], stats.norm(exact.mean[0], exact.sd[0]).cdf).pvalue > 1e-3


@pytest.mark.parametrize("size", [-0.5, 0.5])
def test_gp_has_the_law_of_the_curved_reference(size):
    """Both are samples: their means differ by the errors of two, and so do their sds."""
    example = curved(size)
    x, y = example.simulate(np.random.default_rng(7))
    reference = curved_draws(x, y, np.random.default_rng(0), 4000)
    method = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.5))
    theta = oc.calibrate(example.problem(x, y), method, draws=1000, seed=3, progress=False).theta.ravel()
    # to first order the sd is that of least squares
    assert reference.std() == pytest.approx(0.1 / np.sqrt(200) / (1 - size), rel=0.06)
    sd = reference.std()
    assert abs(theta.mean() - reference.mean()) < 4.5 * sd * np.sqrt(2 / 4000)
    assert abs(theta.std() - sd) < 4.5 * sd * np.sqrt(2 / 8000)

"""How often 95 % intervals of the joint projection hold theta*, and how wide they are; the tables are in docs/joint.md.

A coverage is allowed three binomial errors below or above .95: for 60 data sets that fails by chance in 4 of 1000.
"""

import numpy as np
import pytest

import orthocal as oc
from orthocal.examples import FIN, MODEL1, MODEL2_PART, MODEL3, curved, saturation

pytestmark = pytest.mark.slow

SETS = 60
SLACK = 3 * np.sqrt(0.95 * 0.05 / SETS)


def measured(example, method, sets=SETS):
    """Coverage, mean posterior sd and scatter of the posterior means, (p,) each."""
    star, covered, means, sds = np.array(example.theta_star), [], [], []
    for seed in range(sets):
        problem = example.problem(*example.simulate(np.random.default_rng([seed, 11])), domain=oc.Box(0, 1), starts=4)
        theta = oc.calibrate(problem, method, draws=250, seed=seed, progress=False).theta.reshape(-1, len(star))
        low, high = np.quantile(theta, [0.025, 0.975], axis=0)
        covered.append((low < star) & (star < high))
        means.append(theta.mean(axis=0))
        sds.append(theta.std(axis=0))
    coverage, sd, scatter = np.mean(covered, axis=0), np.mean(sds, axis=0), np.std(means, axis=0, ddof=1)
    print(f"{example.name}, {method}: coverage {coverage.round(3)}, sd {sd.round(5)}, scatter {scatter.round(5)}")
    return coverage, sd, scatter


@pytest.mark.parametrize("size", [-0.5, 0.0, 0.3, 0.5])
@pytest.mark.parametrize("method", ["gp", "bart"])
def test_a_curved_simulator_beside_a_bias(size, method):
    coverage, sd, _ = measured(curved(size), method)
    assert abs(coverage[0] - 0.95) < SLACK
    assert sd[0] == pytest.approx(0.1 / np.sqrt(200) / (1 - size), rel=0.06)


@pytest.mark.parametrize("method", ["softbart", "bmars", "bnn"])
def test_the_other_priors_at_the_largest_curvature(method):
    coverage, sd, _ = measured(curved(0.5), method, sets=30)
    assert coverage[0] > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 30)
    assert sd[0] == pytest.approx(0.1 / np.sqrt(200) / 0.5, rel=0.1)


def test_the_papers_algorithm_fails_there():
    """The negative control."""
    coverage, sd, _ = measured(curved(0.5), "pgp")
    assert coverage[0] < 0.8
    assert sd[0] < 0.6 * 0.1 / np.sqrt(200) / 0.5


@pytest.mark.parametrize("example", [MODEL1, MODEL2_PART, MODEL3, FIN], ids=lambda one: one.name)
def test_where_both_are_right(example):
    coverage, sd, scatter = measured(example, "gp")
    assert (np.abs(coverage - 0.95) < SLACK).all()
    # a scatter over 60 data sets is known to within 9 %
    assert (np.abs(sd / scatter - 1) < 0.3).all()


@pytest.mark.parametrize("method", ["gp", "bart"])
@pytest.mark.parametrize("design", [(1, 2), (0.5, 0.5)], ids=["Beta(1, 2)", "Beta(1/2, 1/2)"])
def test_uneven_data(design, method):
    coverage, _, _ = measured(saturation(*design), method)
    assert (coverage > 0.95 - SLACK).all()

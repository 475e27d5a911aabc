"""The size of a sum of trees: its law given the trees, and with them."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid

import orthocal as oc
from helpers import generators
from orthocal.bias.tree_size import TYPICAL, GriddedSize, SizedState, WithSize, _drawn_size
from orthocal.regression.bart import BARTSampler
from orthocal.regression.compiled import Gridded
from orthocal.regression.softbart import SoftBARTSampler

X = np.linspace(0, 1, 12)[:, None]
NODES = np.array([[0.21], [0.77]])
NOISE_VAR = np.linspace(0.2, 0.6, 12)


def trees(least=0):
    return BARTSampler(
        oc.bias.BART(trees=5, least=least), 0.5, [np.linspace(-0.5, 1.5, 22)], X, NODES, NOISE_VAR, shares=np.ones(1)
    )


def smooth_trees():
    prior = oc.bias.SoftBART(trees=5)
    return SoftBARTSampler(prior, 0.5, np.array([-0.5]), np.array([0.5]), X, NODES, NOISE_VAR)


@pytest.mark.parametrize(("precision", "pull"), [(0.0, 0.0), (2.0, 5.0), (40.0, 3.0), (3.0, -4.0)])
def test_given_the_trees(precision, pull):
    """Every twentieth of 40 000 steps against the density by quadrature; Kolmogorov's test, 1 false alarm in 10 000."""
    log_c = np.linspace(-25, 25, 200_001)
    c = np.exp(log_c)
    log_density = pull * c - 0.5 * precision * c**2 + log_c - np.log1p(c**2 / TYPICAL**2)
    cumulative = cumulative_trapezoid(np.exp(log_density - log_density.max()), log_c, initial=0.0)
    rng, size, found = np.random.default_rng(1), 1.0, []
    for _ in range(40_000):
        size = _drawn_size(rng, size, precision, pull)
        found.append(size)
    share = np.interp(np.log(found[::20]), log_c, cumulative / cumulative[-1])
    assert stats.kstest(share, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("kind", "noise_scale"), [(trees, None), (trees, 3.0), (smooth_trees, None)])
def test_size_and_trees_together(kind, noise_scale):
    """Geweke's test: from draws of the prior, data and posterior in turn, sizes stay half-Cauchy (400 chains).

    A false alarm in 1 of 10 000; with the noise of the data in place of that of z / c it fails.
    """
    chains, sampler, rngs = 400, WithSize(kind(), NOISE_VAR), generators(400)
    rng = np.random.default_rng(3)
    size = TYPICAL * np.abs(np.tan(np.pi * (rng.random(chains) - 0.5)))
    own, values = None, None
    for _ in range(30):
        # with noise without end, draws of the prior
        own, values = sampler.own.draw(rngs, own, np.zeros((chains, len(X))), noise_scale=np.full(chains, 1e12))
    state, values = SizedState(size, own), values * size[:, None]
    factor = 1.0 if noise_scale is None else noise_scale
    given = {} if noise_scale is None else {"noise_scale": np.full(chains, noise_scale)}
    for _ in range(15):
        z = values[:, : len(X)] + np.sqrt(factor * NOISE_VAR) * rng.standard_normal((chains, len(X)))
        state, values = sampler.draw(rngs, state, z, **given)
    assert stats.kstest(2 / np.pi * np.arctan(state.size / TYPICAL), "uniform").pvalue > 1e-4
    assert np.mean(state.size != size) > 0.99


def test_what_is_recorded_has_the_size():
    rngs, sampler = generators(3), GriddedSize(trees(), NOISE_VAR)
    state, values = sampler.draw(rngs, None, np.tile(4 * np.sin(5 * X[:, 0]), (3, 1)))
    state, values = sampler.draw(rngs, state, np.tile(4 * np.sin(5 * X[:, 0]), (3, 1)))
    records = sampler.record(state)
    np.testing.assert_allclose(sampler.predict(rngs[0], records, np.vstack([X, NODES])), values)
    np.testing.assert_allclose(sampler.in_cells(records)[:, sampler.cells(NODES)], values[:, -2:])
    assert not np.allclose(state.size, 1.0)


def test_what_is_recorded_of_smooth_trees():
    """Their leaves have the size, and their cuts do not; they have no cells."""
    rngs, sampler, residual = (
        generators(3),
        WithSize(smooth_trees(), NOISE_VAR),
        np.tile(4 * np.sin(5 * X[:, 0]), (3, 1)),
    )
    state, _ = sampler.draw(rngs, None, residual)
    state, values = sampler.draw(rngs, state, residual)
    records = sampler.record(state)
    np.testing.assert_allclose(sampler.predict(rngs[0], records, np.vstack([X, NODES])), values)
    assert (records["kind"] >= 0).any()
    assert not isinstance(sampler, Gridded)
    assert isinstance(GriddedSize(trees(), NOISE_VAR), Gridded)


def test_data_in_one_cell_are_one_observation():
    """The same law with cells for data points: two of the twelve share one."""
    sampler = GriddedSize(trees(), NOISE_VAR)
    cells, place = np.unique(sampler.cells(X), return_inverse=True)
    merged = sampler.on_cells(cells, place, NODES)
    np.testing.assert_allclose(merged._weight, np.bincount(place, 1 / NOISE_VAR))
    assert len(cells) < len(X)

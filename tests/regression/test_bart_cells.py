"""BART on the cells between its cuts: the same posterior as on all data, with fewer points."""

from __future__ import annotations

import numpy as np
import pytest

import orthocal as oc
from helpers import batch_means, setting
from orthocal.regression.compiled import Gridded

GRID = 9


def many(n=2000, d=2, seed=0, levels=None):
    """Data with errors of their own; the inputs take few values if ``levels`` is given."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d)) if levels is None else rng.integers(0, levels, (n, d)) / levels
    variance = rng.uniform(0.5, 2.0, n)
    response = 3 * np.sin(5 * x[:, 0]) + x[:, -1] + np.sqrt(variance) * rng.standard_normal(n)
    return x, variance, response


def on_cells(sampler, x, variance, response, nodes=None):
    """The sampler with all cells of its grid as points, and the weighted means of the response in them."""
    number = sampler.cells(x)
    cells = np.arange((GRID + 1) ** x.shape[1])
    weight = np.bincount(number, 1 / variance, len(cells))
    mean = np.bincount(number, response / variance, len(cells)) / np.where(weight > 0, weight, 1.0)
    nodes = np.empty((0, x.shape[1])) if nodes is None else nodes
    return sampler.on_cells(cells, number, nodes), number, mean


def prepared(x, variance, response, nodes=None, **settings):
    prior = oc.bias.BART(trees=20, cuts=GRID, **settings)
    return prior.prepare(setting(x, nodes, variance, response))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_sweep_is_the_same_as_on_all_data(d):
    """With the same random numbers the forests of both are the same, sweep after sweep, and b up to rounding."""
    x, variance, response = many(d=d)
    sampler = prepared(x, variance, response)
    other, number, mean = on_cells(sampler, x, variance, response)
    assert isinstance(sampler, Gridded)
    rngs = [np.random.default_rng(3)], [np.random.default_rng(3)]
    states = [None, None]
    for _ in range(30):
        states[0], values = sampler.draw(rngs[0], states[0], response[None])
        states[1], in_cells = other.draw(rngs[1], states[1], mean[None])
        assert np.array_equal(states[0].own[0].nodes, states[1].own[0].nodes)
        np.testing.assert_allclose(in_cells[0, number], values[0], atol=1e-9)
    grown_pruned_changed = states[1].own[0].counts[:3, 1]
    assert grown_pruned_changed.min() > 0


def test_means_without_their_weights_are_another_posterior():
    """The negative control: cells as if each were one observation."""
    x, variance, response = many()
    sampler = prepared(x, variance, response)
    other, number, mean = on_cells(sampler, x, variance, response)
    other.own._weight = np.ones_like(other.own._weight)
    rngs = [np.random.default_rng(3)], [np.random.default_rng(3)]
    _, values = sampler.draw(rngs[0], None, response[None])
    _, in_cells = other.draw(rngs[1], None, mean[None])
    assert np.abs(in_cells[0, number] - values[0]).max() > 0.1


def test_the_posterior_is_the_same_with_other_random_numbers():
    """Mean and sd at 9 points by two chains; |z| > 4.5 in one of 18 comparisons has probability 1.2e-4."""
    x, variance, response = many(n=600)
    nodes = np.stack(np.meshgrid([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]), axis=-1).reshape(-1, 2)
    sampler = prepared(x, variance, response, nodes)
    other, _, mean = on_cells(sampler, x, variance, response, nodes)
    found = []
    for own, given, seed in ((sampler, response, 1), (other, mean, 2)):
        rng, state, draws = np.random.default_rng(seed), None, []
        for number in range(4200):
            state, values = own.draw([rng], state, given[None])
            if number >= 200:
                draws.append(values[0, -9:])
        centred = np.square(draws - np.mean(draws, axis=0))
        found.append((batch_means(draws), batch_means(centred)))
    for (one, error), (two, its_error) in zip(*found, strict=True):
        assert np.all(np.abs(one - two) < 4.5 * np.hypot(error, its_error))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_recorded_forests_in_all_cells_are_what_is_predicted_there(d):
    x, variance, response = many(d=d)
    sampler = prepared(x, variance, response)
    other, number, mean = on_cells(sampler, x, variance, response)
    rngs = [np.random.default_rng(c) for c in range(3)]
    state, values = other.draw(rngs, None, np.tile(mean, (3, 1)))
    records = other.record(state)
    np.testing.assert_allclose(other.at_cells(records), values, atol=1e-9)
    np.testing.assert_allclose(other.at_cells(records)[:, number], sampler.predict(rngs[0], records, x), atol=1e-12)


def test_some_cells_of_the_grid_will_do():
    """Where the inputs take few values, or are many, only the cells with data are points."""
    x, variance, response = many(d=3, levels=4)
    sampler = prepared(x, variance, response)
    cells, number = np.unique(sampler.cells(x), return_inverse=True)
    assert len(cells) == 4**3
    other = sampler.on_cells(cells, number, x[:5])
    state, values = other.draw([np.random.default_rng(0)], None, np.zeros((1, len(cells))))
    np.testing.assert_allclose(values[0, len(cells) :], values[0, number[:5]], atol=1e-12)
    np.testing.assert_allclose(other.at_cells(other.record(state)), values[:, : len(cells)], atol=1e-9)


def test_a_leaf_needs_as_many_observations_as_before():
    """``least`` counts observations, not cells."""
    x, variance, response = many(n=300)
    sampler = prepared(x, variance, response, least=60)
    other, number, mean = on_cells(sampler, x, variance, response)
    state, _ = other.draw([np.random.default_rng(0)], None, mean[None])
    for leaf in state.own[0].leaf[:, : len(mean)]:
        _, place = np.unique(leaf[number], return_inverse=True)
        assert np.bincount(place).min() >= 60

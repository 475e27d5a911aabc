"""Inducing points with neighbourhoods: sums over the data against whole covariance matrices."""

import numpy as np
import pytest

from orthocal.regression import inducing
from orthocal.regression.gaussian_process import correlation
from orthocal.regression.inducing import Inducing, neighbourhoods

LENGTH = np.array([0.5, 0.8])


def test_neighbourhoods_share_all_rows_and_nodes_and_do_not_overlap():
    rng = np.random.default_rng(0)
    x, nodes = rng.random((103, 2)), rng.random((40, 2))
    found = neighbourhoods(x, nodes, 20)
    assert max(len(rows) for rows, _ in found) <= 20
    np.testing.assert_array_equal(np.sort(np.concatenate([rows for rows, _ in found])), np.arange(103))
    np.testing.assert_array_equal(np.sort(np.concatenate([near for _, near in found])), np.arange(40))
    for rows, _ in found:
        inside = ((x >= x[rows].min(axis=0)) & (x <= x[rows].max(axis=0))).all(axis=1)
        assert inside.sum() == len(rows)


def test_rows_that_are_all_the_same_are_shared_too():
    found = neighbourhoods(np.ones((50, 3)), np.ones((2, 3)), 20)
    assert sorted(len(rows) for rows, _ in found) == [12, 12, 13, 13]


def test_sums_are_those_of_the_whole_covariance(monkeypatch):
    monkeypatch.setattr(inducing, "NEIGHBOURHOOD", 15)
    rng = np.random.default_rng(1)
    x, nodes, functional = rng.random((50, 2)), rng.random((12, 2)), rng.standard_normal((3, 12))
    weight, values = 1 / rng.uniform(0.1, 1, 50), rng.standard_normal((50, 2))
    weight[7] = 0.0
    process = Inducing.at(rng.random((20, 2)), 0.7, LENGTH, 1.5)
    found, covariance = process.sums(x, weight, values, nodes, functional)

    seen = np.flatnonzero(weight > 0)
    phi, at_nodes = process.functions(x[seen]), process.functions(nodes)
    block, node_block = np.empty(len(seen)), np.empty(12)
    for number, (rows, near) in enumerate(neighbourhoods(x[seen] / LENGTH, nodes / LENGTH, 15)):
        block[rows], node_block[near] = number, number
    left = 0.49 * correlation(x[seen], x[seen], LENGTH, 1.5) - phi @ phi.T
    noise = np.where(block[:, None] == block, left, 0) + np.diag(1 / weight[seen])
    across = 0.49 * correlation(x[seen], nodes, LENGTH, 1.5) - phi @ at_nodes.T
    columns = np.hstack([values[seen], np.where(block[:, None] == node_block, across, 0) @ functional.T])
    np.testing.assert_allclose(found.functions, phi.T @ np.linalg.solve(noise, phi), atol=1e-9)
    np.testing.assert_allclose(found.mixed, phi.T @ np.linalg.solve(noise, columns), atol=1e-9)
    np.testing.assert_allclose(found.own, columns.T @ np.linalg.solve(noise, columns), atol=1e-9)
    expected = functional @ process.unsaid_covariance(nodes) @ functional.T
    np.testing.assert_allclose(covariance, expected, atol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
def test_a_covariance_made_in_parts_is_the_whole_one(nu, monkeypatch):
    monkeypatch.setattr(inducing, "CACHED", 50)
    rng = np.random.default_rng(2)
    process = Inducing.at(rng.random((20, 2)), 0.7, LENGTH, nu)
    x = rng.random((30, 2))
    expected = 0.49 * correlation(process.points, x, LENGTH, nu)
    np.testing.assert_allclose(process.covariance(x), expected, atol=1e-12)

"""Rough functions at fine nodes, brought down to the nodes of a box: their integrals stay what they are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.integrate import quad

import orthocal as oc
from orthocal.errors import InputError
from orthocal.methods.fine_nodes import FineRule, SobolRule


def exact_of_steps(cuts, values, polynomial, low, high):
    """∫ b h over [low, high], divided by its length, from the primitive of the polynomial h."""
    primitive = polynomial.integ()
    ends = np.concatenate([[low], cuts, [high]])
    return np.sum(values * np.diff(primitive(ends))) / (high - low)


@pytest.mark.parametrize("count", [7, 15, 200])
def test_integrals_of_steps_times_polynomials_are_exact_in_one_input(count):
    rng = np.random.default_rng(0)
    box, cuts, values = oc.Box(-1.0, 3.0, nodes=count), np.sort(rng.uniform(-1, 3, 40)), rng.standard_normal(41)
    fine = FineRule.of_cells(box, [cuts])
    rule = box.rules(1)[0]
    down = fine.down(values[None, :, None])[0, :, 0]
    for degree in range(7):
        h = Polynomial(rng.standard_normal(degree + 1), domain=[-1.0, 3.0])
        found = np.sum(rule.weights * down * h(rule.nodes[:, 0]))
        assert found == pytest.approx(exact_of_steps(cuts, values, h, -1.0, 3.0), abs=1e-12)


def test_integrals_of_steps_times_polynomials_are_exact_in_two_inputs():
    rng = np.random.default_rng(1)
    box = oc.Box([0.0, -2.0], [1.0, 2.0])
    cuts = [np.sort(rng.uniform(0, 1, 30)), np.sort(rng.uniform(-2, 2, 12))]
    left, right = rng.standard_normal((31, 3)), rng.standard_normal((13, 3))
    # three products of steps, each an outcome, in two draws
    values = np.einsum("ak,bk->abk", left, right).reshape(-1, 3)
    fine, rule = FineRule.of_cells(box, cuts), box.rules(2)[0]
    down = fine.down(np.stack([values, 2 * values]))
    first, second = Polynomial(rng.standard_normal(15)), Polynomial(rng.standard_normal(9))
    h = first(rule.nodes[:, 0]) * second(rule.nodes[:, 1])
    expected = [
        exact_of_steps(cuts[0], left[:, k], first, 0.0, 1.0) * exact_of_steps(cuts[1], right[:, k], second, -2.0, 2.0)
        for k in range(3)
    ]
    assert np.einsum("m,smk,m->sk", rule.weights, down, h) == pytest.approx(np.outer([1, 2], expected), abs=1e-12)
    # the values at the nodes themselves, what a rule for smooth functions takes, are far off
    places = [np.searchsorted(own, column) for own, column in zip(cuts, rule.nodes.T, strict=True)]
    plain = (left[places[0]] * right[places[1]] * h[:, None] * rule.weights[:, None]).sum(axis=0)
    assert np.abs(plain - expected).max() > 1e-3


def test_what_is_missed_of_the_square_is_known():
    rng = np.random.default_rng(2)
    box, cuts, values = oc.Box(0.0, 1.0, nodes=15), np.sort(rng.random(20)), rng.standard_normal((4, 21, 1))
    fine, rule = FineRule.of_cells(box, [cuts]), box.rules(1)[0]
    square = np.einsum("m,smk->sk", rule.weights, fine.down(values) ** 2) + fine.missed_square(values)
    lengths = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    assert square == pytest.approx(np.einsum("m,smk->sk", lengths, values**2), abs=1e-12)
    assert (fine.missed_square(values) > 0).all()


def test_breaks_outside_of_the_box_are_cells_of_no_weight():
    fine = FineRule.of_cells(oc.Box(0.0, 1.0, nodes=4), [np.array([-0.5, 0.25, 1.5])])
    assert fine.weights == pytest.approx([0.0, 0.25, 0.75, 0.0])
    assert ((fine.nodes >= 0) & (fine.nodes <= 1)).all()
    assert fine.down(np.ones((4, 1))) == pytest.approx(np.ones((4, 1)))


def test_smooth_functions_at_fine_nodes():
    box = oc.Box(0.0, 2.0, nodes=5)
    fine, rule = FineRule.smooth(box, [60]), box.rules(1)[0]
    h = Polynomial([1.0, -2.0, 0.3, 0.1])
    # five nodes cannot integrate this by themselves
    down = fine.down(np.sin(15 * fine.nodes))[:, 0]
    expected = quad(lambda x: np.sin(15 * x) * h(x) / 2, 0, 2, limit=200)[0]
    assert np.sum(rule.weights * down * h(rule.nodes[:, 0])) == pytest.approx(expected, abs=1e-12)
    # what the nodes do resolve stays as it is
    assert fine.down(h(fine.nodes))[:, 0] == pytest.approx(h(rule.nodes[:, 0]))
    with pytest.raises(InputError, match="fewer"):
        FineRule.smooth(box, [4])


def test_a_longer_sobol_sequence_gives_its_integrals_to_the_first_nodes():
    box, rng = oc.Box(0.0, 1.0), np.random.default_rng(3)
    rule, long = box.rules(3)[0], box.sobol(3, 4096)
    assert np.array_equal(long.nodes[:256], rule.nodes)
    gradient = np.stack([np.sin(long.nodes @ rng.standard_normal((3, 2))) for _ in range(2)], axis=2)
    metric = np.array([[2.0, 0.5], [0.5, 1.0]])
    fine = SobolRule(long.nodes, gradient, 256, metric)
    values = rng.standard_normal((5, 4096, 2))
    down = fine.down(values)

    def coefficients(values, count):
        root = np.linalg.cholesky(metric).T
        flat = np.einsum("kl,mlp->mkp", root, gradient[:count]).reshape(-1, 2)
        return np.linalg.lstsq(flat, (values[:, :count] @ root.T).reshape(len(values), -1).T, rcond=None)[0].T

    expected = coefficients(values, 4096)
    assert coefficients(down, 256) == pytest.approx(expected, abs=1e-12)
    assert np.abs(coefficients(values, 256) - expected).max() > 1e-2
    square = (down**2).mean(axis=1) + fine.missed_square(values)
    assert square == pytest.approx((values**2).mean(axis=1), abs=1e-12)


@pytest.mark.parametrize("kind", ["cells", "smooth", "sobol"])
def test_a_functional_at_the_box_s_nodes_goes_up_to_the_fine_ones(kind):
    rng = np.random.default_rng(3)
    box = oc.Box([0.0, -2.0], [1.0, 2.0], nodes=8 if kind != "sobol" else 32)
    if kind == "sobol":
        nodes, p = box.sobol(2, 100).nodes, 3
        rule = SobolRule(nodes, rng.standard_normal((len(nodes), 2, p)), 32, np.array([[2.0, 0.5], [0.5, 1.0]]))
        coarse = 32
    else:
        cuts = [np.sort(rng.uniform(0, 1, 20)), np.sort(rng.uniform(-2, 2, 12))]
        rule = FineRule.of_cells(box, cuts) if kind == "cells" else FineRule.smooth(box, [9, 11])
        coarse = 64
    values, functional = rng.standard_normal((4, len(rule.nodes), 2)), rng.standard_normal((5, coarse, 2))
    expected = np.einsum("amk,smk->as", functional, rule.down(values))
    np.testing.assert_allclose(np.einsum("amk,smk->as", rule.up(functional), values), expected, atol=1e-10)

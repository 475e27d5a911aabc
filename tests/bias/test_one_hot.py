"""Categorical inputs for priors of numbers: a column for each label, which count as one input to trees."""

import numpy as np
import pytest

import orthocal as oc
from helpers import batch_means, generators, setting
from orthocal.bias.base import ChainwiseSampler
from orthocal.bias.one_hot import OneHotSampler, prepared, stored_sampler, widened
from orthocal.problem.data.labels import LabelColumn, LabelColumns
from orthocal.regression.tree_kernels import CHILD, FREE, LEAF, PARENT, VARIABLE

MACHINES = LabelColumns((LabelColumn(0, "machine", ("A", "B", "C", "D"), (0.0, 1.0, 2.0, 3.0)),))


def labelled(n=60, noise_var=None, seed=0, **options):
    """A categorical input with four labels, and two numeric ones."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 4, n).astype(float), rng.random((n, 2))])
    return setting(x, nodes=x[:5] + np.array([0, 0.01, 0]), noise_var=noise_var, **options)._replace(labels=MACHINES)


def split_variables(nodes):
    """The variable of the root of every tree that is split."""
    roots = nodes[:, 0]
    return roots[(roots[:, PARENT] != FREE) & (roots[:, CHILD] != LEAF), VARIABLE]


def test_the_wider_setting_has_a_column_for_each_label():
    own = widened(labelled(6))
    assert own.x.shape == (6, 6)
    assert own.nodes.shape == (5, 6)
    np.testing.assert_array_equal(own.x[:, 2:].sum(axis=1), 1)
    np.testing.assert_allclose(own.shares, [1, 1, 0.25, 0.25, 0.25, 0.25])
    assert own.span.shape == (6,)
    assert not own.labels


def test_a_categorical_input_is_split_by_as_often_as_a_numeric_one():
    """Without data: a third of the roots, whatever the number of labels, and each label as often as the others.

    Batches give the standard errors: |z| < 5 fails in two of a million.
    """
    sampler = prepared(oc.bias.BART(trees=50, least=0), labelled(noise_var=np.full(60, 1e200))).own.own
    rng, state, shares = np.random.default_rng(1), None, []
    for _ in range(2000):
        state, _ = sampler.draw([rng], state, np.zeros((1, 60)))
        found = split_variables(state[0].nodes)
        shares.append(np.bincount(found, minlength=6) / max(len(found), 1))
    mean, error = batch_means(np.array(shares))
    expected = np.array([1, 1, 0.25, 0.25, 0.25, 0.25]) / 3
    assert np.abs((mean - expected) / error).max() < 5
    # that a column for each label counted as an input would be seen
    assert np.abs((mean - 1 / 6) / error).min() > 5


def test_soft_trees_start_with_the_same_shares():
    sampler = prepared(oc.bias.SoftBART(trees=5), labelled()).own.own
    np.testing.assert_allclose(sampler.empty().shares, np.array([1, 1, 0.25, 0.25, 0.25, 0.25]) / 3)


@pytest.mark.parametrize(
    "prior", [oc.bias.BART(trees=20), oc.bias.SoftBART(trees=5), oc.bias.BMARS(), oc.bias.BNN(hidden=3)], ids=str
)
def test_a_level_of_one_label_is_found_and_stored(prior):
    """Label C is 6 noise sds above the others; predictions go by the label, those of a restored sampler too."""
    made = labelled(80, seed=2)
    residual = np.where(made.x[:, 0] == 2, 6.0, 0.0) + 0.1 * np.random.default_rng(3).standard_normal(80)
    made = made._replace(residual=residual)
    sampler = prepared(prior, made)
    assert isinstance(sampler, OneHotSampler)
    assert sampler.takes_noise_scale
    state, rngs, values, records = None, generators(2), [], None
    for step in range(60):
        state, drawn = sampler.draw(rngs, state, np.tile(residual, (2, 1)))
        if step >= 30:
            values.append(drawn)
    at_data = np.mean(values, axis=(0, 1))[:80]
    assert np.abs(at_data[made.x[:, 0] == 2].mean() - 6) < 1.0
    assert np.abs(at_data[made.x[:, 0] != 2].mean()) < 1.0
    records, x_new = sampler.record(state), made.x[:7]
    settings = sampler.settings()
    again = stored_sampler(settings).restore(settings, made.x, made.nodes, made.noise_var)
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(again.predict(rng, records, x_new), drawn[:, :7], atol=1e-9)


class Mine:
    """A prior of a user's, which knows numbers: the mean of the columns that it sees."""

    class Sampler(ChainwiseSampler):
        def __init__(self, columns):
            self.columns = columns

        def one_draw(self, rng, state, residual, **scale):
            return state, np.zeros(len(residual) + 5)

    def prepare(self, setting):
        return self.Sampler(setting.x.shape[1])

    def describe(self):
        return {"kind": "mine"}


def test_a_prior_of_ones_own_sees_numbers_or_says_that_it_knows_labels():
    sampler = prepared(Mine(), labelled())
    assert sampler.own.columns == 6
    assert not sampler.takes_noise_scale
    assert sampler.trace == []
    Mine.knows_labels = True
    try:
        assert prepared(Mine(), labelled()).columns == 3
    finally:
        del Mine.knows_labels


def test_the_names_of_labels_do_not_matter_to_columns():
    """The columns of labels in another order are the same columns, in another order."""
    one = labelled()
    renamed = {0.0: 2.0, 1.0: 0.0, 2.0: 3.0, 3.0: 1.0}
    x = one.x.copy()
    x[:, 0] = [renamed[value] for value in x[:, 0]]
    order = [2 + int(renamed[value]) for value in range(4)]
    np.testing.assert_array_equal(widened(one._replace(x=x)).x[:, [0, 1, *order]], widened(one).x)

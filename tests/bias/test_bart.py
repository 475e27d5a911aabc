"""BART: the prior without data, Geweke's joint test, predictions, bad input.

False alarms: |z| > 4.5 has probability 7e-6 a comparison; seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import batch_means, batch_z, setting
from orthocal.regression import tree_kernels as kernels


def leaves_and_depths(forest):
    """Number of leaves of each tree, and its largest depth."""
    used = forest.nodes[:, :, kernels.PARENT] != kernels.FREE
    leaf = used & (forest.nodes[:, :, kernels.CHILD] == kernels.LEAF)
    return leaf.sum(axis=1), np.where(used, forest.nodes[:, :, kernels.DEPTH], 0).max(axis=1)


def prior_tree(rng, depth, alpha=0.95, beta=2.0):
    """Leaves and depth of a tree of the prior with unlimited cuts: the branching process itself."""
    if rng.random() >= alpha * (1 + depth) ** -beta:
        return 1, depth
    left, right = prior_tree(rng, depth + 1), prior_tree(rng, depth + 1)
    return left[0] + right[0], max(left[1], right[1])


@pytest.mark.slow
def test_without_data_leaves_and_depths_follow_the_prior():
    """The shares of 1, 2, 3, 4 leaves are .051, .553, .273, .092; batches of sweeps give the standard errors."""
    rng = np.random.default_rng(0)
    x = rng.random((30, 3))
    prior = oc.bias.BART(least=0, grid="uniform", cuts=255)
    sampler = prior.prepare(setting(x, noise_var=np.full(30, 1e200))).own
    state, shares, depths = None, [], []
    for _ in range(3000):
        state, _ = sampler.draw([rng], state, np.zeros((1, 30)))
        leaves, depth = leaves_and_depths(state[0])
        shares.append([np.mean(leaves == count) for count in (1, 2, 3, 4)])
        depths.append([np.mean(depth == count) for count in (1, 2, 3)])
    exact = np.array([prior_tree(rng, 0) for _ in range(200_000)])
    for sampled, column, levels in ((shares, 0, (1, 2, 3, 4)), (depths, 1, (1, 2, 3))):
        truth = np.array([np.mean(exact[:, column] == level) for level in levels])
        mean, error = batch_means(sampled, 30)
        assert np.all(np.abs(mean - truth) < 4.5 * np.hypot(error, 0.5 / np.sqrt(200_000)))
    np.testing.assert_allclose(np.mean(shares, axis=0), [0.051, 0.553, 0.273, 0.092], atol=0.006)


def test_without_data_the_function_has_the_priors_variance():
    rng = np.random.default_rng(1)
    x = rng.random((20, 2))
    sampler = oc.bias.BART(trees=50, least=0).prepare(setting(x, noise_var=np.full(20, 1e200))).own
    state, draws = None, []
    for _ in range(4000):
        state, values = sampler.draw([rng], state, np.zeros((1, 20)))
        draws.append(values[0])
    # leaf values are drawn anew in every sweep, so draws are independent given the trees
    expected = np.sqrt(50) * sampler.leaf_sd
    np.testing.assert_allclose(np.std(draws, axis=0), expected, rtol=4.5 / np.sqrt(2 * 4000))


@pytest.mark.parametrize("cuts", [2, 3])
def test_without_data_few_cuts_follow_the_exact_prior(cuts):
    """With so few cuts nodes run out of rules: the log prior is enumerated over all trees and compared."""
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, cuts + 1)[:, None]
    sampler = oc.bias.BART(trees=40, least=0).prepare(setting(x, noise_var=np.full(cuts + 1, 1e200))).own
    assert sampler.findings()["cuts"] == [cuts]
    state, counts = None, []
    for _ in range(4000):
        state, _ = sampler.draw([rng], state, np.zeros((1, cuts + 1)))
        counts.append([np.mean(leaves_and_depths(state[0])[0] == size) for size in range(1, cuts + 2)])
    exact = exact_leaf_shares(cuts, 0)
    assert np.all(np.abs(batch_z(counts, exact)) < 4.5)


def exact_leaf_shares(cuts, depth):
    """Distribution of the number of leaves of a node with ``cuts`` cuts left, one variable."""
    shares = np.zeros(cuts + 1)
    p = 0.95 * (1 + depth) ** -2.0 if cuts else 0.0
    shares[0] = 1 - p
    for cut in range(cuts):
        left, right = exact_leaf_shares(cut, depth + 1), exact_leaf_shares(cuts - cut - 1, depth + 1)
        both = np.convolve(left, right)
        shares[1 : 1 + len(both)] += p / cuts * both
    return shares


def geweke_scores(break_it=None):
    """Geweke's joint-distribution test: z of test functions between prior draws and successive-conditional draws.

    Data are drawn given the function, the function given the data, in turn: the function then follows its prior.
    """
    rng = np.random.default_rng(3)
    x = rng.random((12, 2))
    prior = oc.bias.BART(trees=5, least=2, cuts=8)
    sampler = prior.prepare(setting(x)).own

    def functions(fit, forest):
        leaves, _ = leaves_and_depths(forest)
        return [fit[0], fit[0] ** 2, fit[3] * fit[7], fit.max(), leaves.mean(), np.mean(leaves == 2)]

    flat = prior.prepare(setting(x, noise_var=np.full(12, 1e200))).own
    state, reference = None, []
    for _ in range(40_000):
        state, fits = flat.draw([rng], state, np.zeros((1, 12)))
        reference.append(functions(fits[0], state[0]))
    state, fits = flat.draw([rng], None, np.zeros((1, 12)))
    joint = []
    if break_it:
        break_it(sampler)
    for _ in range(40_000):
        state, fits = sampler.draw([rng], state, fits + rng.standard_normal((1, 12)))
        joint.append(functions(fits[0], state[0]))
    return batch_z(joint, *batch_means(reference))


@pytest.mark.slow
def test_geweke():
    """Batch means have 39 degrees of freedom: |z| > 5 has probability 1.2e-5 for each of six functions."""
    assert np.max(np.abs(geweke_scores())) < 5


@pytest.mark.slow
def test_geweke_notices_a_wrong_sampler():
    """Negative control: leaves drawn with a wrong variance."""

    def halve(sampler):
        sampler.leaf_sd /= 1.3

    assert np.max(np.abs(geweke_scores(halve))) > 8


def test_it_learns_a_step():
    rng = np.random.default_rng(7)
    x = rng.random((200, 1))
    truth = np.where(x[:, 0] < 0.4, -3.0, 3.0)
    response = truth + rng.standard_normal(200)
    sampler = oc.bias.BART().prepare(setting(x, residual=response))
    state, draws = None, []
    for _ in range(300):
        state, values = sampler.draw([rng], state, response[None])
        draws.append(values[0])
    assert np.sqrt(np.mean((np.mean(draws, axis=0) - truth) ** 2)) < 0.4


def test_heteroscedastic_noise_is_honoured():
    """A point without noise is met, one with enormous noise is not."""
    rng = np.random.default_rng(8)
    x = np.linspace(0, 1, 10)[:, None]
    response = np.where(np.arange(10) == 4, 5.0, 0.0)
    for variance, low, high in ((1e-4, 3.0, 6.0), (1e4, -1.0, 1.0)):
        noise_var = np.where(np.arange(10) == 4, variance, 0.01)
        sampler = oc.bias.BART(least=1, trees=50).prepare(setting(x, noise_var=noise_var, residual=response))
        state, draws = None, []
        for _ in range(200):
            state, values = sampler.draw([rng], state, response[None])
            draws.append(values[0, 4])
        assert low < np.mean(draws) < high


def test_prior_of_the_quantile_grid_covers_the_data():
    x = stats.expon.rvs(size=(500, 1), random_state=0)
    sampler = oc.bias.BART(cuts=50).prepare(setting(x)).own
    assert sampler.findings()["cuts"] == [50]
    counts = np.bincount(sampler._bins[0, :500])
    assert counts.max() <= 30

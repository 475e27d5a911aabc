"""Soft BART: the prior without data, Geweke's joint test, what it learns.

False alarms: means of 40 batches are compared at |z| < 5, which is exceeded with probability 1.2e-5 a comparison
(t with 39 degrees of freedom), some 1e-3 for the whole file; seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import orthocal as oc
from helpers import batch_means, setting, unit_inputs
from orthocal.bias.softbart import SoftBART
from orthocal.regression import softbart_kernels as kernels


def leaf_counts(forest):
    used = forest.nodes[:, :, kernels.PARENT] != kernels.FREE
    return (used & (forest.nodes[:, :, kernels.CHILD] == kernels.LEAF)).sum(axis=1)


def prior_leaves(rng, x, shares, tau, box=None, depth=0, reach=None):
    """phi of each leaf of a tree of the prior, at x: the definition, word for word."""
    box = np.array([[0.0, 1.0]] * x.shape[1]) if box is None else box
    reach = np.ones(len(x)) if reach is None else reach
    if rng.random() >= 0.95 * (1 + depth) ** -2.0:
        return [reach]
    v = int(np.searchsorted(np.cumsum(shares)[:-1], rng.random()))
    cut = rng.uniform(*box[v])
    left, right = box.copy(), box.copy()
    left[v, 1] = right[v, 0] = cut
    gate = expit((x[:, v] - cut) / tau)
    return prior_leaves(rng, x, shares, tau, left, depth + 1, reach * (1 - gate)) + prior_leaves(
        rng, x, shares, tau, right, depth + 1, reach * gate
    )


def test_without_data_trees_and_bandwidths_follow_the_prior():
    """Shares of 1, 2, 3, 4 leaves are .050, .552, .275, .092; tau is exponential with mean 0.1."""
    rng = np.random.default_rng(0)
    sampler = SoftBART().prepare(setting(rng.random((30, 3)), noise_var=np.full(30, 1e200))).own
    levels = stats.expon(scale=0.1).ppf([0.1, 0.5, 0.9, 0.99])
    state, draws = None, []
    for _ in range(4000):
        state, _ = sampler.draw([rng], state, np.zeros((1, 30)))
        leaves, tau = leaf_counts(state[0]), state[0].tau
        draws.append([np.mean(leaves == count) for count in (1, 2, 3, 4)] + [np.mean(tau < level) for level in levels])
    mean, error = batch_means(draws)
    expected = np.append(exact_leaf_shares()[1:5], [0.1, 0.5, 0.9, 0.99])
    np.testing.assert_allclose(expected[:4], [0.050, 0.552, 0.275, 0.092], atol=5e-4)
    assert np.all(np.abs(mean - expected) < 5 * error)


def exact_leaf_shares(depth=0, most=30):
    """Probabilities of 0, 1, 2, ... leaves of a node: convolutions of those of its children."""
    p = 0.95 * (1 + depth) ** -2.0
    shares = np.zeros(most + 1)
    if depth < most:
        below = exact_leaf_shares(depth + 1, most)
        shares = p * np.convolve(below, below)[: most + 1]
    shares[1] += 1 - p
    return shares


def relative_cuts(forest):
    """Of each inner node below the root, where its cut lies in its box: 0 and 1 are the ancestors' cuts."""
    found = []
    for tree, cuts in zip(forest.nodes, forest.cut, strict=True):
        used = (tree[:, kernels.PARENT] >= 0) & (tree[:, kernels.CHILD] != kernels.LEAF)
        for k in np.flatnonzero(used):
            low, high, child, parent = 0.0, 1.0, k, tree[k, kernels.PARENT]
            while parent >= 0:
                if tree[parent, kernels.VARIABLE] == tree[k, kernels.VARIABLE]:
                    if tree[parent, kernels.CHILD] == child:
                        high = min(high, cuts[parent])
                    else:
                        low = max(low, cuts[parent])
                child, parent = parent, tree[parent, kernels.PARENT]
            found.append((cuts[k] - low) / (high - low))
    return found


def test_without_data_cuts_are_uniform_in_the_box_of_their_node():
    rng = np.random.default_rng(14)
    sampler = SoftBART().prepare(setting(rng.random((5, 2)), noise_var=np.full(5, 1e200))).own
    state, cuts = None, []
    for _ in range(150):
        # ten sweeps renew most of the rules, so that the cuts are close to independent
        for _ in range(10):
            state, _ = sampler.draw([rng], state, np.zeros((1, 5)))
        cuts += relative_cuts(state[0])
    assert len(cuts) > 3000
    assert 0 <= min(cuts) <= max(cuts) <= 1
    assert stats.kstest(cuts, "uniform").pvalue > 1e-5


@pytest.mark.slow
def test_without_data_the_splitting_variables_are_dirichlet():
    """s_v has mean 1/d and second moment (a/d + 1) / (d (a + 1)), and so have the splits on average."""
    rng = np.random.default_rng(1)
    sampler = SoftBART(trees=8, sparsity=2.0).prepare(setting(rng.random((6, 4)), noise_var=np.full(6, 1e200))).own
    state, draws = None, []
    for _ in range(40_000):
        state, _ = sampler.draw([rng], state, np.zeros((1, 6)))
        forest = state[0]
        inner = (forest.nodes[:, :, kernels.PARENT] != kernels.FREE) & (forest.nodes[:, :, kernels.CHILD] >= 0)
        splits = np.bincount(forest.nodes[inner][:, kernels.VARIABLE], minlength=4)
        draws.append([*forest.shares, *forest.shares**2, *(splits - inner.sum() / 4)])
    mean, error = batch_means(draws)
    assert np.all(np.abs(mean - np.repeat([1 / 4, 1.5 / 12, 0.0], 4)) < 5 * error)


def test_without_data_the_function_has_the_priors_covariance():
    """Cov(b(x), b(x')) = trees leaf_sd^2 E sum_l phi_l(x) phi_l(x'), at two data points and a node."""
    rng = np.random.default_rng(2)
    x, nodes = unit_inputs(rng, 10, 2), np.array([[0.3, 0.8]])
    sampler = SoftBART(trees=10).prepare(setting(x, nodes, noise_var=np.full(10, 1e200))).own
    places = [0, 4, 10]
    pairs = np.triu_indices(3)
    state, draws = None, []
    for _ in range(20_000):
        state, values = sampler.draw([rng], state, np.zeros((1, 10)))
        draws.append(np.outer(values[0, places], values[0, places])[pairs])
    mean, error = batch_means(draws)
    points, products = np.vstack([x, nodes])[places], []
    for _ in range(8000):
        phi = np.array(prior_leaves(rng, points, rng.dirichlet([0.5, 0.5]), 0.1 * rng.standard_exponential()))
        products.append((phi.T @ phi)[pairs])
    expected, other_error = batch_means(products)
    scale = 10 * sampler.leaf_sd**2
    assert np.all(np.abs(mean - scale * expected) < 5 * np.hypot(error, scale * other_error))


GEWEKE_NOISE = 0.1


def geweke_summary(values, leaves, tau, shares):
    return [
        values[0],
        values[0] ** 2,
        values[3] * values[7],
        values[12] ** 2,
        values.max(),
        np.mean(leaves),
        np.mean(np.asarray(leaves) == 2),
        np.mean(tau),
        np.mean(tau**2),
        shares[0] ** 2,
    ]


@pytest.fixture(scope="module")
def geweke_problem():
    """A small forest, its sampler and the moments of independent draws from its prior."""
    rng = np.random.default_rng(4)
    x, node = unit_inputs(rng, 12, 2), np.array([[0.4, 0.6]])
    prior = SoftBART(trees=4, sparsity=2.0)

    def sampler():
        return prior.prepare(setting(x, node, noise_var=np.full(12, GEWEKE_NOISE))).own

    leaf_sd, points, draws = sampler().leaf_sd, np.vstack([x, node]), []
    for _ in range(8000):
        shares, tau = rng.dirichlet([1.0, 1.0]), 0.1 * rng.standard_exponential(4)
        trees = [np.array(prior_leaves(rng, points, shares, one)) for one in tau]
        values = sum(leaf_sd * rng.standard_normal(len(phi)) @ phi for phi in trees)
        draws.append(geweke_summary(values, [len(phi) for phi in trees], tau, shares))
    return sampler, batch_means(draws)


def geweke_scores(problem, spoil=None):
    """Geweke's joint-distribution test: z of test functions between prior draws and successive-conditional draws.

    Data are drawn given the function, the function given the data, in turn: the function then follows its prior.
    """
    rng = np.random.default_rng(5)
    make, (expected, expected_error) = problem
    sampler = make()
    if spoil:
        spoil(sampler)
    state, values = sampler.draw([rng], None, np.zeros((1, 12)))
    draws = []
    for _ in range(40_000):
        response = values[:, :12] + np.sqrt(GEWEKE_NOISE) * rng.standard_normal((1, 12))
        state, values = sampler.draw([rng], state, response)
        draws.append(geweke_summary(values[0], leaf_counts(state[0]), state[0].tau, state[0].shares))
    mean, error = batch_means(draws)
    return (mean - expected) / np.hypot(error, expected_error)


@pytest.mark.slow
def test_geweke(geweke_problem):
    assert np.max(np.abs(geweke_scores(geweke_problem))) < 5


@pytest.mark.slow
def test_geweke_notices_leaves_of_a_wrong_variance(geweke_problem):
    """Negative control."""

    def spoil(sampler):
        sampler.leaf_sd /= 1.3

    assert np.max(np.abs(geweke_scores(geweke_problem, spoil))) > 8


@pytest.mark.slow
def test_geweke_notices_a_wrong_bandwidth(geweke_problem):
    """Negative control."""

    def spoil(sampler):
        sampler.prior = replace(sampler.prior, bandwidth=0.12)

    assert np.max(np.abs(geweke_scores(geweke_problem, spoil))) > 8


def test_it_beats_bart_on_a_smooth_function():
    """Root mean square error of the posterior mean, over five data sets."""
    rng = np.random.default_rng(9)
    errors = {SoftBART(): [], oc.bias.BART(): []}
    for _ in range(5):
        x = rng.random((100, 1))
        truth = 4 * np.sin(6 * x[:, 0])
        response = truth + rng.standard_normal(100)
        for prior, squares in errors.items():
            sampler = prior.prepare(setting(x, residual=response))
            state, draws = None, []
            for _ in range(300):
                state, values = sampler.draw([rng], state, response[None])
                draws.append(values[0])
            squares.append(np.mean((np.mean(draws[50:], axis=0) - truth) ** 2))
    soft, hard = (np.sqrt(np.mean(squares)) for squares in errors.values())
    assert soft < 0.95 * hard


def test_sparsity_finds_the_input_that_matters():
    rng = np.random.default_rng(10)
    x = rng.random((150, 20))
    response = 6 * np.sin(6 * x[:, 3]) + rng.standard_normal(150)
    sampler = SoftBART(trees=20).prepare(setting(x, residual=response)).own
    state, shares = None, []
    for _ in range(300):
        state, _ = sampler.draw([rng], state, response[None])
        shares.append(state[0].shares[3])
    assert np.mean(shares[100:]) > 0.6


def test_heteroscedastic_noise_is_honoured():
    """A point almost without noise is met, one with enormous noise is not."""
    rng = np.random.default_rng(11)
    x = np.linspace(0, 1, 10)[:, None]
    response = np.where(np.arange(10) == 4, 5.0, 0.0)
    for variance, low, high in ((1e-4, 4.5, 5.5), (1e4, -1.0, 1.0)):
        noise_var = np.where(np.arange(10) == 4, variance, 1.0)
        sampler = SoftBART().prepare(setting(x, noise_var=noise_var, residual=response))
        state, draws = None, []
        for _ in range(200):
            state, values = sampler.draw([rng], state, response[None])
            draws.append(values[0, 4])
        assert low < np.mean(draws) < high


def test_the_function_does_not_depend_on_a_constant_input():
    rng = np.random.default_rng(13)
    x = np.column_stack([rng.random(20), np.full(20, 3.0)])
    sampler = SoftBART().prepare(setting(x)).own
    state, _ = sampler.draw([rng], None, rng.standard_normal((1, 20)))
    new = sampler.predict(rng, sampler.record(state), np.array([[0.5, 3.0], [0.5, 90.0]]))[0]
    assert new[0] == new[1]

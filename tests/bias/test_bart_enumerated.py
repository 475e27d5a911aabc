"""BART with one tree on a small grid: the posterior of the tree by enumeration, written without the package.

False alarms: batch means have 39 degrees of freedom, |z| > 5 has probability 1e-5 for each of the about forty trees and
sizes that are compared; the seed is fixed.
"""

from typing import NamedTuple

import numpy as np
import pytest

import orthocal as oc
from helpers import batch_z, setting

ALPHA = 0.95


class Case(NamedTuple):
    """How many data lie in each cell of a grid and their mean there, in units of the noise; settings of the prior."""

    counts: list[list[int]]
    mean: list[list[float]]
    noise_var: float
    beta: float
    least: int


CASES = {
    # some splits leave too few on the left, others on the right
    "many trees": Case([[7, 6], [4, 5], [6, 9]], [[0, 0], [0.3, -0.2], [0.6, -0.4]], 10.0, 0.3, 5),
    # which of three cuts is the question, and it is rarely answered by a larger tree
    "stumps": Case([[8], [4], [4], [8]], [[0.0], [0.5], [-0.3], [0.1]], 1.0, 0.3, 8),
    # between two trees that have both rules, in either order, a tree with one of them is a poor bridge
    "a corner": Case([[5, 6], [6, 5], [6, 6], [5, 5]], [[0, 0], [0, 0], [0, 0], [0, 1.2]], 1.0, 1.0, 5),
    # with the rules in the other order there are too few data in a leaf
    "an empty corner": Case([[6, 1], [6, 1], [6, 1], [6, 6]], [[0, 0], [0, 0], [0, 0], [0, 1.5]], 1.0, 1.0, 5),
}


def data(case):
    rng = np.random.default_rng(0)
    counts = np.array(case.counts)
    cells = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0)
    mean = np.array(case.mean)[*cells.T]
    return cells.astype(float), np.sqrt(case.noise_var) * (mean + rng.standard_normal(len(cells)))


def trees(low, high, depth, beta):
    """Every tree of a block of cells low..high (exclusive): its rules in pre-order, log prior, and leaves as blocks."""
    cuts = [(v, cut) for v in range(2) for cut in range(low[v], high[v] - 1)]
    open_variables = len({v for v, _ in cuts})
    p = ALPHA * (1 + depth) ** -beta if cuts else 0.0
    yield ((-1, 0),), np.log(1 - p), [(low, high)]
    for v, cut in cuts:
        middle_high = tuple(cut + 1 if k == v else high[k] for k in range(2))
        middle_low = tuple(cut + 1 if k == v else low[k] for k in range(2))
        own = np.log(p) - np.log(open_variables) - np.log(high[v] - 1 - low[v])
        for left in trees(low, middle_high, depth + 1, beta):
            for right in trees(middle_low, high, depth + 1, beta):
                yield ((v, cut), *left[0], *right[0]), own + left[1] + right[1], left[2] + right[2]


def posterior(case, x, response, leaf_var):
    """Probability of every tree that is allowed, by its rules."""
    found, share = {}, leaf_var / case.noise_var
    for rules, log_weight, leaves in trees((0, 0), np.shape(case.counts), 0, case.beta):
        for low, high in leaves:
            inside = np.all((x >= low) & (x < high), axis=1)
            if inside.sum() < case.least:
                break
            shrunk, total = 1 + share * inside.sum(), response[inside].sum()
            log_weight += 0.5 * (share * total**2 / case.noise_var / shrunk - np.log(shrunk))
        else:
            found[rules] = log_weight
    weights = np.exp(np.array(list(found.values())) - max(found.values()))
    return dict(zip(found, weights / weights.sum(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_trees_follow_their_posterior(name):
    case = CASES[name]
    x, response = data(case)
    prior = oc.bias.BART(trees=1, least=case.least, alpha=ALPHA, beta=case.beta)
    noise_var = np.full(len(x), case.noise_var)
    sampler = prior.prepare(setting(x, noise_var=noise_var, residual=response)).own
    exact = posterior(case, x, response, sampler.leaf_sd**2)
    places = {rules: place for place, rules in enumerate(exact)}
    state, rng, seen = sampler.empty(), np.random.default_rng(1), []
    for _ in range(16_000):
        sampler.update(rng, state, response, False, 1.0)
        # a tree that is not allowed is an error here
        seen.append(places[tuple(map(tuple, sampler.one_record(state)["kind"].tolist()))])
    drawn, chances = np.eye(len(exact))[seen], np.array(list(exact.values()))
    of_size = np.array([[len(rules) == size for size in sorted({len(one) for one in exact})] for rules in exact])
    common, sizes = chances > 0.02, chances @ of_size > 0.02
    compared = np.hstack([drawn[:, common], (drawn @ of_size)[:, sizes]])
    z = batch_z(compared, np.append(chances[common], (chances @ of_size)[sizes]))
    assert np.max(np.abs(z)) < 5

"""BART with one tree on a small grid: the posterior of the tree by enumeration, written without the package.

False alarms: batch means have 39 degrees of freedom, |z| > 5.5 has probability 3e-6 for each of the about twenty trees
and shapes that are compared; the seed is fixed.
"""

import numpy as np

import orthocal as oc
from helpers import batch_z, setting

ALPHA, BETA, LEAST, NOISE_VAR = 0.95, 0.3, 5, 4.0
#: data in each cell of a grid of 4 x 2: some splits leave too few on the left, others on the right
COUNTS = np.array([[7, 6], [4, 5], [6, 9], [5, 6]])


def data():
    rng = np.random.default_rng(0)
    cells = [(i, j) for i in range(4) for j in range(2) for _ in range(COUNTS[i, j])]
    x = np.array(cells, dtype=float)
    return x, np.sqrt(NOISE_VAR) * (rng.standard_normal(len(x)) + 0.6 * (x[:, 0] == 1) - 0.4 * x[:, 0] * x[:, 1])


def trees(low, high, depth):
    """Every tree of a block of cells low..high (exclusive): its rules in pre-order, log prior, and leaves as blocks."""
    cuts = [(v, cut) for v in range(2) for cut in range(low[v], high[v] - 1)]
    open_variables = len({v for v, _ in cuts})
    p = ALPHA * (1 + depth) ** -BETA if cuts else 0.0
    yield ((-1, 0),), np.log(1 - p), [(low, high)]
    for v, cut in cuts:
        middle_high = tuple(cut + 1 if k == v else high[k] for k in range(2))
        middle_low = tuple(cut + 1 if k == v else low[k] for k in range(2))
        own = np.log(p) - np.log(open_variables) - np.log(high[v] - 1 - low[v])
        for left in trees(low, middle_high, depth + 1):
            for right in trees(middle_low, high, depth + 1):
                yield ((v, cut), *left[0], *right[0]), own + left[1] + right[1], left[2] + right[2]


def posterior(x, response, leaf_var):
    """Probability of every tree that is allowed, by its rules."""
    found = {}
    for rules, log_weight, leaves in trees((0, 0), (4, 2), 0):
        for low, high in leaves:
            inside = np.all((x >= low) & (x < high), axis=1)
            if inside.sum() < LEAST:
                break
            share = leaf_var / NOISE_VAR
            shrunk, total = 1 + share * inside.sum(), response[inside].sum()
            log_weight += 0.5 * (share * total**2 / NOISE_VAR / shrunk - np.log(shrunk))
        else:
            found[rules] = log_weight
    weights = np.exp(np.array(list(found.values())) - max(found.values()))
    return dict(zip(found, weights / weights.sum(), strict=True))


def test_trees_follow_their_posterior():
    x, response = data()
    prior = oc.bias.BART(trees=1, least=LEAST, alpha=ALPHA, beta=BETA)
    sampler = prior.prepare(setting(x, noise_var=np.full(len(x), NOISE_VAR), residual=response)).own
    exact = posterior(x, response, sampler.leaf_sd**2)
    assert 50 < len(exact) < 526
    places = {rules: place for place, rules in enumerate(exact)}
    state, rng, seen = sampler.empty(), np.random.default_rng(1), []
    for _ in range(40_000):
        sampler.update(rng, state, response, False, 1.0)
        # a tree that is not allowed is an error here
        seen.append(places[tuple(map(tuple, sampler.one_record(state)["kind"].tolist()))])
    drawn, chances = np.eye(len(exact))[seen], np.array(list(exact.values()))
    of_size = np.array([[len(rules) == size for size in sorted({len(one) for one in exact})] for rules in exact])
    common = chances > 0.01
    z = batch_z(np.hstack([drawn[:, common], drawn @ of_size]), np.append(chances[common], chances @ of_size))
    assert np.max(np.abs(z)) < 5.5

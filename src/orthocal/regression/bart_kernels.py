"""The compiled core of BART: one backfitting sweep over a forest, in place; see ``tree_kernels`` for the layout."""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part, vector_part
from .tree_kernels import (
    CHILD,
    CUT,
    DEPTH,
    DEPTHS,
    FREE,
    LEAF,
    PARENT,
    SLOTS,
    VARIABLE,
    cut_range,
    draw_rule,
    find_leaf,
    list_nodes,
    log_prior,
    log_unsplit_children,
    open_variables,
)

GROW, PRUNE, CHANGE, SWAP = range(4)
#: how often each move is proposed
SHARES = (0.35, 0.35, 0.25, 0.05)


@part
def log_evidence(precision, weighted, leaf_var):
    """Log marginal likelihood of a leaf with sum of weights ``precision`` and weighted sum, up to common terms."""
    return 0.5 * (leaf_var * weighted**2 / (1 + leaf_var * precision) - np.log1p(leaf_var * precision))


# The loops over the data are written with masks instead of branches, for vector instructions.
@vector_part
def weighted_sum(leaf, response, weight, k):
    """The weighted sum of the responses in leaf k."""
    total = 0.0
    for i in range(len(response)):
        total += weight[i] * response[i] if leaf[i] == k else 0.0
    return total


@vector_part
def left_sums(leaf, response, weight, number, column, cut, a, b):
    """Number, weights and weighted responses of the data in leaves a or b whose bin is at most ``cut``."""
    points, precision, weighted = 0, 0.0, 0.0
    for i in range(len(response)):
        inside = ((leaf[i] == a) | (leaf[i] == b)) & (column[i] <= cut)
        points += number[i] if inside else 0
        precision += weight[i] if inside else 0.0
        weighted += weight[i] * response[i] if inside else 0.0
    return points, precision, weighted


@part
def exchange(rest, old_leaf, old_value, new_leaf, new_value):
    """Take the old tree's fit away from ``rest`` and give the new tree's back."""
    for i in range(len(rest)):
        rest[i] += new_value[new_leaf[i]] - old_value[old_leaf[i]]


@part
def add_fit(fit, leaf, value):
    for i in range(len(fit)):
        fit[i] += value[leaf[i]]


@part
def _grow(rng, tree, leaf, response, weight, number, bins, cuts, shares, sums, chances, leaf_var, least, leaves, count):
    growable = 0
    for j in range(count):
        if open_variables(tree, leaves[j], cuts) > 0:
            leaves[growable] = leaves[j]
            growable += 1
    if growable == 0:
        return False
    k = leaves[int(rng.random() * growable)]
    variables = open_variables(tree, k, cuts)
    v, cut, lo, hi = draw_rule(rng, tree, k, cuts, shares)
    points, precision, weighted = left_sums(leaf, response, weight, number, bins[v], cut, k, k)
    if points < least or sums[k, 0] - points < least:
        return False
    slot = -1
    for s in range(1, SLOTS, 2):
        if tree[s, PARENT] == FREE:
            slot = s
            break
    if slot < 0:
        return False
    # nodes with two leaves after the move: k itself, and no longer its parent if that was one
    prunable = 1
    for j in range(SLOTS):
        if tree[j, PARENT] != FREE and tree[j, CHILD] != LEAF:
            c = tree[j, CHILD]
            if tree[c, CHILD] == LEAF and tree[c + 1, CHILD] == LEAF and c != k and c + 1 != k:
                prunable += 1
    depth = np.int64(tree[k, DEPTH])
    p = chances[depth]
    ratio = np.log(p) - np.log(1 - p) + log_unsplit_children(lo, hi, cut, variables, chances[depth + 1])
    ratio += np.log(SHARES[PRUNE] / prunable) - np.log(SHARES[GROW] / growable)
    ratio += log_evidence(precision, weighted, leaf_var)
    ratio += log_evidence(sums[k, 1] - precision, sums[k, 2] - weighted, leaf_var)
    ratio -= log_evidence(sums[k, 1], sums[k, 2], leaf_var)
    if np.log(1 - rng.random()) >= ratio:
        return False
    tree[k, CHILD], tree[k, VARIABLE], tree[k, CUT] = slot, v, cut
    for s in range(slot, slot + 2):
        tree[s, CHILD], tree[s, PARENT], tree[s, DEPTH] = LEAF, k, depth + 1
    sums[slot, 0], sums[slot, 1], sums[slot, 2] = points, precision, weighted
    for field in range(3):
        sums[slot + 1, field] = sums[k, field] - sums[slot, field]
    for i in range(len(leaf)):
        if leaf[i] == k:
            leaf[i] = slot + (bins[v, i] > cut)
    return True


@part
def _prune(rng, tree, leaf, cuts, sums, chances, leaf_var, leaves, count, nogs, prunable):
    if prunable == 0:
        return False
    k = nogs[int(rng.random() * prunable)]
    slot, cut, depth = np.int64(tree[k, CHILD]), np.int64(tree[k, CUT]), np.int64(tree[k, DEPTH])
    growable = 1
    for j in range(count):
        if leaves[j] != slot and leaves[j] != slot + 1 and open_variables(tree, leaves[j], cuts) > 0:
            growable += 1
    lo, hi = cut_range(tree, k, np.int64(tree[k, VARIABLE]), cuts)
    p = chances[depth]
    ratio = np.log(1 - p) - np.log(p)
    ratio -= log_unsplit_children(lo, hi, cut, open_variables(tree, k, cuts), chances[depth + 1])
    ratio += np.log(SHARES[GROW] / growable) - np.log(SHARES[PRUNE] / prunable)
    for field in range(3):
        sums[k, field] = sums[slot, field] + sums[slot + 1, field]
    ratio += log_evidence(sums[k, 1], sums[k, 2], leaf_var)
    ratio -= log_evidence(sums[slot, 1], sums[slot, 2], leaf_var)
    ratio -= log_evidence(sums[slot + 1, 1], sums[slot + 1, 2], leaf_var)
    if np.log(1 - rng.random()) >= ratio:
        return False
    tree[k, CHILD] = LEAF
    tree[slot, PARENT] = tree[slot + 1, PARENT] = FREE
    for i in range(len(leaf)):
        if leaf[i] == slot or leaf[i] == slot + 1:
            leaf[i] = k
    return True


@part
def _change(rng, tree, leaf, response, weight, number, bins, cuts, shares, sums, chances, leaf_var, least, nogs, count):
    """A new rule, from its prior, at a node with two leaves."""
    if count == 0:
        return False
    k = nogs[int(rng.random() * count)]
    slot = np.int64(tree[k, CHILD])
    variables = open_variables(tree, k, cuts)
    v, cut, lo, hi = draw_rule(rng, tree, k, cuts, shares)
    points, precision, weighted = left_sums(leaf, response, weight, number, bins[v], cut, slot, slot + 1)
    total = sums[slot, 0] + sums[slot + 1, 0]
    if points < least or total - points < least:
        return False
    other_precision = sums[slot, 1] + sums[slot + 1, 1] - precision
    other_weighted = sums[slot, 2] + sums[slot + 1, 2] - weighted
    old_lo, old_hi = cut_range(tree, k, np.int64(tree[k, VARIABLE]), cuts)
    p = chances[tree[k, DEPTH] + 1]
    ratio = log_unsplit_children(lo, hi, cut, variables, p)
    ratio -= log_unsplit_children(old_lo, old_hi, np.int64(tree[k, CUT]), variables, p)
    ratio += log_evidence(precision, weighted, leaf_var) + log_evidence(other_precision, other_weighted, leaf_var)
    ratio -= log_evidence(sums[slot, 1], sums[slot, 2], leaf_var)
    ratio -= log_evidence(sums[slot + 1, 1], sums[slot + 1, 2], leaf_var)
    if np.log(1 - rng.random()) >= ratio:
        return False
    tree[k, VARIABLE], tree[k, CUT] = v, cut
    sums[slot, 0], sums[slot, 1], sums[slot, 2] = points, precision, weighted
    sums[slot + 1, 0], sums[slot + 1, 1], sums[slot + 1, 2] = total - points, other_precision, other_weighted
    for i in range(len(leaf)):
        if leaf[i] == slot or leaf[i] == slot + 1:
            leaf[i] = slot + (bins[v, i] > cut)
    return True


@part
def exchange_rules(tree, a, b):
    for field in range(VARIABLE, CUT + 1):
        tree[a, field], tree[b, field] = tree[b, field], tree[a, field]


@part
def _swap(rng, tree, leaf, response, weight, number, bins, cuts, shares, sums, chances, leaf_var, least, inner, count):
    """The rules of a node and its parent change places."""
    if count < 2:
        return False
    # inner[0] is the root
    k = inner[1 + int(rng.random() * (count - 1))]
    parent = np.int64(tree[k, PARENT])
    old = log_prior(tree, cuts, shares, chances)
    exchange_rules(tree, k, parent)
    ratio = log_prior(tree, cuts, shares, chances) - old
    fresh = np.zeros((SLOTS, 3))
    if ratio > -np.inf:
        for i in range(len(response)):
            j = find_leaf(tree, bins, i)
            fresh[j, 0] += number[i]
            fresh[j, 1] += weight[i]
            fresh[j, 2] += weight[i] * response[i]
        for j in range(SLOTS):
            if tree[j, PARENT] != FREE and tree[j, CHILD] == LEAF:
                if fresh[j, 0] < least:
                    ratio = -np.inf
                    break
                ratio += log_evidence(fresh[j, 1], fresh[j, 2], leaf_var)
                ratio -= log_evidence(sums[j, 1], sums[j, 2], leaf_var)
    if np.log(1 - rng.random()) >= ratio:
        exchange_rules(tree, k, parent)
        return False
    for j in range(SLOTS):
        for field in range(3):
            sums[j, field] = fresh[j, field]
    for i in range(len(leaf)):
        leaf[i] = find_leaf(tree, bins, i)
    return True


@entry
def weigh_leaves(weight, leaf, sums):
    """The sums of other weights in the leaves of all trees."""
    for t in range(len(leaf)):
        sums[t, :, 1] = 0.0
        for i in range(len(weight)):
            sums[t, leaf[t, i], 1] += weight[i]


@entry
def sweep(
    rng, response, weight, number, bins, cuts, shares, nodes, mu, leaf, sums, fit, counts, alpha, beta, leaf_var, least
):
    """Update every tree once given the others; ``fit`` (N,) becomes the sum of the trees.

    ``shares`` (d,) say how often each variable is split by, ``number`` (n,) how many observations each data point
    stands for; ``counts`` (4, 2) collects the moves that were proposed and accepted.
    """
    n = len(response)
    # what is left of the response when all trees but one are taken away
    rest = np.empty(n)
    for i in range(n):
        rest[i] = response[i] - fit[i]
    for i in range(n, len(fit)):
        fit[i] = 0.0
    chances = np.empty(DEPTHS)
    for depth in range(DEPTHS):
        chances[depth] = alpha * (1.0 + depth) ** (-beta)
    nothing = np.zeros(SLOTS)
    leaves = np.empty(SLOTS, np.int64)
    nogs = np.empty(SLOTS, np.int64)
    inner = np.empty(SLOTS, np.int64)
    for t in range(len(nodes)):
        tree, own, value, stat = nodes[t], leaf[t], mu[t], sums[t]
        before = t - 1 if t else t
        exchange(rest, leaf[before], mu[before] if t else nothing, own, value)
        a, b, c = list_nodes(tree, leaves, nogs, inner)
        for j in range(a):
            stat[leaves[j], 2] = weighted_sum(own, rest, weight, leaves[j])
        u = rng.random()
        if u < SHARES[GROW]:
            move = GROW
            done = _grow(
                rng, tree, own, rest, weight, number, bins, cuts, shares, stat, chances, leaf_var, least, leaves, a
            )
        elif u < SHARES[GROW] + SHARES[PRUNE]:
            move = PRUNE
            done = _prune(rng, tree, own, cuts, stat, chances, leaf_var, leaves, a, nogs, b)
        elif u < SHARES[GROW] + SHARES[PRUNE] + SHARES[CHANGE]:
            move = CHANGE
            done = _change(
                rng, tree, own, rest, weight, number, bins, cuts, shares, stat, chances, leaf_var, least, nogs, b
            )
        else:
            move = SWAP
            done = _swap(
                rng, tree, own, rest, weight, number, bins, cuts, shares, stat, chances, leaf_var, least, inner, c
            )
        counts[move, 0] += 1
        counts[move, 1] += done
        for k in range(SLOTS):
            if tree[k, PARENT] != FREE and tree[k, CHILD] == LEAF:
                precision = 1 / leaf_var + stat[k, 1]
                value[k] = stat[k, 2] / precision + rng.standard_normal() / np.sqrt(precision)
        add_fit(fit[n:], own[n:], value)
    last = len(nodes) - 1
    exchange(rest, leaf[last], mu[last], leaf[last], nothing)
    for i in range(n):
        fit[i] = response[i] - rest[i]

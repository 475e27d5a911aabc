"""The compiled core of BART: one backfitting sweep over a forest, in place.

A forest of T trees has ``nodes`` (T, SLOTS, 5), leaf values ``mu`` (T, SLOTS), and ``leaf`` (T, N), the leaf that each
of the N points lies in; the first n points are data, the others are where predictions are wanted. ``sums``
(T, SLOTS, 3) holds for each leaf the number, the weights and the weighted responses of its data. Slot 0 is the root.
The fields of a node are below: its left child (the right one is next to it; LEAF for a leaf), parent (FREE for an
empty slot), split variable, cut number and depth. A point goes left if its bin is at most the cut number.

A tree's prior: a node of depth h splits with probability alpha (1 + h)^-beta if some variable still has a cut there,
else with probability 0; the variable is uniform among those, the cut uniform among the variable's. Trees with a leaf
of fewer than ``least`` data points are excluded.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SLOTS = 63
CHILD, PARENT, VARIABLE, CUT, DEPTH = range(5)
LEAF, FREE = -1, -2
GROW, PRUNE, CHANGE, SWAP = range(4)
#: how often each move is proposed
SHARES = np.array([0.35, 0.35, 0.25, 0.05])


@njit(cache=True, nogil=True)
def cut_range(tree, k, v, cuts):
    """Cuts of variable v that are left at node k: lo..hi-1."""
    lo, hi = 0, cuts[v]
    child, parent = k, tree[k, PARENT]
    while parent >= 0:
        if tree[parent, VARIABLE] == v:
            if tree[parent, CHILD] == child:
                hi = min(hi, tree[parent, CUT])
            else:
                lo = max(lo, tree[parent, CUT] + 1)
        child, parent = parent, tree[parent, PARENT]
    return lo, hi


@njit(cache=True, nogil=True)
def open_variables(tree, k, cuts):
    """Number of variables that node k can be split by."""
    count = 0
    for v in range(len(cuts)):
        lo, hi = cut_range(tree, k, v, cuts)
        if hi > lo:
            count += 1
    return count


@njit(cache=True, nogil=True)
def draw_rule(rng, tree, k, cuts, count):
    """A rule from its prior at node k, which can be split by ``count`` variables."""
    skip = int(rng.random() * count)
    for v in range(len(cuts)):
        lo, hi = cut_range(tree, k, v, cuts)
        if hi > lo:
            if skip == 0:
                return v, lo + int(rng.random() * (hi - lo)), lo, hi
            skip -= 1
    return 0, 0, 0, 0


@njit(cache=True, nogil=True)
def split_probability(depth, can_split, alpha, beta):
    return alpha * (1.0 + depth) ** (-beta) if can_split else 0.0


@njit(cache=True, nogil=True)
def log_unsplit_children(lo, hi, cut, count, depth, alpha, beta):
    """Log prior of both children of a node being leaves; they have ``depth``, their parent ``count`` open variables."""
    left = split_probability(depth, count > 1 or cut > lo, alpha, beta)
    right = split_probability(depth, count > 1 or hi > cut + 1, alpha, beta)
    return np.log(1 - left) + np.log(1 - right)


@njit(cache=True, nogil=True)
def log_prior(tree, cuts, alpha, beta):
    """Log prior of a tree's shape and rules; -inf for rules that cannot be."""
    total = 0.0
    for k in range(SLOTS):
        if tree[k, PARENT] == FREE:
            continue
        count = open_variables(tree, k, cuts)
        p = split_probability(tree[k, DEPTH], count > 0, alpha, beta)
        if tree[k, CHILD] == LEAF:
            total += np.log(1 - p)
            continue
        lo, hi = cut_range(tree, k, tree[k, VARIABLE], cuts)
        if not lo <= tree[k, CUT] < hi:
            return -np.inf
        total += np.log(p) - np.log(count) - np.log(hi - lo)
    return total


@njit(cache=True, nogil=True)
def log_evidence(precision, weighted, leaf_var):
    """Log marginal likelihood of a leaf with sum of weights ``precision`` and weighted sum, up to common terms."""
    return 0.5 * (leaf_var * weighted**2 / (1 + leaf_var * precision) - np.log1p(leaf_var * precision))


# The loops over the data are written with masks instead of branches, so that the compiler makes vector instructions of
# them: at n = 10000 that is five times as fast. Sums may be reordered for it, infinities stay what they are.
_REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_REORDER)
def weighted_sum(leaf, response, weight, k):
    """The weighted sum of the responses in leaf k."""
    total = 0.0
    for i in range(len(response)):
        total += weight[i] * response[i] if leaf[i] == k else 0.0
    return total


@njit(cache=True, nogil=True, fastmath=_REORDER)
def left_sums(leaf, response, weight, column, cut, a, b):
    """Number, weights and weighted responses of the data in leaves a or b whose bin is at most ``cut``."""
    points, precision, weighted = 0, 0.0, 0.0
    for i in range(len(response)):
        inside = ((leaf[i] == a) | (leaf[i] == b)) & (column[i] <= cut)
        points += inside
        precision += weight[i] if inside else 0.0
        weighted += weight[i] * response[i] if inside else 0.0
    return points, precision, weighted


@njit(cache=True, nogil=True)
def exchange(rest, old_leaf, old_value, new_leaf, new_value):
    """Take the old tree's fit away from ``rest`` and give the new tree's back."""
    for i in range(len(rest)):
        rest[i] += new_value[new_leaf[i]] - old_value[old_leaf[i]]


@njit(cache=True, nogil=True)
def add_fit(fit, leaf, value):
    for i in range(len(fit)):
        fit[i] += value[leaf[i]]


@njit(cache=True, nogil=True)
def find_leaf(tree, bins, i):
    k = 0
    while tree[k, CHILD] != LEAF:
        k = tree[k, CHILD] + (bins[tree[k, VARIABLE], i] > tree[k, CUT])
    return k


@njit(cache=True, nogil=True)
def _grow(rng, tree, leaf, response, weight, bins, cuts, sums, alpha, beta, leaf_var, least, leaves):
    growable = 0
    for j in range(len(leaves)):
        if open_variables(tree, leaves[j], cuts) > 0:
            leaves[growable] = leaves[j]
            growable += 1
    if growable == 0:
        return False
    k = leaves[int(rng.random() * growable)]
    count = open_variables(tree, k, cuts)
    v, cut, lo, hi = draw_rule(rng, tree, k, cuts, count)
    points, precision, weighted = left_sums(leaf, response, weight, bins[v], cut, k, k)
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
    p = split_probability(tree[k, DEPTH], True, alpha, beta)
    ratio = np.log(p) - np.log(1 - p) + log_unsplit_children(lo, hi, cut, count, tree[k, DEPTH] + 1, alpha, beta)
    ratio += np.log(SHARES[PRUNE] / prunable) - np.log(SHARES[GROW] / growable)
    ratio += log_evidence(precision, weighted, leaf_var)
    ratio += log_evidence(sums[k, 1] - precision, sums[k, 2] - weighted, leaf_var)
    ratio -= log_evidence(sums[k, 1], sums[k, 2], leaf_var)
    if np.log(1 - rng.random()) >= ratio:
        return False
    tree[k, CHILD], tree[k, VARIABLE], tree[k, CUT] = slot, v, cut
    for s in (slot, slot + 1):
        tree[s, CHILD], tree[s, PARENT], tree[s, DEPTH] = LEAF, k, tree[k, DEPTH] + 1
    sums[slot, 0], sums[slot, 1], sums[slot, 2] = points, precision, weighted
    for field in range(3):
        sums[slot + 1, field] = sums[k, field] - sums[slot, field]
    for i in range(len(leaf)):
        if leaf[i] == k:
            leaf[i] = slot + (bins[v, i] > cut)
    return True


@njit(cache=True, nogil=True)
def _prune(rng, tree, leaf, cuts, sums, alpha, beta, leaf_var, leaves, nogs):
    if len(nogs) == 0:
        return False
    k = nogs[int(rng.random() * len(nogs))]
    slot = tree[k, CHILD]
    growable = 1
    for j in range(len(leaves)):
        if leaves[j] != slot and leaves[j] != slot + 1 and open_variables(tree, leaves[j], cuts) > 0:
            growable += 1
    lo, hi = cut_range(tree, k, tree[k, VARIABLE], cuts)
    count = open_variables(tree, k, cuts)
    p = split_probability(tree[k, DEPTH], True, alpha, beta)
    ratio = np.log(1 - p) - np.log(p)
    ratio -= log_unsplit_children(lo, hi, tree[k, CUT], count, tree[k, DEPTH] + 1, alpha, beta)
    ratio += np.log(SHARES[GROW] / growable) - np.log(SHARES[PRUNE] / len(nogs))
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


@njit(cache=True, nogil=True)
def _change(rng, tree, leaf, response, weight, bins, cuts, sums, alpha, beta, leaf_var, least, nogs):
    """A new rule, from its prior, at a node with two leaves."""
    if len(nogs) == 0:
        return False
    k = nogs[int(rng.random() * len(nogs))]
    slot = tree[k, CHILD]
    count = open_variables(tree, k, cuts)
    v, cut, lo, hi = draw_rule(rng, tree, k, cuts, count)
    points, precision, weighted = left_sums(leaf, response, weight, bins[v], cut, slot, slot + 1)
    total = sums[slot, 0] + sums[slot + 1, 0]
    if points < least or total - points < least:
        return False
    other_precision = sums[slot, 1] + sums[slot + 1, 1] - precision
    other_weighted = sums[slot, 2] + sums[slot + 1, 2] - weighted
    old_lo, old_hi = cut_range(tree, k, tree[k, VARIABLE], cuts)
    depth = tree[k, DEPTH] + 1
    ratio = log_unsplit_children(lo, hi, cut, count, depth, alpha, beta)
    ratio -= log_unsplit_children(old_lo, old_hi, tree[k, CUT], count, depth, alpha, beta)
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


@njit(cache=True, nogil=True)
def _swap(rng, tree, leaf, response, weight, bins, cuts, sums, alpha, beta, leaf_var, least, inner):
    """The rules of a node and its parent change places."""
    if len(inner) < 2:
        return False
    # inner[0] is the root
    k = inner[1 + int(rng.random() * (len(inner) - 1))]
    parent = tree[k, PARENT]
    old = log_prior(tree, cuts, alpha, beta)
    for field in (VARIABLE, CUT):
        tree[k, field], tree[parent, field] = tree[parent, field], tree[k, field]
    ratio = log_prior(tree, cuts, alpha, beta) - old
    fresh = np.zeros((SLOTS, 3))
    if ratio > -np.inf:
        for i in range(len(response)):
            j = find_leaf(tree, bins, i)
            fresh[j, 0] += 1
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
        for field in (VARIABLE, CUT):
            tree[k, field], tree[parent, field] = tree[parent, field], tree[k, field]
        return False
    sums[:] = fresh
    for i in range(len(leaf)):
        leaf[i] = find_leaf(tree, bins, i)
    return True


@njit(cache=True, nogil=True)
def sweep(rng, response, weight, bins, cuts, nodes, mu, leaf, sums, fit, counts, alpha, beta, leaf_var, least):
    """Update every tree once given the others; ``fit`` (N,) becomes the sum of the trees.

    ``counts`` (4, 2) collects the moves that were proposed and accepted.
    """
    n = len(response)
    # what is left of the response when all trees but one are taken away
    rest = response - fit[:n]
    nothing = np.zeros(SLOTS)
    leaves = np.empty(SLOTS, np.int64)
    nogs = np.empty(SLOTS, np.int64)
    inner = np.empty(SLOTS, np.int64)
    fit[n:] = 0.0
    for t in range(len(nodes)):
        tree, own, value, stat = nodes[t], leaf[t], mu[t], sums[t]
        before = t - 1 if t else t
        exchange(rest, leaf[before], mu[before] if t else nothing, own, value)
        a, b, c = 0, 0, 0
        for k in range(SLOTS):
            if tree[k, PARENT] == FREE:
                continue
            if tree[k, CHILD] == LEAF:
                stat[k, 2] = weighted_sum(own, rest, weight, k)
                leaves[a] = k
                a += 1
            else:
                inner[c] = k
                c += 1
                if tree[tree[k, CHILD], CHILD] == LEAF and tree[tree[k, CHILD] + 1, CHILD] == LEAF:
                    nogs[b] = k
                    b += 1
        u = rng.random()
        if u < SHARES[GROW]:
            move = GROW
            done = _grow(rng, tree, own, rest, weight, bins, cuts, stat, alpha, beta, leaf_var, least, leaves[:a])
        elif u < SHARES[GROW] + SHARES[PRUNE]:
            move = PRUNE
            done = _prune(rng, tree, own, cuts, stat, alpha, beta, leaf_var, leaves[:a], nogs[:b])
        elif u < SHARES[GROW] + SHARES[PRUNE] + SHARES[CHANGE]:
            move = CHANGE
            done = _change(rng, tree, own, rest, weight, bins, cuts, stat, alpha, beta, leaf_var, least, nogs[:b])
        else:
            move = SWAP
            done = _swap(rng, tree, own, rest, weight, bins, cuts, stat, alpha, beta, leaf_var, least, inner[:c])
        counts[move, 0] += 1
        counts[move, 1] += done
        for k in range(SLOTS):
            if tree[k, PARENT] != FREE and tree[k, CHILD] == LEAF:
                precision = 1 / leaf_var + stat[k, 1]
                value[k] = stat[k, 2] / precision + rng.standard_normal() / np.sqrt(precision)
        add_fit(fit[n:], own[n:], value)
    last = len(nodes) - 1
    exchange(rest, leaf[last], mu[last], leaf[last], nothing)
    fit[:n] = response - rest


@njit(cache=True, nogil=True)
def pack(nodes, mu, kind, value):
    """Write the forest in pre-order: for each node its variable and cut, or -1 and the leaf's value; the length.

    ``kind`` (L, 2) and ``value`` (L,) must be long enough.
    """
    stack = np.empty(SLOTS, np.int64)
    length = 0
    for t in range(len(nodes)):
        tree = nodes[t]
        stack[0] = 0
        top = 1
        while top:
            top -= 1
            k = stack[top]
            if tree[k, CHILD] == LEAF:
                kind[length, 0], kind[length, 1] = -1, 0
                value[length] = mu[t, k]
            else:
                kind[length, 0], kind[length, 1] = tree[k, VARIABLE], tree[k, CUT]
                value[length] = 0.0
                stack[top] = tree[k, CHILD] + 1
                stack[top + 1] = tree[k, CHILD]
                top += 2
            length += 1
    return length


@njit(cache=True, nogil=True)
def evaluate(kind, value, bins, trees, fit):
    """Add the packed forest to ``fit`` (m,) at the points with ``bins`` (d, m)."""
    length = len(kind)
    right = np.empty(length, np.int64)
    pending = np.empty(SLOTS, np.int64)
    start = 0
    for _ in range(trees):
        # one pass finds where each right subtree starts, and where the tree ends
        top = 0
        j = start
        while True:
            if kind[j, 0] >= 0:
                pending[top] = j
                top += 1
                j += 1
            else:
                j += 1
                if top == 0:
                    break
                top -= 1
                right[pending[top]] = j
        for i in range(len(fit)):
            k = start
            while kind[k, 0] >= 0:
                k = k + 1 if bins[kind[k, 0], i] <= kind[k, 1] else right[k]
            fit[i] += value[k]
        start = j

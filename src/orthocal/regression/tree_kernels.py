"""The compiled trees of BART: their layout and prior, and what a packed forest predicts.

A forest of T trees has ``nodes`` (T, SLOTS, 5), leaf values ``mu`` (T, SLOTS), and ``leaf`` (T, N), the leaf that each
of the N points lies in; the first n points are data, the others are where predictions are wanted. ``sums``
(T, SLOTS, 3) holds for each leaf the number, the weights and the weighted responses of its data. Slot 0 is the root.
The fields of a node are below: its left child (the right one is next to it; LEAF for a leaf), parent (FREE for an
empty slot), split variable, cut number and depth. A point goes left if its bin is at most the cut number.

A tree's prior: a node of depth h splits with probability alpha (1 + h)^-beta if some variable still has a cut there,
else with probability 0; the variable is one of those with probabilities as its ``shares``, which are all 1 where inputs
are numbers, the cut uniform among the variable's. Trees with a leaf of fewer than ``least`` data points are excluded.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part

SLOTS = 63
CHILD, PARENT, VARIABLE, CUT, DEPTH = range(5)
LEAF, FREE = -1, -2
#: more than the depth of any tree
DEPTHS = SLOTS // 2 + 2


@part
def cut_range(tree, k, v, cuts):
    """Cuts of variable v that are left at node k: lo..hi-1."""
    lo, hi = 0, cuts[v]
    child, parent = k, np.int64(tree[k, PARENT])
    while parent >= 0:
        if tree[parent, VARIABLE] == v:
            cut = np.int64(tree[parent, CUT])
            if tree[parent, CHILD] == child:
                hi = min(hi, cut)
            else:
                lo = max(lo, cut + 1)
        child, parent = parent, np.int64(tree[parent, PARENT])
    return lo, hi


@part
def open_variables(tree, k, cuts):
    """Number of variables that node k can be split by."""
    count = 0
    for v in range(len(cuts)):
        lo, hi = cut_range(tree, k, v, cuts)
        if hi > lo:
            count += 1
    return count


@part
def open_shares(tree, k, cuts, shares):
    """Shares of the variables that node k can be split by, added up."""
    total = 0.0
    for v in range(len(cuts)):
        lo, hi = cut_range(tree, k, v, cuts)
        if hi > lo:
            total += shares[v]
    return total


@part
def draw_rule(rng, tree, k, cuts, shares):
    """A rule from its prior at node k, which can be split by some variable."""
    skip = rng.random() * open_shares(tree, k, cuts, shares)
    chosen, low, high = 0, 0, 0
    for v in range(len(cuts)):
        lo, hi = cut_range(tree, k, v, cuts)
        if hi > lo:
            # the last one, if rounding leaves something
            chosen, low, high = v, lo, hi
            if skip < shares[v]:
                break
            skip -= shares[v]
    return chosen, low + int(rng.random() * (high - low)), low, high


@part
def log_unsplit_children(lo, hi, cut, count, p):
    """Log prior of both children of a node being leaves, if each that can be split is with probability p.

    The node's cut is one of lo..hi-1, and it can be split by ``count`` variables.
    """
    left = p if count > 1 or cut > lo else 0.0
    right = p if count > 1 or hi > cut + 1 else 0.0
    return np.log(1 - left) + np.log(1 - right)


@part
def log_prior(tree, cuts, shares, chances):
    """Log prior of a tree's shape and rules; -inf for rules that cannot be."""
    total = 0.0
    for k in range(SLOTS):
        if tree[k, PARENT] == FREE:
            continue
        count = open_variables(tree, k, cuts)
        p = chances[tree[k, DEPTH]] if count > 0 else 0.0
        if tree[k, CHILD] == LEAF:
            total += np.log(1 - p)
            continue
        v = np.int64(tree[k, VARIABLE])
        lo, hi = cut_range(tree, k, v, cuts)
        if not lo <= tree[k, CUT] < hi:
            return -np.inf
        total += np.log(p) - np.log(open_shares(tree, k, cuts, shares) / shares[v]) - np.log(hi - lo)
    return total


@part
def find_leaf(tree, bins, i):
    k = 0
    while tree[k, CHILD] != LEAF:
        k = np.int64(tree[k, CHILD]) + (bins[tree[k, VARIABLE], i] > tree[k, CUT])
    return k


@part
def list_nodes(tree, leaves, nogs, inner):
    """List the leaves, the nodes whose two children are leaves, and the inner nodes; the three numbers."""
    a, b, c = 0, 0, 0
    for k in range(SLOTS):
        if tree[k, PARENT] == FREE:
            continue
        child = tree[k, CHILD]
        if child == LEAF:
            leaves[a] = k
            a += 1
        else:
            inner[c] = k
            c += 1
            if tree[child, CHILD] == LEAF and tree[child + 1, CHILD] == LEAF:
                nogs[b] = k
                b += 1
    return a, b, c


@entry
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


@entry
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


@entry
def add_boxes(kind, value, trees, grid, steps):
    """Add the packed forest to ``steps``, whose sums along every axis are its values in all cells of the grid.

    A leaf is a box of cells, ``grid`` (d,) of them in each input: it takes a step up at its lower corners and one down
    behind its upper ones. So a forest costs its leaves, not its leaves times the cells. ``steps`` is flat, with one
    cell more in each input, the last input runs fastest.
    """
    d = len(grid)
    strides = np.ones(d, np.int64)
    for v in range(d - 1, 0, -1):
        strides[v - 1] = strides[v] * (grid[v] + 1)
    # the boxes of the subtrees that are still to come: cells low..high-1
    low = np.zeros((SLOTS, d), np.int64)
    high = np.zeros((SLOTS, d), np.int64)
    j = 0
    for _ in range(trees):
        top = 1
        for v in range(d):
            low[0, v], high[0, v] = 0, grid[v]
        while top:
            top -= 1
            if kind[j, 0] >= 0:
                v, cut = np.int64(kind[j, 0]), np.int64(kind[j, 1])
                # the left part comes next, so it lies above the right one
                for u in range(d):
                    low[top + 1, u], high[top + 1, u] = low[top, u], high[top, u]
                high[top + 1, v] = cut + 1
                low[top, v] = cut + 1
                top += 2
            else:
                for corner in range(1 << d):
                    place, sign = 0, 1.0
                    for v in range(d):
                        if corner >> v & 1:
                            place += high[top, v] * strides[v]
                            sign = -sign
                        else:
                            place += low[top, v] * strides[v]
                    steps[place] += sign * value[j]
            j += 1

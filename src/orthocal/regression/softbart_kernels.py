"""The compiled core of soft BART: one backfitting sweep over a forest of soft trees, in place.

See ``soft_tree_kernels`` for the layout.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..machine.compiling import entry, part, vector_part

# The compiled trees of soft BART: their layout and prior, what reaches their nodes, what a packed forest predicts.
#
# A soft tree is sum_l phi_l(x) mu_l; phi_l is the product over the leaf's ancestors of psi((x_v - c) / tau), psi the
# logistic function, where the path goes right, and of 1 - psi where it goes left. Inputs are scaled to [0, 1].
#
# A forest of T trees has ``nodes`` (T, SLOTS, 4), the ``cut`` c of each inner node and the value ``mu`` of each leaf
# (T, SLOTS), the bandwidths ``tau`` (T,) and the shares ``s`` (d,) of the splitting variables. Slot 0 is the root. The
# fields of a node are below: its left child (the right one is next to it; LEAF for a leaf), parent (FREE for an empty
# slot), split variable and depth. Points are columns of ``x`` (d, N): the first n are data, the others are where
# predictions are wanted. ``reach`` (SLOTS, N) is how much of each point reaches each node, phi_l at leaf l; it is
# worked out afresh at each visit of a tree, so that it cannot be out of date, and a forest of 50 trees takes 40 kB.
#
# A tree's prior: a node of depth h splits with probability alpha (1 + h)^-beta, by variable v with probability s_v, at
# a cut that is uniform between the cuts that its ancestors left of v. Trees of more than LEAVES leaves are excluded.

#: a tree of the default prior has more with probability 2e-12
LEAVES = 16
SLOTS = 2 * LEAVES - 1
CHILD, PARENT, VARIABLE, DEPTH = range(4)
LEAF, FREE = -1, -2


@part
def draw_rule(rng, tree, cut, k, s):
    """A variable and a cut from their prior at node k."""
    u = rng.random()
    v = 0
    while v < len(s) - 1 and u >= s[v]:
        u -= s[v]
        v += 1
    lo, hi = 0.0, 1.0
    child, parent = k, np.int64(tree[k, PARENT])
    while parent >= 0:
        if tree[parent, VARIABLE] == v:
            if tree[parent, CHILD] == child:
                hi = min(hi, cut[parent])
            else:
                lo = max(lo, cut[parent])
        child, parent = parent, np.int64(tree[parent, PARENT])
    return v, lo + rng.random() * (hi - lo)


@part
def list_nodes(tree, leaves, nogs):
    """List the leaves, and the nodes whose two children are leaves, in pre-order; the two numbers."""
    stack = np.empty(SLOTS, np.int64)
    stack[0] = 0
    top, a, b = 1, 0, 0
    while top:
        top -= 1
        k = stack[top]
        c = np.int64(tree[k, CHILD])
        if c == LEAF:
            leaves[a] = k
            a += 1
            continue
        if tree[c, CHILD] == LEAF and tree[c + 1, CHILD] == LEAF:
            nogs[b] = k
            b += 1
        stack[top], stack[top + 1] = c + 1, c
        top += 2
    return a, b


@part
def split_reach(reach, k, slot, column, cut, tau, start, stop):
    """Divide what reaches node k between its children, for the points start..stop-1."""
    # loops from 0 over slices: the compiler must see that no index is negative to make vector instructions of them
    whole, left, right = reach[k, start:stop], reach[slot, start:stop], reach[slot + 1, start:stop]
    inputs = column[start:stop]
    for i in range(len(whole)):
        right[i] = whole[i] / (1 + np.exp((cut - inputs[i]) / tau))
        left[i] = whole[i] - right[i]


@part
def fill_reach(tree, cut, tau, x, reach, start, stop):
    """What reaches each node of a tree, for the points start..stop-1."""
    stack = np.empty(SLOTS, np.int64)
    stack[0] = 0
    top = 1
    for i in range(start, stop):
        reach[0, i] = 1.0
    while top:
        top -= 1
        k = stack[top]
        c = np.int64(tree[k, CHILD])
        if c != LEAF:
            split_reach(reach, k, c, x[tree[k, VARIABLE]], cut[k], tau, start, stop)
            stack[top], stack[top + 1] = c + 1, c
            top += 2


@part
def add_tree(fit, sign, reach, leaves, mu, start, stop):
    for a in range(len(leaves)):
        value, row, out = sign * mu[leaves[a]], reach[leaves[a], start:stop], fit[start:stop]
        for i in range(len(out)):
            out[i] += value * row[i]


@part
def set_children(tree, k, slot):
    tree[k, CHILD] = slot
    for child in range(slot, slot + 2):
        tree[child, CHILD], tree[child, PARENT], tree[child, DEPTH] = LEAF, k, tree[k, DEPTH] + 1


@part
def drop_children(tree, k):
    slot = np.int64(tree[k, CHILD])
    tree[slot, PARENT] = tree[slot + 1, PARENT] = FREE
    tree[k, CHILD] = LEAF


@entry
def pack(nodes, cut, mu, kind, value):
    """Write the forest in pre-order: for each node its variable and cut, or -1 and the leaf's value; the length.

    ``kind`` (L,) and ``value`` (L,) must be long enough.
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
            c = np.int64(tree[k, CHILD])
            if c == LEAF:
                kind[length], value[length] = -1, mu[t, k]
            else:
                kind[length], value[length] = tree[k, VARIABLE], cut[t, k]
                stack[top], stack[top + 1] = c + 1, c
                top += 2
            length += 1
    return length


@entry
def evaluate(kind, value, tau, x, fit):
    """Add the packed forest to ``fit`` (m,) at the points ``x`` (d, m)."""
    pending = np.empty(SLOTS)
    start = 0
    for t in range(len(tau)):
        end = start
        for i in range(len(fit)):
            # in pre-order a right subtree begins where the left one ends: its share waits on the stack
            share, top, j = 1.0, 0, start
            while True:
                if kind[j] >= 0:
                    right = share / (1 + np.exp((value[j] - x[kind[j], i]) / tau[t]))
                    pending[top] = right
                    top += 1
                    share -= right
                    j += 1
                else:
                    fit[i] += share * value[j]
                    j += 1
                    if top == 0:
                        break
                    top -= 1
                    share = pending[top]
            end = j
        start = end


BIRTH, DEATH, CHANGE, BANDWIDTH = range(4)
#: how often each move of the tree is proposed
SHARES = (0.35, 0.35, 0.3)
#: the first data point; a 0 is a type of its own, for which functions would be compiled again
START = np.int64(0)


# the tests call this one, and two others, from Python
@njit(error_model="numpy")
def draw_shares(rng, nodes, sparsity, s):
    """s ~ Dirichlet(sparsity (d,) + number of splits by each variable)."""
    for v in range(len(s)):
        s[v] = sparsity[v]
    for t in range(len(nodes)):
        for k in range(SLOTS):
            if nodes[t, k, PARENT] != FREE and nodes[t, k, CHILD] != LEAF:
                s[nodes[t, k, VARIABLE]] += 1
    # logarithms of gamma variables: with small shapes the variables themselves may all underflow
    largest = -np.inf
    for v in range(len(s)):
        s[v] = np.log(rng.standard_gamma(s[v] + 1)) + np.log(1 - rng.random()) / s[v]
        largest = max(largest, s[v])
    total = 0.0
    for v in range(len(s)):
        s[v] = np.exp(s[v] - largest)
        total += s[v]
    for v in range(len(s)):
        s[v] /= total


@vector_part
def weighted_product(a, b, weight):
    total = 0.0
    for i in range(len(weight)):
        total += weight[i] * a[i] * b[i]
    return total


@njit(error_model="numpy")
def log_evidence(reach, leaves, response, weight, leaf_var, factor, half):
    """Log marginal likelihood of a tree, v r' B^-1 r / 2 - log|B| / 2, up to terms that all trees have.

    B = I + v Phi' W Phi and r = Phi' W response, v = ``leaf_var``. Leaves its Cholesky factor F in ``factor`` and
    F^-1 r in ``half``.
    """
    total = 0.0
    for a in range(len(leaves)):
        row = reach[leaves[a]]
        value = weighted_product(row, response, weight)
        for b in range(a + 1):
            entry = leaf_var * weighted_product(row, reach[leaves[b]], weight)
            for c in range(b):
                entry -= factor[a, c] * factor[b, c]
            if b < a:
                factor[a, b] = entry / factor[b, b]
                value -= factor[a, b] * half[b]
            else:
                # the pivots of I + a semi-definite matrix are at least 1; rounding must not take that away
                entry = max(1 + entry, 1.0)
                factor[a, a] = np.sqrt(entry)
                half[a] = value / factor[a, a]
                total += leaf_var * half[a] ** 2 - np.log(entry)
    return 0.5 * total


@njit(error_model="numpy")
def draw_leaves(rng, leaves, leaf_var, factor, half, mu):
    """Leaf values from N(v B^-1 r, v B^-1), jointly."""
    for a in range(len(leaves) - 1, -1, -1):
        value = leaf_var * half[a] + np.sqrt(leaf_var) * rng.standard_normal()
        for b in range(a + 1, len(leaves)):
            value -= factor[b, a] * mu[leaves[b]]
        mu[leaves[a]] = value / factor[a, a]


@part
def log_split_odds(depth, alpha, beta):
    """Log prior of a node of this depth with two leaves against its being a leaf."""
    p = alpha * (1.0 + depth) ** (-beta)
    below = alpha * (2.0 + depth) ** (-beta)
    return np.log(p) - np.log(1 - p) + 2 * np.log(1 - below)


@part
def _birth(
    rng, tree, cut, tau, s, x, reach, response, weight, alpha, beta, leaf_var, leaves, nogs, a, old, factor, half
):
    """Split a leaf by a rule from its prior."""
    if a == LEAVES:
        return False, old
    k = leaves[int(rng.random() * a)]
    slot = 1
    while tree[slot, PARENT] != FREE:
        slot += 2
    v, c = draw_rule(rng, tree, cut, k, s)
    tree[k, VARIABLE], cut[k] = v, c
    set_children(tree, k, slot)
    split_reach(reach, k, slot, x[v], c, tau, START, len(response))
    a, b = list_nodes(tree, leaves, nogs)
    ratio = log_split_odds(tree[k, DEPTH], alpha, beta)
    ratio += np.log(SHARES[DEATH] / b) - np.log(SHARES[BIRTH] / (a - 1))
    evidence = log_evidence(reach, leaves[:a], response, weight, leaf_var, factor, half)
    ratio += evidence - old
    if np.log(1 - rng.random()) < ratio:
        return True, evidence
    drop_children(tree, k)
    return False, old


@part
def _death(rng, tree, reach, response, weight, alpha, beta, leaf_var, leaves, nogs, b, old, factor, half):
    """Make a leaf of a node with two leaves."""
    if b == 0:
        return False, old
    k = nogs[int(rng.random() * b)]
    slot = np.int64(tree[k, CHILD])
    drop_children(tree, k)
    a, _ = list_nodes(tree, leaves, nogs)
    ratio = -log_split_odds(tree[k, DEPTH], alpha, beta)
    ratio += np.log(SHARES[BIRTH] / a) - np.log(SHARES[DEATH] / b)
    evidence = log_evidence(reach, leaves[:a], response, weight, leaf_var, factor, half)
    ratio += evidence - old
    if np.log(1 - rng.random()) < ratio:
        return True, evidence
    set_children(tree, k, slot)
    return False, old


@part
def _change(rng, tree, cut, tau, s, x, reach, response, weight, leaf_var, leaves, nogs, a, b, old, factor, half):
    """A new rule, from its prior, at a node with two leaves: only the likelihood is left in the ratio."""
    if b == 0:
        return False, old
    k = nogs[int(rng.random() * b)]
    slot, old_v, old_c = np.int64(tree[k, CHILD]), tree[k, VARIABLE], cut[k]
    v, c = draw_rule(rng, tree, cut, k, s)
    split_reach(reach, k, slot, x[v], c, tau, START, len(response))
    evidence = log_evidence(reach, leaves[:a], response, weight, leaf_var, factor, half)
    if np.log(1 - rng.random()) < evidence - old:
        tree[k, VARIABLE], cut[k] = v, c
        return True, evidence
    split_reach(reach, k, slot, x[old_v], old_c, tau, START, len(response))
    return False, old


@part
def draw_move(rng):
    u = rng.random()
    if u < SHARES[BIRTH]:
        return BIRTH
    return DEATH if u < SHARES[BIRTH] + SHARES[DEATH] else CHANGE


@part
def without_trees(response, fit):
    """What the trees leave of the response; ``fit`` becomes 0."""
    rest = np.empty(len(response))
    for i in range(len(rest)):
        rest[i] = response[i] - fit[i]
    for i in range(len(fit)):
        fit[i] = 0.0
    return rest


@entry
def sweep(rng, response, weight, x, nodes, cut, mu, tau, s, fit, counts, alpha, beta, bandwidth, sparsity, leaf_var):
    """Update every tree once given the others, then ``s``; ``fit`` (N,) becomes the sum of the trees.

    ``s`` stays as it is if ``sparsity`` is 0. ``counts`` (4, 2) collects the moves that were proposed and accepted.
    """
    n, N = len(response), len(fit)
    # what is left of the response when all trees but one are taken away
    rest = without_trees(response, fit)
    reach, other = np.empty((SLOTS, N)), np.empty((SLOTS, N))
    leaves, nogs = np.empty(SLOTS, np.int64), np.empty(SLOTS, np.int64)
    factor, trial = np.empty((LEAVES, LEAVES)), np.empty((LEAVES, LEAVES))
    half, trial_half = np.empty(LEAVES), np.empty(LEAVES)
    for t in range(len(nodes)):
        tree, c, value = nodes[t], cut[t], mu[t]
        fill_reach(tree, c, tau[t], x, reach, START, n)
        a, b = list_nodes(tree, leaves, nogs)
        own = leaves[:a]
        add_tree(rest, 1.0, reach, own, value, START, n)
        evidence = log_evidence(reach, own, rest, weight, leaf_var, factor, half)
        move = draw_move(rng)
        if move == BIRTH:
            done, evidence = _birth(
                rng, tree, c, tau[t], s, x, reach, rest, weight, alpha, beta, leaf_var,
                leaves, nogs, a, evidence, trial, trial_half,
            )  # fmt: skip
        elif move == DEATH:
            done, evidence = _death(
                rng, tree, reach, rest, weight, alpha, beta, leaf_var, leaves, nogs, b, evidence, trial, trial_half
            )
        else:
            done, evidence = _change(
                rng, tree, c, tau[t], s, x, reach, rest, weight, leaf_var,
                leaves, nogs, a, b, evidence, trial, trial_half,
            )  # fmt: skip
        counts[move, 0] += 1
        counts[move, 1] += done
        a, b = list_nodes(tree, leaves, nogs)
        own = leaves[:a]
        if done:
            factor, trial, half, trial_half = trial, factor, trial_half, half
        if a == 1:
            # a stump has no gate: its bandwidth follows the prior
            tau[t] = bandwidth * rng.standard_exponential()
        else:
            proposal = tau[t] * np.exp(rng.standard_normal())
            fill_reach(tree, c, proposal, x, other, START, n)
            ratio = (tau[t] - proposal) / bandwidth + np.log(proposal / tau[t])
            ratio += log_evidence(other, own, rest, weight, leaf_var, trial, trial_half) - evidence
            counts[BANDWIDTH, 0] += 1
            if np.log(1 - rng.random()) < ratio:
                tau[t] = proposal
                reach, other = other, reach
                factor, trial, half, trial_half = trial, factor, trial_half, half
                counts[BANDWIDTH, 1] += 1
        draw_leaves(rng, own, leaf_var, factor, half, value)
        fill_reach(tree, c, tau[t], x, reach, n, N)
        add_tree(rest, -1.0, reach, own, value, START, n)
        add_tree(fit, 1.0, reach, own, value, START, N)
    if sparsity[0] > 0:
        draw_shares(rng, nodes, sparsity, s)

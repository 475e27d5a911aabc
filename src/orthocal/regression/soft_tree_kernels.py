"""The compiled trees of soft BART: their layout and prior, what reaches their nodes, what a packed forest predicts.

A soft tree is sum_l phi_l(x) mu_l; phi_l is the product over the leaf's ancestors of psi((x_v - c) / tau), psi the
logistic function, where the path goes right, and of 1 - psi where it goes left. Inputs are scaled to [0, 1].

A forest of T trees has ``nodes`` (T, SLOTS, 4), the ``cut`` c of each inner node and the value ``mu`` of each leaf
(T, SLOTS), the bandwidths ``tau`` (T,) and the shares ``s`` (d,) of the splitting variables. Slot 0 is the root. The
fields of a node are below: its left child (the right one is next to it; LEAF for a leaf), parent (FREE for an empty
slot), split variable and depth. Points are columns of ``x`` (d, N): the first n are data, the others are where
predictions are wanted. ``reach`` (SLOTS, N) is how much of each point reaches each node, phi_l at leaf l; it is worked
out afresh at each visit of a tree, so that it cannot be out of date, and a forest of 50 trees takes 40 kB.

A tree's prior: a node of depth h splits with probability alpha (1 + h)^-beta, by variable v with probability s_v, at a
cut that is uniform between the cuts that its ancestors left of v. Trees of more than LEAVES leaves are excluded.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part

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

"""The compiled core of the lookup: leaves of packed trees become rectangles of theta, theta becomes a sum over them.

A packed forest is that of ``regression.tree_kernels``: nodes in pre-order, ``kind`` (L, 2) with variable and cut, or
-1 for a leaf. The first d variables are inputs x, the other p are theta. A leaf is a box of bins lo..hi-1 in every
variable; it depends on those parameters whose range it cuts.

``cells`` (C, r, u) holds all tables below each other, for r targets and u rows of points: table t starts at
``first[t]``, and the cell of bins (b_1, .., b_p) is ``strides[t, 0] b_i + strides[t, 1] b_j`` further, with
(i, j) = ``axes[t]``. ``choice`` (p, p) is the table of the leaves that depend on parameters i < j, or on i alone at
(i, i); -1 where there is none.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part
from ..regression.tree_kernels import CHILD, CUT, DEPTHS, FREE, LEAF, PARENT, SLOTS, VARIABLE, cut_range, log_prior

#: more than the depth of any tree
DEEPEST = 64


@part
def start_boxes(bins, lo, hi):
    for v in range(len(bins)):
        lo[v], hi[v] = 0, bins[v]


@part
def descend(kind, j, lo, hi, path, top):
    """Enter the left child of the inner node j; ``path`` remembers how to come back."""
    v, cut = np.int64(kind[j, 0]), np.int64(kind[j, 1])
    path[top, 0], path[top, 1], path[top, 2], path[top, 3], path[top, 4] = v, cut, lo[v], hi[v], 0
    hi[v] = min(hi[v], cut + 1)
    return top + 1


@part
def ascend(lo, hi, path, top):
    """From a leaf to the next right child; 0 if the tree is done."""
    while top > 0:
        v = path[top - 1, 0]
        if path[top - 1, 4] == 0:
            path[top - 1, 4] = 1
            hi[v] = path[top - 1, 3]
            lo[v] = max(path[top - 1, 2], path[top - 1, 1] + 1)
            return top
        lo[v], hi[v] = path[top - 1, 2], path[top - 1, 3]
        top -= 1
    return 0


@part
def parameters_of(lo, hi, bins, d, pair):
    """The number of parameters that a box depends on; the first two are written into ``pair``."""
    count = 0
    for v in range(d, len(bins)):
        if lo[v] > 0 or hi[v] < bins[v]:
            if count < 2:
                pair[count] = v - d
            count += 1
    if count == 1:
        pair[1] = pair[0]
    return count


@entry
def count_leaves(kind, bins, d, counts):
    """Count the leaves by the parameters they depend on: pairs and single ones in ``counts`` (p, p); those of more."""
    k = len(bins)
    lo, hi, path, pair = (
        np.empty(k, np.int64),
        np.empty(k, np.int64),
        np.empty((DEEPEST, 5), np.int64),
        np.zeros(2, np.int64),
    )
    start_boxes(bins, lo, hi)
    top, others = 0, 0
    for j in range(len(kind)):
        if kind[j, 0] >= 0:
            top = descend(kind, j, lo, hi, path, top)
            continue
        count = parameters_of(lo, hi, bins, d, pair)
        if count > 2:
            others += 1
        elif count > 0:
            counts[pair[0], pair[1]] += 1
        top = ascend(lo, hi, path, top)
    return others


@part
def rows_in(lo, hi, d, point_bins, rows):
    """The rows of points that lie in a box, in ``rows``; their number."""
    count = 0
    for i in range(point_bins.shape[1]):
        inside = True
        for v in range(d):
            inside &= (point_bins[v, i] >= lo[v]) & (point_bins[v, i] < hi[v])
        rows[count] = i
        count += inside
    return count


@part
def add_rows(cell, rows, count, value):
    for i in range(count):
        cell[rows[i]] += value


@entry
def add_leaves(kind, value, bins, point_bins, target, choice, first, axes, strides, constant, cells, box, box_value):
    """Add each leaf of one target to the differences in ``cells``, or to ``constant`` (r, u) if no theta matters.

    What has no table is written into ``box`` (B, 2 k), the low ends before the high ends, and ``box_value``; the
    number of these.
    """
    d, k = len(point_bins), len(bins)
    lo, hi, path, pair = (
        np.empty(k, np.int64),
        np.empty(k, np.int64),
        np.empty((DEEPEST, 5), np.int64),
        np.zeros(2, np.int64),
    )
    rows = np.empty(point_bins.shape[1] + 1, np.int64)
    start_boxes(bins, lo, hi)
    top, boxes = 0, 0
    for j in range(len(kind)):
        if kind[j, 0] >= 0:
            top = descend(kind, j, lo, hi, path, top)
            continue
        count = parameters_of(lo, hi, bins, d, pair)
        t = choice[pair[0], pair[1]] if 0 < count <= 2 else -1
        if count == 0:
            add_rows(constant[target], rows, rows_in(lo, hi, d, point_bins, rows), value[j])
        elif t < 0:
            for v in range(k):
                box[boxes, v], box[boxes, k + v] = lo[v], hi[v] - 1
            box_value[boxes] = value[j]
            boxes += 1
        else:
            inside = rows_in(lo, hi, d, point_bins, rows)
            a, b = d + axes[t, 0], d + axes[t, 1]
            for above in range(2 if hi[a] < bins[a] else 1):
                one = first[t] + strides[t, 0] * (hi[a] if above else lo[a])
                sign = -value[j] if above else value[j]
                if a == b:
                    add_rows(cells[one, target], rows, inside, sign)
                    continue
                add_rows(cells[one + strides[t, 1] * lo[b], target], rows, inside, sign)
                if hi[b] < bins[b]:
                    add_rows(cells[one + strides[t, 1] * hi[b], target], rows, inside, -sign)
        top = ascend(lo, hi, path, top)
    return boxes


@part
def bin_of(value, points, start, stop):
    """How many of the cut points start..stop-1 lie below a value."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if points[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low - start


@part
def mark_inside(low, extent, bins, inside):
    """Mark the boxes that theta lies in, ``inside`` (B,): bytes alone, of which an instruction compares many."""
    for i in range(len(inside)):
        inside[i] = 1
    for v in range(len(bins)):
        one, start, width = bins[v], low[v], extent[v]
        for i in range(len(inside)):
            # below the low end the difference wraps around to a large one
            inside[i] &= np.uint8(one - start[i]) <= width[i]


@part
def sum_inside(inside, value, start, stop):
    """The sum of the values of the boxes start..stop-1 that are marked, few of them."""
    total = 0.0
    for i in range(start, stop):
        if inside[i]:
            total += value[i]
    return total


@entry
def look_up(
    theta, points, starts, constant, cells, first, axes, strides,
    low, extent, value, group_ends, group_target, row_ends, group_rows, row_of_point, output,
):  # fmt: skip
    """Write the function at theta into ``output`` (m, r).

    Boxes without a table, bins ``low`` to ``low + extent`` (p, B), come in groups of one target and the same rows of
    points.
    """
    p, r, u = len(theta), constant.shape[0], constant.shape[1]
    bins = np.empty(p, np.uint8)
    for v in range(p):
        bins[v] = bin_of(theta[v], points, starts[v], starts[v + 1])
    total = np.empty((r, u))
    for k in range(r):
        for i in range(u):
            total[k, i] = constant[k, i]
    for t in range(len(first)):
        at = first[t] + strides[t, 0] * np.int64(bins[axes[t, 0]]) + strides[t, 1] * np.int64(bins[axes[t, 1]])
        for k in range(r):
            for i in range(u):
                total[k, i] += cells[at, k, i]
    inside = np.empty(len(value), np.uint8)
    mark_inside(low, extent, bins, inside)
    begin, row_begin = 0, 0
    for g in range(len(group_ends)):
        change = sum_inside(inside, value, begin, group_ends[g])
        if change != 0.0:
            for i in range(row_begin, row_ends[g]):
                total[group_target[g], group_rows[i]] += change
        begin, row_begin = group_ends[g], row_ends[g]
    for i in range(len(row_of_point)):
        for k in range(r):
            output[i, k] = total[k, row_of_point[i]]


# Cut points move within the gaps between the rows' values, which no row notices: compiled.
#
# Between two neighbouring values of an input all cuts fit equally well, and only the prior says where a tree cuts. A
# sweep rarely moves a cut above others, so the mean over the draws would jump where it should interpolate.


@entry
def move_cuts(rng, nodes, cuts, shares, gap_low, gap_high, alpha, beta):
    """One Metropolis step in place for every inner node: a cut of the same gap, ``gap_low`` to ``gap_high`` - 1.

    The gaps (k, most cuts) are those of each cut; the likelihood stays what it is. The number of cuts that moved.
    """
    chances = np.empty(DEPTHS)
    for depth in range(DEPTHS):
        chances[depth] = alpha * (1.0 + depth) ** (-beta)
    moved = 0
    for t in range(len(nodes)):
        tree = nodes[t]
        if tree[0, CHILD] == LEAF:
            continue
        prior = log_prior(tree, cuts, shares, chances)
        for k in range(SLOTS):
            if tree[k, PARENT] == FREE or tree[k, CHILD] == LEAF:
                continue
            v, old = np.int64(tree[k, VARIABLE]), np.int64(tree[k, CUT])
            lo, hi = cut_range(tree, k, v, cuts)
            lo, hi = max(lo, gap_low[v, old]), min(hi, gap_high[v, old])
            cut = lo + int(rng.random() * (hi - lo))
            if cut == old:
                continue
            tree[k, CUT] = cut
            proposed = log_prior(tree, cuts, shares, chances)
            if np.log(1 - rng.random()) < proposed - prior:
                prior = proposed
                moved += 1
            else:
                tree[k, CUT] = old
    return moved


# The compiled walk through packed trees whose cuts in theta are gates: see ``soft_forest``.


@part
def gate(z):
    """The share of Epanechnikov's kernel below z: 0 from -1, 1 from 1 on."""
    if z <= -1.0:
        return 0.0
    if z >= 1.0:
        return 1.0
    return 0.5 + 0.75 * z - 0.25 * z * z * z


@part
def gate_slope(z):
    return 0.75 * (1.0 - z * z) if -1.0 < z < 1.0 else 0.0


@part
def enter(stack, top, to, g, slope, j):
    """Level ``to`` as the level ``top`` times g, whose derivative by parameter j is ``slope``."""
    for i in range(stack.shape[2]):
        for c in range(1, stack.shape[1]):
            stack[to, c, i] = stack[top, c, i] * g
        stack[to, 1 + j, i] += stack[top, 0, i] * slope
        stack[to, 0, i] = stack[top, 0, i] * g


@part
def divide(stack, top, bins, cut):
    """The next level as the points left of a cut in x, and the level ``top`` as those right of it."""
    for i in range(stack.shape[2]):
        right = bins[i] > cut
        for c in range(stack.shape[1]):
            stack[top + 1, c, i] = 0.0 if right else stack[top, c, i]
            if not right:
                stack[top, c, i] = 0.0


@entry
def walk_softly(kind, value, factor, cut_points, starts, point_bins, theta, width, output):
    """Add the trees to ``output`` (1 + p, u): their sum at u points, and its derivatives by theta (p,).

    ``kind`` (L, 2) and ``value`` (L,) are packed trees one after the other, ``factor`` (L,) what each leaf is
    multiplied by; the cut points of parameter j are those from ``starts[j]``, ``width`` (p,) is half that of its gates.
    Level ``top`` of the stack has the weights of the points at the node, and the derivatives of these.
    """
    d, u, p = len(point_bins), output.shape[1], len(theta)
    stack = np.empty((DEPTHS + 1, 1 + p, u))
    top, started = 0, False
    for node in range(len(value)):
        if not started:
            # the root of the next tree
            top, started = 0, True
            for i in range(u):
                for c in range(1 + p):
                    stack[0, c, i] = 0.0
                stack[0, 0, i] = 1.0
        v, cut = np.int64(kind[node, 0]), np.int64(kind[node, 1])
        if v < 0:
            for c in range(1 + p):
                for i in range(u):
                    output[c, i] += factor[node] * value[node] * stack[top, c, i]
            top -= 1
            started = top >= 0
        elif v < d:
            divide(stack, top, point_bins[v], cut)
            top += 1
        else:
            z = (cut_points[starts[v - d] + cut] - theta[v - d]) / width[v - d]
            g, slope = gate(z), -gate_slope(z) / width[v - d]
            # the left child is on top of the right one, which takes the node's place
            enter(stack, top, top + 1, g, slope, v - d)
            enter(stack, top, top, 1.0 - g, -slope, v - d)
            top += 1


# The compiled walk through the trees of a forest.


@entry
def walk(roots, left, right, feature, threshold, value, inputs, means):
    """Add to means (M, r) the mean over trees of the leaf values (nodes, r) that the inputs (M, k) end in."""
    for m in range(len(inputs)):
        for root in roots:
            node = root
            while left[node] >= 0:
                # single precision, in which the trees were grown
                if np.float32(inputs[m, feature[node]]) <= threshold[node]:
                    node = root + left[node]
                else:
                    node = root + right[node]
            for k in range(means.shape[1]):
                means[m, k] += value[node, k]
        for k in range(means.shape[1]):
            means[m, k] /= len(roots)

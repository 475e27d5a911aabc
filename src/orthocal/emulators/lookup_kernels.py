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

#: more than the depth of any tree
DEPTHS = 64


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
        np.empty((DEPTHS, 5), np.int64),
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
        np.empty((DEPTHS, 5), np.int64),
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

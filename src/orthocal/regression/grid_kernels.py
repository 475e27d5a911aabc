"""The compiled core of processes on a grid: cubic interpolation between grid points, and sums over the data."""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part

#: grid points an input that a value between them is made of
WIDTH = 4


@part
def neighbours(x, lower, step, counts, index, share):
    """The grid points around x (d,), and the share of each in its value, (4^d,): Lagrange's cubic in every input."""
    own = np.empty(WIDTH)
    index[0], share[0] = 0, 1.0
    size = 1
    for j in range(len(counts)):
        place = (x[j] - lower[j]) / step[j]
        base = min(max(int(np.floor(place)) - 1, 0), counts[j] - WIDTH)
        s = place - base
        own[0] = -(s - 1) * (s - 2) * (s - 3) / 6
        own[1] = s * (s - 2) * (s - 3) / 2
        own[2] = -s * (s - 1) * (s - 3) / 2
        own[3] = s * (s - 1) * (s - 2) / 6
        # from the end, so that nothing is overwritten before it is read
        for i in range(size - 1, -1, -1):
            before, part_of = index[i] * counts[j] + base, share[i]
            for m in range(WIDTH):
                index[WIDTH * i + m], share[WIDTH * i + m] = before + m, part_of * own[m]
        size *= WIDTH


@entry
def add_sums(x, weight, values, lower, step, counts, functions, mixed, own):
    """Add Phi'P Phi (M, M), below the diagonal, Phi'P V (M, c) and V'P V (c, c) of rows x (n, d), values V (n, c)."""
    size, columns = WIDTH ** len(counts), values.shape[1]
    index, share = np.empty(size, np.int64), np.empty(size)
    for n in range(len(x)):
        if weight[n] <= 0:
            continue
        neighbours(x[n], lower, step, counts, index, share)
        for a in range(size):
            weighted = weight[n] * share[a]
            for b in range(a + 1):
                functions[index[a], index[b]] += weighted * share[b]
            for c in range(columns):
                mixed[index[a], c] += weighted * values[n, c]
        for c in range(columns):
            for e in range(columns):
                own[c, e] += weight[n] * values[n, c] * values[n, e]


@entry
def interpolate(x, lower, step, counts, values, found):
    """Values (s, M) on the grid at x (n, d), in ``found`` (s, n)."""
    size = WIDTH ** len(counts)
    index, share = np.empty(size, np.int64), np.empty(size)
    for n in range(len(x)):
        neighbours(x[n], lower, step, counts, index, share)
        for s in range(len(values)):
            total = 0.0
            for a in range(size):
                total += share[a] * values[s, index[a]]
            found[s, n] = total

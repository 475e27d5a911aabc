"""The compiled walk through packed trees whose cuts in theta are gates: see ``soft_forest``."""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part
from ..regression.tree_kernels import DEPTHS


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

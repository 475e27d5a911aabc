"""The compiled posterior mean of BMARS and its gradient: sums of products of hinges.

Hinges are coded as in ``regression.bmars_kernels``: ``code`` (H,) is v + 1 for [u_v - t]_+ and -(v + 1) for
[t - u_v]_+, ``knot`` (H,) is t. Basis functions share them: ``members`` (B, order) are the numbers of the hinges of
each, then -1. Inputs (M, k) are scaled to the data's range and cut off there.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part


@part
def fill_hinges(code, knot, u, degree, value, slope):
    """The powers of all hinges at one row of inputs u (k,), and their derivatives; at a knot those of the zero side."""
    for h in range(len(code)):
        # a hinge is 1 at its end of the range
        rise = 1 / (1 - knot[h]) if code[h] > 0 else -1 / knot[h]
        height = rise * (u[abs(code[h]) - 1] - knot[h])
        if height > 0:
            lower = 1.0
            for _ in range(degree - 1):
                lower *= height
            value[h], slope[h] = lower * height, degree * lower * rise
        else:
            value[h], slope[h] = 0.0, 0.0


@part
def product(members, value, without):
    """The product of a basis function's hinges but for the one at ``without``."""
    result = 1.0
    for j in range(len(members)):
        if members[j] < 0:
            break
        if j != without:
            result *= value[members[j]]
    return result


@entry
def basis_values(code, knot, members, inputs, degree, output):
    """Each basis function at each row of inputs, in ``output`` (M, B)."""
    value, slope = np.empty(len(code)), np.empty(len(code))
    for i in range(len(inputs)):
        fill_hinges(code, knot, inputs[i], degree, value, slope)
        for b in range(len(members)):
            output[i, b] = product(members[b], value, -1)


@entry
def basis_slopes(code, knot, members, inputs, degree, output):
    """The derivative of each basis function by each input, in ``output`` (M, B, k), which is 0 before."""
    value, slope = np.empty(len(code)), np.empty(len(code))
    for i in range(len(inputs)):
        fill_hinges(code, knot, inputs[i], degree, value, slope)
        for b in range(len(members)):
            for j in range(members.shape[1]):
                h = members[b, j]
                if h < 0:
                    break
                output[i, b, abs(code[h]) - 1] = slope[h] * product(members[b], value, j)


@entry
def mean_values(code, knot, members, coefficients, ends, inputs, degree, output):
    """The sum of each target's basis functions, in ``output`` (M, r); those of target k end at ``ends[k]``."""
    value, slope = np.empty(len(code)), np.empty(len(code))
    for i in range(len(inputs)):
        fill_hinges(code, knot, inputs[i], degree, value, slope)
        start = 0
        for k in range(len(ends)):
            total = 0.0
            for b in range(start, ends[k]):
                total += coefficients[b] * product(members[b], value, -1)
            output[i, k] = total
            start = ends[k]


@entry
def mean_slopes(code, knot, members, coefficients, ends, inputs, degree, output):
    """The derivative of these sums by each input, in ``output`` (M, r, k), which is 0 before."""
    value, slope = np.empty(len(code)), np.empty(len(code))
    for i in range(len(inputs)):
        fill_hinges(code, knot, inputs[i], degree, value, slope)
        start = 0
        for k in range(len(ends)):
            for b in range(start, ends[k]):
                for j in range(members.shape[1]):
                    h = members[b, j]
                    if h < 0:
                        break
                    output[i, k, abs(code[h]) - 1] += coefficients[b] * slope[h] * product(members[b], value, j)
            start = ends[k]

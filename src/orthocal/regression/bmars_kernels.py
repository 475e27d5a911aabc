"""The compiled core of BMARS: moves over the basis functions of one chain, in place.

Basis functions live in slots: ``factors`` (S, order) codes the hinges of each, v + 1 for [u_v - t]_+ and -(v + 1) for
[t - u_v]_+ and 0 for none, ``knots`` (S, order) holds their t, ``rows`` (S, N) the values at all N points (the first n
are data), ``gram`` (S, S) the weighted inner products over the data. ``slots`` (S,) is an ordering of the slots: the
first 1 + K are in use, the intercept (slot 0) before all others, and the next one is where a proposal is worked out.
So a basis function that is accepted, or dies, costs no copy.

With the coefficients integrated out, the data enter by P = gram + diag(prior precisions) = L L' and w = L^-1 rhs: the
log evidence is the sum over the rows a of L of w_a^2 / 2 - log L_aa + log(prior precision of a) / 2, and these parts
are kept in ``gains``.

Where there are coefficients beside these, of other functions, they can be integrated out as well: inner products of a
and b are then a'W b - (V'a)'(V'b), V (n, p), of which ``along`` is V' and ``sides`` (S, p) holds V'a of every slot.
``within`` (S, S) are these inner products, and the same array as ``gram`` where there is nothing beside, p = 0.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part, vector_part

BIRTH, DEATH, CHANGE = range(3)
#: lambda ~ Gamma(shape, rate)
COUNT_SHAPE, COUNT_RATE = 10.0, 10.0
#: tau^2 ~ inverse-gamma(shape, (shape - 1) scale^2), so that its mean is scale^2
TAU_SHAPE = 2.0
#: a basis function is excluded if less than this share of its precision is left beside the ones before it
SINGULAR = 1e-12
#: the first data point; a 0 is a type of its own, for which functions would be compiled again
START = np.int64(0)


@vector_part
def inner(a, b, n):
    """The inner product of the first n entries; sums may be reordered, which makes vector instructions of them."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@part
def evaluate_basis(factor, knot, inputs, degree, start, stop, row):
    """Write the product of a basis function's hinges at the points start..stop-1 into ``row``."""
    # loops from 0 over slices: the compiler must see that no index is negative to make vector instructions of them
    values = row[start:stop]
    for i in range(len(values)):
        values[i] = 1.0
    for j in range(len(factor)):
        code = factor[j]
        if code == 0:
            break
        column, t = inputs[abs(code) - 1, start:stop], knot[j]
        # a hinge is 1 at its end of the data's range
        slope = 1 / (1 - t) if code > 0 else -1 / t
        if degree == 1:
            for i in range(len(values)):
                values[i] *= max(slope * (column[i] - t), 0.0)
        else:
            for i in range(len(values)):
                values[i] *= max(slope * (column[i] - t), 0.0) ** degree


@part
def draw_hinge(rng, v, table, sizes):
    """A sign and a knot of variable v from their prior: the code of the factor and the knot."""
    side = int(rng.random() * 2)
    t = table[side, v, int(rng.random() * sizes[side, v])]
    return (v + 1 if side == 0 else -(v + 1)), t


@part
def draw_basis(rng, active, table, sizes, factor, knot):
    """A basis function from its prior; its variables are distinct ones of ``active``."""
    for j in range(len(factor)):
        factor[j] = 0
    count = 1 + int(rng.random() * min(len(factor), len(active)))
    j = 0
    while j < count:
        v = active[int(rng.random() * len(active))]
        taken = False
        for i in range(j):
            taken |= abs(factor[i]) == v + 1
        if not taken:
            factor[j], knot[j] = draw_hinge(rng, v, table, sizes)
            j += 1


@part
def extend(gram, rhs, slots, k, slot, precision, L, w):
    """Row k of the factor L and of w, for ``slot`` after slots[:k]: the gain in log evidence, -inf if singular."""
    whole = gram[slot, slot] + precision
    left, top = whole, rhs[slot]
    for a in range(k):
        t = gram[slot, slots[a]]
        for b in range(a):
            t -= L[k, b] * L[a, b]
        t /= L[a, a]
        L[k, a] = t
        left -= t * t
        top -= t * w[a]
    if not left > SINGULAR * whole:
        return -np.inf
    L[k, k] = np.sqrt(left)
    w[k] = top / L[k, k]
    return 0.5 * w[k] ** 2 - np.log(L[k, k]) + 0.5 * np.log(precision)


@part
def factorise(gram, rhs, slots, k, intercept_precision, precision, L, w, gains):
    """All rows of L, w and gains; whether none is singular."""
    for a in range(k):
        gains[a] = extend(gram, rhs, slots, a, slots[a], precision if a else intercept_precision, L, w)
        if gains[a] == -np.inf:
            return False
    return True


@part
def leave_out(gram, rhs, slots, k, j, precision, L, w, gains, slots2, L2, w2, gains2):
    """The factor without position j, in ``slots2``, ``L2``, ``w2``, ``gains2``: the change in log evidence."""
    for a in range(j):
        slots2[a], w2[a], gains2[a] = slots[a], w[a], gains[a]
        for b in range(a + 1):
            L2[a, b] = L[a, b]
    change = -gains[j]
    for a in range(j, k - 1):
        slots2[a] = slots[a + 1]
        gains2[a] = extend(gram, rhs, slots2, a, slots2[a], precision, L2, w2)
        if gains2[a] == -np.inf:
            return -np.inf
        change += gains2[a] - gains[a + 1]
    return change


@part
def measure(
    slot, slots, k, response, weight, inputs, degree, factors, knots, rows, gram, rhs, weighted,
    along, pull, sides, within,
):  # fmt: skip
    """The proposal in ``slot`` at the data, and its inner products with slots[:k] and the response."""
    n = len(response)
    row = rows[slot]
    evaluate_basis(factors[slot], knots[slot], inputs, degree, START, n, row)
    for i in range(n):
        weighted[i] = weight[i] * row[i]
    for a in range(k):
        t = inner(weighted, rows[slots[a]], n)
        gram[slot, slots[a]] = t
        gram[slots[a], slot] = t
    gram[slot, slot] = inner(weighted, row, n)
    rhs[slot] = inner(weighted, response, n)
    if len(along):
        beside(slot, slots, k, rows, gram, rhs, along, pull, sides, within)


@part
def beside(slot, slots, k, rows, gram, rhs, along, pull, sides, within):
    """Take what is along V off the inner products of ``slot`` with slots[:k], itself and the response."""
    for j in range(len(along)):
        sides[slot, j] = inner(along[j], rows[slot], along.shape[1])
        rhs[slot] -= sides[slot, j] * pull[j]
    for a in range(k + 1):
        other = slots[a] if a < k else slot
        t = gram[slot, other]
        for j in range(len(along)):
            t -= sides[slot, j] * sides[other, j]
        within[slot, other] = t
        within[other, slot] = t


@part
def project(response, weight, rows, slots, k, weighted, rhs):
    """The inner products of slots[:k] with the response, ``weighted``."""
    n = len(response)
    for i in range(n):
        weighted[i] = weight[i] * response[i]
    for a in range(k):
        rhs[slots[a]] = inner(weighted, rows[slots[a]], n)


@part
def take_over(slots, slots2, k, gone, new, move):
    """Order the slots after a death or a change: how many are in use."""
    for a in range(k - 1):
        slots[a] = slots2[a]
    if move == DEATH:
        slots[k - 1] = gone
        return k - 1
    slots[k - 1], slots[k] = new, gone
    return k


@part
def draw_hyper(rng, gram, rhs, slots, k, coefficient, intercept_precision, scale, hyper, L, w, gains):
    """lambda and tau^2 given the k - 1 basis functions and their coefficients, and all rows of L, w and gains."""
    old, squares = hyper[1], 0.0
    for a in range(1, k):
        squares += coefficient[slots[a]] ** 2
    hyper[0] = rng.standard_gamma(COUNT_SHAPE + k - 1) / (COUNT_RATE + 1)
    hyper[1] = ((TAU_SHAPE - 1) * scale**2 + 0.5 * squares) / rng.standard_gamma(TAU_SHAPE + 0.5 * (k - 1))
    if not factorise(gram, rhs, slots, k, intercept_precision, 1 / hyper[1], L, w, gains):
        # outside the prior's support, so the old value stays
        hyper[1] = old
        factorise(gram, rhs, slots, k, intercept_precision, 1 / old, L, w, gains)


@part
def copy_with_new_hinge(rng, table, sizes, factors, knots, old, new):
    """The basis function of slot ``old`` in slot ``new``, with sign and knot of one hinge from their prior."""
    for i in range(factors.shape[1]):
        factors[new, i], knots[new, i] = factors[old, i], knots[old, i]
    factor, knot = factors[new], knots[new]
    hinges = 0
    for i in range(len(factor)):
        hinges += factor[i] != 0
    i = int(rng.random() * hinges)
    factor[i], knot[i] = draw_hinge(rng, abs(np.int64(factor[i])) - 1, table, sizes)


@part
def draw_coefficients(rng, slots, k, L, w, rows, coefficient, fit):
    """L' beta = w + a standard normal vector, and the function ``fit`` (N,) that it makes."""
    for i in range(len(fit)):
        fit[i] = 0.0
    for a in range(k - 1, -1, -1):
        t = w[a] + rng.standard_normal()
        for b in range(a + 1, k):
            t -= L[b, a] * coefficient[slots[b]]
        t /= L[a, a]
        coefficient[slots[a]] = t
        row = rows[slots[a]]
        for i in range(len(fit)):
            fit[i] += t * row[i]


@part
def make_moves(
    rng, response, weight, inputs, active, table, sizes, factors, knots, rows, gram, slots, hyper, counts,
    k, moves, degree, rhs, weighted, L, w, gains, along, pull, sides, within,
):  # fmt: skip
    """Births, deaths and changes: how many slots are in use, and L and w of these."""
    n, total, most, precision = len(response), rows.shape[1], len(slots) - 2, 1 / hyper[1]
    L2, w2, gains2 = np.empty((most + 2, most + 2)), np.empty(most + 2), np.empty(most + 2)
    slots2 = np.empty(most + 2, np.int64)
    # with no input that varies there is nothing to move
    for _ in range(moves if len(active) else 0):
        move = int(rng.random() * 3)
        counts[move, 0] += 1
        if (move == BIRTH and k == most + 1) or (move != BIRTH and k == 1):
            continue
        new = slots[k]
        if move == BIRTH:
            # the basis function comes from its prior, which cancels; the Poisson prior and the choice of the one to
            # die leave lambda / (K + 1)
            draw_basis(rng, active, table, sizes, factors[new], knots[new])
            measure(
                new, slots, k, response, weight, inputs, degree, factors, knots, rows, gram, rhs, weighted,
                along, pull, sides, within,
            )  # fmt: skip
            gain = extend(within, rhs, slots, k, new, precision, L, w)
            if not np.log(1 - rng.random()) < gain + np.log(hyper[0] / k):
                continue
            gains[k] = gain
            k += 1
        else:
            j = 1 + int(rng.random() * (k - 1))
            gone = slots[j]
            ratio = leave_out(within, rhs, slots, k, j, precision, L, w, gains, slots2, L2, w2, gains2)
            if move == DEATH:
                ratio += np.log((k - 1) / hyper[0])
            elif ratio > -np.inf:
                # sign and knot of one hinge come from their prior, which cancels
                copy_with_new_hinge(rng, table, sizes, factors, knots, gone, new)
                measure(
                    new, slots2, k - 1, response, weight, inputs, degree, factors, knots, rows, gram, rhs, weighted,
                    along, pull, sides, within,
                )  # fmt: skip
                gains2[k - 1] = extend(within, rhs, slots2, k - 1, new, precision, L2, w2)
                ratio += gains2[k - 1]
            if not np.log(1 - rng.random()) < ratio:
                continue
            L, L2, w, w2, gains, gains2 = L2, L, w2, w, gains2, gains
            k = take_over(slots, slots2, k, gone, new, move)
        counts[move, 1] += 1
        if move != DEATH:
            evaluate_basis(factors[new], knots[new], inputs, degree, n, total, rows[new])
    return k, L, w


@entry
def iterate(
    rng, response, weight, inputs, active, table, sizes,
    factors, knots, rows, gram, slots, coefficient, number, hyper, fit, counts,
    intercept_precision, scale, moves, degree,
):  # fmt: skip
    """Draw lambda and tau^2 (``hyper``), make ``moves`` moves, draw the coefficients; ``fit`` (N,) becomes b.

    ``number`` (1,) is K, ``counts`` (3, 2) collects the moves that were proposed and accepted.
    """
    most, k = len(slots), number[0] + 1
    rhs, weighted = np.empty(most), np.empty(len(response))
    project(response, weight, rows, slots, k, weighted, rhs)
    L, w, gains = np.empty((most, most)), np.empty(most), np.empty(most)
    draw_hyper(rng, gram, rhs, slots, k, coefficient, intercept_precision, scale, hyper, L, w, gains)
    nothing, none = np.empty((0, 0)), np.empty(0)
    k, L, w = make_moves(
        rng, response, weight, inputs, active, table, sizes, factors, knots, rows, gram, slots, hyper, counts,
        k, moves, degree, rhs, weighted, L, w, gains, nothing, none, nothing, gram,
    )  # fmt: skip
    number[0] = k - 1
    draw_coefficients(rng, slots, k, L, w, rows, coefficient, fit)


@entry
def move_functions(
    rng, response, weight, inputs, active, table, sizes,
    factors, knots, rows, gram, slots, number, hyper, counts,
    intercept_precision, moves, degree, along, pull,
):  # fmt: skip
    """Make ``moves`` moves with other coefficients integrated out as well, of which ``along`` (p, n) is V'.

    The response r enters by a'W r - (V'a)'pull. What was kept for the coefficients is no longer of these functions.
    """
    most, k = len(slots), number[0] + 1
    rhs, weighted = np.empty(most), np.empty(len(response))
    project(response, weight, rows, slots, k, weighted, rhs)
    sides, within = np.empty((most, len(along))), np.empty((most, most))
    for a in range(k):
        beside(slots[a], slots, a, rows, gram, rhs, along, pull, sides, within)
    L, w, gains = np.empty((most, most)), np.empty(most), np.empty(most)
    if factorise(within, rhs, slots, k, intercept_precision, 1 / hyper[1], L, w, gains):
        k, L, w = make_moves(
            rng, response, weight, inputs, active, table, sizes, factors, knots, rows, gram, slots, hyper, counts,
            k, moves, degree, rhs, weighted, L, w, gains, along, pull, sides, within,
        )  # fmt: skip
        number[0] = k - 1


@entry
def draw_given_functions(
    rng, response, weight, rows, gram, slots, coefficient, number, hyper, fit, intercept_precision
):  # fmt: skip
    """The coefficients given the basis functions and tau^2; ``fit`` (N,) becomes b."""
    k, most = number[0] + 1, len(slots)
    rhs, weighted = np.empty(most), np.empty(len(response))
    project(response, weight, rows, slots, k, weighted, rhs)
    L, w, gains = np.empty((most, most)), np.empty(most), np.empty(most)
    factorise(gram, rhs, slots, k, intercept_precision, 1 / hyper[1], L, w, gains)
    draw_coefficients(rng, slots, k, L, w, rows, coefficient, fit)


@entry
def evaluate(factors, knots, coefficient, inputs, degree, fit):
    """Add the recorded function to ``fit`` (m,) at ``inputs`` (d, m)."""
    row = np.empty(len(fit))
    for a in range(len(coefficient)):
        # records are filled up with zeros
        if coefficient[a] != 0.0:
            evaluate_basis(factors[a], knots[a], inputs, degree, START, len(fit), row)
            for i in range(len(fit)):
                fit[i] += coefficient[a] * row[i]


# The posterior mean of the emulator, and its gradient. Basis functions share hinges: ``code`` (H,) and ``knot`` (H,)
# are those of a hinge, ``members`` (B, order) the numbers of the hinges of each basis function, then -1. Inputs (M, k)
# are scaled to the data's range and cut off there.


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

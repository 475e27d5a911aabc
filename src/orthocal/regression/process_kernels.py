"""The compiled core of Gaussian processes of many data: along one input, and on a grid.

Along one input Matern processes are Markov in (b, b', b''), so that one pass is exact. With lambda = sqrt(2 nu) /
lengthscale and t = lambda dx, the state s = (b, b' / lambda, b'' / lambda^2) / sd moves by

    s(x + dx) = F(t) s(x) + e,  e ~ N(0, Q(t)),  Q(t) = c ∫_0^t f(u) f(u)' du,  f the last column of F

(Sarkka and Solin 2019, chapter 12). nu = 1/2, 3/2, 5/2 have one, two, three components.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry, part

#: Gauss–Legendre nodes and weights on (0, 1): exact to rounding for Q up to LONG, and never a difference of two numbers
STEPS, SHARES = (np.polynomial.legendre.leggauss(10)[0] + 1) / 2, np.polynomial.legendre.leggauss(10)[1] / 2
#: beyond this Q is P - F P F', where nothing cancels
LONG = 1.0
#: c of each number of components
DIFFUSION = np.array([0.0, 2.0, 4.0, 16.0 / 3.0])


@part
def last_column(t, k, f):
    """f(t), (k,)."""
    decay = np.exp(-t)
    if k == 1:
        f[0] = decay
    elif k == 2:
        f[0], f[1] = decay * t, decay * (1 - t)
    else:
        f[0], f[1], f[2] = decay * t * t / 2, decay * (t - t * t / 2), decay * (1 - 2 * t + t * t / 2)


@part
def transition(t, k, F):
    """F(t), (k, k)."""
    decay = np.exp(-t)
    if k == 1:
        F[0, 0] = decay
    elif k == 2:
        F[0, 0], F[0, 1] = decay * (1 + t), decay * t
        F[1, 0], F[1, 1] = -decay * t, decay * (1 - t)
    else:
        F[0, 0], F[0, 1], F[0, 2] = decay * (1 + t + t * t / 2), decay * (t + t * t), decay * t * t / 2
        F[1, 0], F[1, 1] = -decay * t * t / 2, decay * (1 + t - t * t)
        F[1, 2] = decay * (t - t * t / 2)
        F[2, 0], F[2, 1] = decay * (t * t / 2 - t), decay * (t * t - 3 * t)
        F[2, 2] = decay * (1 - 2 * t + t * t / 2)


@part
def stationary(k, P):
    """The covariance of a state of which nothing is known, (k, k)."""
    for i in range(k):
        for j in range(k):
            P[i, j] = 0.0
    P[0, 0] = 1.0
    if k == 2:
        P[1, 1] = 1.0
    elif k == 3:
        P[1, 1], P[2, 2] = 1.0 / 3.0, 1.0
        P[0, 2] = P[2, 0] = -1.0 / 3.0


@part
def sandwich(A, P, k, out, work):
    """A P A', (k, k)."""
    for i in range(k):
        for j in range(k):
            total = 0.0
            for m in range(k):
                total += A[i, m] * P[m, j]
            work[i, j] = total
    for i in range(k):
        for j in range(k):
            total = 0.0
            for m in range(k):
                total += work[i, m] * A[j, m]
            out[i, j] = total


@part
def diffusion(t, k, F, Q, work, f):
    """Q(t), (k, k)."""
    if t > LONG:
        stationary(k, Q)
        sandwich(F, Q, k, work[0], work[1])
        for i in range(k):
            for j in range(k):
                Q[i, j] -= work[0][i, j]
        return
    for i in range(k):
        for j in range(k):
            Q[i, j] = 0.0
    for r in range(len(STEPS)):
        last_column(t * STEPS[r], k, f)
        weight = DIFFUSION[k] * t * SHARES[r]
        for i in range(k):
            for j in range(k):
                Q[i, j] += weight * f[i] * f[j]


@part
def solve_right(A, P, k, out, work):
    """A P^-1 for a positive definite P, (k, k), by its Cholesky factor in ``work``."""
    for i in range(k):
        for j in range(i + 1):
            total = P[i, j]
            for m in range(j):
                total -= work[i, m] * work[j, m]
            work[i, j] = np.sqrt(total) if i == j and total > 0 else (1e-150 if i == j else total / work[j, j])
    for row in range(k):
        for i in range(k):
            total = A[row, i]
            for m in range(i):
                total -= work[i, m] * out[row, m]
            out[row, i] = total / work[i, i]
        for i in range(k - 1, -1, -1):
            total = out[row, i]
            for m in range(i + 1, k):
                total -= work[m, i] * out[row, m]
            out[row, i] = total / work[i, i]


@part
def product(A, B, out):
    """A B, (k, c)."""
    for i in range(A.shape[0]):
        for c in range(B.shape[1]):
            total = 0.0
            for m in range(A.shape[1]):
                total += A[i, m] * B[m, c]
            out[i, c] = total


@part
def look_back(F, P, ahead, mean, moved, E, a, V, gain, factor, work):
    """E, a, V of s_r given the state one step further: s | s_next ~ N(J s_next + mean - J moved, P - J ahead J').

    J = P F' ahead^-1; ``mean`` and P are of the state at this end of the step, ``moved`` and ``ahead`` at the other.
    """
    k = len(P)
    for i in range(k):
        for j in range(k):
            total = 0.0
            for m in range(k):
                total += P[i, m] * F[j, m]
            work[0][i, j] = total
    solve_right(work[0], ahead, k, gain, factor)
    sandwich(gain, ahead, k, work[0], work[1])
    for i in range(k):
        for j in range(k):
            factor[i, j] = P[i, j] - work[0][i, j]
    sandwich(E, factor, k, work[0], work[1])
    for i in range(k):
        for j in range(k):
            V[i, j] += work[0][i, j]
    product(E, gain, work[0])
    for i in range(k):
        for c in range(mean.shape[1]):
            total = 0.0
            for m in range(k):
                total += E[i, m] * mean[m, c] - work[0][i, m] * moved[m, c]
            a[i, c] += total
    for i in range(k):
        for j in range(k):
            E[i, j] = work[0][i, j]


@part
def observe(values, weight, mean, P, gram, innovation, pulled):
    """Condition on one row of the columns; returns the log of the innovation variance, in units of the noise."""
    k, columns = mean.shape
    spread = P[0, 0] + 1.0 / weight
    for c in range(columns):
        innovation[c] = values[c] - mean[0, c]
    for c in range(columns):
        for e in range(columns):
            gram[c, e] += innovation[c] * innovation[e] / spread
    for i in range(k):
        pulled[i] = P[i, 0] / spread
    for i in range(k):
        for c in range(columns):
            mean[i, c] += pulled[i] * innovation[c]
        for j in range(i + 1):
            P[i, j] -= pulled[i] * pulled[j] * spread
            P[j, i] = P[i, j]
    return np.log(spread * weight)


@part
def step_ahead(t, var, P, mean, F, ahead, moved, Q, work, f):
    """Mean and covariance of the state a step t further, in ``moved`` and ``ahead``."""
    k = len(P)
    transition(t, k, F)
    diffusion(t, k, F, Q, work, f)
    sandwich(F, P, k, ahead, work[0])
    for i in range(k):
        for j in range(k):
            ahead[i, j] += var * Q[i, j]
    product(F, mean, moved)


@part
def copy_into(source, target):
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@entry
def condense(x, weight, values, support, rate, var, k, gram, links, shifts, scatters, last_mean, last_cov):
    """One pass over data and support points; returns the sum of log innovation variances, in units of the noise.

    Parameters
    ----------
    x, weight, values
        All points in ascending order, (N,); 1 / noise variance, 0 for a point without data; columns (N, c) that the
        process is conditioned on: the residual, and each gradient.
    support
        Which points are support points, (N,), at different x.
    rate, var, k
        lambda, sd^2, and the number of components.
    gram
        (c, c), becomes V' S^-1 V for the columns V, with S the covariance of the process and the noise.
    links, shifts, scatters
        Become, for each support point r, E (k, k), a (k, c), V (k, k) of s_r | s_next, y ~ N(E s_next + a, V), s_next
        that of the next support point, or for the last one that of the last point of all.
    last_mean, last_cov
        Become mean (k, c) and covariance (k, k) of the state at the last point.
    """
    columns = values.shape[1]
    F, Q, P, ahead = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
    work, gain, factor = np.zeros((2, k, k)), np.zeros((k, k)), np.zeros((k, k))
    f, pulled, innovation = np.zeros(k), np.zeros(k), np.zeros(columns)
    mean, moved = np.zeros((k, columns)), np.zeros((k, columns))
    stationary(k, P)
    for i in range(k):
        for j in range(k):
            P[i, j] *= var
    logs, number = 0.0, -1
    for n in range(len(x)):
        if n > 0 and x[n] > x[n - 1]:
            step_ahead(rate * (x[n] - x[n - 1]), var, P, mean, F, ahead, moved, Q, work, f)
            if number >= 0:
                look_back(F, P, ahead, mean, moved, links[number], shifts[number], scatters[number], gain, factor, work)
            copy_into(moved, mean)
            copy_into(ahead, P)
        if weight[n] > 0:
            logs += observe(values[n], weight[n], mean, P, gram, innovation, pulled)
        if support[n]:
            number += 1
            for i in range(k):
                links[number, i, i] = 1.0
    copy_into(mean, last_mean)
    copy_into(P, last_cov)
    return logs


@entry
def moves(steps, k, F, Q):
    """F(t) and Q(t) of each step t (m,), in F and Q, (m, k, k)."""
    work, f = np.zeros((2, k, k)), np.zeros(k)
    for n in range(len(steps)):
        transition(steps[n], k, F[n])
        diffusion(steps[n], k, F[n], Q[n], work, f)


# On a grid: cubic interpolation between its points, and sums over the data.

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

"""Compiled orbits in the meridional plane, and what they leave on the sky.

An orbit of energy E and angular momentum L_z moves in (R, z) by R'' = -dPhi/dR + L_z^2 / R^3, z'' = -dPhi/dz. It is
integrated by Dormand and Prince's 5(4) pair with their interpolant of order four, and seen at fixed times, so that what
it leaves changes smoothly with the potential. Each time it is put at an azimuth of a golden-ratio sequence, folded into
the quadrant x', y' >= 0 of the sky by its symmetries, and spread linearly on the nodes around it and on velocities.
"""

from __future__ import annotations

from math import cos, log, pi, sin, sqrt

import numpy as np

from orthocal.applications import entry, part

from .mass_kernels import potential_and_forces

# Dormand and Prince 1980: stages, error weights, and the interpolant of Hairer, Norsett, Wanner (1993, II.6)
STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
DENSE = np.array(
    [
        -12715105075 / 11282082432,
        0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ]
)
GOLDEN = 0.6180339887498949
#: an orbit that needs more steps is given up
MOST_STEPS = 100_000
#: what ``launch`` gives: R, z, L_z, time of a circular orbit, energy
R0, Z0, LZ, PERIOD, ENERGY = range(5)


@part
def derivative(y, k, row, Lz2, table, shape):
    """Row ``row`` of k: the time derivative of (R, z, v_R, v_z) at y; returns the potential."""
    p, aR, az = potential_and_forces(y[0], y[1], table, shape)
    k[row, 0] = y[2]
    k[row, 1] = y[3]
    k[row, 2] = aR + Lz2 / (y[0] * y[0] * y[0])
    k[row, 3] = az
    return p


@part
def try_step(y, k, h, Lz2, tolerance, table, shape, new):
    """One step of length h from y to ``new``: (error in units of the tolerance, potential at the end)."""
    p = 0.0
    for stage in range(6):
        for i in range(4):
            total = 0.0
            for j in range(stage + 1):
                total += STAGES[stage, j] * k[j, i]
            new[i] = y[i] + h * total
        if new[0] <= 0.0:
            return np.inf, p
        p = derivative(new, k, stage + 1, Lz2, table, shape)
    length = sqrt(new[0] * new[0] + new[1] * new[1])
    speed = sqrt(new[2] * new[2] + new[3] * new[3] + Lz2 / (new[0] * new[0]))
    worst = 0.0
    for i in range(4):
        total = 0.0
        for j in range(7):
            total += ERROR[j] * k[j, i]
        error = abs(h * total) / (tolerance * (length if i < 2 else speed))
        # not max(): a NaN must come through
        if not error <= worst:
            worst = error
    return worst, p


@part
def interpolant(y, new, k, h, dense):
    """The polynomials of a step: rows 1, s, s (1 - s), s^2 (1 - s), s^2 (1 - s)^2 of ``dense`` (5, 4)."""
    for i in range(4):
        total = 0.0
        for j in range(7):
            total += DENSE[j] * k[j, i]
        change = new[i] - y[i]
        bend = h * k[0, i] - change
        dense[0, i] = y[i]
        dense[1, i] = change
        dense[2, i] = bend
        dense[3, i] = change - h * k[6, i] - bend
        dense[4, i] = h * total


@part
def follow(orbit, times, tolerance, table, shape, y, k, new, dense, path):
    """``path`` (n, 4): R, z, v_R, v_z of an orbit at ``times`` (n,), shares of the last; (worst drift of E, steps)."""
    Lz2 = orbit[LZ] * orbit[LZ]
    y[0] = orbit[R0]
    y[1] = orbit[Z0]
    y[2] = 0.0
    y[3] = 0.0
    derivative(y, k, 0, Lz2, table, shape)
    count, n, t, worst, steps = 0, len(times), 0.0, 0.0, 0
    h = 1e-3 * orbit[PERIOD]
    while count < n:
        steps += 1
        if steps > MOST_STEPS:
            return np.inf, steps
        error, p = try_step(y, k, h, Lz2, tolerance, table, shape, new)
        if not error <= 1.0:
            h *= max(0.2, 0.9 * error**-0.2) if np.isfinite(error) else 0.2
            continue
        energy = p + 0.5 * (new[2] * new[2] + new[3] * new[3] + Lz2 / (new[0] * new[0]))
        worst = max(worst, abs(energy / orbit[ENERGY] - 1.0))
        if times[count] * orbit[PERIOD] <= t + h:
            interpolant(y, new, k, h, dense)
            while count < n and times[count] * orbit[PERIOD] <= t + h:
                s = (times[count] * orbit[PERIOD] - t) / h
                for i in range(4):
                    inner = dense[3, i] + (1.0 - s) * dense[4, i]
                    path[count, i] = dense[0, i] + s * (dense[1, i] + (1.0 - s) * (dense[2, i] + s * inner))
                count += 1
        t += h
        for i in range(4):
            y[i] = new[i]
            k[0, i] = k[6, i]
        h *= min(5.0, max(0.2, 0.9 * (error + 1e-10) ** -0.2))
    return worst, steps


@part
def spread(path, Lz, number, view, nodes, forward, backward, sky, used, fastest):
    """Put a path on the sky grid: ``sky`` (n^2, nv) gets ``forward``, and ``backward`` for the reversed orbit."""
    sine, cosine, bend, steps, low, step, turn = view[0], view[1], view[2], view[3], view[4], view[5], view[6]
    n, nv = len(nodes), sky.shape[1]
    for s in range(len(path)):
        R, z = path[s, 0], path[s, 1]
        phase = 2.0 * pi * ((number * len(path) + s) * GOLDEN % 1.0 + turn)
        c, d = cos(phase), sin(phase)
        x = R * c
        y = abs(z * sine - R * d * cosine)
        v = (path[s, 2] * d + Lz / R * c) * sine + path[s, 3] * cosine
        if x < 0.0:
            x, v = -x, -v
        # the inverse of x = bend k / (steps - k)
        i = int(steps * x / (x + bend))
        j = int(steps * y / (y + bend))
        if i > n - 2 or j > n - 2:
            continue
        a = (x - nodes[i]) / (nodes[i + 1] - nodes[i])
        b = (y - nodes[j]) / (nodes[j + 1] - nodes[j])
        f = min(max((v - low) / step - 0.5, 0.0), nv - 1.001)
        m = int(f)
        f -= m
        fastest = max(fastest, max(m + 1, nv - 1 - m))
        for corner in range(4):
            g = (i + corner // 2) * n + j + corner % 2
            w = (a if corner > 1 else 1.0 - a) * (b if corner % 2 else 1.0 - b)
            used[g] = True
            sky[g, m] += forward * w * (1.0 - f)
            sky[g, m + 1] += forward * w * f
            if backward > 0.0:
                sky[g, nv - 1 - m] += backward * w * (1.0 - f)
                sky[g, nv - 2 - m] += backward * w * f
    return fastest


@entry
def launch(starts, table, shape):
    """Where orbits start, (n, 5): at rest in the meridional plane on the zero-velocity curve.

    ``starts`` (n, 3): radius of the circular orbit of the energy, L_z in units of that orbit's, and latitude in units
    of the highest that (E, L_z) allows; orbits of the same E and L_z stand next to each other. Along a latitude the
    start is the outermost point with E = Phi + L_z^2 / (2 R^2).
    """
    out = np.empty((len(starts), 5))
    top, radius = 0.0, 0.0
    for o in range(len(starts)):
        Rc = starts[o, 0]
        p, aR, _ = potential_and_forces(Rc, 0.0, table, shape)
        speed = sqrt(-aR * Rc)
        E, Lz = p + 0.5 * speed * speed, starts[o, 1] * Rc * speed
        if o == 0 or starts[o - 1, 0] != Rc or starts[o - 1, 1] != starts[o, 1]:
            top, radius = highest(E, Lz * Lz, Rc, table, shape)
        latitude = starts[o, 2] * top
        lo, hi = radius, 2.0 * Rc
        while spare(E, Lz * Lz, hi, latitude, table, shape) > 0.0:
            hi *= 2.0
        for _ in range(50):
            middle = 0.5 * (lo + hi)
            if spare(E, Lz * Lz, middle, latitude, table, shape) > 0.0:
                lo = middle
            else:
                hi = middle
        out[o, R0] = lo * cos(latitude)
        out[o, Z0] = lo * sin(latitude)
        out[o, LZ] = Lz
        out[o, PERIOD] = 2.0 * pi * Rc / speed
        out[o, ENERGY] = E
    return out


@part
def spare(E, Lz2, r, latitude, table, shape):
    """E - Phi - L_z^2 / (2 R^2): what is left for the motion in the meridional plane."""
    R = r * cos(latitude)
    p, _, _ = potential_and_forces(R, r * sin(latitude), table, shape)
    return E - p - 0.5 * Lz2 / (R * R)


@part
def highest(E, Lz2, Rc, table, shape):
    """The highest latitude that an orbit can reach, and the radius where it does."""
    lo, hi, radius = 0.0, 0.5 * pi, Rc
    for _ in range(40):
        latitude = 0.5 * (lo + hi)
        # golden section for the largest spare energy; it has one maximum in ln r
        a, b = log(0.2 * Rc), log(2.0 * Rc)
        for _ in range(30):
            c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
            if spare(E, Lz2, np.exp(c), latitude, table, shape) > spare(E, Lz2, np.exp(d), latitude, table, shape):
                b = d
            else:
                a = c
        if spare(E, Lz2, np.exp(0.5 * (a + b)), latitude, table, shape) > 0.0:
            lo = latitude
            radius = np.exp(0.5 * (a + b))
        else:
            hi = latitude
    return lo, radius


@entry
def library(
    orbits, dithers, times, tolerance, table, shape, view, nodes, starts, columns, ahead, behind, nbin, nv, cells
):
    """All orbit cells one by one: what each leaves in bins and velocities (n, nbin, nv) and in the meridional plane.

    ``orbits`` (n dithers, 5) from ``launch``; ``cells``: ln of the lowest r, step, numbers of radii and angles. The
    last two results are the worst relative drift of the energy in each cell, and the number of steps.
    """
    n = len(orbits) // dithers
    radii, angles = int(cells[2]), int(cells[3])
    seen = np.zeros((n, nbin, nv), np.float32)
    inside = np.zeros((n, radii, angles))
    drift = np.zeros(n)
    sky = np.zeros((len(nodes) * len(nodes), nv))
    used = np.zeros(len(sky), np.bool_)
    y, k, new, dense = np.empty(4), np.empty((7, 4)), np.empty(4), np.empty((5, 4))
    path = np.empty((len(times), 4))
    share = 1.0 / (dithers * len(times))
    steps = 0
    for o in range(n):
        fastest = 0
        for d in range(o * dithers, (o + 1) * dithers):
            worst, taken = follow(orbits[d], times, tolerance, table, shape, y, k, new, dense, path)
            steps += taken
            drift[o] = max(drift[o], worst)
            fastest = spread(path, orbits[d, LZ], d, view, nodes, share, 0.0, sky, used, fastest)
            for s in range(len(path)):
                r2 = path[s, 0] * path[s, 0] + path[s, 1] * path[s, 1]
                i = max(int((0.5 * log(r2) - cells[0]) / cells[1]), 0)
                if i < radii:
                    inside[o, i, min(int(abs(path[s, 1]) / sqrt(r2) * angles), angles - 1)] += share
        for g in range(len(sky)):
            if not used[g]:
                continue
            used[g] = False
            for e in range(starts[g], starts[g + 1]):
                for v in range(nv - 1 - fastest, fastest + 1):
                    seen[o, columns[e], v] += ahead[e] * sky[g, v] + behind[e] * sky[g, nv - 1 - v]
            for v in range(nv - 1 - fastest, fastest + 1):
                sky[g, v] = 0.0
    return seen, inside, drift, steps


@entry
def superpose(orbits, dithers, times, tolerance, table, shape, view, nodes, nv, forward, backward):
    """The sky grid (n^2, nv) of all orbit cells together, with weights of each cell and of its reversed copy (n,).

    The second result is the worst relative drift of the energy.
    """
    sky = np.zeros((len(nodes) * len(nodes), nv))
    used = np.zeros(len(sky), np.bool_)
    y, k, new, dense = np.empty(4), np.empty((7, 4)), np.empty(4), np.empty((5, 4))
    path = np.empty((len(times), 4))
    share = 1.0 / (dithers * len(times))
    drift = 0.0
    for d in range(len(orbits)):
        o = d // dithers
        if forward[o] + backward[o] <= 0.0:
            continue
        worst, _ = follow(orbits[d], times, tolerance, table, shape, y, k, new, dense, path)
        drift = max(drift, worst)
        spread(path, orbits[d, LZ], d, view, nodes, share * forward[o], share * backward[o], sky, used, 0)
    return sky, drift


@entry
def trace(orbit, times, tolerance, table, shape):
    """The path (n, 4) of one orbit at ``times`` in its periods, and the worst relative drift of its energy."""
    y, k, new, dense = np.empty(4), np.empty((7, 4)), np.empty(4), np.empty((5, 4))
    path = np.empty((len(times), 4))
    worst, _ = follow(orbit, times, tolerance, table, shape, y, k, new, dense, path)
    return path, worst

"""The compiled potential and its forces: a table of bicubic cells, and a Plummer black hole.

``table`` (nl, nc, 16) holds the coefficients of a bicubic polynomial in each cell of a grid in (ln r, c = |z| / r):
Phi(a, b) = sum_mn table[i, j, 4 m + n] a^m b^n with 0 <= a, b <= 1 the place in the cell. The forces are its exact
derivatives, so that orbits conserve the energy of the table. ``shape`` is (ln of the lowest r, step in ln r, G M_BH,
square of the black hole's radius).
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from orthocal.applications import entry, part


@part
def potential_and_forces(R, z, table, shape):
    """Phi [(km/s)^2], and the accelerations along R and z [(km/s)^2 / arcsec]."""
    cells, rows = table.shape[0], table.shape[1]
    r2 = R * R + z * z
    r = sqrt(r2)
    c = abs(z) / r
    a = (0.5 * log(r2) - shape[0]) / shape[1]
    beyond = a - cells
    if a < 0.0:
        a = 0.0
    elif a > cells:
        a = float(cells)
    i = min(int(a), cells - 1)
    a -= i
    b = c * rows
    j = min(int(b), rows - 1)
    b -= j
    p = 0.0
    p_a = 0.0
    p_b = 0.0
    for m in range(3, -1, -1):
        k = 4 * m
        value = ((table[i, j, k + 3] * b + table[i, j, k + 2]) * b + table[i, j, k + 1]) * b + table[i, j, k]
        slope = (3.0 * table[i, j, k + 3] * b + 2.0 * table[i, j, k + 2]) * b + table[i, j, k + 1]
        p_a = p_a * a + p
        p = p * a + value
        p_b = p_b * a + slope
    p_l = p_a / shape[1]
    p_c = p_b * rows
    if beyond > 0.0:
        # all mass is inside: Phi = -G M / r
        p *= np.exp(-beyond * shape[1])
        p_l, p_c = -p, 0.0
    elif a == 0.0 and i == 0:
        # the centre of the table is flat
        p_l, p_c = 0.0, 0.0
    d = 1.0 / sqrt(r2 + shape[3])
    p -= shape[2] * d
    g = p_l / r2 + shape[2] * d * d * d
    aR = -R * (g - p_c * c / r2)
    az = -z * g
    turn = p_c * (1.0 - c * c) / r
    return p, aR, (az - turn if z >= 0 else az + turn)


@entry
def potentials_and_forces(R, z, table, shape):
    """The same at many points, (n, 3)."""
    out = np.empty((len(R), 3))
    for k in range(len(R)):
        p, aR, az = potential_and_forces(R[k], z[k], table, shape)
        out[k, 0] = p
        out[k, 1] = aR
        out[k, 2] = az
    return out

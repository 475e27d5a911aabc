"""The weights of the orbits: non-negative least squares with a ridge towards equal weights.

minimise |A w - b|^2 + ridge n |w - 1/n|^2 over w >= 0. The rows of A are the light in bins, the light in cells of the
meridional plane and, where kinematics are given, the Gauss-Hermite terms h1..h4 of every bin, each in units of its
error (Rix et al. 1997).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from orthocal.applications import Array
from orthocal.errors import InputError, SimulatorError

from .moments import H4_AREA, hermite
from .orbits import Library, OrbitLibrary

#: relative error of the light in bins and cells
LIGHT_SD = 0.02
#: cells with a smaller share of the light are left out, and no cell's error is smaller than a tenth of it
LEAST_LIGHT = 2e-4


class Rows(NamedTuple):
    """Rows of the least-squares problem: ``matrix`` (m, n) and ``target`` (m,), both in units of the errors."""

    matrix: Array
    target: Array


def nonnegative(gram: Array, rhs: Array, most: int = 500) -> Array:
    """argmin w' G w / 2 - r' w over w >= 0 for G positive definite, exactly: block principal pivoting.

    Portugal, Judice, Vicente (1994): all variables of the wrong sign change sides together, and one at a time if that
    does not help.
    """
    n = len(rhs)
    free = _first_guess(gram, rhs) > 0
    scale = 1e-10 * max(float(np.abs(rhs).max()), 1e-300)
    fewest, patience = n + 1, 3
    for _ in range(most + n):
        w = np.zeros(n)
        inside = np.flatnonzero(free)
        if len(inside):
            w[inside] = cho_solve(cho_factor(gram[np.ix_(inside, inside)]), rhs[inside])
        slope = gram[:, inside] @ w[inside] - rhs
        wrong = np.where(free, w < 0, slope < -scale)
        count = int(wrong.sum())
        if not count:
            return w
        if count < fewest:
            fewest, patience = count, 3
        elif patience:
            patience -= 1
        else:
            last = np.flatnonzero(wrong)[-1]
            wrong = np.zeros(n, dtype=bool)
            wrong[last] = True
        free ^= wrong
    raise SimulatorError("the weights of the orbits could not be found: give a larger ridge")


def _first_guess(gram: Array, rhs: Array, steps: int = 80) -> Array:
    """Accelerated projected gradient: most variables are soon on the right side, and pivots cost more."""
    vector: Array = np.ones(len(rhs))
    for _ in range(12):
        vector = gram @ (vector / np.linalg.norm(vector))
    # the power method comes from below
    length = 1 / (1.1 * float(np.linalg.norm(vector)))
    w: Array = np.zeros(len(rhs))
    ahead = w
    pace = 1.0
    for _ in range(steps):
        new = np.maximum(ahead - length * (gram @ ahead - rhs), 0.0)
        faster = 0.5 * (1 + np.sqrt(1 + 4 * pace**2))
        ahead = new + (pace - 1) / faster * (new - w)
        w, pace = new, faster
    return np.asarray(w)


def fit_weights(rows: Rows, ridge: float) -> Array:
    """The weights (n,) for the rows."""
    if not np.isfinite(ridge) or ridge <= 0:
        raise InputError(f"ridge={ridge!r}: give a number above 0")
    n = rows.matrix.shape[1]
    gram = rows.matrix.T @ rows.matrix
    gram[np.diag_indices(n)] += ridge * n
    return nonnegative(gram, rows.matrix.T @ rows.target + ridge)


def light_rows(orbits: OrbitLibrary, library: Library) -> Rows:
    """Light in bins and cells, which must be the galaxy's, for the n cells of the library."""
    n = len(library.seen)
    in_bins = library.seen.sum(axis=2, dtype=float) / orbits.aperture_light / LIGHT_SD
    target = orbits.cell_light.ravel()
    kept = target > LEAST_LIGHT
    error = np.maximum(LIGHT_SD * target[kept], LEAST_LIGHT / 10)
    matrix = np.concatenate([in_bins, library.inside.reshape(n, -1)[:, kept] / error], axis=1).T
    return Rows(matrix, np.concatenate([np.full(orbits.nbin, 1 / LIGHT_SD), target[kept] / error]))


def kinematic_rows(orbits: OrbitLibrary, library: Library, values: Array, errors: Array) -> Rows:
    """h1..h4 of the orbits and of their reversed copies, about the observed V and sigma, for ``values`` (nbin, 4).

    An error of V is one of h1 by sqrt(2) sigma, and so is one of sigma of h2.
    """
    settings = orbits.settings
    mean, sd, h3, h4 = values.T
    # the orbits' distributions are blurred by being spread on channels
    broad = np.sqrt(sd**2 + settings.channel**2 / 6)
    basis = hermite((settings.velocity - mean[:, None]) / broad[:, None])[1:] * 2 * np.sqrt(np.pi)
    zero = np.zeros_like(mean)
    target = np.stack([zero, zero, h3, h4])
    error = np.stack([errors[:, 0] / sd / np.sqrt(2), errors[:, 1] / sd / np.sqrt(2), errors[:, 2], errors[:, 3]])
    scale = (1 + H4_AREA * h4) / orbits.aperture_light / error
    # one matrix product a bin
    both = np.concatenate([basis, basis[:, :, ::-1]]) * np.concatenate([scale, scale])[..., None]
    seen = np.ascontiguousarray(library.seen.transpose(1, 2, 0))
    terms = np.matmul(both.transpose(1, 0, 2).astype(np.float32), seen).astype(float)
    forward, backward = terms[:, :4].reshape(4 * len(mean), -1), terms[:, 4:].reshape(4 * len(mean), -1)
    return Rows(np.concatenate([forward, backward], axis=1), (target / error).T.ravel())


def together(light: Rows, kinematic: Rows) -> Rows:
    """All rows for the cells and their reversed copies, (m, 2 n)."""
    matrix = np.concatenate([np.concatenate([light.matrix, light.matrix], axis=1), kinematic.matrix])
    return Rows(matrix, np.concatenate([light.target, kinematic.target]))

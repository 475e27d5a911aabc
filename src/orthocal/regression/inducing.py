"""Gaussian processes in many inputs after one pass over the data: the values at some of the points stand for all.

    b(x) = K(x, U) K^-1 u + r,  u ~ N(0, K) at the inducing points U,  r ~ N(0, sd^2 - K(x, U) K^-1 K(U, x)) independent

(the fully independent training conditional of Snelson and Ghahramani 2006): what the inducing points do not say about
a data point counts as noise there, so that too few of them make theta less certain, not more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from ..arrays import Array, IntArray
from .gaussian_process import jittered_cholesky, radial_correlation
from .grid_process import Sums

#: rows whose functions are in memory at a time
BLOCK = 8_192
#: candidates among which the inducing points are chosen
CANDIDATES = 20_000


class Inducing(NamedTuple):
    """Inducing points (M, d), the Cholesky factor of their covariance, and the process's own numbers."""

    points: Array
    root: Array
    sd: float
    lengthscale: Array
    nu: float

    @classmethod
    def at(cls, points: Array, sd: float, lengthscale: Array, nu: float) -> Inducing:
        root, _ = jittered_cholesky(sd**2 * _correlation(points, points, lengthscale, nu))
        return cls(points, root, sd, lengthscale, nu)

    @property
    def size(self) -> int:
        return len(self.points)

    def functions(self, x: Array) -> Array:
        """K(x, U) L^-T, (n, M): the functions of white coefficients w, u = L w."""
        return np.asarray(solve_triangular(self.root, self.covariance(x), lower=True, check_finite=False).T)

    def covariance(self, x: Array) -> Array:
        """K(U, x), (M, n)."""
        return self.sd**2 * _correlation(self.points, x, self.lengthscale, self.nu)

    def weights(self, white: Array) -> Array:
        """K^-1 u of white coefficients (s, M), (s, M)."""
        return np.asarray(solve_triangular(self.root, white.T, lower=True, trans=1, check_finite=False).T)

    def unsaid(self, functions: Array) -> Array:
        """The variance of r, (n,)."""
        return np.asarray(np.maximum(self.sd**2 - np.einsum("nm,nm->n", functions, functions), 0.0))

    def unsaid_covariance(self, x: Array) -> Array:
        """The covariance of b - K(x, U) K^-1 u at x, (n, n): r, but for its independence."""
        functions = self.functions(x)
        return np.asarray(self.sd**2 * _correlation(x, x, self.lengthscale, self.nu) - functions @ functions.T)

    def sums(self, x: Array, weight: Array, values: Array) -> Sums:
        """One pass over the rows x (n, d), weight (n,), values (n, c); rows of weight 0 count for nothing."""
        size, columns = self.size, values.shape[1]
        functions, mixed, own = np.zeros((size, size)), np.zeros((size, columns)), np.zeros((columns, columns))
        for start in range(0, len(x), BLOCK):
            rows = slice(start, start + BLOCK)
            seen = weight[rows] > 0
            phi, V = self.functions(x[rows][seen]), values[rows][seen]
            each = 1 / (1 / weight[rows][seen] + self.unsaid(phi))
            weighted = phi * each[:, None]
            functions += phi.T @ weighted
            mixed += weighted.T @ V
            own += (V * each[:, None]).T @ V
        return Sums(functions, mixed, own)


def _correlation(a: Array, b: Array, lengthscale: Array, nu: float) -> Array:
    """k between the rows of a (m, d) and b (n, d), without an array for every input."""
    return radial_correlation(cdist(a / lengthscale, b / lengthscale, "sqeuclidean"), nu)


def spread_points(x: Array, lengthscale: Array, most: int) -> IntArray:
    """Numbers of at most ``most`` rows of x (n, d) that lie far from each other, in length-scales: always the same."""
    rows = np.random.default_rng(0).permutation(len(x))[:CANDIDATES]
    scaled = x[rows] / lengthscale
    chosen = [0]
    nearest = np.full(len(rows), np.inf)
    for _ in range(min(most, len(rows)) - 1):
        nearest = np.minimum(nearest, np.sum((scaled - scaled[chosen[-1]]) ** 2, axis=1))
        best = int(nearest.argmax())
        if nearest[best] == 0:
            break
        chosen.append(best)
    return np.asarray(rows[chosen], dtype=np.intp)

"""Gaussian processes after one pass over the data: the values at some points stand for all, but for what is near.

    b(x) = K(x, U) K^-1 u + r(x),  u ~ N(0, K) at the inducing points U,  r ~ N(0, K(x, x') - K(x, U) K^-1 K(U, x'))

with r independent between neighbourhoods of some hundred data points (the partially independent conditional of Snelson
and Ghahramani 2007). Inside of one, r is that of the process, and learnt from its data: with r as noise at every point
by itself, 1500 inducing points for 3000 data in three inputs at length-scales of .25 move theta by .2 sds, so by .03.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from ..arrays import Array, IntArray
from ..progress import progress_bar
from .gaussian_process import correlation, jittered_cholesky, radial_correlation

# Gaussian processes in few inputs after one pass over the data: values on a grid, with cubic interpolation between.
#
#     b(x) = Phi(x) u,  u ~ N(0, K),  K the process's covariance on the grid
#
# The prior is that of the process at every grid point, also where there are no data: basis functions of a fixed number
# would be too sure in a gap. Phi has 4^d entries a row, so the sums Phi'P Phi, Phi'P V, V'P V are all that is kept.


class Sums(NamedTuple):
    """Phi'P Phi (M, M), Phi'P V (M, c) and V'P V (c, c) over all data: the first column of V is the residual."""

    functions: Array
    mixed: Array
    own: Array


class RegularGrid(NamedTuple):
    """Evenly spaced points: the first (d,), the steps (d,), and how many in each input, (d,)."""

    lower: Array
    step: Array
    counts: IntArray

    @classmethod
    def over(cls, lower: Array, upper: Array, step: Array) -> RegularGrid:
        """A grid that covers the box with a cell to spare on every side; steps are at most those given."""
        cells = np.maximum(np.ceil((upper - lower) / step - 1e-9), 1).astype(np.intp)
        own = (upper - lower) / cells
        return cls(lower - own, own, cells + 3)

    @property
    def size(self) -> int:
        """M, the number of grid points."""
        return int(np.prod(self.counts))

    @property
    def points(self) -> Array:
        """(M, d), the last input runs fastest."""
        axes = [low + step * np.arange(count) for low, step, count in zip(*self, strict=True)]
        return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)

    def sums(self, x: Array, weight: Array, values: Array) -> Sums:
        """One pass over the rows x (n, d), weight (n,), values (n, c); rows of weight 0 count for nothing."""
        # compiled, and loaded by those who use it
        from .process_kernels import add_sums

        size, columns = self.size, values.shape[1]
        functions, mixed, own = np.zeros((size, size)), np.zeros((size, columns)), np.zeros((columns, columns))
        add_sums(x, weight, values, *self, functions, mixed, own)
        lower = np.tril(functions, -1)
        functions += lower.T - np.triu(functions, 1)
        return Sums(functions, mixed, own)

    def at(self, x: Array, values: Array) -> Array:
        """Functions with values (s, M) on the grid at x (n, d), (s, n)."""
        from .process_kernels import interpolate

        found = np.empty((len(values), len(x)))
        interpolate(np.ascontiguousarray(x), *self, np.ascontiguousarray(values), found)
        return found

    def covariance(self, sd: float, lengthscale: Array, nu: float) -> Array:
        """K, (M, M): the process is stationary, so one row of differences has all of it."""
        near = np.stack(np.meshgrid(*[np.arange(count) for count in self.counts], indexing="ij"))
        away = near.reshape(len(self.step), -1).T * self.step
        row = correlation(np.zeros((1, len(self.step))), away, lengthscale, nu)
        table = sd**2 * row.reshape(self.counts)
        each = np.stack([part.ravel() for part in near])
        apart = tuple(np.abs(part[:, None] - part[None, :]) for part in each)
        return np.asarray(table[apart])


#: rows whose functions are in memory at a time: of thousands a matrix would be new memory, page by page, every time
BLOCK = 1_024
#: candidates among which the inducing points are chosen
CANDIDATES = 20_000
#: numbers of a covariance that are made together: what they are made from stays in a core's own memory
CACHED = 2**16
#: data points at most that are neighbours: a pass costs n (M² + this times M), so that it could be more; half as many
#: move theta by .02 sds in the example above
NEIGHBOURHOOD = 400


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

    def sums(self, x: Array, weight: Array, values: Array, nodes: Array, functional: Array) -> tuple[Sums, Array]:
        """One pass over the rows x (n, d), weight (n,), values (n, c); rows of weight 0 count for nothing.

        Beside them the covariance, of before the data, of rho = C r(nodes), with nodes (m, d) and functional C (p, m),
        (p, p). The sums have p columns more than ``values``: the covariance of r at the data with rho.
        """
        seen = np.flatnonzero(weight > 0)
        width = self.size + values.shape[1] + len(functional)
        total, said = np.zeros((width, width)), np.zeros((len(functional), self.size))
        scaled = x[seen] / self.lengthscale
        places = neighbourhoods(scaled, nodes / self.lengthscale, NEIGHBOURHOOD)
        for among, near in progress_bar(places, f"{len(x)} points, {self.size} inducing points"):
            rows, own = seen[among], functional[:, near]
            both = np.vstack([x[rows], nodes[near]])
            functions, count = self.functions(both), len(rows)
            phi = functions[:count]
            said += own @ functions[count:]
            left = self.sd**2 * _correlation(x[rows], both, self.lengthscale, self.nu) - phi @ functions.T
            root, _ = jittered_cholesky(left[:, :count] + np.diag(1 / weight[rows]))
            columns = np.hstack([phi, values[rows], left[:, count:] @ own.T])
            white = solve_triangular(root, columns, lower=True, check_finite=False)
            total += white.T @ white
        found = Sums(total[: self.size, : self.size], total[: self.size, self.size :], total[self.size :, self.size :])
        return found, self._prior_of(nodes, functional) - said @ said.T

    def _prior_of(self, nodes: Array, functional: Array) -> Array:
        """C K(nodes, nodes) C', (p, p)."""
        covariance = np.zeros((len(functional), len(functional)))
        for start in range(0, len(nodes), NEIGHBOURHOOD):
            some = slice(start, start + NEIGHBOURHOOD)
            between = _correlation(nodes[some], nodes, self.lengthscale, self.nu)
            covariance += functional[:, some] @ (between @ functional.T)
        return self.sd**2 * covariance


def neighbourhoods(x: Array, nodes: Array, most: int) -> list[tuple[IntArray, IntArray]]:
    """The rows of x (n, d) in parts of at most ``most`` neighbours, each with the rows of nodes (m, d) among them.

    Halves of halves, along whatever input they are widest in.
    """
    found = []
    waiting = [(np.arange(len(x)), np.arange(len(nodes)))]
    while waiting:
        rows, near = waiting.pop()
        if len(rows) <= most:
            found.append((rows, near))
            continue
        own, half = x[rows], len(rows) // 2
        widest = int(np.argmax(np.ptp(own, axis=0)))
        order = np.argpartition(own[:, widest], half)
        below = nodes[near, widest] < own[order[half], widest]
        waiting += [(rows[order[:half]], near[below]), (rows[order[half:]], near[~below])]
    return found


def _correlation(a: Array, b: Array, lengthscale: Array, nu: float) -> Array:
    """k between the rows of a (m, d) and b (n, d), without an array for every input."""
    left, right = a / lengthscale, b / lengthscale
    found = np.empty((len(a), len(b)))
    each = max(1, CACHED // max(len(b), 1))
    for start in range(0, len(a), each):
        rows = slice(start, start + each)
        found[rows] = radial_correlation(cdist(left[rows], right, "sqeuclidean"), nu)
    return found


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

"""Gaussian processes in few inputs after one pass over the data: values on a grid, with cubic interpolation between.

    b(x) = Phi(x) u,  u ~ N(0, K),  K the process's covariance on the grid

The prior is that of the process at every grid point, also where there are no data: basis functions of a fixed number
would be too sure in a gap. Phi has 4^d entries a row, so the sums Phi'P Phi, Phi'P V, V'P V are all that is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray
from .gaussian_process import correlation


class Sums(NamedTuple):
    """Phi'P Phi (M, M), Phi'P V (M, c) and V'P V (c, c) over all data: the first column of V is the residual."""

    functions: Array
    mixed: Array
    own: Array


class Grid(NamedTuple):
    """Evenly spaced points: the first (d,), the steps (d,), and how many in each input, (d,)."""

    lower: Array
    step: Array
    counts: IntArray

    @classmethod
    def over(cls, lower: Array, upper: Array, step: Array) -> Grid:
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
        from .grid_kernels import add_sums

        size, columns = self.size, values.shape[1]
        functions, mixed, own = np.zeros((size, size)), np.zeros((size, columns)), np.zeros((columns, columns))
        add_sums(x, weight, values, *self, functions, mixed, own)
        lower = np.tril(functions, -1)
        functions += lower.T - np.triu(functions, 1)
        return Sums(functions, mixed, own)

    def at(self, x: Array, values: Array) -> Array:
        """Functions with values (s, M) on the grid at x (n, d), (s, n)."""
        from .grid_kernels import interpolate

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

"""Noisy values at points that repeat: their means and their scatter are all that a regression needs.

With z_i ~ N(m(x_i), s^2 v_i), the values at one point x have the likelihood of one value, their weighted mean z with
the variance s^2 v, 1 / v = sum_i 1 / v_i, times a factor that depends on s alone:

    -2 log factor = (count - 1) log s^2 + sum_i log v_i - log v + sum_i (z_i - z)^2 / v_i / s^2

Several columns of z are independent, with the same variances: their factors multiply.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray, repeated_rows


class MergedValues(NamedTuple):
    """One row for each distinct point.

    Attributes
    ----------
    x, z, basis, relative_var
        Points (u, d), means (u,) or (u, c), what is fitted beside (u, r), and v (u,).
    counts, scatter, log_scale
        Number of values at each point, sum_i (z_i - z)^2 / v_i over all columns, and sum_i log v_i - log v, (u,).
    relative_cov
        Where the noise is correlated, in the place of v, (u, u): then every value is a point.
    """

    x: Array
    z: Array
    basis: Array
    relative_var: Array
    counts: Array
    scatter: Array
    log_scale: Array
    relative_cov: Array | None = None

    @property
    def noise(self) -> Array:
        """v (u,), or the matrix (u, u) in its place."""
        return self.relative_var if self.relative_cov is None else self.relative_cov

    def part(self, rows: IntArray) -> MergedValues:
        """Some of the points."""
        own = None if self.relative_cov is None else self.relative_cov[np.ix_(rows, rows)]
        x, z, basis, var, counts, scatter, log_scale = (values[rows] for values in self[:-1] if values is not None)
        return MergedValues(x, z, basis, var, counts, scatter, log_scale, own)

    @property
    def freedom(self) -> Array:
        """Degrees of freedom of the scatter at each point, (u,)."""
        return np.asarray((self.counts - 1) * (1 if self.z.ndim == 1 else self.z.shape[1]))

    def scatter_deviance(self, log_noise_var: float) -> tuple[float, float]:
        """-2 log of the factors' product, and its slope by log s^2."""
        further, scatter = float(np.sum(self.freedom)), float(self.scatter.sum() / np.exp(log_noise_var))
        columns = 1 if self.z.ndim == 1 else self.z.shape[1]
        return further * log_noise_var + columns * float(self.log_scale.sum()) + scatter, further - scatter


def merged_values(
    x: Array, z: Array, basis: Array, relative_var: Array, relative_cov: Array | None = None
) -> MergedValues:
    """Values z (n,) or (n, c) at x, merged where its rows repeat; ``basis`` (n, r) is a function of x."""
    repeats = repeated_rows(x) if relative_cov is None else None
    if repeats is None:
        nothing = np.zeros(len(x))
        return MergedValues(x, z, basis, relative_var, np.ones(len(x)), nothing, nothing, relative_cov)
    first, place, counts = repeats
    var = 1 / repeats.sums(1 / relative_var)
    # for however many columns
    shape = (-1, *[1] * (z.ndim - 1))
    mean = var.reshape(shape) * repeats.sums(z / relative_var.reshape(shape))
    scatter = repeats.sums((z - mean[place]) ** 2 / relative_var.reshape(shape)).reshape(len(first), -1).sum(axis=1)
    log_scale = repeats.sums(np.log(relative_var)) - np.log(var)
    return MergedValues(x[first], mean, basis[first], var, counts, scatter, log_scale)

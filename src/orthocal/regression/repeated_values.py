"""Noisy values at points that repeat: their means and their scatter are all that a regression needs.

With z_i ~ N(m(x_i), s^2 v_i), the values at one point x have the likelihood of one value, their weighted mean z with
the variance s^2 v, 1 / v = sum_i 1 / v_i, times a factor that depends on s alone:

    -2 log factor = (count - 1) log s^2 + sum_i log v_i - log v + sum_i (z_i - z)^2 / v_i / s^2
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
        Points (u, d), means (u,), what is fitted beside (u, r), and v (u,).
    counts, scatter, log_scale
        Number of values at each point, sum_i (z_i - z)^2 / v_i, and sum_i log v_i - log v, (u,).
    """

    x: Array
    z: Array
    basis: Array
    relative_var: Array
    counts: Array
    scatter: Array
    log_scale: Array

    def part(self, rows: IntArray) -> MergedValues:
        """Some of the points."""
        return MergedValues(*(values[rows] for values in self))

    def scatter_deviance(self, log_noise_var: float) -> tuple[float, float]:
        """-2 log of the factors' product, and its slope by log s^2."""
        further, scatter = float(np.sum(self.counts - 1)), float(self.scatter.sum() / np.exp(log_noise_var))
        return further * log_noise_var + float(self.log_scale.sum()) + scatter, further - scatter


def merged_values(x: Array, z: Array, basis: Array, relative_var: Array) -> MergedValues:
    """Values z (n,) at x, merged where its rows repeat; ``basis`` (n, r) is a function of x."""
    repeats = repeated_rows(x)
    if repeats is None:
        nothing = np.zeros(len(x))
        return MergedValues(x, z, basis, relative_var, np.ones(len(x)), nothing, nothing)
    first, place, counts = repeats
    var = 1 / repeats.sums(1 / relative_var)
    mean = var * repeats.sums(z / relative_var)
    scatter = repeats.sums((z - mean[place]) ** 2 / relative_var)
    log_scale = repeats.sums(np.log(relative_var)) - np.log(var)
    return MergedValues(x[first], mean, basis[first], var, counts, scatter, log_scale)

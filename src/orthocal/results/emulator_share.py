"""How much of theta's variance is the emulator's, from draws that were made with several draws of it."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, IntArray


def emulator_share(theta: Array, numbers: IntArray) -> Array:
    """The share of the variance of theta (s, p) that is between groups of the same number, (p,).

    One-way random effects, theta_s = m + u_k + w_s with k the number of the emulator's draw: the means of groups differ
    by chance as well, by the variance within them over their size, which is taken away.
    """
    used, group, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    total, count = len(theta), len(used)
    if count < 2 or total <= count:
        return np.full(theta.shape[1], np.nan)
    sums = np.zeros((count, theta.shape[1]))
    np.add.at(sums, group.ravel(), theta)
    means = sums / sizes[:, None]
    within = np.sum((theta - means[group.ravel()]) ** 2, axis=0) / (total - count)
    between = np.sum(sizes[:, None] * (means - theta.mean(axis=0)) ** 2, axis=0) / (count - 1)
    size = (total - np.sum(sizes**2) / total) / (count - 1)
    own = np.maximum(between - within, 0.0) / size
    whole = own + within
    return np.asarray(np.divide(own, whole, out=np.zeros_like(own), where=whole > 0))

"""Gaussian proposals that stay within the bounds of theta: one coordinate after the other, each truncated.

theta = centre + R z with R upper triangular. The last coordinate depends on its own z alone, the one before it on two,
and so on: each z_j is a standard normal between the bounds that the later ones leave it. So the density is known,

    log q = sum_j [ -z_j^2 / 2 - log(Phi(b_j) - Phi(a_j)) ],

and a Gaussian conditional at one bound is met exactly; at several, up to a bounded weight (Geweke 1991).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ..arrays import Array, IntArray
from ..problem.prior.parameters import Parameters
from .base import Rngs


class Truncated(NamedTuple):
    """The proposals of all chains; each chain has its own order of the coordinates, the most bounded one last.

    ``centre``, ``low`` and ``high`` are (c, p), ``root`` is (c, p, p), all in the order ``order`` (c, p).
    """

    centre: Array
    root: Array
    low: Array
    high: Array
    order: IntArray

    @classmethod
    def of(cls, centre: Array, lower: Array, support: Parameters) -> Truncated:
        """N(centre, H^-1) for centre (c, p) and H = ``lower`` ``lower``', (c, p, p) or (1, p, p)."""
        precision = np.broadcast_to(lower @ lower.swapaxes(1, 2), (len(centre), *lower.shape[1:]))
        sd = np.sqrt(np.einsum("cii->ci", np.linalg.inv(precision)))
        order = np.argsort(np.maximum(support.lower - centre, centre - support.upper) / sd, axis=1, kind="stable")
        own = np.linalg.cholesky(
            np.stack([one[np.ix_(rows, rows)] for one, rows in zip(precision, order, strict=True)])
        )
        root = np.linalg.inv(own).swapaxes(1, 2)
        return cls(np.take_along_axis(centre, order, 1), root, support.lower[order], support.upper[order], order)

    def draw(self, rngs: Rngs) -> tuple[Array, Array]:
        """theta (c, p) within the support, and log q there, (c,)."""
        uniform = np.array([rng.random(self.centre.shape[1]) for rng in rngs])
        z, density = np.zeros_like(self.centre), np.zeros(len(self.centre))
        theta = np.empty_like(self.centre)
        for j in reversed(range(theta.shape[1])):
            middle, low, high, size = self._limits(j, z)
            z[:, j] = _normal_between(low, high, size, uniform[:, j])
            np.put_along_axis(theta, self.order[:, [j]], (middle + self.root[:, j, j] * z[:, j])[:, None], 1)
            density -= 0.5 * z[:, j] ** 2 + size
        return theta, density

    def log_density(self, theta: Array) -> Array:
        """log q at theta (c, p), (c,)."""
        own = np.take_along_axis(theta, self.order, 1)
        z, density = np.zeros_like(own), np.zeros(len(own))
        for j in reversed(range(own.shape[1])):
            middle, _, _, size = self._limits(j, z)
            z[:, j] = (own[:, j] - middle) / self.root[:, j, j]
            density -= 0.5 * z[:, j] ** 2 + size
        return density

    def _limits(self, j: int, z: Array) -> tuple[Array, Array, Array, Array]:
        """Of coordinate j given the later ones: its mean, the bounds of z_j, log(Phi(b_j) - Phi(a_j)), (c,) each."""
        middle = self.centre[:, j] + np.sum(self.root[:, j] * z, axis=1)
        low, high = ((bound[:, j] - middle) / self.root[:, j, j] for bound in (self.low, self.high))
        return middle, low, high, _log_between(*_mirrored(low, high))


def share_outside(centre: Array, root: Array, support: Parameters) -> float:
    """How much of N(centre, R R') lies outside of the support, at most: the sum over the bounds."""
    sd = np.sqrt(np.sum(root**2, axis=1))
    sides = ((support.lower - centre) / sd, (centre - support.upper) / sd)
    return float(sum(np.exp(log_ndtr(side)).sum() for side in sides))


def _mirrored(low: Array, high: Array) -> tuple[Array, Array]:
    """The bounds, or those of -z: the ones whose tail lies to the left, where Phi can be told from 0."""
    turned = low > -high
    return np.where(turned, -high, low), np.where(turned, -low, high)


def _log_between(low: Array, high: Array) -> Array:
    top = log_ndtr(high)
    return np.asarray(top + np.log(-np.expm1(log_ndtr(low) - top)))


def _normal_between(low: Array, high: Array, size: Array, uniform: Array) -> Array:
    """Standard normals between the bounds, by the inverse of Phi on the log scale."""
    below, above = _mirrored(low, high)
    # 1 - u is never zero
    drawn = ndtri_exp(np.minimum(np.logaddexp(log_ndtr(below), np.log1p(-uniform) + size), 0.0))
    drawn = np.clip(drawn, below, above)
    return np.asarray(np.where(low > -high, -drawn, drawn))

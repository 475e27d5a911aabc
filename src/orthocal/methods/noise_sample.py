"""The noise covariance as an unknown: its full conditional given the errors, and draws of the missing ones.

In whitened coordinates of the estimate, where the covariance starts as the identity, it is a priori inverse Wishart
with q + 2 degrees of freedom and mean one: as weak as a prior with a mean can be. It must be proper, because a bias
that goes through every point would let the noise vanish.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import wishart

from ..arrays import Array
from ..errors import InputError
from ..problem.noise.noise import Noise, observed_precision

Rngs = list[np.random.Generator]


def freedom(q: int) -> int:
    """Degrees of freedom of the prior of q outcomes' covariance: it counts as about three more rows for one outcome."""
    return q + 2


class NoiseSampler:
    """Draws of the precision of the whitened noise, (q, q), one a chain."""

    def __init__(self, noise: Noise) -> None:
        if noise.groups is not None:
            raise InputError(
                "GroupNoise(sample=True): this method cannot sample the noise of groups; take gp (up to 2000 values of "
                "y), none, ko, ogp or sgasp, or GroupNoise without sample"
            )
        self._noise = noise
        self._q = len(noise.cov)
        self._seen = noise.observed.any(axis=1)
        self._holes = [
            (np.flatnonzero((noise.observed == pattern).all(axis=1)), np.flatnonzero(~pattern))
            for pattern in np.unique(noise.observed, axis=0)
            if not pattern.all()
        ]

    def start(self, chains: int) -> Array:
        return np.tile(np.eye(self._q), (chains, 1, 1))

    def draw(self, rngs: Rngs, errors: Array) -> Array:
        """The precision given the errors of all rows, (c, n, q)."""
        known = freedom(self._q) + int(self._seen.sum())
        seen = errors[:, self._seen]
        scale = np.linalg.inv(np.eye(self._q) + np.einsum("cnk,cnl->ckl", seen, seen))
        drawn = [
            np.reshape(wishart.rvs(known, one, random_state=rng), (self._q, self._q))
            for rng, one in zip(rngs, scale, strict=True)
        ]
        return np.stack(drawn)

    def completed(self, rngs: Rngs, errors: Array, precision: Array) -> Array:
        """The errors (c, n, q) with those of the missing cells drawn given the others of their row."""
        if not self._holes:
            return errors
        T = self._noise.whitener
        whole = errors @ self._noise.unwhitener.T
        for c, rng in enumerate(rngs):
            own = T.T @ precision[c] @ T
            for rows, holes in self._holes:
                others = np.setdiff1d(np.arange(self._q), holes)
                lower = np.linalg.cholesky(own[np.ix_(holes, holes)])
                pull = whole[c][np.ix_(rows, others)] @ own[np.ix_(others, holes)]
                normal = rng.standard_normal((len(rows), len(holes)))
                # N(-Q_mm^-1 Q_mo e_o, Q_mm^-1) with Q_mm = lower lower'
                half = -np.linalg.solve(lower, pull.T) + normal.T
                whole[c][np.ix_(rows, holes)] = np.linalg.solve(lower.T, half).T
        return np.asarray(whole @ T.T)

    def row_precision(self, precision: Array) -> Array:
        """What the observed cells of each row say, (c, n, q, q), or (c, 1, q, q) where all rows are complete."""
        if not self._holes:
            return precision[:, None]
        back = self._noise.unwhitener
        each = [
            np.einsum("ji,njk,kl->nil", back, observed_precision(one, self._noise.observed), back)
            for one in self.covariance(precision)
        ]
        return np.stack(each)

    def covariance(self, precision: Array) -> Array:
        """Sigma_F in the outcomes' units, (c, q, q)."""
        back = self._noise.unwhitener
        return np.asarray(back @ np.linalg.inv(precision) @ back.T)

    def fields(self, precision: Array) -> dict[str, Array]:
        """What ``Draws`` keep of it, (..., q, q)."""
        return {"noise_cov": self.covariance(precision)}

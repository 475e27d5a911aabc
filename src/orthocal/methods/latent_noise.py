"""The part of the noise that is correlated between rows, drawn beside a bias that is no Gaussian process.

With C = C_c + lambda I, lambda the smallest eigenvalue of C, an error is a correlated part and an independent one. In
units of the rows' sds, given what is left of y, u = c + e with c ~ N(0, C_c) and e ~ N(0, lambda I):

    c | u ~ N((C - lambda I) C^-1 u, lambda (C - lambda I) C^-1),   C = V diag(w) V'

so that a draw costs two products with V. The larger lambda is, the more freely the bias moves beside c.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..problem.noise.noise import Noise

#: a bias beside errors that leave a smaller share of their variance to an independent part would hardly move
LEAST_SHARE = 1e-3
#: a chain multiplies matrices of this order in every iteration
MOST_ROWS = 3_000


class LatentNoise:
    """Draws of the correlated part given the residual, whitened."""

    def __init__(self, noise: Noise) -> None:
        assert noise.rows is not None
        n, q = noise.observed.shape
        self._seen = noise.observed.any(axis=1)
        if not (noise.observed[self._seen].all(axis=1)).all():
            raise InputError(
                "with noise that is correlated between rows and cells that are missing in some outcomes, take gp: for "
                "other priors rows of y must be complete, or empty"
            )
        if n > MOST_ROWS:
            raise InputError(
                f"y has {n} rows: with noise that is correlated between rows, a bias that is no Gaussian process takes "
                f"at most {MOST_ROWS}; take gp, or average or thin the data"
            )
        share = noise.rows.independent_share
        if share < LEAST_SHARE:
            raise InputError(
                f"the correlated part makes up all but {share:.1g} of the noise, and beside it a bias that is no "
                "Gaussian process would not move in a chain: give CorrelatedNoise(share=) below 1, a shorter length, "
                "or take gp"
            )
        values, self._vectors = np.linalg.eigh(noise.rows.matrix[np.ix_(self._seen, self._seen)])
        self._kept = np.maximum(1 - share / values, 0.0)
        self._spread = np.sqrt(share * self._kept)
        sd = np.ones(n) if noise.by_point is None else np.sqrt(noise.by_point[:, 0, 0] / noise.cov[0, 0])
        self._sd = sd[self._seen, None]
        self._shape = (n, q)

    def start(self, chains: int) -> Array:
        return np.zeros((chains, *self._shape))

    def draw(self, rngs: list[np.random.Generator], left: Array) -> Array:
        """The correlated part (c, n, q) given y - y_R, (c, n, q)."""
        drawn = np.zeros_like(left)
        for c, rng in enumerate(rngs):
            along = self._vectors.T @ (left[c, self._seen] / self._sd)
            normal = rng.standard_normal(along.shape)
            own = self._kept[:, None] * along + self._spread[:, None] * normal
            drawn[c, self._seen] = self._sd * (self._vectors @ own)
        return drawn

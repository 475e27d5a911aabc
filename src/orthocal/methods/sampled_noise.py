"""Draws of an unknown noise: what they say about the rows of y, and what is kept of them.

Beside a bias that is no Gaussian process, the part of it that is correlated between rows is drawn, too.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..problem.noise.noise import Noise, observed_precision


class NoiseDraws:
    """Precisions of the whitened noise, (..., q, q), or of that of each group of rows, (..., g, q, q)."""

    def __init__(self, noise: Noise) -> None:
        self._noise, self._back = noise, noise.unwhitener

    def precision(self, whitened: Array) -> Array:
        """From covariances of the whitened noise."""
        return np.linalg.inv(whitened)

    def row_precision(self, precision: Array) -> Array:
        """What the observed cells of each row say, (c, n, q, q), or (c, 1, q, q) where all rows say the same."""
        noise, back = self._noise, self._back
        each = precision[:, None] if noise.groups is None else precision[:, noise.groups]
        if noise.relative is not None:
            inverse = 1 / noise.relative_sd
            each = each * inverse[:, :, None] * inverse[:, None, :]
        if noise.observed.all():
            return each
        covs = np.broadcast_to(self._covariance(each), (len(each), len(noise.observed), *each.shape[2:]))
        return np.asarray(back.T @ np.stack([observed_precision(cov, noise.observed) for cov in covs]) @ back)

    def _covariance(self, precision: Array) -> Array:
        """In the outcomes' units."""
        return np.asarray(self._back @ np.linalg.inv(precision) @ self._back.T)

    def fields(self, precision: Array) -> dict[str, Array]:
        """What ``Draws`` keep of it; of groups, the covariance of a typical row is the mean over rows."""
        found, groups = self._covariance(precision), self._noise.groups
        if groups is None:
            return {"noise_cov": found}
        share = np.bincount(groups) / len(groups)
        return {"noise_cov": np.einsum("g,...gkl->...kl", share, found), "noise_by_group": found}


# The part of the noise that is correlated between rows, drawn beside a bias that is no Gaussian process.
#
# With C = C_c + lambda I, lambda the smallest eigenvalue of C, an error is a correlated part and an independent one. In
# units of the rows' sds, given what is left of y, u = c + e with c ~ N(0, C_c) and e ~ N(0, lambda I):
#
#     c | u ~ N((C - lambda I) C^-1 u, lambda (C - lambda I) C^-1),   C = V diag(w) V'
#
# so that a draw costs two products with V. The larger lambda is, the more freely the bias moves beside c.

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

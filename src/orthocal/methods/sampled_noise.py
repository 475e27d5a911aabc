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
from ..problem.noise.noise import Noise, NoiseSource, observed_precision

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

    def precision(self, whitened: Array) -> Array:
        """As its draws are, from covariances of the whitened noise, (..., q, q)."""
        return np.linalg.inv(whitened)

    def fields(self, precision: Array) -> dict[str, Array]:
        """What ``Draws`` keep of it, (..., q, q)."""
        return {"noise_cov": self.covariance(precision)}


# The noise covariances of groups of rows as unknowns: one sampler for each, in its own estimate's coordinates.


class GroupNoiseSampler:
    """Draws of the groups' precisions, (g, q, q), one a chain."""

    def __init__(self, noise: Noise) -> None:
        assert noise.groups is not None
        assert noise.by_point is not None
        self._groups = noise.groups
        self._rows = [np.flatnonzero(noise.groups == g) for g in range(noise.groups.max() + 1)]
        own = [Noise(noise.by_point[rows[0]], noise.observed[rows], NoiseSource.UNKNOWN) for rows in self._rows]
        self._samplers = [NoiseSampler(one) for one in own]
        # from the problem's whitened coordinates to each group's, (g, q, q)
        self._turns = np.stack([one.whitener @ noise.unwhitener for one in own])

    def start(self, chains: int) -> Array:
        return np.stack([sampler.start(chains) for sampler in self._samplers], axis=1)

    def draw(self, rngs: Rngs, errors: Array) -> Array:
        """The precisions given the errors of all rows, (c, n, q)."""
        each = zip(self._samplers, self._rows, self._turns, strict=True)
        return np.stack([sampler.draw(rngs, errors[:, rows] @ turn.T) for sampler, rows, turn in each], axis=1)

    def completed(self, rngs: Rngs, errors: Array, precision: Array) -> Array:
        """The errors (c, n, q) with those of the missing cells drawn given the others of their row."""
        whole = np.array(errors)
        for g, (sampler, rows, turn) in enumerate(zip(self._samplers, self._rows, self._turns, strict=True)):
            own = sampler.completed(rngs, errors[:, rows] @ turn.T, precision[:, g])
            whole[:, rows] = own @ np.linalg.inv(turn).T
        return whole

    def row_precision(self, precision: Array) -> Array:
        """What the observed cells of each row say, (c, n, q, q)."""
        c, _, q, _ = precision.shape
        each = np.empty((c, len(self._groups), q, q))
        for g, (sampler, rows, turn) in enumerate(zip(self._samplers, self._rows, self._turns, strict=True)):
            each[:, rows] = turn.T @ sampler.row_precision(precision[:, g]) @ turn
        return each

    def precision(self, whitened: Array) -> Array:
        """As its draws are, from covariances of the whitened noise, (..., g, q, q)."""
        return np.linalg.inv(self._turns @ whitened @ np.swapaxes(self._turns, -1, -2))

    def fields(self, precision: Array) -> dict[str, Array]:
        """As ``NoiseSampler.fields``, (..., g, q, q) -> those of ``Draws``; a typical row's is the mean over rows."""
        each = [sampler.covariance(precision[..., g, :, :]) for g, sampler in enumerate(self._samplers)]
        by_group = np.stack(each, axis=-3)
        share = np.bincount(self._groups) / len(self._groups)
        return {"noise_cov": np.einsum("g,...gkl->...kl", share, by_group), "noise_by_group": by_group}


def noise_sampler(noise: Noise) -> NoiseSampler | GroupNoiseSampler:
    return NoiseSampler(noise) if noise.groups is None else GroupNoiseSampler(noise)


def noise_prior_draws(noise: Noise, count: int, rng: np.random.Generator) -> dict[str, Array]:
    """Draws of the prior of the sampled covariances, as the fields of ``Draws``, (count, ...)."""
    q, groups = len(noise.cov), () if noise.groups is None else (int(noise.groups.max()) + 1,)
    shape = (count, *groups, q, q)
    precision = wishart.rvs(freedom(q), np.eye(q), size=int(np.prod(shape[:-2])), random_state=rng)
    return noise_sampler(noise).fields(np.reshape(precision, shape))


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

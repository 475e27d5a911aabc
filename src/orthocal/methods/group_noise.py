"""The noise covariances of groups of rows as unknowns: one sampler for each, in its own estimate's coordinates."""

from __future__ import annotations

import numpy as np
from scipy.stats import wishart

from ..arrays import Array
from ..problem.noise.noise import Noise, NoiseSource
from .noise_sample import NoiseSampler, Rngs, freedom


class GroupNoiseSampler:
    """Draws of the groups' precisions, (g, q, q), one a chain."""

    def __init__(self, noise: Noise) -> None:
        assert noise.groups is not None
        assert noise.by_point is not None
        self._groups = noise.groups
        self._rows = [np.flatnonzero(noise.groups == g) for g in range(noise.groups.max() + 1)]
        own = [Noise(noise.by_point[rows[0]], noise.observed[rows], NoiseSource.SAMPLED) for rows in self._rows]
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

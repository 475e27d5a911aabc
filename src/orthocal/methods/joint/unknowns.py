"""Size and length-scales of a Gaussian-process bias, and the noise, as unknowns with priors: one vector of logarithms.

For each whitened outcome k, in units of its noise sd s_k,

    log r_k          r_k the bias's sd over s_k, half-Cauchy: the data say how large, and may say none
    log l_kj         length-scale along input j, normal around .4 of the domain's width
    log odds         in the place of a length-scale where input j holds labels

Where the noise is unknown, too,

    log s_k          with a flat prior, 1 / s^2 of the variance
    log s_gk / s_k   for each group of rows that has noise of its own, normal around 0
    log k_i          of cells that may be outliers: their noise sd over that of the others, such that their errors have
                     Student's t distribution with 4 degrees of freedom, 1 / k^2 ~ Gamma(2, 2)
    atanh rho        of partial correlations between outcomes, with a flat prior of their correlation matrix
                     (Lewandowski, Kurowicka and Joe, Journal of Multivariate Analysis 2009)

What is given is no unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Array, BoolArray
from ...bias import GP
from ...problem.noise.noise import GROUP_SPREAD, HALF_FREEDOM, NoiseSource
from ...problem.problem import Problem

#: median of a length-scale's prior, in widths of the domain, and the sd of its logarithm
TYPICAL_LENGTH, LENGTH_SPREAD = 0.4, 0.8
#: scale of the half-Cauchy prior of a bias's sd, in sds of the noise
TYPICAL_RATIO = 1.0
#: sd of the log odds of the correlation between labels: as wide as the logistic density, whose correlation is uniform
ODDS_SPREAD = 1.8
#: of a logarithm: the data or the priors exclude what lies beyond
FARTHEST = 60.0
#: how far apart the first points lie in log r, and in log s at least and at most
FIRST_SPREAD, NOISE_SPREADS = 1.5, (0.15, 0.75)


@dataclass(frozen=True)
class Unknowns:
    """The vector v: (log r_k, log l_k1, ..., log l_kd) of each outcome, log s_k, those of groups, and correlations.

    Attributes
    ----------
    q, d
        Outcomes and inputs.
    values
        v where nothing is unknown; of what is, where the first points lie around.
    free
        Which of them are unknown.
    length_mean, length_sd
        Of the normal priors of log l, (d,).
    given_sd
        log sd of the bias in whitened units where that is given, (q,), and NaN where it is not.
    noise
        Whether the noise is unknown.
    groups
        How many groups of rows have noise of their own; 0 where all have the same.
    noise_spread
        How far apart the first points lie in log s.
    suspects
        Cells (row, outcome) that may be outliers.
    """

    q: int
    d: int
    values: Array
    free: BoolArray
    length_mean: Array
    length_sd: Array
    given_sd: Array
    noise: bool
    groups: int
    noise_spread: float
    suspects: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, problem: Problem, prior: GP) -> Unknowns:
        data, units = problem.data, 1 / np.sqrt(np.diag(problem.noise.cov))
        labelled = list(data.labels.columns)
        noise = problem.noise.source is NoiseSource.UNKNOWN
        mean, sd = np.log(TYPICAL_LENGTH * problem.span), np.full(data.d, LENGTH_SPREAD)
        mean[labelled], sd[labelled] = 0.0, ODDS_SPREAD
        given = prior.given_scales(data.d, tuple(labelled))
        # nothing is known about an input that does not vary
        still = np.isnan(given) & (np.ptp(data.x, axis=0) == 0)
        given[still] = np.exp(mean[still])
        own = np.where(np.isnan(given), mean, np.log(given))
        given_sd = np.full(data.q, np.nan) if prior.sd is None else np.log(prior.sd * units)
        groups = 0 if problem.noise.groups is None else int(problem.noise.groups.max()) + 1
        suspects = problem.noise.suspects if noise else ()
        rest = groups * data.q + len(suspects) + data.q * (data.q - 1) // 2
        each = [np.concatenate([[0.0], own])] * data.q
        free = [np.concatenate([[prior.sd is None], np.isnan(given)])] * data.q
        # the problem's noise is about what was found beside a bias
        values = np.concatenate([*each, np.zeros(data.q + rest)])
        unknown = np.concatenate([*free, np.full(data.q + rest, noise)]).astype(bool)
        known = float(np.clip(3 / np.sqrt(2 * data.observed.sum()), *NOISE_SPREADS))
        return cls(data.q, data.d, values, unknown, mean, sd, given_sd, noise, groups, known, suspects)

    def free_of(self, k: int) -> BoolArray:
        """Which of the sd and the length-scales of outcome k are unknown, (1 + d,)."""
        return np.asarray(self.free[: self.q * (1 + self.d)].reshape(self.q, 1 + self.d)[k])

    def whole(self, free: Array) -> Array:
        """v from what is unknown of it; far in the tails of a proposal, where a computer can still take exponents."""
        values = np.broadcast_to(self.values, (*free.shape[:-1], len(self.values))).copy()
        values[..., self.free] = np.clip(free, -FARTHEST, FARTHEST)
        return values

    def spread(self) -> Array:
        """How far apart the first points are to lie, one for each that is free."""
        own = np.concatenate([[FIRST_SPREAD], self.length_sd])
        noise = np.full(self.q, self.noise_spread), np.full(self.groups * self.q, GROUP_SPREAD)
        outlying = np.full(len(self.suspects), FIRST_SPREAD)
        tangents = np.full(len(self._tangents(self.values)), 0.5)
        return np.asarray(np.concatenate([*[own] * self.q, *noise, outlying, tangents])[self.free])

    def log_sd_and_lengths(self, v: Array) -> Array:
        """(log sd, log l_1, ..., log l_d) of each whitened outcome's bias, (q, 1 + d)."""
        own = v[: self.q * (1 + self.d)].reshape(self.q, 1 + self.d).copy()
        own[:, 0] = np.where(np.isnan(self.given_sd), own[:, 0] + self.log_noise(v), self.given_sd)
        return own

    def log_noise(self, v: Array) -> Array:
        """log s_k, (q,)."""
        return np.asarray(v[self.q * (1 + self.d) :][: self.q])

    def _of_groups(self, v: Array) -> Array:
        """log s_gk / s_k, (groups q,)."""
        return np.asarray(v[self.q * (2 + self.d) :][: self.groups * self.q])

    def log_outlying(self, v: Array) -> Array:
        """log k of the cells that may be outliers."""
        start = self.q * (2 + self.d + self.groups)
        return np.asarray(v[start : start + len(self.suspects)])

    def _tangents(self, v: Array) -> Array:
        return np.asarray(v[self.q * (2 + self.d + self.groups) + len(self.suspects) :])

    def noise_cov(self, v: Array) -> Array:
        """Covariance of the noise of the whitened outcomes, (q, q), or one for each group of rows, (groups, q, q)."""
        own = self._of_groups(v).reshape(self.groups, self.q) if self.groups else np.zeros(self.q)
        s, correlation = np.exp(self.log_noise(v) + own), correlation_of(np.tanh(self._tangents(v)), self.q)
        return np.asarray(correlation * s[..., :, None] * s[..., None, :])

    def log_prior(self, v: Array) -> float:
        """Up to a constant."""
        own = self.log_sd_and_lengths(v)
        free = self.free[: self.q * (1 + self.d)].reshape(self.q, 1 + self.d)[:, 1:]
        value = -0.5 * float(np.sum((((own[:, 1:] - self.length_mean) / self.length_sd)[free]) ** 2))
        # half-Cauchy of r, times r because the unknown is its logarithm; an sd that is given bounds the noise by it
        log_ratio = own[:, 0] - self.log_noise(v) - np.log(TYPICAL_RATIO)
        value += float(np.sum(log_ratio - np.logaddexp(0.0, 2 * log_ratio)))
        value -= 0.5 * float(np.sum((self._of_groups(v) / GROUP_SPREAD) ** 2))
        log_precision = -2 * self.log_outlying(v)
        value += HALF_FREEDOM * float(np.sum(log_precision - np.exp(log_precision)))
        if self.noise and self.q > 1:
            value += log_prior_of_tangents(self._tangents(v), self.q)
        return value


def correlation_of(partial: Array, q: int) -> Array:
    """The correlation matrix with these partial correlations, those of the lower triangle row by row."""
    root = np.eye(q)
    for row in range(1, q):
        left = 1.0
        for column in range(row):
            root[row, column] = partial[row * (row - 1) // 2 + column] * np.sqrt(left)
            left *= 1 - partial[row * (row - 1) // 2 + column] ** 2
        root[row, row] = np.sqrt(left)
    return np.asarray(root @ root.T)


def log_prior_of_tangents(tangents: Array, q: int) -> float:
    """Of flat correlation matrices: partial correlation (i, j), j < i, is Beta of q - j over 2 on (-1, 1)."""
    # log(1 - tanh^2)
    shrink = 2 * (np.log(2.0) - np.abs(tangents) - np.log1p(np.exp(-2 * np.abs(tangents))))
    powers = np.concatenate([[(q - column) / 2 for column in range(row)] for row in range(1, q)])
    return float(powers @ shrink)

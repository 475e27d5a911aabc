"""The noise as an unknown of a Markov chain, given what is left of y and the sizes of the bias.

In whitened coordinates the errors of row i have the covariance D_i S D_i, S = diag(s) R diag(s), where D_i is what the
row's noise is relative to a typical one's. With flat priors of log s_k and of the correlation matrix R, and scales c of
the bias with half-Cauchy priors in units of s_k,

    p(S) = |R|^((q + 1) / 2) |S|^(-(q + 1) / 2) prod_k s_k / (s_k² + c_k²)

up to a constant. A draw without the first and the last factor is inverse Wishart: it is proposed, and these decide. For
one outcome without a bias this is 1 / s². Rows of a group have sds of their own, log s_gk ~ N(log s_k, 1), and the R of
all (``unknowns.py`` says the same of Gaussian processes). Of one outcome, cells that may be outliers have errors with
Student's t distribution: D_i is drawn, too, 1 / D_i^2 | e ~ Gamma(2 + 1 / 2, 2 + e^2 / 2) for an error of e sds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..advice import NOISE_COV
from ..arrays import Array, BoolArray
from ..bias.outcomes import DrawnNoise, OutcomesBias, OutcomesState
from ..errors import InputError
from ..problem.noise.noise import GROUP_SPREAD, HALF_FREEDOM, observed_precision
from ..problem.problem import Problem

Rngs = list[np.random.Generator]

#: steps of a random walk a draw, where there is no conjugate one
STEPS = 3
#: sds of a Gaussian that such a step is wide (Gelman, Roberts and Gilks 1996)
STEP = 2.4


class NoiseState(NamedTuple):
    """S of each chain, (c, q, q), the logarithms of what each group's sds are times s, (c, g, q), and D of outliers.

    The last are (c, o).
    """

    cov: Array
    groups: Array
    outlying: Array

    @property
    def sd(self) -> Array:
        """s, (c, q)."""
        return np.sqrt(np.diagonal(self.cov, axis1=1, axis2=2))


class ChainNoise:
    """Draws of the noise of whitened outcomes, one a chain."""

    def __init__(self, problem: Problem) -> None:
        noise = problem.noise
        self._noise, self._q = noise, len(noise.cov)
        self._seen: BoolArray = np.any(noise.observed, axis=1, keepdims=True)[:, 0]
        self._relative, self._group = noise.relative_sd.copy(), noise.groups
        self._suspects = np.array([row for row, _ in noise.suspects] if self._q == 1 else [], dtype=np.intp)
        self._relative[self._suspects] = 1.0
        self._groups = 0 if noise.groups is None else int(noise.groups.max()) + 1
        self._holes = [
            (np.flatnonzero((noise.observed == pattern).all(axis=1)), np.flatnonzero(~pattern))
            for pattern in np.unique(noise.observed, axis=0)
            if pattern.any() and not pattern.all()
        ]
        if self._seen.sum() < self._q:
            raise InputError(
                f"y has {self._seen.sum()} rows and {self._q} outcomes, whose noise is unknown: too few to tell "
                "its covariance; give more rows, or " + NOISE_COV
            )
        left = problem.whiten(problem.complete_y - problem.fit)[self._seen]
        self._first = np.maximum(np.sqrt(np.mean(left**2, axis=0)), np.finfo(float).tiny)

    def start(self, chains: int) -> NoiseState:
        cov = np.tile(np.diag(self._first**2), (chains, 1, 1))
        return NoiseState(cov, np.zeros((chains, self._groups, self._q)), np.ones((chains, len(self._suspects))))

    def of_rows(self, state: NoiseState) -> DrawnNoise:
        """What each row says, (c, n, q, q), or (c, 1, q, q) where all rows say the same; and s."""
        precision = np.linalg.inv(state.cov)[:, None]
        alike = not len(self._suspects) and (self._relative == 1.0).all()
        if self._groups or not self._seen.all() or not alike:
            inverse = self._seen[:, None] / self._factor(state)
            precision = precision * inverse[..., None] * inverse[..., None, :]
        return DrawnNoise(precision, state.sd)

    def _factor(self, state: NoiseState) -> Array:
        """D, (c, n, q)."""
        own = self._of_cells(state)
        return own if self._group is None else np.asarray(own * np.exp(state.groups[:, self._group]))

    def _of_cells(self, state: NoiseState) -> Array:
        """The same without what groups make of it."""
        own = np.tile(self._relative, (len(state.cov), 1, 1))
        own[:, self._suspects, 0] = state.outlying
        return own

    def covariance(self, state: NoiseState) -> Array:
        """Of the whitened outcomes, (c, q, q), or one a group, (c, g, q, q)."""
        if not self._groups:
            return state.cov
        own = np.exp(state.groups)
        return np.asarray(state.cov[:, None] * own[..., None] * own[..., None, :])

    def of_observed(self, state: NoiseState) -> Array:
        """What the observed cells of each row say, (c, n, q, q), or (c, 1, q, q) where all rows say the same."""
        if not self._holes:
            return self.of_rows(state).precision
        back, factor = self._noise.unwhitener, self._factor(state)
        cov = back @ (state.cov[:, None] * factor[..., None] * factor[..., None, :]) @ back.T
        own = np.stack([observed_precision(one, self._noise.observed) for one in cov])
        return np.asarray(back.T @ own @ back)

    def completed(self, rngs: Rngs, errors: Array, state: NoiseState) -> Array:
        """The errors (c, n, q) with those of the missing cells drawn given the others of their row."""
        if not self._holes:
            return errors
        T, back, each = self._noise.whitener, self._noise.unwhitener, self.of_rows(state).precision
        whole = errors @ back.T
        for c, rng in enumerate(rngs):
            for rows, holes in self._holes:
                others = np.setdiff1d(np.arange(self._q), holes)
                own = T.T @ (each[c] if each.shape[1] == 1 else each[c, rows]) @ T
                lower = np.linalg.cholesky(own[:, holes[:, None], holes])
                pull = own[:, holes[:, None], others] @ whole[c][np.ix_(rows, others)][..., None]
                normal = rng.standard_normal((len(rows), len(holes), 1))
                # N(-Q_mm^-1 Q_mo e_o, Q_mm^-1) with Q_mm = lower lower'
                half = normal - np.linalg.solve(lower, pull)
                whole[c][np.ix_(rows, holes)] = np.linalg.solve(lower.swapaxes(1, 2), half)[..., 0]
        return np.asarray(whole @ T.T)

    def drawn(
        self, rngs: Rngs, state: NoiseState, bias: OutcomesBias, given: OutcomesState, left: Array
    ) -> tuple[NoiseState, OutcomesState]:
        """The noise given y - G beta (c, n, q) and the bias, which moves with it if its prior is in units of it."""
        if not bias.in_noise_units:
            return self.draw(rngs, state, left - given.bias, bias.scales(given)), given
        state = self.draw_with_bias(rngs, state, left, given.bias)
        return state, bias.in_units_of(given, state.sd)

    def draw(self, rngs: Rngs, state: NoiseState, errors: Array, sizes: Array) -> NoiseState:
        """The noise given the errors (c, n, q) and the scales of the bias, (c, k, q)."""
        white = (errors / self._of_cells(state))[:, self._seen]
        given = white if self._group is None else white / np.exp(state.groups[:, self._group[self._seen]])
        state = state._replace(cov=self.given_squares(rngs, state.cov, _squares(given), len(white[0]), sizes))
        state = state if self._group is None else self._with_groups(rngs, state, white, sizes)
        return self._with_outliers(rngs, state, errors) if len(self._suspects) else state

    def _with_outliers(self, rngs: Rngs, state: NoiseState, errors: Array) -> NoiseState:
        """The scales of cells that may be outliers, given all else."""
        common = self._factor(state._replace(outlying=np.ones_like(state.outlying))) * state.sd[:, None]
        square = (errors / common)[:, self._suspects, 0] ** 2
        gamma = np.array([rng.standard_gamma(HALF_FREEDOM + 0.5, len(self._suspects)) for rng in rngs])
        return state._replace(outlying=np.sqrt((HALF_FREEDOM + square / 2) / gamma))

    def given_squares(self, rngs: Rngs, cov: Array, squares: Array, count: float, sizes: Array) -> Array:
        """S, (c, q, q), from the one before and E'E of ``count`` rows of errors in units of D, (c, q, q)."""
        q, lower = self._q, np.linalg.cholesky(squares)
        bartlett = np.zeros_like(cov)
        for own, rng in zip(bartlett, rngs, strict=True):
            own[np.diag_indices(q)] = np.sqrt(2 * rng.standard_gamma((count - np.arange(q)) / 2))
            own[np.tril_indices(q, -1)] = rng.standard_normal(q * (q - 1) // 2)
        root = lower @ np.linalg.inv(bartlett).swapaxes(1, 2)
        proposal = root @ root.swapaxes(1, 2)
        gain = self._log_weight(proposal, sizes) - self._log_weight(cov, sizes)
        return np.where(_accepted(rngs, gain)[:, None, None], proposal, cov)

    def _log_weight(self, cov: Array, sizes: Array) -> Array:
        """What p(S) has beyond the proposal's prior, (c,)."""
        variance = np.diagonal(cov, axis1=1, axis2=2)
        # of a number it is exactly 0
        log_det = np.linalg.slogdet(cov)[1] - np.log(variance).sum(axis=1) if self._q > 1 else np.zeros(len(cov))
        return np.asarray((self._q + 1) / 2 * log_det + _half_cauchy(np.log(variance) / 2, sizes))

    def _with_groups(self, rngs: Rngs, state: NoiseState, white: Array, sizes: Array) -> NoiseState:
        """The groups' sds given S, then s given those."""
        assert self._group is not None
        group, precision, apart = self._group[self._seen], np.linalg.inv(state.cov), state.groups.copy()
        numbers = np.bincount(group, minlength=self._groups)
        squares = np.stack([_squares(white[:, group == g]) for g in range(self._groups)], axis=1)

        def log_density(apart: Array) -> Array:
            shrunk = np.exp(-apart)
            left = np.einsum("cgk,cgkl,ckl,cgl->cg", shrunk, squares, precision, shrunk, optimize=True)
            return np.asarray(
                -0.5 * left - np.sum(numbers[:, None] * apart + 0.5 * (apart / GROUP_SPREAD) ** 2, axis=2)
            )

        width = STEP / np.sqrt(2.0 * numbers + GROUP_SPREAD**-2)
        for _ in range(STEPS):
            for k in range(self._q):
                proposal = apart.copy()
                proposal[:, :, k] += width * np.array([rng.standard_normal(self._groups) for rng in rngs])
                better = _accepted(rngs, log_density(proposal) - log_density(apart))
                apart[:, :, k] = np.where(better, proposal[:, :, k], apart[:, :, k])
        # s, where each group's own sds stay: a Gaussian, but for the bias
        mean, log_sd = apart.mean(axis=1), np.log(state.sd)
        normal = np.array([rng.standard_normal(self._q) for rng in rngs])
        shift = mean + normal * GROUP_SPREAD / np.sqrt(self._groups)
        gain = _half_cauchy(log_sd + shift, sizes) - _half_cauchy(log_sd, sizes)
        shift = np.where(_accepted(rngs, gain)[:, None], shift, 0.0)
        times = np.exp(shift)
        cov = state.cov * times[:, :, None] * times[:, None, :]
        return state._replace(cov=cov, groups=apart - shift[:, None])

    def draw_with_bias(self, rngs: Rngs, state: NoiseState, left: Array, bias: Array) -> NoiseState:
        """S, diagonal, where b / s is given and so b moves with it: ``left`` is y - G beta, ``bias`` b, (c, n, q)."""
        sd, n = state.sd, self._seen.sum()
        z, b = ((one / self._of_cells(state))[:, self._seen] / sd[:, None] for one in (left, bias))
        square, product = np.sum(z**2, axis=1) / 2, np.sum(z * b, axis=1)

        def log_density(log_u: Array) -> Array:
            u = np.exp(log_u)
            return np.asarray(n * log_u - square * u**2 + product * u)

        # u = s before / s after
        log_u, log_mode = np.zeros_like(sd), np.log((product + np.sqrt(product**2 + 8 * n * square)) / (4 * square))
        width = STEP / np.sqrt(4 * square * np.exp(2 * log_mode) - product * np.exp(log_mode))
        for _ in range(STEPS):
            proposal = log_u + width * np.array([rng.standard_normal(self._q) for rng in rngs])
            log_u = np.where(_accepted(rngs, log_density(proposal) - log_density(log_u)), proposal, log_u)
        return state._replace(cov=state.cov / np.exp(log_u)[:, :, None] / np.exp(log_u)[:, None, :])


def _half_cauchy(log_sd: Array, sizes: Array) -> Array:
    """log of prod s_k / (s_k² + c_k²), (c,), for log s (c, q) and scales of the bias (c, k, q)."""
    ratio = log_sd[:, None] - np.log(np.maximum(np.abs(sizes), np.finfo(float).tiny))
    return np.asarray(-np.sum(np.logaddexp(-ratio, ratio), axis=(1, 2)))


def _squares(errors: Array) -> Array:
    """E'E, (c, q, q)."""
    return np.asarray(np.swapaxes(errors, 1, 2) @ errors)


def _accepted(rngs: Rngs, gain: Array) -> Array:
    """Whether each of the proposals with such a gain of the log density, (c, ...), is accepted."""
    uniform = np.array([rng.standard_exponential(gain.shape[1:]) for rng in rngs])
    return np.asarray(-uniform < gain)

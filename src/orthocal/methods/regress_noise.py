"""Draws of the real process for a Gaussian-process bias with fixed hyperparameters while the noise is sampled.

In turns: theta and the whole bias given the noise, which is one Gaussian, and the noise given both. The data see the
bias through as many numbers as there are cells: with B = U diag(e) V' what w does at the data, w = V a + w', where w'
is independent of y. So a system of that size is solved in each iteration, however many nodes there are.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..arrays import Array
from ..bias.outcomes import OutcomesBias
from ..kernels.warmup import Changing, run_chains
from ..problem.problem import Problem
from .base import Plan
from .group_noise import noise_sampler
from .regress import GaussianDesign, Linear, Regressed

#: with more cells of y the bias and theta are drawn one after the other: a step here costs their number cubed
MOST_SAMPLED = 2_000


def noise_draws(problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> Regressed:
    """A Markov chain in which only the noise remembers the last iteration."""
    run = _NoiseRun(problem, plan, bias, linear)
    return run.finished(run_chains(run, plan.warmup, plan.draws, plan.rngs))


class _NoiseRun(Changing):
    changing = ("_precision",)

    def __init__(self, problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> None:
        self._bias, self._linear, self._rngs = bias, linear, plan.rngs
        self._residual = problem.whiten(problem.complete_y - problem.fit)
        self._noise = noise_sampler(problem.noise)
        self._precision = self._noise.start(len(plan.rngs))
        self._design = GaussianDesign.of(bias, linear)
        n, q, p = linear.at_data.shape
        own = self._design.columns[:n]
        left, sizes, self._axes = np.linalg.svd(own[..., p:].reshape(n * q, -1), full_matrices=False)
        self._seen = np.concatenate([own[..., :p], (left * sizes).reshape(n, q, -1)], axis=2)
        self._prior = np.eye(p + len(sizes))
        self._prior[:p, :p] = linear.precision * np.outer(self._design.unit, self._design.unit)
        self._pull = np.concatenate([linear.pull * self._design.unit, np.zeros(len(sizes))])
        # the sums over complete rows, for any covariance of theirs
        self._grams = np.einsum("nki,nlj->klij", self._seen, self._seen, optimize=True)

    def step(self) -> tuple[Array, ...]:
        rows = self._noise.row_precision(self._precision)
        self._drawn = np.stack([self._one(rng, own) for rng, own in zip(self._rngs, rows, strict=True)])
        errors = self._residual - np.einsum("nku,cu->cnk", self._seen, self._drawn)
        errors = self._noise.completed(self._rngs, errors, self._precision)
        self._precision = self._noise.draw(self._rngs, errors)
        return ()

    def adapt(self, *window: Array) -> None:
        """There is nothing to tune."""

    def kept(self) -> tuple[Array, Array]:
        return self._drawn, self._precision

    def _one(self, rng: np.random.Generator, rows: Array) -> Array:
        """u and a ~ N(H^-1 v, H^-1) of one chain, for rows' precisions (n, q, q), or (1, q, q) for all."""
        if len(rows) == 1:
            H = np.einsum("kl,klij->ij", rows[0], self._grams)
        else:
            H = np.einsum("nki,nkl,nlj->ij", self._seen, rows, self._seen, optimize=True)
        lower = cholesky(H + self._prior, lower=True)
        weighted = (rows @ self._residual[..., None])[..., 0]
        mean = cho_solve((lower, True), np.einsum("nku,nk->u", self._seen, weighted) + self._pull)
        return np.asarray(mean + solve_triangular(lower, rng.standard_normal(len(mean)), lower=True, trans=1))

    def finished(self, kept: list[tuple[Array, Array]]) -> Regressed:
        drawn, precision = (np.stack(part, axis=1) for part in zip(*kept, strict=True))
        p = len(self._design.unit)
        free = np.stack([rng.standard_normal((drawn.shape[1], self._axes.shape[1])) for rng in self._rngs])
        # what y says nothing about comes from the prior
        white = free + (drawn[..., p:] - free @ self._axes.T) @ self._axes
        whole = np.concatenate([drawn[..., :p], white], axis=2)
        flat, noise = (part.reshape(-1, *part.shape[2:]) for part in (whole, precision))
        return self._design.regressed(self._linear, self._bias, flat, noise)

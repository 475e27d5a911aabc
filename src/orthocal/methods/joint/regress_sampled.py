"""Draws of the real process for a Gaussian-process bias whose hyperparameters are sampled.

Each iteration, in whitened coordinates with z = y - f(., theta_tilde): (1) Metropolis steps on the hyperparameters of
each outcome given beta, with b integrated out; (2) beta given these, b integrated out; and for a kept draw (3) b given
both. So only the hyperparameters and p numbers remember the last iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ...arrays import Array
from ...bias import GP
from ...bias.base import BiasSampler
from ...bias.outcomes import OutcomesBias
from ...kernels.warmup import Stepper, run_chains
from ...problem.problem import Problem
from ..base import Plan
from ..hyperparameters import Walks, hyper_outcomes, require_separate_outcomes
from ..sampled_noise import noise_sampler
from .regress import GaussianDesign, Linear, Regressed, with_prior


def sampled_draws(problem: Problem, plan: Plan, prior: GP, linear: Linear) -> Regressed:
    """A Markov chain on the hyperparameters that ``prior`` does not give."""
    require_separate_outcomes(problem)
    run = _SampledRegression(problem, plan, prior, linear)
    return run.finished(run_chains(run, plan.warmup, plan.draws, plan.rngs))


class _SampledDraw(NamedTuple):
    """b at data and nodes, beta, the log hyperparameters, the share accepted (c,), and what predictions need."""

    values: Array
    beta: Array
    log_values: Array
    accepted: Array
    precision: Array | None
    records: dict[str, Array]


class _SampledRegression(Stepper[_SampledDraw]):
    changing = ("_beta", "_walks.places")

    def __init__(self, problem: Problem, plan: Plan, prior: GP, linear: Linear) -> None:
        self._problem, self._plan, self._linear = problem, plan, linear
        self._residual = problem.whiten(problem.complete_y - problem.fit).T
        self._outcomes = hyper_outcomes(problem, prior, problem.rule.nodes)
        self._walks = Walks(self._outcomes, plan.rngs)
        self._beta: Array = np.zeros((len(plan.rngs), linear.at_data.shape[2]))

    def step(self) -> tuple[Array, Array]:
        self._accepted = self._walks.move(self._left())
        self._beta = self._drawn_beta()
        return self._walks.log_values(), self._accepted

    def adapt(self, *window: Array) -> None:
        self._walks.adapt(*window)

    def kept(self) -> _SampledDraw:
        left = self._left()
        record: dict[str, Array] = {}
        columns = []
        for k in range(len(self._outcomes)):
            own, values = self._walks.draw_bias(k, left[:, k])
            record |= {f"{name}_{k}": value for name, value in own.items()}
            columns.append(values)
        values, accepted = np.stack(columns, axis=-1), self._accepted.mean(axis=1)
        precision = self._walks.noise_precision()
        return _SampledDraw(values, self._beta, self._walks.log_values(), accepted, precision, record)

    def _left(self) -> Array:
        """z - G beta, (c, q, n)."""
        return np.asarray(self._residual - np.einsum("nkp,cp->ckn", self._linear.at_data, self._beta))

    def _drawn_beta(self) -> Array:
        """beta ~ N(B^-1 v, B^-1), B = sum_k G_k'S_k^-1 G_k and v = sum_k G_k'S_k^-1 z_k."""
        drawn = np.empty_like(self._beta)
        p = drawn.shape[1]
        for c, rng in enumerate(self._plan.rngs):
            white = []
            for k, (state, outcome) in enumerate(zip(self._walks.states[c], self._outcomes, strict=True)):
                rows = outcome.points.informed
                both = np.column_stack([self._linear.at_data[rows, k], self._residual[k, rows]])
                white.append(solve_triangular(state.lower, both, lower=True, check_finite=False))
            # B = R'R of the whitened gradients of all outcomes
            orthogonal, triangle = np.linalg.qr(np.concatenate(white)[:, :p])
            along = orthogonal.T @ np.concatenate(white)[:, p]
            drawn[c] = np.linalg.solve(triangle, along + rng.standard_normal(p))
        return drawn

    def finished(self, kept: list[_SampledDraw]) -> Regressed:
        *parts, precision, each = zip(*kept, strict=True)
        values, beta, log_values, accepted = (np.stack(part, axis=1) for part in parts)
        stats = {"acceptance_rate": accepted}
        for k, outcome in enumerate(self._outcomes):
            outcome.sampler.summarise(log_values[:, :, k], outcome.prior.free)
            stats |= outcome.named(k, log_values[:, :, k])
        records = {name: np.stack([one[name] for one in each], axis=1) for name in each[0]}
        noise = None if precision[0] is None else np.stack(precision, axis=1)
        samplers: list[BiasSampler] = [outcome.sampler for outcome in self._outcomes]
        free = Regressed.of(self._linear, values, beta, records, samplers, stats, noise)
        return with_prior(self._linear, free, self._plan.rngs)


# Draws of the real process for a Gaussian-process bias with fixed hyperparameters while the noise is sampled.
#
# In turns: theta and the whole bias given the noise, which is one Gaussian, and the noise given both. The data see the
# bias through as many numbers as there are cells: with B = U diag(e) V' what w does at the data, w = V a + w', where w'
# is independent of y. So a system of that size is solved in each iteration, however many nodes there are.

#: with more cells of y the bias and theta are drawn one after the other: a step here costs their number cubed
MOST_SAMPLED = 2_000


def noise_draws(problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> Regressed:
    """A Markov chain in which only the noise remembers the last iteration."""
    run = _NoiseRun(problem, plan, bias, linear)
    return run.finished(run_chains(run, plan.warmup, plan.draws, plan.rngs))


class _NoiseRun(Stepper[tuple[Array, Array]]):
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

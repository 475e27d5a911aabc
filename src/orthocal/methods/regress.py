"""Draws of the real process: y - f(., theta_tilde) = G beta + b + e, whitened, at the data points and the nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..arrays import Array
from ..bias.outcomes import OutcomesBias, OutcomesState
from ..kernels.warmup import run_chains
from ..problem.noise import NoiseSource
from ..problem.problem import Problem
from .base import Plan
from .covariance import padded_ends
from .noise_sample import NoiseSampler


class Linear(NamedTuple):
    """The simulator, linearised at theta_tilde, and theta's prior there.

    Attributes
    ----------
    at_data, at_nodes
        G, (n, q, p) and (m, q, p), whitened.
    coefficients
        (p, m q): takes b at the nodes to lambda(b), the coefficients of its projection on G.
    pull, precision
        Gradient (p,) and curvature (p,) of -log prior at theta_tilde: a Gaussian prior, or a flat one where it is 0.
    """

    at_data: Array
    at_nodes: Array
    coefficients: Array
    pull: Array
    precision: Array

    @classmethod
    def of(cls, problem: Problem) -> Linear:
        weighted = problem.rule.weights[:, None, None] * problem.metric
        image = np.einsum("mkl,mlp->mkp", weighted, problem.gradient_at_nodes)
        coefficients = np.linalg.solve(problem.sensitivity.gram, image.reshape(-1, image.shape[2]).T)
        inside = problem.parameters.clipped(problem.theta_tilde, 1e-6)
        curvature = np.maximum(problem.parameters.log_prior_curvature(inside), 0.0)
        pull = np.where(curvature > 0, problem.parameters.log_prior_gradient(inside), 0.0)
        return cls(problem.gradient_at_data, problem.gradient_at_nodes, coefficients, pull, curvature)


class Regressed(NamedTuple):
    """Draws of y_R - f(., theta_tilde), whitened: chain by chain, (s, ...).

    Attributes
    ----------
    at_data, at_nodes
        (s, n, q) and (s, m, q).
    beta
        (s, p).
    theta
        theta_tilde + beta + lambda(b), (s, p): theta where f is linear.
    records
        What predictions need of b, name -> one array (c, ...) a draw, or a single one for all.
    with_prior
        Whether the Gaussian part of theta's prior is in the draws already.
    noise_precision
        Of the whitened noise, (s, q, q), where it was sampled.
    """

    at_data: Array
    at_nodes: Array
    beta: Array
    theta: Array
    records: dict[str, list[Array]]
    with_prior: bool
    noise_precision: Array | None = None


def gaussian_draws(problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> Regressed:
    """Independent draws for Gaussian processes: (theta, w) is Gaussian, with b = L w and w ~ N(0, I).

    y - f(theta_tilde) = G u + (L - G lambda(L)) w + e,   u = theta - theta_tilde ~ its Gaussian prior, or flat
    """
    n, q, p = linear.at_data.shape
    root = bias.prior_root()
    taken = linear.coefficients @ root[n:].reshape(-1, root.shape[2])
    gradient = np.concatenate([linear.at_data, linear.at_nodes])
    # in units of the gradients' lengths, whatever the units of theta
    unit = 1 / np.sqrt(np.diag(problem.sensitivity.gram))
    design = np.concatenate([gradient * unit, root - gradient @ taken], axis=2)
    own = design[:n].reshape(n * q, -1)
    weighted = np.einsum("nkl,nlu->nku", problem.noise.precision, design[:n]).reshape(n * q, -1)
    H = own.T @ weighted
    H[np.diag_indices_from(H)] += np.concatenate([linear.precision * unit**2, np.ones(root.shape[2])])
    lower = cholesky(H, lower=True)
    residual = problem.whiten(problem.complete_y - problem.fit)
    information = weighted.T @ residual.ravel()
    information[:p] += linear.pull * unit
    mean = cho_solve((lower, True), information)
    normal = np.concatenate([rng.standard_normal((plan.draws, len(mean))) for rng in plan.rngs])
    drawn = mean + solve_triangular(lower, normal.T, lower=True, trans=1).T
    white = drawn[:, p:]
    real = np.einsum("xku,su->sxk", design, drawn)
    moved = drawn[:, :p] * unit
    state = bias.processes_at(white)
    records = {name: [values] for name, values in bias.records(state).items()}
    theta = problem.theta_tilde + moved
    return Regressed(real[:, :n], real[:, n:], moved - white @ taken.T, theta, records, with_prior=True)


def gibbs_draws(problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> Regressed:
    """A Markov chain for any prior: beta | b, a Gaussian of dimension p, and b | beta, one update of its sampler."""
    run = _Gibbs(problem, plan, bias, linear)
    run_chains(run, plan.warmup, plan.draws)
    return run.finished()


class _Gibbs:
    def __init__(self, problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> None:
        self._problem, self._plan, self._bias, self._linear = problem, plan, bias, linear
        self._residual = problem.whiten(problem.complete_y - problem.fit)
        noise = problem.noise
        self._noise = NoiseSampler(noise) if noise.source is NoiseSource.SAMPLED else None
        chains = len(plan.rngs)
        self._precision = None if self._noise is None else self._noise.start(chains)
        self._beta: Array = np.zeros((chains, problem.parameters.p))
        self._state: OutcomesState | None = None
        self._kept: list[tuple[Array, Array, Array | None]] = []
        self._records: list[dict[str, Array]] = []

    def step(self) -> tuple[Array, ...]:
        rngs = self._plan.rngs
        linear = np.einsum("nkp,cp->cnk", self._linear.at_data, self._beta)
        residual = np.broadcast_to(self._residual, linear.shape)
        if self._noise is not None and self._precision is not None:
            before = linear if self._state is None else linear + self._state.bias
            residual = before + self._noise.completed(rngs, residual - before, self._precision)
        self._state, self._values = self._bias.draw(rngs, self._state, residual - linear, self._precision)
        self._beta = self._drawn_beta(residual - self._state.bias)
        if self._noise is not None:
            fit = np.einsum("nkp,cp->cnk", self._linear.at_data, self._beta) + self._state.bias
            self._precision = self._noise.draw(rngs, residual - fit)
        return ()

    def adapt(self, *window: Array) -> None:
        """There is nothing to tune: the samplers of the bias tune themselves."""

    def keep(self, s: int) -> None:
        assert self._state is not None
        self._kept.append((self._values, self._beta, self._precision))
        self._records.append(self._bias.records(self._state))

    def _drawn_beta(self, left: Array) -> Array:
        """beta ~ N(B^-1 G'P r, B^-1), B = G'P G, for r (c, n, q)."""
        G = self._linear.at_data
        rows = self._problem.noise.precision[None] if self._precision is None else self._precision[:, None]
        weighted = np.einsum(
            "cnkl,nlp->cnkp", np.broadcast_to(rows, (len(left), *self._problem.noise.precision.shape)), G
        )
        lower = np.linalg.cholesky(np.einsum("nkp,cnkr->cpr", G, weighted))
        pull = np.einsum("cnkp,cnk->cp", weighted, left)
        normal = np.array([rng.standard_normal(G.shape[2]) for rng in self._plan.rngs])
        half = np.linalg.solve(lower, pull[..., None])[..., 0]
        return np.asarray(np.linalg.solve(lower.swapaxes(1, 2), (half + normal)[..., None])[..., 0])

    def finished(self) -> Regressed:
        n = self._problem.data.n
        values, beta, precision = zip(*self._kept, strict=True)
        bias, slopes = (_by_chain(np.stack(part, axis=1)) for part in (values, beta))
        gradient = np.concatenate([self._linear.at_data, self._linear.at_nodes])
        real = bias + np.einsum("xkp,sp->sxk", gradient, slopes)
        moved = slopes + bias[:, n:].reshape(len(bias), -1) @ self._linear.coefficients.T
        records = {name: [_by_chain(np.stack(part, axis=1))] for name, part in _stacked(self._records).items()}
        drawn = None if self._noise is None else _by_chain(np.stack(precision, axis=1))
        theta = self._problem.theta_tilde + moved
        return Regressed(real[:, :n], real[:, n:], slopes, theta, records, False, drawn)


def _by_chain(values: Array) -> Array:
    """(c, s, ...) as (c s, ...), chain after chain."""
    return np.asarray(values.reshape(-1, *values.shape[2:]))


def _stacked(records: list[dict[str, Array]]) -> dict[str, list[Array]]:
    return {name: padded_ends([one[name] for one in records]) for name in records[0]}

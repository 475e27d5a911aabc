"""Draws of the real process: y - f(., theta_tilde) = G beta + b + e, whitened, at the data points and the nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ...arrays import Array, IntArray, matrix_root
from ...bias.base import BiasSampler
from ...bias.outcomes import OutcomesBias
from ...problem.problem import Problem
from ..base import Plan
from ..fine_nodes import Integrals, Integrated, integrated
from ..stored_draws import TOGETHER

#: a prior that changes the log density by less than this within a sd of theta is left to the importance weights
WEAK_PRIOR = 0.02
#: singular values of the gradients at the data, in units of their lengths, below which a parameter is undetermined
RANK = 1e-8
#: numbers of draws at the data that are in memory together, and draws that stand for all where these are more
MOST_AT_ONCE, SOME_DRAWS = 50_000_000, 256


class Linear(NamedTuple):
    """The simulator, linearised at theta_tilde, and theta's prior there.

    Attributes
    ----------
    at_data, at_nodes
        G, (n, q, p) and (m, q, p), whitened.
    coefficients
        (p, m q): takes b at the nodes to lambda(b), the coefficients of its projection on G.
    pull, precision
        Gradient (p,) of log prior at theta_tilde and curvature (p, p): a Gaussian prior, or a flat one where it is 0.
    unit
        One over the gradients' lengths, (p,).
    basis
        The directions of theta that G is the gradient along, (parameters, p), where they are not the parameters.
    """

    at_data: Array
    at_nodes: Array
    coefficients: Array
    pull: Array
    precision: Array
    unit: Array
    basis: Array | None = None

    @classmethod
    def of(cls, problem: Problem) -> Linear:
        """For parameters that can be told apart; otherwise see ``methods/joint/identifiable.py``."""
        weighted = problem.rule.weights[:, None, None] * problem.metric
        image = np.einsum("mkl,mlp->mkp", weighted, problem.gradient_at_nodes)
        gram = problem.sensitivity.gram
        coefficients = np.linalg.solve(gram, image.reshape(-1, image.shape[2]).T)
        inside = problem.parameters.clipped(problem.theta_tilde, 1e-6)
        pull, curvature = problem.parameters.gaussian_part(inside)
        unit = 1 / np.sqrt(np.diag(gram))
        return cls(problem.gradient_at_data, problem.gradient_at_nodes, coefficients, pull, curvature, unit)

    def prior_root(self) -> Array:
        """R with R'R the precision, (p, p)."""
        own = np.diag(self.precision)
        independent = not (self.precision - np.diag(own)).any()
        return np.diag(np.sqrt(own)) if independent else matrix_root(self.precision)

    def log_prior(self, moved: Array) -> Array:
        """Log density of the Gaussian prior at theta_tilde + moved (s, p), less that at theta_tilde."""
        own = np.diag(self.precision)
        between = np.sum(moved @ (self.precision - np.diag(own)) * moved, axis=1)
        return np.asarray(moved @ self.pull - 0.5 * moved**2 @ own - 0.5 * between)


class Regressed(NamedTuple):
    """Draws of y_R - f(., theta_tilde), whitened: chain by chain, (s, ...).

    Attributes
    ----------
    at_nodes
        (s, m, q).
    at_data
        Takes numbers of draws (k,) to these at the data, (k, n, q): of many data points all draws are never made.
    beta
        (s, p).
    moved
        theta - theta_tilde where f is linear, beta + lambda(b), (s, p).
    records
        What predictions need of b, name -> (s, ...).
    samplers
        Those of the bias, one an outcome.
    stats
        Of the chain, name -> (s,).
    log_prior
        Of the Gaussian prior of theta that is in the draws, at ``moved``, (s,); zeros for a flat one.
    shift
        What that prior has added to ``moved`` after the regression, (s, p), or None.
    noise_precision
        Of the whitened noise, (s, q, q), where it was sampled.
    square
        The square of what is left of the data, in units of the noise, (s,), where that is known without ``at_data``.
    missed_square
        ∫ b² dP_x less that of b at the nodes, (s, q), where b was integrated at finer ones.
    integrated
        How well it was.
    plugged_in_var
        Of theta, (p,), given the mean of the noise and hyperparameters that are integrated over.
    together
        How many values ``at_data`` should make at a time: more where what its draws share takes long.
    """

    at_data: Callable[[IntArray], Array]
    at_nodes: Array
    beta: Array
    moved: Array
    records: dict[str, Array]
    samplers: list[BiasSampler]
    log_prior: Array
    stats: dict[str, Array]
    shift: Array | None = None
    noise_precision: Array | None = None
    square: Array | None = None
    missed_square: Array | None = None
    integrated: Integrated | None = None
    plugged_in_var: Array | None = None
    together: int = TOGETHER

    def with_integration(
        self, problem: Problem, integrals: Integrals | None, linear: Linear, moved: Array | None = None
    ) -> Regressed:
        """With how well the bias was integrated; ``moved`` are the draws of theta, if they are others than these."""
        if integrals is None or linear.basis is not None:
            return self
        theta = self.moved if moved is None else moved
        found = integrated(problem, integrals, self.samplers, self.records, theta, linear.coefficients)
        return self._replace(integrated=found)

    @property
    def bias_notes(self) -> dict[str, Any]:
        """What ``RunNotes`` say of the bias."""
        nodes, moved = (None, None) if self.integrated is None else self.integrated
        findings = tuple(sampler.findings() for sampler in self.samplers)
        plugged_in = None if self.plugged_in_var is None else tuple(self.plugged_in_var.tolist())
        return {"bias": findings, "bias_nodes": nodes, "bias_nodes_moved": moved, "plugged_in_var": plugged_in}

    @classmethod
    def of(
        cls,
        linear: Linear,
        bias: Array,
        beta: Array,
        records: dict[str, Array],
        samplers: list[BiasSampler],
        stats: dict[str, Array],
        noise_precision: Array | None = None,
    ) -> Regressed:
        """From a chain's b at data and nodes (c, s, n + m, q) and beta (c, s, p), with a flat prior of beta."""
        values, slopes = by_chain(bias), by_chain(beta)
        n = len(linear.at_data)
        gradient = np.concatenate([linear.at_data, linear.at_nodes])
        real = values + np.einsum("xkp,sp->sxk", gradient, slopes)
        moved = slopes + values[:, n:].reshape(len(values), -1) @ linear.coefficients.T
        return cls(
            in_memory(real[:, :n]),
            real[:, n:],
            slopes,
            moved,
            {name: by_chain(value) for name, value in records.items()},
            samplers,
            np.zeros(len(moved)),
            {name: by_chain(value) for name, value in stats.items()},
            noise_precision=None if noise_precision is None else by_chain(noise_precision),
        )


def with_prior(linear: Linear, free: Regressed, rngs: list[np.random.Generator]) -> Regressed:
    """Draws with a flat prior of theta, N(l, C) there, combined with the Gaussian part of its prior, N(m, V).

    Each draw l_s is combined with a draw t_s of the prior: theta_s = (C^-1 + V^-1)^-1 (C^-1 l_s + V^-1 t_s). What moves
    theta moves y_R by its regression on l over the draws: exact where all is Gaussian.
    """
    spread = free.moved.std(axis=0)
    if max((np.abs(linear.pull) * spread).max(), (np.diag(linear.precision) * spread**2).max()) < WEAK_PRIOR:
        return free
    information = np.linalg.inv(np.atleast_2d(np.cov(free.moved.T)))
    each = len(free.moved) // len(rngs)
    normal = np.concatenate([rng.standard_normal((each, len(linear.pull))) for rng in rngs])
    pull = linear.pull + normal @ linear.prior_root()
    combined = np.linalg.solve(information + linear.precision, (free.moved @ information + pull).T).T
    along = shifted(linear, free, combined - free.moved)
    return along._replace(moved=combined, log_prior=linear.log_prior(combined))


def shifted(linear: Linear, free: Regressed, shift: Array) -> Regressed:
    """Draws whose theta is moved by ``shift`` (s, p), and y_R by its regression on theta over the draws."""
    at_nodes = free.at_nodes + np.einsum("sp,pxk->sxk", shift, regressed_on(free.moved, free.at_nodes))
    slopes, given = slopes_at_data(linear, free), free.at_data

    def at_data(rows: IntArray) -> Array:
        return np.asarray(given(rows) + np.einsum("sp,pxk->sxk", shift[rows], slopes))

    whole = shift if free.shift is None else free.shift + shift
    return free._replace(at_data=at_data, at_nodes=at_nodes, moved=free.moved + shift, shift=whole)


def slopes_at_data(linear: Linear, free: Regressed) -> Array:
    """``regressed_on`` of the draws at the data, (p, n, q); of many data by some draws, one after the other."""
    count, (n, q, p) = len(free.moved), linear.at_data.shape
    if count * n * q <= MOST_AT_ONCE:
        return regressed_on(free.moved, free.at_data(np.arange(count)))
    some = np.linspace(0, count - 1, max(SOME_DRAWS, 4 * p)).round().astype(np.intp)
    away = free.moved[some] - free.moved[some].mean(axis=0)
    # the pseudo-inverse takes values to slopes: its rows add up to zero, so that values need no centring
    weights, slopes = np.linalg.pinv(away), np.zeros((p, n, q))
    for place, row in enumerate(some):
        slopes += weights[:, place, None, None] * free.at_data(row[None])[0]
    return slopes


def in_memory(values: Array) -> Callable[[IntArray], Array]:
    """``Regressed.at_data`` of draws that are all there, (s, n, q)."""
    return values.__getitem__


def regressed_on(moved: Array, values: Array) -> Array:
    """Slopes (p, ...) of values (s, ...) on ``moved`` (s, p), over the draws."""
    centred = values - values.mean(axis=0)
    found = np.linalg.lstsq(moved - moved.mean(axis=0), centred.reshape(len(values), -1), rcond=None)[0]
    return np.asarray(found.reshape(-1, *values.shape[1:]))


def gaussian_draws(problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> Regressed:
    """Independent draws for Gaussian processes: (u, w) is Gaussian, with b = L w and w ~ N(0, I).

    y - f(theta_tilde) = G u + (L - G lambda(L)) w + e,   u = theta - theta_tilde ~ its Gaussian prior, or flat
    """
    n, q, p = linear.at_data.shape
    root, gradient = bias.prior_root(), np.concatenate([linear.at_data, linear.at_nodes])
    taken = linear.coefficients @ root[n:].reshape(-1, root.shape[2])
    # in units of the gradients' lengths, whatever the units of theta
    columns = np.concatenate([gradient * linear.unit, root - gradient @ taken], axis=2)
    own = columns[:n].reshape(n * q, -1)
    weighted = problem.noise.weighed(columns[:n]).reshape(n * q, -1)
    H = own.T @ weighted
    H[:p, :p] += linear.precision * np.outer(linear.unit, linear.unit)
    H[np.arange(p, len(H)), np.arange(p, len(H))] += 1.0
    lower = cholesky(H, lower=True)
    information = weighted.T @ problem.whiten(problem.complete_y - problem.fit).ravel()
    information[:p] += linear.pull * linear.unit
    mean = cho_solve((lower, True), information)
    normal = np.concatenate([rng.standard_normal((plan.draws, len(mean))) for rng in plan.rngs])
    drawn = mean + solve_triangular(lower, normal.T, lower=True, trans=1).T
    real = (drawn @ columns.reshape(-1, columns.shape[2]).T).reshape(len(drawn), -1, q)
    moved, white = drawn[:, :p] * linear.unit, drawn[:, p:]
    return Regressed(
        in_memory(real[:, :n]),
        real[:, n:],
        moved - white @ taken.T,
        moved,
        bias.records(bias.processes_at(white)),
        bias.samplers,
        linear.log_prior(moved),
        {},
    )


def by_chain(values: Array) -> Array:
    """(c, s, ...) as (c s, ...), chain after chain."""
    return np.asarray(values.reshape(-1, *values.shape[2:]))

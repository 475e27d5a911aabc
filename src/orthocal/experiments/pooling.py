"""mu and tau of pooled parameters, from draws under flat priors.

    l_s ~ N(m, C) flat,   (mu, tau) ~ pi(mu) pi(tau) N(m_a; mu, C_a + tau² I),
    theta_s = l_s + C A'(C_a + tau_s² I)^-1 (t_s - A l_s),   t_s ~ N(mu_s, tau_s² I)

A picks the pooled values. Exact where all is Gaussian.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..methods.base import Plan
from ..methods.joint.regress import Linear, Regressed, shifted
from .pooled import Pool

#: places of mu and of tau at which their density is looked at, twice: the second time where there is any
GRID = 240
#: what is less dense than this, beside the densest, is left out the second time
NOTHING = 1e-9


class Hyper(NamedTuple):
    """Draws of mu and tau (s,), the pooled values theta_e - theta_tilde that the draws were combined to, (s, e)."""

    pool: Pool
    mu: Array
    tau: Array

    def log_density(self, values: Array) -> Array:
        """log N(values (s, e); mu, tau²) summed over the experiments, (s,), but for what does not depend on values."""
        return np.asarray(-0.5 * np.sum((values - self.mu[:, None]) ** 2, axis=1) / self.tau**2)


def with_pooling(
    linear: Linear, free: Regressed, pools: tuple[Pool, ...], tilde: Array, plan: Plan
) -> tuple[Regressed, list[Hyper]]:
    """The draws with pooled values, one pool after the other, and mu and tau of each."""
    found: list[Hyper] = []
    for pool in pools:
        hyper, moved = _pooled(free.moved, pool, tilde, plan)
        shift = moved - free.moved
        free = shifted(linear, free, shift)
        found.append(hyper)
    return free, found


def _pooled(moved: Array, pool: Pool, tilde: Array, plan: Plan) -> tuple[Hyper, Array]:
    """mu and tau of one pool, and theta - theta_tilde with it, (s, p)."""
    columns = list(pool.columns)
    mean, cov = moved.mean(axis=0), np.atleast_2d(np.cov(moved.T))
    own = cov[np.ix_(columns, columns)]
    values, vectors = np.linalg.eigh(own)
    values = np.maximum(values, 0.0)
    mu, tau = _hyper_draws(pool, tilde[columns] + mean[columns], values, vectors, plan)
    each = [rng.standard_normal((plan.draws, len(columns))) for rng in plan.rngs]
    target = mu[:, None] + tau[:, None] * np.concatenate(each) - tilde[columns]
    away = (target - moved[:, columns]) @ vectors
    gain = away / (values + tau[:, None] ** 2)
    return Hyper(pool, mu, tau), np.asarray(moved + gain @ (cov[:, columns] @ vectors).T)


def _hyper_draws(pool: Pool, centre: Array, values: Array, vectors: Array, plan: Plan) -> tuple[Array, Array]:
    """Draws of (mu, tau) from their density on a grid, spread evenly over its cells."""
    errors = np.sqrt(np.einsum("ij,j,ij->i", vectors, values, vectors))
    mu_ends, tau_ends = pool.range(centre, errors)
    for _ in range(2):
        mu, tau = (ends[0] + np.diff(ends) * (np.arange(GRID) + 0.5) / GRID for ends in (mu_ends, tau_ends))
        density = _density(pool, centre, values, vectors, mu, tau)
        width = (mu[1] - mu[0], tau[1] - tau[0])
        dense = density > NOTHING * density.max()
        mu_there, tau_there = mu[dense.any(axis=1)], tau[dense.any(axis=0)]
        mu_ends = np.clip([mu_there[0] - width[0], mu_there[-1] + width[0]], *mu_ends)
        tau_ends = np.clip([tau_there[0] - width[1], tau_there[-1] + width[1]], *tau_ends)
    # one after the other in the order of the density: even draws, and each chain has its own
    cumulative = np.cumsum(density.ravel())
    places, inside = [], []
    for rng in plan.rngs:
        uniform = rng.random(plan.draws) * cumulative[-1]
        places.append(np.minimum(np.searchsorted(cumulative, uniform), density.size - 1))
        inside.append(rng.random((plan.draws, 2)) - 0.5)
    row, column = np.divmod(np.concatenate(places), GRID)
    jitter = np.concatenate(inside)
    return mu[row] + jitter[:, 0] * width[0], np.maximum(tau[column] + jitter[:, 1] * width[1], 1e-6 * width[1])


def _density(pool: Pool, centre: Array, values: Array, vectors: Array, mu: Array, tau: Array) -> Array:
    """pi(mu) pi(tau) N(centre; mu, C + tau²), in units of its largest value, (mu, tau)."""
    var = values[None, :] + tau[:, None] ** 2
    turned, ones = centre @ vectors, np.ones(len(centre)) @ vectors
    away = turned[None, :] - mu[:, None] * ones[None, :]
    squares = np.einsum("me,te->mt", away**2, 1 / var)
    log = -0.5 * squares - 0.5 * np.log(var).sum(axis=1)[None, :]
    with np.errstate(divide="ignore"):
        log = log + np.asarray(pool.mean.logpdf(mu))[:, None] + np.asarray(pool.sd.logpdf(tau))[None, :]
    return np.asarray(np.exp(log - log.max()))

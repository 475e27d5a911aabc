"""What the simulator's curvature, beside a large bias, does to the posterior of theta.

The best theta of the loss is where <g(theta), y_R - f(theta)> = 0. What noise moves y_R moves it by H^-1 times what
it adds to that product, with H = Q - K, Q_jl = <g_j, g_l> and K_jl = <b, d^2 f / dt_j dt_l>. A projection at
theta_tilde knows Q alone: deviations of theta should be H^-1 Q times those that it draws.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..arrays import Array
from ..methods.joint.expansion import second_differences
from ..problem.problem import Problem

#: differences reach so many posterior sds in every direction: shorter ones would show the roughness of an emulator
REACH, LEAST_REACH = 2.0, 0.2
#: smallest eigenvalue of H relative to Q at which the loss still counts as having a minimum
LEAST_CURVATURE = 0.05


def curvature_factors(problem: Problem, theta: Array, bias: Array) -> Array | None:
    """By what the posterior sd of each parameter should be multiplied, (p,).

    NaN where H has no minimum; None where theta_tilde is so close to a bound that there is no room to look, or where
    the simulator fails around it.

    Parameters
    ----------
    theta
        Draws, (s, p).
    bias
        Posterior mean of the projected bias at the data, (n, q).
    """
    cov = np.atleast_2d(np.cov(theta.T))
    # in coordinates u, theta = theta_tilde + root u, the posterior has unit covariance
    root = np.linalg.cholesky(cov)
    reach = _room(problem, root)
    if reach < LEAST_REACH:
        return None
    product = _product(problem, bias, root * reach) / reach**2
    if not np.isfinite(product).all():
        return None
    gram = root.T @ problem.sensitivity_at_data.gram @ root
    inverse = np.linalg.inv(np.linalg.cholesky(gram))
    if not np.linalg.eigvalsh(inverse @ (gram - product) @ inverse.T).min() > LEAST_CURVATURE:
        return np.full(len(cov), np.nan)
    stretched = root @ np.linalg.solve(gram - product, gram)
    return np.asarray(np.sqrt((stretched**2).sum(axis=1) / np.diag(cov)))


def _room(problem: Problem, root: Array) -> float:
    """How far differences can reach, at most ``REACH``, so that all their points lie within the priors' support."""
    best, support = problem.theta_tilde, problem.parameters
    # of two directions together, the farthest any point goes in each parameter
    farthest = np.sort(np.abs(root), axis=1)[:, -2:].sum(axis=1)
    return float(min(REACH, *(0.99 * np.minimum(best - support.lower, support.upper - best) / farthest)))


def _product(problem: Problem, bias: Array, steps: Array) -> Array:
    """<b, second differences of f along the columns of ``steps``>, (p, p)."""
    p = len(steps)
    pairs = list(combinations(range(p), 2))
    weighted = problem.volumes[:, None] * (problem.whiten(bias) @ problem.metric)

    def along(theta: Array) -> Array:
        model = problem.whiten(problem.simulator.batch(problem.data.x, theta))
        return np.asarray(np.einsum("nq,cnq->c", weighted, model))

    _, straight, mixed = second_differences(along, problem.theta_tilde, steps.T, pairs)
    product = np.diag(np.array(straight))
    for (j, k), change in zip(pairs, mixed, strict=True):
        product[j, k] = product[k, j] = change
    return product

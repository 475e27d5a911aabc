"""What the simulator's curvature, beside a large bias, does to the posterior of theta.

The best theta of the loss is where <g(theta), y_R - f(theta)> = 0. What noise moves y_R moves it by H^-1 times what
it adds to that product, with H = Q - K, Q_jl = <g_j, g_l> and K_jl = <b, d^2 f / dt_j dt_l>. A projection at
theta_tilde knows Q alone: deviations of theta should be H^-1 Q times those that it draws.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .problem import Problem

#: smallest eigenvalue of H relative to Q at which the loss still counts as having a minimum
LEAST_CURVATURE = 0.05


def curvature_factors(problem: Problem, theta: Array, bias: Array) -> Array | None:
    """By what the posterior sd of each parameter should be multiplied, (p,); None where H has no minimum.

    Parameters
    ----------
    theta
        Draws, (s, p).
    bias
        Posterior mean of the projected bias at the data, (n, q).
    """
    weighted = problem.volumes[:, None] * (problem.whiten(bias) @ problem.metric)
    best, p = problem.theta_tilde, theta.shape[1]
    # over the width of the posterior: a rough emulator has no shorter derivatives
    steps = theta.std(axis=0) * np.eye(p)
    product = np.empty((p, p))
    for j, step in enumerate(steps):
        low, high = (problem.parameters.clipped(best + side * step, 1e-6) for side in (-1, 1))
        change = problem.whitened_gradient(problem.data.x, high) - problem.whitened_gradient(problem.data.x, low)
        product[j] = np.einsum("nq,nqp->p", weighted, change) / (high - low)[j]
    gram = problem.sensitivity_at_data.gram
    hessian = gram - (product + product.T) / 2
    root = np.linalg.inv(np.linalg.cholesky(gram))
    if not np.linalg.eigvalsh(root @ hessian @ root.T).min() > LEAST_CURVATURE:
        return None
    stretch = np.linalg.solve(hessian, gram)
    cov = np.atleast_2d(np.cov(theta.T))
    return np.asarray(np.sqrt(np.diag(stretch @ cov @ stretch.T) / np.diag(cov)))

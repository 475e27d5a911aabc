"""The posterior in closed form where f is linear in theta, written from the formulas alone.

    y = f_0 + G theta + b + e,   b ~ GP(0, K),   e ~ N(0, s^2),   theta flat
    y_R given y is Gaussian;   theta = Q^-1 ∫ G' (y_R - f_0) dP_x,   Q = ∫ G'G dP_x
    so theta ~ N(l, C); with a prior N(m, V) its precision is C^-1 + V^-1

Nothing here uses the methods of this package, which are tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from ..arrays import Array


class ExactPosterior(NamedTuple):
    """The Gaussian law of theta: mean (p,) and covariance (p, p).

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> law = oc.examples.ExactPosterior(np.array([1.0, 2.0]), np.diag([0.04, 0.25]))
    >>> law.sd
    array([0.2, 0.5])
    """

    mean: Array
    cov: Array

    @property
    def sd(self) -> Array:
        """Standard deviations, (p,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.examples.ExactPosterior(np.array([1.0, 2.0]), np.diag([0.04, 0.25])).sd
        array([0.2, 0.5])
        """
        return np.sqrt(np.diag(self.cov))

    def draws(self, rng: np.random.Generator, count: int) -> Array:
        """Independent reference draws of theta, (count, p).

        Parameters
        ----------
        rng
            Of the draws.
        count
            Their number.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> law = oc.examples.ExactPosterior(np.array([1.0, 2.0]), np.diag([0.04, 0.25]))
        >>> law.draws(np.random.default_rng(1), 100).shape
        (100, 2)
        """
        return rng.multivariate_normal(self.mean, self.cov, size=count)


def linear_posterior(
    x: Array,
    y: Array,
    parts: Callable[[Array], tuple[Array, Array]],
    rule: tuple[Array, Array],
    hyperparameters: tuple[float, float, float],
    noise_var: float,
    prior: Sequence[tuple[float, float]] | None,
) -> ExactPosterior:
    """The law of theta for f = f_0 + G theta.

    ``parts`` maps points (m, d) to f_0 (m,) and G (m, p); ``rule`` is the nodes and weights of P_x;
    ``hyperparameters`` are the Matern kernel's smoothness, sd and length-scale; ``prior`` has mean and variance of each
    parameter's Gaussian prior, None for flat ones.
    """
    nodes, weights = rule
    base, G = parts(nodes)
    mean, cov = real_process(x, y, parts, nodes, hyperparameters, noise_var)
    A = np.linalg.solve(G.T @ (weights[:, None] * G), G.T * weights)
    location, C = A @ (mean - base), A @ cov @ A.T
    if prior is None:
        return ExactPosterior(location, C)
    centre, var = np.array(prior, dtype=float).T
    total = np.linalg.inv(np.linalg.inv(C) + np.diag(1 / var))
    return ExactPosterior(total @ (np.linalg.solve(C, location) + centre / var), total)


def real_process(
    x: Array,
    y: Array,
    parts: Callable[[Array], tuple[Array, Array]],
    nodes: Array,
    hyperparameters: tuple[float, float, float],
    noise_var: float,
) -> tuple[Array, Array]:
    """Mean (m,) and covariance (m, m) of y_R at the nodes given y, for y_R = f_0 + G beta + b with beta flat."""
    base, G = parts(x)
    base_nodes, G_nodes = parts(nodes)
    S = matern(x, x, *hyperparameters) + noise_var * np.eye(len(x))
    K = matern(nodes, x, *hyperparameters)
    smoother = np.linalg.solve(S, K.T).T
    B = np.linalg.inv(G.T @ np.linalg.solve(S, G))
    beta = B @ G.T @ np.linalg.solve(S, y - base)
    lost = G_nodes - smoother @ G
    mean = base_nodes + G_nodes @ beta + smoother @ (y - base - G @ beta)
    return mean, matern(nodes, nodes, *hyperparameters) - smoother @ K.T + lost @ B @ lost.T


def matern(a: Array, b: Array, nu: float, sd: float, lengthscale: float) -> Array:
    """sd^2 times the Matern correlation of smoothness 1/2, 3/2, 5/2 or infinity, between rows of a and b."""
    r = cdist(a, b) / lengthscale
    if np.isinf(nu):
        return np.asarray(sd**2 * np.exp(-0.5 * r**2))
    s = np.sqrt(2 * nu) * r
    polynomial = {0.5: np.ones_like(s), 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}
    return np.asarray(sd**2 * polynomial[nu] * np.exp(-s))

"""The exact law of the projected sampler for a simulator that is linear in theta, f = G theta.

Written from the formulas alone, with none of the package's code. With B = Cov(b, z) Cov(z)^-1 the regression of the
bias on the residual z = y - G theta_k, P the projection (b* = P b at the data), S the covariance of b given z and
V = (G'G / s2 + I / t2)^-1,

    b* | theta_k ~ N(P B (y - G theta_k), P S P')
    theta_k+1 | b* ~ N(V G'(y - b*) / s2, V)

so theta is a Gaussian autoregression theta_k+1 = c + A theta_k + e with A = V G' P B G / s2; without feedback
theta_k is theta_tilde throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, solve_discrete_lyapunov, sqrtm
from scipy.special import gamma, kv


class Law(NamedTuple):
    mean: np.ndarray
    cov: np.ndarray
    lag_one: np.ndarray


def matern(a: np.ndarray, b: np.ndarray, nu: float, sd: float, lengthscale: float) -> np.ndarray:
    """The Matern covariance by its Bessel function (the paper's formula)."""
    distance = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=-1))
    scaled = np.sqrt(2 * nu) * np.maximum(distance, 1e-12) / lengthscale
    return sd**2 * 2 ** (1 - nu) / gamma(nu) * scaled**nu * kv(nu, scaled)


def projected_law(
    x: np.ndarray,
    y: np.ndarray,
    G: np.ndarray,
    nodes: np.ndarray,
    weights: np.ndarray,
    G_nodes: np.ndarray,
    volumes: np.ndarray,
    *,
    nu: float,
    sd: float = 1.0,
    lengthscale: float = 0.5,
    noise_var: float = 0.04,
    prior_var: float = 100.0,
    finite: bool = False,
    feedback: bool = True,
) -> Law:
    n, p = G.shape
    points = x if finite else np.vstack([x, nodes])
    K = matern(points, points, nu, sd, lengthscale)
    noisy = K[:n, :n] + noise_var * np.eye(n)
    B = np.linalg.solve(noisy, K[:n]).T
    S = K - B @ K[:n]
    if finite:
        A_constraint = volumes[:, None] * G
        P = np.eye(n) - S @ A_constraint @ np.linalg.solve(A_constraint.T @ S @ A_constraint, A_constraint.T)
    else:
        gram = G_nodes.T @ (weights[:, None] * G_nodes)
        P = np.hstack([np.eye(n), -G @ np.linalg.solve(gram, (weights[:, None] * G_nodes).T)])
    V = np.linalg.inv(G.T @ G / noise_var + np.eye(p) / prior_var)
    gain = V @ G.T / noise_var
    A = gain @ P @ B @ G
    step = V + gain @ P @ S @ P.T @ gain.T
    constant = gain @ (y - P @ B @ y)
    if not feedback:
        # the best fit to the domain: every point counts by its share of it
        root = np.sqrt(volumes)
        tilde = np.linalg.lstsq(root[:, None] * G, root * y, rcond=None)[0]
        return Law(constant + A @ tilde, step, np.zeros((p, p)))
    return Law(np.linalg.solve(np.eye(p) - A, constant), solve_discrete_lyapunov(A, step), A)


def projected_law_of_outcomes(
    x: np.ndarray,
    y: np.ndarray,
    G: np.ndarray,
    nodes: np.ndarray,
    weights: np.ndarray,
    G_nodes: np.ndarray,
    volumes: np.ndarray,
    *,
    noise_cov: np.ndarray,
    typical_cov: np.ndarray,
    loss_weight: np.ndarray,
    nu: float,
    sd: float,
    lengthscale: float,
    prior_var: float,
    finite: bool = False,
) -> Law:
    """The same for q outcomes, y (n, q) with NaN where a cell is missing, G (n, q, p), noise_cov (n, q, q).

    Everything is in the outcomes' units, one cell after the other, and only observed cells enter. The bias is
    U c(x) with independent components c_k of sd ``sd`` / s_k, where U = V^1/2 P^1/2, V = diag(s_k^2) the variances
    and P the correlations of ``typical_cov``.
    """
    (n, q), p = y.shape, G.shape[2]
    points = x if finite else np.vstack([x, nodes])
    s = np.sqrt(np.diag(typical_cov))
    U = np.diag(s) @ np.real(sqrtm(typical_cov / np.outer(s, s)))
    between = U @ np.diag((sd / s) ** 2) @ U.T
    K = np.kron(matern(points, points, nu, 1.0, lengthscale), between)
    seen = np.flatnonzero(~np.isnan(y.ravel()))
    noise = block_diag(*noise_cov)[np.ix_(seen, seen)]
    G_seen, z = G.reshape(-1, p)[seen], y.ravel()[seen]
    B = np.linalg.solve(K[np.ix_(seen, seen)] + noise, K[seen]).T
    S = K - B @ K[seen]
    if finite:
        C = (volumes[:, None, None] * np.einsum("kl,nlp->nkp", loss_weight, G)).reshape(-1, p)
        P = np.eye(n * q) - S @ C @ np.linalg.solve(C.T @ S @ C, C.T)
    else:
        weighted = (weights[:, None, None] * np.einsum("kl,mlp->mkp", loss_weight, G_nodes)).reshape(-1, p)
        gram = G_nodes.reshape(-1, p).T @ weighted
        P = np.hstack([np.eye(n * q), -G.reshape(-1, p) @ np.linalg.solve(gram, weighted.T)])
    P = P[seen]
    precision = np.linalg.inv(noise)
    V = np.linalg.inv(G_seen.T @ precision @ G_seen + np.eye(p) / prior_var)
    gain = V @ G_seen.T @ precision
    A = gain @ P @ B @ G_seen
    step = V + gain @ P @ S @ P.T @ gain.T
    return Law(np.linalg.solve(np.eye(p) - A, gain @ (z - P @ B @ z)), solve_discrete_lyapunov(A, step), A)

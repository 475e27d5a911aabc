"""The restricted likelihood of a process at many hyperparameters, without a gradient.

    log p(z | v) = -(c (log|S| + log|B'S^-1 B|) + |(1 - P) L^-1 z|^2) / 2,   S = L L' = sd^2 k + noise,

P the projection on L^-1 B, for c columns z: that of ``restricted_deviance``. What does not depend on v is kept.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..arrays import Array
from .gaussian_process import radial_correlation


class RestrictedDensity:
    """Of values z (n, c) at x (n, k), for v = log (sd, length-scales, noise variance)."""

    def __init__(self, x: Array, z: Array, nu: float, basis: Array, relative_var: Array) -> None:
        """``basis`` (n, r) has flat coefficients; noise variances are relative to that of v."""
        self._nu, self._relative_var, self._r = nu, relative_var, basis.shape[1]
        self._columns = np.hstack([basis, z])
        # each pair of points once
        self._pairs = np.tril_indices(len(x), -1)
        self._squares = ((x[self._pairs[0]] - x[self._pairs[1]]) ** 2).T.copy()

    def __call__(self, values: Array) -> float:
        """Up to a constant; -inf where rounding leaves no positive definite covariance."""
        var, noise_var = np.exp(2 * values[0]), np.exp(values[-1])
        covariance = np.diag(var + noise_var * self._relative_var)
        covariance[self._pairs] = var * radial_correlation(np.exp(-2 * values[1:-1]) @ self._squares, self._nu)
        try:
            lower = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -np.inf
        white = solve_triangular(lower, self._columns, lower=True, check_finite=False)
        orthogonal, triangle = np.linalg.qr(white[:, : self._r])
        rest = white[:, self._r :] - orthogonal @ (orthogonal.T @ white[:, self._r :])
        log_det = np.log(np.diag(lower)).sum() + np.log(np.abs(np.diag(triangle))).sum()
        return -float(rest.shape[1] * log_det + np.sum(rest**2) / 2)

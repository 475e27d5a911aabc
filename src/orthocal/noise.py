"""The noise of the field data: covariance Sigma_F, known or estimated, and the whitening it defines.

Whitened coordinates are T y with T = P^(-1/2) V^(-1/2), where Sigma_F = V^(1/2) P V^(1/2), V the variances and
P the correlations. Unlike Sigma_F^(-1/2) or a Cholesky factor, T follows both a change of an outcome's unit and
a change of the outcomes' order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Array, as_floats, is_positive_definite, is_symmetric
from .data import FieldData
from .errors import InputError
from .gaussian_process import fit_hyperparameters


@dataclass(frozen=True)
class Noise:
    """The noise of every observation: cov(e_i) = V_i^(1/2) P V_i^(1/2).

    Attributes
    ----------
    cov
        (q, q), the covariance; where it differs between points, that of a typical point.
    relative_var
        (n, q), the variance of each cell relative to ``cov``; all ones where it is the same everywhere.
    source
        ``"known"`` or ``"estimated"``.
    """

    cov: Array
    relative_var: Array
    source: str

    @cached_property
    def whitener(self) -> Array:
        """T, (q, q): T cov T' = I."""
        sd = np.sqrt(np.diag(self.cov))
        values, vectors = np.linalg.eigh(self.cov / np.outer(sd, sd))
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T / sd)

    @cached_property
    def unwhitener(self) -> Array:
        """The inverse of T."""
        return np.linalg.inv(self.whitener)


def known_noise(noise_cov: Any, n: int, q: int) -> Noise:
    """Noise from the user's variance(s): a number, (q,), (q, q) or (n, q, q)."""
    given = as_floats(noise_cov, "noise_cov")
    if not np.isfinite(given).all():
        raise InputError("noise_cov must be finite")
    if given.ndim == 3 and given.shape == (n, q, q):
        return _noise_by_point(given)
    if given.ndim == 0:
        cov: Array = np.eye(q) * given
    elif given.shape == (q,):
        cov = np.diag(given)
    elif given.shape == (q, q):
        cov = given
    else:
        given_as = " x ".join(map(str, given.shape))
        variances = "one variance" if q == 1 else f"a ({q}, {q}) matrix, {q} variances"
        raise InputError(
            f"y has {q} outcome{'s' * (q > 1)} but noise_cov is {given_as}: give {variances}, "
            f'one matrix a point ({n}, {q}, {q}), or "estimate"'
        )
    _check_covariance(cov, "noise_cov")
    return Noise(cov, np.ones((n, q)), "known")


def estimated_noise(data: FieldData, span: Array) -> Noise:
    """Noise variance by a Gaussian-process regression of y on x (replicated x sharpen it by themselves).

    The regression has a linear trend and a Matern-5/2 covariance; the variance maximises its restricted
    likelihood.
    """
    if data.q > 1:
        raise InputError(
            f"y has {data.q} outcomes: their noise cannot be estimated yet, "
            f"give noise_cov as a ({data.q}, {data.q}) matrix"
        )
    n, d = data.x.shape
    if n < d + 4:
        raise InputError(f"{n} observations are too few to estimate the noise: give its variance as noise_cov")
    scale = np.where(np.ptp(data.x, axis=0) > 0, np.ptp(data.x, axis=0), 1.0)
    centred = (data.x - data.x.mean(axis=0)) / scale
    trend = np.column_stack([np.ones(n), centred[:, np.ptp(centred, axis=0) > 0]])
    if np.linalg.matrix_rank(trend) < trend.shape[1]:
        trend = trend[:, :1]
    values = data.y[:, 0]
    unit = float(np.std(values)) or 1.0
    fit = fit_hyperparameters(
        data.x, (values - values.mean()) / unit, nu=2.5, span=span, basis=trend, relative_var=np.ones(n)
    )
    if "noise" in fit.at_bound:
        raise InputError(
            "the noise variance cannot be estimated from these data (y follows a curve without scatter, or is "
            "constant): give it as noise_cov"
        )
    return Noise(np.array([[fit.noise_var * unit**2]]), np.ones((n, 1)), "estimated")


def _noise_by_point(given: Array) -> Noise:
    if given.shape[1] > 1:
        raise InputError("a noise covariance for each point is possible for one outcome only, for the time being")
    variances = given[:, 0, 0]
    if (variances <= 0).any():
        row = int(np.flatnonzero(variances <= 0)[0])
        raise InputError(f"noise_cov is not positive in row {row}: give the variance of every observation")
    typical = float(np.exp(np.log(variances).mean()))
    return Noise(np.array([[typical]]), (variances / typical)[:, None], "known")


def _check_covariance(cov: Array, name: str) -> None:
    if len(cov) == 1 and cov[0, 0] <= 0:
        raise InputError(f"{name} is {cov[0, 0]:g}: a variance must be positive")
    if not is_symmetric(cov):
        raise InputError(f"{name} is not symmetric: a covariance matrix equals its transpose")
    if not is_positive_definite(cov):
        raise InputError(f"{name} is not positive definite: check its variances and correlations")

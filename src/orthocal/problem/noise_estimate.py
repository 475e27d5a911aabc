"""The noise covariance, estimated from the field data alone.

Each outcome is regressed on x by a Gaussian process with a linear trend, which gives its variance by restricted
likelihood. The correlations are those of what the regressions leave, M_k y_k: an admissible matrix, whatever the data
are. Each is known to about (1 - r^2) / sqrt(tr(M_k' M_l)), and they are drawn towards zero by as much as their errors
make up of them (Schaefer and Strimmer 2005): few data leave little of a correlation that they cannot tell from none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray
from ..errors import InputError
from ..progress import progress_bar
from ..regression.gaussian_process import LIKELIHOOD_POINTS, fit_hyperparameters, residual_matrix, sample_of_points
from .data import FieldData
from .noise import Noise, NoiseSource, made_definite

#: with fewer degrees of freedom in common, two outcomes' noise is taken as uncorrelated
LEAST_IN_COMMON = 8.0
#: smoothness of the regressions
NU = 2.5
#: noise of a smaller share of the variance may be none at all
LITTLE_NOISE = 1e-5
#: a factor model leaves each outcome at least this share of its variance for its own
LEAST_OWN = 0.01


@dataclass(frozen=True)
class LowRankNoise:
    """Noise covariance D + L L', D diagonal and L with ``rank`` columns, estimated from the data.

    For many outcomes: a full covariance has q (q + 1) / 2 numbers, this one q (rank + 1).
    """

    rank: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.rank, bool) or not isinstance(self.rank, int | np.integer) or self.rank < 0:
            raise InputError(f"LowRankNoise(rank={self.rank!r}): give a whole number, 0 for independent outcomes")


class _Regression(NamedTuple):
    """What the regression of one outcome leaves: noise variance, rows, residual (m,) and the matrix M (m, m)."""

    noise_var: float
    rows: IntArray
    residual: Array
    matrix: Array


def estimated_noise(data: FieldData, span: Array, low_rank: LowRankNoise | None = None) -> Noise:
    """The noise covariance: variances by restricted likelihood, covariances from what the regressions leave."""
    if low_rank is not None and low_rank.rank >= data.q:
        raise InputError(f"LowRankNoise(rank={low_rank.rank}): the rank must be below the number of outcomes, {data.q}")
    regressions = [_regression(data, k, span) for k in progress_bar(range(data.q), "noise")]
    sd = np.sqrt([one.noise_var for one in regressions])
    # only pairs that are seen in different rows can make a matrix that is not one of correlations
    correlation = made_definite(_correlation(regressions))
    if low_rank is not None:
        correlation = low_rank_correlation(correlation, low_rank.rank)
    return Noise(correlation * np.outer(sd, sd), data.observed, NoiseSource.ESTIMATED)


def _regression(data: FieldData, k: int, span: Array) -> _Regression:
    """Regress outcome k on x; replicated x sharpen the variance by themselves."""
    shared = sample_of_points(data.n, LIKELIHOOD_POINTS)
    rows = shared[data.observed[shared, k]]
    everything = np.flatnonzero(data.observed[:, k])
    x, values = data.x[everything], data.y[everything, k]
    n, d = x.shape
    label = "" if data.q == 1 else f" of {data.outcome_names[k]}"
    if n < d + 4:
        raise InputError(f"{n} observations{label} are too few to estimate the noise: give its variance as noise_cov")
    centre, unit = float(values.mean()), float(np.std(values)) or 1.0
    scaled, trend = (values - centre) / unit, _trend(x)
    fit_to = partial(fit_hyperparameters, x, scaled, nu=NU, span=span, basis=trend, relative_var=np.ones(n))
    fit = fit_to(cautious=True)
    if fit.noise_var < LITTLE_NOISE and "noise" in fit_to().at_bound:
        raise InputError(
            f"the noise variance{label} cannot be estimated from these data (y follows a curve without scatter, or is "
            "constant): give it as noise_cov"
        )
    matrix = residual_matrix(data.x[rows], NU, fit, _trend(data.x[rows]))
    return _Regression(fit.noise_var * unit**2, rows, matrix @ (data.y[rows, k] - centre), matrix)


def _trend(x: Array) -> Array:
    """A constant and the inputs that vary, (n, r)."""
    width = np.ptp(x, axis=0)
    centred = (x - x.mean(axis=0)) / np.where(width > 0, width, 1.0)
    trend = np.column_stack([np.ones(len(x)), centred[:, width > 0]])
    return trend if np.linalg.matrix_rank(trend) == trend.shape[1] else trend[:, :1]


def _correlation(regressions: list[_Regression]) -> Array:
    """The outcomes' correlations, drawn towards zero as far as they are not known."""
    q = len(regressions)
    found, variance = np.eye(q), np.zeros((q, q))
    for k, one in enumerate(regressions):
        for m, other in enumerate(regressions[:k]):
            r, freedom = _in_common(one, other)
            found[k, m] = found[m, k] = r
            variance[k, m] = (1 - r**2) ** 2 / max(freedom, 1.0)
    squares = np.sum(np.tril(found, -1) ** 2)
    share = min(float(variance.sum() / squares), 1.0) if squares > 0 else 0.0
    return np.asarray((1 - share) * found + share * np.eye(q))


def _in_common(one: _Regression, other: _Regression) -> tuple[float, float]:
    """The correlation of what two regressions leave in the rows where both are observed, and its degrees of freedom."""
    _, first, second = np.intersect1d(one.rows, other.rows, assume_unique=True, return_indices=True)
    freedom = float(np.sum(one.matrix[np.ix_(first, first)] * other.matrix[np.ix_(second, second)]))
    if freedom < LEAST_IN_COMMON:
        return 0.0, freedom
    a, b = one.residual[first], other.residual[second]
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / size) if size > 0 else 0.0, freedom


def low_rank_correlation(correlation: Array, rank: int, steps: int = 500) -> Array:
    """The factor model D + L L' nearest to a correlation matrix in likelihood, by EM; its diagonal is one."""
    q = len(correlation)
    values, vectors = np.linalg.eigh(correlation)
    loadings = vectors[:, q - rank :] * np.sqrt(np.maximum(values[q - rank :] - values[: q - rank].mean(), 0.01))
    own = np.maximum(1 - np.sum(loadings**2, axis=1), LEAST_OWN)
    for _ in range(steps):
        # beta gives the factors' mean given the noise, (rank, q)
        scaled = loadings / own[:, None]
        beta = np.linalg.solve(np.eye(rank) + loadings.T @ scaled, scaled.T)
        second = np.eye(rank) - beta @ loadings + beta @ correlation @ beta.T
        loadings = np.linalg.solve(second, beta @ correlation).T
        before, own = own, np.maximum(1 - np.einsum("qr,rq->q", loadings, beta @ correlation), LEAST_OWN)
        if np.abs(own - before).max() < 1e-6:
            break
    model = np.diag(own) + loadings @ loadings.T
    scale = np.sqrt(np.diag(model))
    return np.asarray(model / np.outer(scale, scale))

"""The noise covariance, estimated from the field data alone.

Each outcome is regressed on x by a Gaussian process with a linear trend, which gives its variance by restricted
likelihood. The correlations are those of what the regressions leave, M_k y_k: an admissible matrix, whatever the data
are. Each is known to about (1 - r^2) / sqrt(tr(M_k' M_l)), and they are drawn towards zero by as much as their errors
make up of them (Schaefer and Strimmer 2005): few data leave little of a correlation that they cannot tell from none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..machine.threads import one_blas_thread
from ..progress import progress_bar
from .correlated_noise import PartlyGiven
from .data import FieldData, chosen_groups
from .line_estimate import estimated_line_noise
from .noise import Noise, NoiseSource, made_definite
from .noise_kinds import AskedNoise, GroupNoise, LowRankNoise, VaryingNoise, is_sampled
from .noise_regression import Regression, regression
from .noise_remarks import remarks
from .varying_variance import GroupVariance, SmoothVariance, VarianceModel

#: with fewer degrees of freedom in common, two outcomes' noise is taken as uncorrelated
LEAST_IN_COMMON = 8.0
#: a factor model leaves each outcome at least this share of its variance for its own
LEAST_OWN = 0.01


@one_blas_thread()
def found_noise(data: FieldData, span: Array, asked: AskedNoise | PartlyGiven | str) -> Noise:
    """The noise as it was asked for: estimated, or sampled around the estimate."""
    if isinstance(asked, PartlyGiven):
        return estimated_line_noise(data, span, asked)
    estimate = estimated_noise(data, span, None if isinstance(asked, str) else asked)
    if not is_sampled(asked):
        return estimate
    if not isinstance(asked, GroupNoise):
        # one covariance of all rows is sampled
        return replace(estimate, source=NoiseSource.SAMPLED, by_point=None)
    own = estimate.cov if estimate.by_point is None else estimate.by_point
    by_point = np.broadcast_to(own, (data.n, data.q, data.q))
    codes = chosen_groups(data, asked.groups).codes
    return replace(estimate, source=NoiseSource.SAMPLED, by_point=by_point, groups=codes)


def estimated_noise(data: FieldData, span: Array, asked: AskedNoise | None = None) -> Noise:
    """The noise covariance: variances by restricted likelihood, covariances from what the regressions leave."""
    if isinstance(asked, LowRankNoise) and asked.rank >= data.q:
        raise InputError(f"LowRankNoise(rank={asked.rank}): the rank must be below the number of outcomes, {data.q}")
    model = _variance_model(data, asked)
    regressions = [regression(data, k, span, model) for k in progress_bar(range(data.q), "noise")]
    sd = np.sqrt([one.noise_var for one in regressions])
    # only pairs that are seen in different rows can make a matrix that is not one of correlations
    correlation = made_definite(_correlation(regressions))
    if isinstance(asked, LowRankNoise):
        correlation = low_rank_correlation(correlation, asked.rank)
    cov = correlation * np.outer(sd, sd)
    factor = np.sqrt(np.column_stack([one.relative_var for one in regressions]))
    return Noise(
        cov,
        data.observed,
        NoiseSource.ESTIMATED,
        None if (factor == 1).all() else factor[:, :, None] * cov * factor[:, None, :],
        freedom=tuple(one.freedom for one in regressions),
        remarks=tuple(remark for k, one in enumerate(regressions) for remark in remarks(data, k, one)),
        smooth=isinstance(asked, VaryingNoise),
    )


def _variance_model(data: FieldData, asked: AskedNoise | None) -> VarianceModel | None:
    """How the rows' variances differ, where that is asked for."""
    if isinstance(asked, GroupNoise):
        return GroupVariance(chosen_groups(data, asked.groups).codes)
    if isinstance(asked, VaryingNoise):
        numeric = data.labels.numeric(data.d)
        return SmoothVariance(data.x[:, numeric] if asked.along == "x" else None)
    return None


def _correlation(regressions: list[Regression]) -> Array:
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


def _in_common(one: Regression, other: Regression) -> tuple[float, float]:
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

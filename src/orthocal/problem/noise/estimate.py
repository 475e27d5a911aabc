"""The noise covariance, estimated from the field data alone.

Each outcome is regressed on x by a Gaussian process with a linear trend, which gives its variance by restricted
likelihood. The correlations are those of what the regressions leave, M_k y_k: an admissible matrix, whatever the data
are. Each is known to about (1 - r^2) / sqrt(tr(M_k' M_l)), and they are drawn towards zero by as much as their errors
make up of them (Schaefer and Strimmer 2005): few data leave little of a correlation that they cannot tell from none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...advice import GROUP_NOISE, NOISE_COV, VARYING_NOISE, Y_ERR
from ...arrays import Array, IntArray, unique_rows
from ...errors import InputError
from ...findings import Finding
from ...machine.threads import one_blas_thread
from ...progress import progress_bar
from ...regression.line_correlation import LineFit, Values, fitted_line, spacing
from ..data.field_data import FieldData, chosen_groups
from ..data.labels import LabelColumns
from .kinds import (
    AskedNoise,
    GroupNoise,
    Line,
    LowRankNoise,
    PartlyGiven,
    VaryingNoise,
    line_of,
    with_correlation,
)
from .noise import Noise, NoiseSource, made_definite
from .regression import (
    MOST_OUTLIERS,
    BestFit,
    GroupVariance,
    Outlier,
    PureError,
    Regression,
    SmoothVariance,
    VarianceModel,
    regression,
    trend_of,
)

# What the estimate of the noise has found in the field data, in plain words.

#: outliers that are named one by one
NAMED = 5
#: an estimate with fewer degrees of freedom is hardly known
FEW_FREEDOM = 8.0
#: replicates as uneven as this in one of a thousand data sets whose variance is even
UNEVEN = 0.001

#: their advice, by which a result file's remarks find both of its forms
SO_LITTLE = "give " + NOISE_COV + ", or leave it out: an unknown noise is integrated over"
SO_MANY = "so many are noise with heavy tails, or noise that varies: give " + Y_ERR + ", or " + VARYING_NOISE
REPEATED = "repeated rows may share an error, or the real process is rough: give " + NOISE_COV + " if you know better"
VARIED = "give " + Y_ERR + ", " + VARYING_NOISE + ", or " + GROUP_NOISE + " for each kind of measurement"
ADVICE: dict[str, str] = {str(one): one for one in (SO_LITTLE, SO_MANY, REPEATED, VARIED)}


def remarks(data: FieldData, k: int, found: Regression) -> Iterator[Finding]:
    """Findings about outcome k."""
    name = data.outcome_names[k]
    if found.outliers:
        count = int(data.observed[:, k].sum())
        yield outliers_named(name, found.outliers, data.labels, data.input_names, data.x, count)
    if found.pure is not None:
        yield from _uneven(name, found.pure)
    if found.pure is not None and found.pure.used:
        message = (
            f"replicates of {name} scatter {found.pure.ratio:.2g} times as much (sd) as a smooth curve through all "
            f"data leaves: their own scatter is taken ({found.pure.freedom} degrees of freedom)"
        )
        yield Finding("note", "replicates", message, REPEATED)
    if found.freedom < FEW_FREEDOM:
        message = f"the estimate of {name} has {found.freedom:.1f} degrees of freedom only"
        yield Finding("note", "noise", message, SO_LITTLE)


def outliers_named(
    name: str, outliers: Sequence[Outlier], labels: LabelColumns, input_names: Sequence[str], x: Array, count: int
) -> Finding:
    """Outliers of an outcome that has ``count`` values, the farthest by their places."""

    def place(one: Outlier) -> str:
        at = ", ".join(labels.described(input_names, x[one.row]))
        return f"row {one.row} ({at}) by {one.distance:.1f} sds"

    far = sorted(outliers, key=lambda one: -one.distance)
    shown = "; ".join(place(one) for one in far[:NAMED])
    more = f"; and {len(far) - NAMED} more" if len(far) > NAMED else ""
    message = f"{name} is far from what the other data predict in {shown}{more}"
    if len(far) >= max(2, int(MOST_OUTLIERS * count)):
        return Finding("problem", "outliers", message, SO_MANY)
    advice = "check how it was measured; it has a noise variance of its own, so theta hardly depends on it"
    return Finding("note", "outliers", message, advice)


def _uneven(name: str, pure: PureError) -> Iterator[Finding]:
    if pure.unevenness is not None and pure.unevenness < UNEVEN:
        p_value = f"p = {pure.unevenness:.1g}, Bartlett's and Levene's tests"
        message = f"the scatter of {name} differs between replicated points ({p_value})"
        yield Finding("problem", "replicates", message, VARIED)


# Errors that are correlated along a line, estimated from the field data.
#
# Where series were measured at the same x, how they differ is error and nothing else: a mean of its own at every x is
# in the basis of a restricted likelihood. From one series, correlated errors and a rough real process look alike, and
# the length needs a prior: then the process is a smooth curve, as in ``regression/line_correlation.py``.

#: degrees of freedom between series at the same x from which on these say it alone
LEAST_FREEDOM = 10
#: rows of a likelihood: its cost is their number cubed
MOST_ROWS = 400
#: quantiles of the prior between which the length is looked for
PRIOR_ENDS = 0.001, 0.999


@one_blas_thread()
def estimated_line_noise(data: FieldData, span: Array, given: PartlyGiven) -> Noise:
    """The noise with what ``given`` leaves open, for one outcome."""
    asked, own = given.asked, given.own
    if data.q > 1:
        raise InputError(
            f"CorrelatedNoise of {data.q} outcomes is not estimated: give length, share, and sd (one an outcome) or "
            "cov; or calibrate one outcome at a time"
        )
    line, seen = line_of(asked, data), np.flatnonzero(data.observed[:, 0])
    rows = _window(line, seen)
    step = spacing(line.position[rows], line.series[rows])
    if not np.isfinite(step):
        raise InputError(
            "CorrelatedNoise: no series has two observations at different positions, so nothing says how their errors "
            "go together: give length, share and sd, or groups with more rows"
        )
    values, replicated = _values(data, span, rows, own)
    if asked.length is None and not replicated and asked.prior is None:
        raise InputError(
            "CorrelatedNoise(length=None): one series cannot tell correlated errors from a rough bias: give the "
            "length, a prior of it, prior=stats.lognorm(0.5, scale=...) for instance, or series that were measured at "
            "the same x, named in groups"
        )
    unit = 1.0 if own is not None else float(np.std(values.z)) or 1.0
    known = None if own is None else (own.cov[0, 0] if own.by_point is None else 1.0)
    scaled = values._replace(z=values.z / unit)
    fit = fitted_line(
        scaled,
        line.position[rows],
        line.series[rows],
        scaled.fit(scaled.noise) if scaled.curved else None,
        lengths=_lengths(asked.prior, step, float(np.ptp(line.position[rows]))),
        length=asked.length,
        share=asked.share,
        noise_var=known,
        nu=asked.smoothness,
        log_prior=None if asked.prior is None else asked.prior.logpdf,
    )
    source, cov = NoiseSource.ESTIMATED, np.array([[fit.noise_var * unit**2]])
    single = Noise(cov, data.observed, source) if own is None else replace(own, source=source)
    remark = _remark(fit, replicated, single, asked.length is None)
    return with_correlation(single, line, asked.smoothness, fit.length, fit.share, remarks=(remark,))


def _window(line: Line, seen: IntArray) -> IntArray:
    """The rows, or of many those that follow each other along the line."""
    order = seen[np.lexsort((line.position[seen], line.series[seen]))]
    start = max(0, (len(order) - MOST_ROWS) // 2)
    return np.sort(order[start : start + MOST_ROWS])


def _values(data: FieldData, span: Array, rows: IntArray, own: Noise | None) -> tuple[Values, bool]:
    """Values with a mean at every x, where enough of them repeat; else with a smooth curve and a trend."""
    x, z = data.x[rows], data.y[rows, 0] - data.y[rows, 0].mean()
    relative = np.ones(len(rows)) if own is None or own.by_point is None else own.by_point[rows, 0, 0]
    points, (place,) = unique_rows(x)
    if len(rows) - len(points) >= LEAST_FREEDOM:
        means = (place[:, None] == np.arange(len(points))).astype(float)
        return Values(x, z, means, relative, span, curved=False), True
    return Values(x, z, trend_of(x, data.labels), relative, span, labelled=data.labels.columns), False


def _lengths(prior: Any, step: float, width: float) -> tuple[float, float]:
    """Between what the length is looked for."""
    low, high = (0.1 * step, 2 * width) if prior is None else (float(one) for one in prior.ppf(PRIOR_ENDS))
    low = max(low, 1e-3 * step)
    if not low < high < np.inf:
        raise InputError("CorrelatedNoise(prior=) has no density at positive lengths: give stats.lognorm, for instance")
    return low, high


def _remark(fit: LineFit, replicated: bool, single: Noise, free: bool) -> Finding:
    sd = float(np.sqrt(single.cov[0, 0]))
    words = f"length {fit.length:.3g}, share {fit.share:.2f} of the variance, sd {sd:.3g}"
    if replicated:
        message = f"how its errors are correlated was estimated from how series at the same x differ: {words}"
        return Finding("note", "correlated errors", message)
    how = "with the prior of its length, " if free else ""
    message = (
        f"how its errors are correlated was estimated {how}from series without replicates: {words}. Correlated errors "
        "and a rough bias cannot be told apart by these, so the sds of theta are as good as what was given about them"
    )
    return Finding(
        "note", "correlated errors", message, "measure the series again at the same x, and name it in groups"
    )


#: with fewer degrees of freedom in common, two outcomes' noise is taken as uncorrelated
LEAST_IN_COMMON = 8.0
#: residuals as small as this, in units of y, are rounding
ROUNDING = 1e-8
#: cells that may be outliers whose scale is integrated over, at most
MOST_SUSPECTS = 3
#: a factor model leaves each outcome at least this share of its variance for its own
LEAST_OWN = 0.01


@one_blas_thread()
def estimated_noise(data: FieldData, span: Array, asked: AskedNoise | PartlyGiven | str = "estimate") -> Noise:
    """The noise covariance: variances by restricted likelihood, covariances from what the regressions of y leave."""
    if isinstance(asked, PartlyGiven):
        return estimated_line_noise(data, span, asked)
    if isinstance(asked, LowRankNoise) and asked.rank >= data.q:
        raise InputError(f"LowRankNoise(rank={asked.rank}): the rank must be below the number of outcomes, {data.q}")
    model = _variance_model(data, asked)
    regressions = [regression(data, k, span, model) for k in progress_bar(range(data.q), "noise")]
    cov = _covariance(regressions)
    if isinstance(asked, LowRankNoise):
        sd = np.sqrt(np.diag(cov))
        cov = low_rank_correlation(cov / np.outer(sd, sd), asked.rank) * np.outer(sd, sd)
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


#: share of y's variance that is taken for noise before any fit is known
FIRST_GUESS = 0.01


def guessed_noise(data: FieldData) -> Noise:
    """In whose units the best fit is looked for, where the noise is unknown."""
    size = np.maximum(np.nanvar(data.y, axis=0), 1e-28 * np.nanmax(data.y**2, axis=0))
    return Noise(np.diag(np.where(size > 0, FIRST_GUESS * size, 1.0)), data.observed, NoiseSource.UNKNOWN)


@one_blas_thread()
def unknown_noise(data: FieldData, span: Array, asked: AskedNoise | PartlyGiven | str, fit: BestFit) -> Noise:
    """The size of an unknown noise beside simulator and bias, and rows with a variance of their own.

    It is integrated over afterwards, in units of what is found here; only how rows differ stays as it is.
    """
    model = _variance_model(data, asked)
    groups = chosen_groups(data, asked.groups).codes if isinstance(asked, GroupNoise) else None
    try:
        found = [regression(data, k, span, model, fit) for k in range(data.q)]
    except InputError:
        # too few values, or hardly any scatter beside a curve: what is left of y is size enough
        cov = np.diag(_left_over(data, fit))
        by_point = None if groups is None else np.broadcast_to(cov, (data.n, *cov.shape))
        return Noise(cov, data.observed, NoiseSource.UNKNOWN, by_point, groups=groups)
    cov = _covariance(found)
    whole = np.sqrt(np.column_stack([one.relative_var for one in found]))
    relative = whole if groups is None else _of_outliers(found, data.y.shape)
    remarks = [
        remark
        for k, one in enumerate(found)
        if one.pure is not None
        for remark in _uneven(data.outcome_names[k], one.pure)
    ]
    suspects = sorted((-far.distance, far.row, k) for k, one in enumerate(found) for far in one.suspects)
    return Noise(
        cov,
        data.observed,
        NoiseSource.UNKNOWN,
        None if groups is None and (whole == 1).all() else whole[:, :, None] * cov * whole[:, None, :],
        remarks=tuple(remarks),
        smooth=isinstance(asked, VaryingNoise),
        groups=groups,
        relative=None if (relative == 1).all() else relative,
        suspects=tuple((row, k) for _, row, k in suspects[:MOST_SUSPECTS]),
    )


def require_scatter(data: FieldData, fit: Array, p: int) -> None:
    """An error where the best fit (n, q) of p parameters leaves nothing to tell the noise by."""
    cells = int(data.observed.sum())
    if cells <= p:
        raise InputError(
            f"y has {cells} values and theta {p} parameters: nothing is left to tell the noise by; give more data, or "
            + NOISE_COV
        )
    left, size = (np.sqrt(np.nanmean(one**2, axis=0)) for one in (data.y - fit, data.y))
    if (left <= ROUNDING * np.where(size > 0, size, 1.0)).any():
        raise InputError(
            "the simulator goes through every value of y: nothing is left to tell the noise by; give " + NOISE_COV
        )


def _left_over(data: FieldData, fit: BestFit) -> Array:
    """Variance of what the best fit leaves of each outcome, (q,)."""
    count = np.maximum(data.observed.sum(axis=0) - fit.gradient.shape[2], 1)
    left = np.nansum(fit.left**2, axis=0) / count
    return np.asarray(np.maximum(left, np.finfo(float).tiny ** 0.5))


def _of_outliers(found: list[Regression], shape: tuple[int, ...]) -> Array:
    """Distances of the rows that have a variance of their own, 1 for the others, (n, q)."""
    relative = np.ones(shape)
    for k, one in enumerate(found):
        for outlier in one.outliers:
            relative[outlier.row, k] = outlier.distance
    return relative


def _covariance(regressions: list[Regression]) -> Array:
    """Of the noise of all outcomes, (q, q)."""
    sd = np.sqrt([one.noise_var for one in regressions])
    # only pairs that are seen in different rows can make a matrix that is not one of correlations
    return np.asarray(made_definite(_correlation(regressions)) * np.outer(sd, sd))


def _variance_model(data: FieldData, asked: AskedNoise | PartlyGiven | str) -> VarianceModel | None:
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

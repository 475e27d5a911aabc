"""Errors that are correlated along a line, estimated from the field data.

Where series were measured at the same x, how they differ is error and nothing else: a mean of its own at every x is in
the basis of a restricted likelihood. From one series, correlated errors and a rough real process look alike, and the
length needs a prior: then the process is a smooth curve, as in ``regression/line_correlation.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Array, IntArray, unique_rows
from ..errors import InputError
from ..findings import Finding
from ..machine.threads import one_blas_thread
from ..regression.line_correlation import LineFit, Values, fitted_line, spacing
from .correlated_noise import Line, PartlyGiven, line_of, with_correlation
from .data import FieldData
from .noise import Noise, NoiseSource
from .noise_regression import trend_of

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

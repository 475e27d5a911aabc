"""Whether what a smooth curve leaves of noisy values is correlated along a line, and how.

    z ~ N(B beta, sd^2 k(x, x) + var R),   beta flat, k smooth, and R = I or share C(length) + (1 - share) I

by restricted likelihood. Of two laws without free parameters the ratio of likelihoods exceeds c with a probability of
1 / c at most where the first is true: so one of several alternatives that is 100 times their number as likely is a
false alarm in one of a hundred data sets at most, but for what is fitted beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.stats import norm

from ..arrays import Array, IntArray
from .gaussian_process import (
    LABEL_ODDS,
    Hyperparameters,
    Labelled,
    correlation,
    fit_hyperparameters,
    independent_columns,
    radial_correlation,
    restricted_precision,
)

#: smoothness of the curve, and its shortest length-scale, in spans: what is shorter may be an error of a series
NU, SMOOTH = 1.5, 0.1
#: correlations that are looked for: lengths in typical distances of neighbours, the longest in spans, and the share
LENGTHS, LONGEST, SHARE = (0.8, 2.0, 5.0), 0.07, 0.9
#: intervals of the spline that stands for a smooth curve where a look is enough, and the level of that look
INTERVALS, LOOK = 12, 0.1


class Values(NamedTuple):
    """Values z (n,) at x (n, d) with ``basis`` (n, r) beside, and noise relative to its variance: (n,) or (n, n).

    ``curved`` is whether there is a smooth curve beside; not where the basis has a mean of its own at every x.
    """

    x: Array
    z: Array
    basis: Array
    relative: Array
    span: Array
    curved: bool = True
    labelled: Labelled = ()

    def part(self, rows: IntArray) -> Values:
        own = self.relative[rows] if self.relative.ndim == 1 else self.relative[np.ix_(rows, rows)]
        return self._replace(x=self.x[rows], z=self.z[rows], basis=self.basis[rows], relative=own)

    @property
    def noise(self) -> Array:
        """R of the first law, (n, n)."""
        return np.diag(self.relative) if self.relative.ndim == 1 else self.relative

    @property
    def sd(self) -> Array:
        """Relative standard deviations of the noise, (n,)."""
        return np.sqrt(self.relative if self.relative.ndim == 1 else np.diag(self.relative))

    def fit(self, noise: Array, near: Hyperparameters | None = None) -> Hyperparameters:
        """A smooth curve, if there is one, beside noise of a covariance proportional to this one."""
        if not self.curved:
            basis = independent_columns(self.basis)
            P, value = restricted_precision(noise, basis)
            freedom, square = len(self.z) - basis.shape[1], float(self.z @ P @ self.z)
            deviance = value + freedom * (np.log(max(square, 1e-300) / freedom) + 1)
            return Hyperparameters(0.0, self.span, square / freedom, (), deviance)
        return fit_hyperparameters(
            self.x,
            self.z,
            NU,
            span=self.span,
            basis=self.basis,
            relative_var=np.diag(noise),
            relative_cov=noise,
            shortest=SMOOTH,
            near=near,
            labelled=self.labelled,
        )


def along(position: Array, series: IntArray, length: float, nu: float = 0.5) -> Array:
    """k(|t_i - t_j| / length) within series and 0 between them, (n, n), ones on the diagonal."""
    squared = ((position[:, None] - position) / length) ** 2
    found = radial_correlation(squared, nu) * (series[:, None] == series)
    found[np.diag_indices_from(found)] = 1.0
    return np.asarray(found)


def spacing(position: Array, series: IntArray) -> float:
    """The median distance between neighbours of one series; infinite where there are none."""
    order = np.lexsort((position, series))
    gaps = np.diff(position[order])[np.diff(series[order]) == 0]
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if gaps.size else np.inf


def looks_correlated(values: Values, position: Array, candidates: Sequence[Array]) -> bool:
    """A cheap look: whether a spline along the line, and parabolas along the inputs, leave a correlation at all."""
    sd = values.sd
    z, basis = values.z / sd, values.basis / sd[:, None]
    inputs = values.x / values.span
    smooth = _spline((position - position.min()) / max(float(np.ptp(position)), 1e-300))
    whole = independent_columns(np.column_stack([basis, np.column_stack([smooth, inputs, inputs**2]) / sd[:, None]]))
    freedom = len(z) - whole.shape[1]
    if freedom < 8:
        return False
    left = z - whole @ (whole.T @ z)
    scale = float(left @ left) / freedom
    for C in candidates:
        image = C - whole @ (whole.T @ C)
        image = image - (image @ whole) @ whole.T
        mean, second = float(np.trace(image)), float(np.sum(image * image.T))
        variance = 2 * max(second - mean**2 / freedom, 1e-300) * freedom / (freedom + 2)
        if norm.sf((float(left @ C @ left) / scale - mean) / np.sqrt(variance)) < LOOK / len(candidates):
            return True
    return False


def _spline(t: Array) -> Array:
    """A cubic spline in t, from 0 to 1, as powers and truncated cubes, (n, 4 + knots)."""
    knots = np.linspace(0, 1, INTERVALS + 1)[1:-1]
    return np.column_stack([t[:, None] ** np.arange(4), np.maximum(t[:, None] - knots, 0.0) ** 3])


class LineCorrelation(NamedTuple):
    """The best of the alternatives: which line, its length, by how much its log likelihood is better, and the curves.

    ``independent`` is the fit of a curve beside errors of the first law, ``correlated`` the one beside the alternative.
    """

    line: int
    length: float
    gain: float
    independent: Hyperparameters
    correlated: Hyperparameters


def found_correlation(values: Values, lines: list[tuple[Array, IntArray]]) -> LineCorrelation | None:
    """The best of the alternatives along lines, (positions, series) each; None where a look shows nothing."""
    candidates, outer = [], np.outer(values.sd, values.sd)
    for number, (position, series) in enumerate(lines):
        step, width = spacing(position, series), float(np.ptp(position))
        lengths = [step * factor for factor in LENGTHS if step * factor <= LONGEST * width]
        matrices = [along(position, series, length) for length in lengths]
        hollow = [one - np.eye(len(one)) for one in matrices]
        if lengths and (values.relative.ndim == 2 or looks_correlated(values, position, hollow)):
            candidates += [(number, length, C) for length, C in zip(lengths, matrices, strict=True)]
    if not candidates:
        return None
    first = values.fit(values.noise)
    best: LineCorrelation | None = None
    for number, length, C in candidates:
        # beside errors that are correlated already, a further part
        other = (1 - SHARE) * values.noise + SHARE * C * outer
        fit = values.fit(other, near=first)
        gain = 0.5 * (first.deviance - fit.deviance) - np.log(len(candidates))
        if best is None or gain > best.gain:
            best = LineCorrelation(number, length, gain, first, fit)
    return best


class LineFit(NamedTuple):
    """A smooth curve beside errors of the covariance noise_var [share k(. / length) + (1 - share) I], in their sds."""

    sd: float
    lengthscale: Array
    noise_var: float
    length: float
    share: float
    deviance: float


def fitted_line(
    values: Values,
    position: Array,
    series: IntArray,
    start: Hyperparameters | None,
    *,
    lengths: tuple[float, float],
    length: float | None = None,
    share: float | None = None,
    noise_var: float | None = None,
    nu: float = 0.5,
    log_prior: Callable[[float], float] | None = None,
    near: float | None = None,
) -> LineFit:
    """By restricted likelihood, with what is given fixed; ``lengths`` are the bounds of the search.

    ``start`` is a fit of the curve with other errors; None leaves the curve out. ``log_prior`` is a function of the
    length, ``near`` one to start from.
    """
    basis, outer = independent_columns(values.basis), np.outer(values.sd, values.sd)
    own = _CorrelationSearch(
        values, position, series, basis, outer, nu, length, share, noise_var, start is not None, log_prior
    )
    low, high = np.log(lengths[0]), np.log(lengths[1])
    size = float(np.mean(values.z**2 / values.sd**2)) or 1.0
    found: list[tuple[float, Array]] = []
    for log_length in [low + place * (high - low) for place in (0.25, 0.7)] if near is None else [np.log(near)]:
        first = own.packed(start, log_length, size)
        if not len(first):
            return own.named(first, own.deviance(first))
        bounds = own.bounds(low, high, size, values.span)
        inside = np.clip(first, *np.array(bounds).T)
        result = minimize(own.deviance, inside, method="L-BFGS-B", bounds=bounds)
        found.append((float(result.fun), result.x))
    deviance, best = min(found, key=lambda one: one[0])
    return own.named(best, deviance)


class _CorrelationSearch(NamedTuple):
    """The parameters of a search: log sd and log length-scales of the curve, log noise variance, log length, share."""

    values: Values
    position: Array
    series: IntArray
    basis: Array
    outer: Array
    nu: float
    length: float | None
    share: float | None
    noise_var: float | None
    curved: bool
    log_prior: Callable[[float], float] | None

    def packed(self, start: Hyperparameters | None, log_length: float, size: float) -> Array:
        curve = [] if start is None else [np.log(start.sd), *np.log(start.lengthscale)]
        noise = size if start is None else start.noise_var
        free = [] if self.noise_var is not None else [np.log(noise)]
        free += [] if self.length is not None else [log_length]
        return np.array([*curve, *free, *([] if self.share is not None else [0.7])])

    def bounds(self, low: float, high: float, size: float, span: Array) -> list[tuple[float, float]]:
        half = 0.5 * np.log(size)
        curve = [(half - 7, half + 5), *((np.log(SMOOTH * one), np.log(20 * one)) for one in span)]
        for j in self.values.labelled:
            curve[1 + j] = (float(np.log(LABEL_ODDS[0])), float(np.log(LABEL_ODDS[1])))
        free = [] if self.noise_var is not None else [(np.log(size) - 12, np.log(size) + 3)]
        free += [] if self.length is not None else [(low, high)]
        return (curve if self.curved else []) + free + ([] if self.share is not None else [(0.02, 0.999)])

    def named(self, free: Array, deviance: float = np.nan) -> LineFit:
        rest = list(free)
        d = self.values.x.shape[1]
        sd = float(np.exp(rest.pop(0))) if self.curved else 0.0
        lengthscale = np.exp([rest.pop(0) for _ in range(d)]) if self.curved else np.ones(d)
        noise_var = float(np.exp(rest.pop(0))) if self.noise_var is None else self.noise_var
        length = float(np.exp(rest.pop(0))) if self.length is None else self.length
        share = float(rest.pop(0)) if self.share is None else self.share
        return LineFit(sd, lengthscale, noise_var, length, share, deviance)

    def deviance(self, free: Array) -> float:
        fit, values = self.named(free), self.values
        C = fit.share * along(self.position, self.series, fit.length, self.nu)
        C[np.diag_indices_from(C)] = 1.0
        S = fit.noise_var * C * self.outer
        if self.curved:
            S = S + fit.sd**2 * correlation(values.x, values.x, fit.lengthscale, NU, values.labelled)
        prior = 0.0 if self.log_prior is None else -2 * float(self.log_prior(fit.length))
        return _deviance(S, self.basis, values.z) + (prior if np.isfinite(prior) else 1e25)


def _deviance(S: Array, basis: Array, z: Array) -> float:
    """log|S| + log|B'S^-1 B| + z'P z, or a large number where S has no root."""
    try:
        lower = cholesky(S, lower=True)
    except np.linalg.LinAlgError:
        return 1e25
    white = solve_triangular(lower, np.column_stack([basis, z]), lower=True)
    orthogonal, triangle = np.linalg.qr(white[:, :-1])
    sizes = np.log(np.diag(lower)).sum() + np.log(np.abs(np.diag(triangle))).sum()
    left = white[:, -1] - orthogonal @ (orthogonal.T @ white[:, -1])
    return float(2 * sizes + left @ left)

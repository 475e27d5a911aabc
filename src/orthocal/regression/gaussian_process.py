"""Covariance functions and their hyperparameters by restricted marginal likelihood.

C(x, x') = sd^2 k(r),  r^2 = sum_j (x_j - x'_j)^2 / lengthscale_j^2, with

    nu = 1/2   k(r) = exp(-r)
    nu = 3/2   k(r) = (1 + sqrt(3) r) exp(-sqrt(3) r)
    nu = 5/2   k(r) = (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)
    nu = inf   k(r) = exp(-r^2 / 2)        (squared exponential)

An input that is ``labelled`` holds labels in place of numbers: it is left out of r, and k(r) is multiplied by rho_j
where the labels differ. Then b = sqrt(rho) c + sqrt(1 - rho) c_label with independent processes, one for all labels and
one for each: they are exchangeable. In the place of its length-scale stand the odds rho_j / (1 - rho_j).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from ..arrays import Array, BoolArray, IntArray, repeated_rows
from ..errors import InputError
from ..machine.threads import one_blas_thread
from ..progress import progress_bar

# What is expected of the hyperparameters of a Gaussian process.


class LogPrior(NamedTuple):
    """Of log sd, log length-scales and log noise variance, (d + 2,): flat above the means, and normal below."""

    mean: Array
    sd: Array

    def deviance(self, values: Array) -> tuple[Array, Array]:
        """-2 log density of each, and its slope, (d + 2,) each."""
        away = np.minimum((values - self.mean) / self.sd, 0.0)
        return away**2, 2 * away / self.sd


# Noisy values at points that repeat: their means and their scatter are all that a regression needs.
#
# With z_i ~ N(m(x_i), s^2 v_i), the values at one point x have the likelihood of one value, their weighted mean z with
# the variance s^2 v, 1 / v = sum_i 1 / v_i, times a factor that depends on s alone:
#
#     -2 log factor = (count - 1) log s^2 + sum_i log v_i - log v + sum_i (z_i - z)^2 / v_i / s^2
#
# Several columns of z are independent, with the same variances: their factors multiply.


class MergedValues(NamedTuple):
    """One row for each distinct point.

    Attributes
    ----------
    x, z, basis, relative_var
        Points (u, d), means (u,) or (u, c), what is fitted beside (u, r), and v (u,).
    counts, scatter, log_scale
        Number of values at each point, sum_i (z_i - z)^2 / v_i over all columns, and sum_i log v_i - log v, (u,).
    relative_cov
        Where the noise is correlated, in the place of v, (u, u): then every value is a point.
    """

    x: Array
    z: Array
    basis: Array
    relative_var: Array
    counts: Array
    scatter: Array
    log_scale: Array
    relative_cov: Array | None = None

    @property
    def noise(self) -> Array:
        """v (u,), or the matrix (u, u) in its place."""
        return self.relative_var if self.relative_cov is None else self.relative_cov

    def part(self, rows: IntArray) -> MergedValues:
        """Some of the points."""
        own = None if self.relative_cov is None else self.relative_cov[np.ix_(rows, rows)]
        x, z, basis, var, counts, scatter, log_scale = (values[rows] for values in self[:-1] if values is not None)
        return MergedValues(x, z, basis, var, counts, scatter, log_scale, own)

    @property
    def freedom(self) -> Array:
        """Degrees of freedom of the scatter at each point, (u,)."""
        return np.asarray((self.counts - 1) * (1 if self.z.ndim == 1 else self.z.shape[1]))

    def scatter_deviance(self, log_noise_var: float) -> tuple[float, float]:
        """-2 log of the factors' product, and its slope by log s^2."""
        further, scatter = float(np.sum(self.freedom)), float(self.scatter.sum() / np.exp(log_noise_var))
        columns = 1 if self.z.ndim == 1 else self.z.shape[1]
        return further * log_noise_var + columns * float(self.log_scale.sum()) + scatter, further - scatter


def merged_values(
    x: Array, z: Array, basis: Array, relative_var: Array, relative_cov: Array | None = None
) -> MergedValues:
    """Values z (n,) or (n, c) at x, merged where its rows repeat; ``basis`` (n, r) is a function of x."""
    repeats = repeated_rows(x) if relative_cov is None else None
    if repeats is None:
        nothing = np.zeros(len(x))
        return MergedValues(x, z, basis, relative_var, np.ones(len(x)), nothing, nothing, relative_cov)
    first, place, counts = repeats
    var = 1 / repeats.sums(1 / relative_var)
    # for however many columns
    shape = (-1, *[1] * (z.ndim - 1))
    mean = var.reshape(shape) * repeats.sums(z / relative_var.reshape(shape))
    scatter = repeats.sums((z - mean[place]) ** 2 / relative_var.reshape(shape)).reshape(len(first), -1).sum(axis=1)
    log_scale = repeats.sums(np.log(relative_var)) - np.log(var)
    return MergedValues(x[first], mean, basis[first], var, counts, scatter, log_scale)


#: which inputs hold labels
Labelled: TypeAlias = tuple[int, ...]

SMOOTHNESSES = (0.5, 1.5, 2.5, np.inf)
#: length-scale, in spans, below which a process is as rough as noise
SHORTEST = 0.02
#: the cost of a likelihood is cubic: the search starts on few points and ends on more
SEARCH_POINTS, LIKELIHOOD_POINTS = 300, 1000
#: the search for the correlation between labels is between 0.001 and 0.999
LABEL_ODDS = 1e-3, 1e3


def check_smoothness(nu: float) -> None:
    if nu not in SMOOTHNESSES:
        raise InputError(f"nu={nu}: the smoothness is 0.5, 1.5, 2.5, or inf for the squared exponential")


def correlation(a: Array, b: Array, lengthscale: Array, nu: float, labelled: Labelled = ()) -> Array:
    """k(r) between the rows of a (m, d) and b (n, d), (m, n)."""
    if not labelled:
        return radial_correlation(cdist(a / lengthscale, b / lengthscale, "sqeuclidean"), nu)
    numeric = np.setdiff1d(np.arange(a.shape[1]), labelled)
    first, second = (one[:, numeric] / lengthscale[numeric] for one in (a, b))
    k = radial_correlation(cdist(first, second, "sqeuclidean"), nu)
    for j in labelled:
        k *= np.where(a[:, j, None] == b[:, j], 1.0, label_correlation(lengthscale[j]))
    return k


def label_correlation(odds: Array) -> Array:
    """rho, from rho / (1 - rho)."""
    return np.asarray(odds / (1 + odds))


def label_odds(rho: Array) -> Array:
    """rho / (1 - rho), finite and positive: 1 and 0 to within 1e-12."""
    inside = np.clip(rho, 1e-12, 1 - 1e-12)
    return np.asarray(inside / (1 - inside))


def correlation_slopes(x: Array, lengthscale: Array, nu: float, labelled: Labelled = ()) -> tuple[Array, Array]:
    """k(r) between the rows of x (n, d), and its derivatives by log lengthscale_j, (d, n, n)."""
    parts = _squared_distances(x, x, lengthscale)
    if not labelled:
        squared = parts.sum(axis=0)
        # dk/d log l_j = s(r) (x_j - x'_j)^2 / l_j^2
        return radial_correlation(squared, nu), radial_slope(squared, nu) * parts
    numeric = np.setdiff1d(np.arange(x.shape[1]), labelled)
    squared = parts[numeric].sum(axis=0)
    k, slopes = radial_correlation(squared, nu), np.empty_like(parts)
    slopes[numeric] = radial_slope(squared, nu) * parts[numeric]
    for j in labelled:
        rho = label_correlation(lengthscale[j])
        factor = np.where(x[:, j, None] == x[:, j], 1.0, rho)
        k *= factor
        slopes[numeric] *= factor
    for j in labelled:
        # d rho / d log odds = rho (1 - rho)
        slopes[j] = np.where(x[:, j, None] == x[:, j], 0.0, k * (1 - label_correlation(lengthscale[j])))
    return k, slopes


def radial_correlation(squared: Array, nu: float) -> Array:
    """k(r) for squared distances r^2."""
    if nu == np.inf:
        return np.asarray(np.exp(-squared / 2))
    r = np.asarray(2 * nu * squared)
    np.sqrt(r, out=r)
    decay = np.asarray(np.negative(r))
    np.exp(decay, out=decay)
    if nu == 0.5:
        return decay
    # in place: of large matrices every array in between costs as much as the exponential
    if nu == 2.5:
        curved = np.asarray(r**2)
        curved /= 3
        r += 1
        r += curved
    else:
        r += 1
    r *= decay
    return r


def radial_slope(squared: Array, nu: float) -> Array:
    """s(r) = -k'(r) / r for squared distances r^2, and 0 where it does not exist."""
    if nu == np.inf:
        return np.asarray(np.exp(-squared / 2))
    r = np.sqrt(2 * nu * squared)
    if nu == 0.5:
        return np.asarray(np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0))
    factor = 3.0 if nu == 1.5 else 5 / 3 * (1 + r)
    return np.asarray(factor * np.exp(-r))


def _squared_distances(a: Array, b: Array, lengthscale: Array) -> Array:
    """((a_j - b_j) / lengthscale_j)^2 for each input, (d, m, n)."""
    difference = (a / lengthscale).T[:, :, None] - (b / lengthscale).T[:, None, :]
    return np.asarray(difference**2)


def jittered_cholesky(matrix: Array) -> tuple[Array, float]:
    """L with L L' = matrix + jitter I, and the smallest jitter (of 0 and powers of 10) that makes it possible."""
    scale = float(np.mean(np.diag(matrix)))
    for jitter in (0.0, *(scale * 10.0**power for power in range(-16, -3))):
        try:
            shifted = matrix.copy()
            shifted[np.diag_indices_from(shifted)] += jitter
            return cholesky(shifted, lower=True), jitter
        except np.linalg.LinAlgError:
            continue
    raise InputError("the covariance of the bias is not positive definite, even with jitter: check x for huge values")


class Hyperparameters(NamedTuple):
    """sd, lengthscale (d,), noise variance, which of them ended on a bound of the search, and the deviance there."""

    sd: float
    lengthscale: Array
    noise_var: float
    at_bound: tuple[str, ...]
    deviance: float = np.nan


#: below these, length-scales in spans and the noise as a share of the variance are improbable where caution is asked
#: for: half a normal density of their logarithm
TYPICAL_LENGTH, LENGTH_SD = 0.5, 1.0
TYPICAL_NOISE, NOISE_SD = 0.1, 2.0


def fit_hyperparameters(
    x: Array,
    z: Array,
    nu: float,
    *,
    span: Array,
    basis: Array,
    relative_var: Array,
    sd: float | None = None,
    lengthscale: Array | None = None,
    noise_var: float | None = None,
    cautious: bool = False,
    shortest: float = SHORTEST,
    size: float | None = None,
    near: Hyperparameters | None = None,
    relative_cov: Array | None = None,
    labelled: Labelled = (),
    most: int = LIKELIHOOD_POINTS,
) -> Hyperparameters:
    """Hyperparameters by restricted marginal likelihood; those that are given stay as they are.

    z ~ N(basis beta, sd^2 k(x, x) + noise_var diag(relative_var)) with beta flat and integrated out: what the
    basis has been fitted to (a mean, or theta through the gradients) is accounted for. Repeated x are merged.

    Parameters
    ----------
    x, z, basis
        Inputs (n, d), values (n,) and functions of x, (n, r), r may be 0.
    span
        Width of the domain in each input, (d,): the search's length-scales are relative to it.
    cautious
        With weak priors against short length-scales and little noise: few data may happen to lie on a curve.
    shortest, size
        Length-scale that the search may end at, in spans; the typical size of z, where its sd is not.
    near, relative_cov
        Where to start, if that is known; in place of diag(relative_var), (n, n), where the noise is correlated.
    labelled
        Inputs that hold labels, whose ``span`` is 1; of ``lengthscale`` those that are NaN are to be found.
    most
        Points of the last search.
    """
    size = size or float(np.std(z)) or float(np.max(np.abs(z))) or 1.0
    values = fixed = _given(x, span, sd, lengthscale, noise_var, labelled)
    floor = size if noise_var is None else min(size, np.sqrt(noise_var))
    lower, upper = _bounds(size, floor, span, shortest, labelled)
    free, deviance = np.isnan(fixed), np.nan
    weak = _weak_priors(z, basis, size, span, labelled) if cautious else None
    merged = merged_values(x, z, basis, relative_var, relative_cov)

    def search(start: Array, points: int) -> tuple[float, Array]:
        sample = sample_of_points(len(merged.x), points)
        return _search(fixed, np.clip(start, lower, upper), lower, upper, nu, merged.part(sample), weak, labelled)

    if free.any():
        # one BLAS thread: the result must not depend on their number
        with one_blas_thread():
            deviance, values = min((search(one, SEARCH_POINTS) for one in _starts(size, span, near)), key=_first)
            if min(len(merged.x), most) > SEARCH_POINTS:
                deviance, values = search(values, most)
    return _named(values, free & ((values < lower + 1e-3) | (values > upper - 1e-3)), deviance, labelled)


def _bounds(size: float, floor: float, span: Array, shortest: float, labelled: Labelled) -> tuple[Array, Array]:
    """Of the log hyperparameters, (d + 2,) each."""
    lower = np.log(np.concatenate([[1e-3 * floor], shortest * span, [1e-8 * size**2]]))
    upper = np.log(np.concatenate([[1e2 * size], 20 * span, [4 * size**2]]))
    for j in labelled:
        lower[1 + j], upper[1 + j] = np.log(LABEL_ODDS)
    return lower, upper


def _first(found: tuple[float, Array]) -> float:
    """Its deviance."""
    return found[0]


def _starts(size: float, span: Array, near: Hyperparameters | None) -> list[Array]:
    """Where the search begins, as log hyperparameters."""
    if near is not None:
        return [np.log(np.concatenate([[near.sd], near.lengthscale, [near.noise_var]]))]
    return [
        np.log(np.concatenate([[sd * size], length * span, [noise * size**2]]))
        for sd, length, noise in ((1.0, 0.3, 0.1), (0.3, 1.0, 0.5), (1.0, 0.1, 0.02))
    ]


def _named(values: Array, at_bound: BoolArray, deviance: float, labelled: Labelled) -> Hyperparameters:
    """The log hyperparameters, (d + 2,), in their units."""
    each = [f"{'label correlation' if j in labelled else 'lengthscale'} {j + 1}" for j in range(len(values) - 2)]
    labels = ["sd", *each, "noise"]
    return Hyperparameters(
        sd=float(np.exp(values[0])),
        lengthscale=np.exp(values[1:-1]),
        noise_var=float(np.exp(values[-1])),
        at_bound=tuple(label for label, flag in zip(labels, at_bound, strict=True) if flag),
        deviance=deviance,
    )


def _given(
    x: Array,
    span: Array,
    sd: float | None,
    lengthscale: Array | None,
    noise_var: float | None,
    labelled: Labelled,
) -> Array:
    """log sd, log lengthscale_1..d and log noise variance, NaN where they are to be found, (d + 2,)."""
    d = x.shape[1]
    fixed = np.full(d + 2, np.nan)
    if sd is not None:
        fixed[0] = np.log(sd)
    if lengthscale is not None:
        fixed[1 : d + 1] = np.log(lengthscale)
    # nothing is known about an input that does not vary: away from it, the process stays what it is there; with another
    # label, it shares half of its variance
    for j in np.flatnonzero(np.isnan(fixed[1 : d + 1]) & (np.ptp(x, axis=0) == 0)):
        fixed[1 + j] = 0.0 if j in labelled else np.log(20 * span[j])
    if noise_var is not None:
        fixed[d + 1] = np.log(noise_var)
    return fixed


def _weak_priors(z: Array, basis: Array, size: float, span: Array, labelled: Labelled) -> LogPrior:
    """Below what log sd, log length-scales and log noise variance are improbable, and their sds there."""
    # of what the basis leaves: a steep trend is no reason to expect more noise
    left = z - basis @ np.linalg.lstsq(basis, z, rcond=None)[0] if basis.size else z
    size = float(np.std(left)) or size
    below = np.log(np.concatenate([[0.0001 * size], TYPICAL_LENGTH * span, [TYPICAL_NOISE * size**2]]))
    # labels may have nothing in common
    below[[1 + j for j in labelled]] = np.log(LABEL_ODDS[0])
    return LogPrior(below, np.concatenate([[1.0], np.full(len(span), LENGTH_SD), [NOISE_SD]]))


def _search(
    fixed: Array,
    start: Array,
    lower: Array,
    upper: Array,
    nu: float,
    data: MergedValues,
    prior: LogPrior | None = None,
    labelled: Labelled = (),
) -> tuple[float, Array]:
    """The deviance and the log hyperparameters that a search ends at; those that are not NaN stay as they are."""
    free = np.isnan(fixed)
    # each point as often as it was seen: the basis is then that of all values
    root = np.sqrt(data.counts)[:, None]
    basis = independent_columns(root * data.basis) / root
    ticks = iter(progress_bar(itertools.count(), "hyperparameters"))

    def objective(free_values: Array) -> tuple[float, Array]:
        next(ticks)
        full = fixed.copy()
        full[free] = free_values
        value, gradient = restricted_deviance(full, data.x, data.z, nu, basis, data.noise, labelled)
        scatter, slope = data.scatter_deviance(full[-1])
        value, gradient[-1] = value + scatter, gradient[-1] + slope
        if prior is not None:
            added, slopes = prior.deviance(full)
            value, gradient = value + float(np.sum(added[free])), gradient + slopes
        return value, gradient[free]

    result = minimize(
        objective,
        start[free],
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower[free], upper[free], strict=True)),
    )
    values = fixed.copy()
    values[free] = result.x
    return float(result.fun), values


def restricted_deviance(
    values: Array, x: Array, z: Array, nu: float, basis: Array, relative: Array, labelled: Labelled = ()
) -> tuple[float, Array]:
    """-2 log restricted likelihood and its gradient by the log hyperparameters.

    log|S| + log|B'S^-1 B| + z'Pz,  P = S^-1 - S^-1 B (B'S^-1 B)^-1 B'S^-1;  its slope along dS is
    tr(P dS) - z'P dS P z. Where z is (n, c), its columns are independent, and their deviances are added. ``relative``
    is (n,), or (n, n) where the noise is correlated.
    """
    d, columns = x.shape[1], 1 if z.ndim == 1 else z.shape[1]
    var, noise_var = np.exp(2 * values[0]), np.exp(values[d + 1])
    k, slopes = correlation_slopes(x, np.exp(values[1 : d + 1]), nu, labelled)
    try:
        noise = np.diag(noise_var * relative) if relative.ndim == 1 else noise_var * relative
        P, value = restricted_precision(var * k + noise, basis)
    except np.linalg.LinAlgError:
        return 1e25, np.zeros(d + 2)
    Pz = (P @ z).reshape(len(x), columns)
    total = columns * value + float(np.sum(z.reshape(Pz.shape) * Pz))
    change = columns * P - Pz @ Pz.T

    def slope(dS: Array) -> float:
        return float(np.vdot(change, dS))

    noise_slope = noise_var * float(np.diag(change) @ relative) if relative.ndim == 1 else slope(noise)
    return total, np.array([slope(2 * var * k), *(slope(var * one) for one in slopes), noise_slope])


def restricted_precision(covariance: Array, basis: Array) -> tuple[Array, float]:
    """P and log|S| + log|B'S^-1 B|, for B with independent columns."""
    lower = cholesky(covariance, lower=True)
    P = cho_solve((lower, True), np.eye(len(covariance)))
    value = 2 * np.log(np.diag(lower)).sum()
    if basis.shape[1]:
        orthogonal, triangle = np.linalg.qr(solve_triangular(lower, basis, lower=True))
        value += 2 * np.log(np.abs(np.diag(triangle))).sum()
        image = solve_triangular(lower, orthogonal, lower=True, trans=1)
        P = P - image @ image.T
    return P, float(value)


def residual_precision(
    x: Array, nu: float, fit: Hyperparameters, basis: Array, relative_var: Array, labelled: Labelled = ()
) -> Array:
    """P, (n, n), of a regression by the fitted process and the basis; noise_var P z is what it leaves of z."""
    covariance = fit.sd**2 * correlation(x, x, fit.lengthscale, nu, labelled) + fit.noise_var * np.diag(relative_var)
    return restricted_precision(covariance, independent_columns(basis))[0]


def independent_columns(basis: Array) -> Array:
    """An orthonormal basis of the columns' span: a parameter may have no effect on this outcome at all."""
    lengths = np.linalg.norm(basis, axis=0)
    used = basis[:, lengths > 0] / lengths[lengths > 0]
    left, singular, _ = np.linalg.svd(used, full_matrices=False)
    return np.asarray(left[:, singular > 1e-8])


def sample_of_points(n: int, most: int) -> IntArray:
    """At most ``most`` of n points, always the same ones."""
    if n <= most:
        return np.arange(n, dtype=np.intp)
    return np.random.default_rng(0).choice(n, most, replace=False).astype(np.intp)


# The restricted likelihood of a process at many hyperparameters, without a gradient.
#
#     log p(z | v) = -(c (log|S| + log|B'S^-1 B|) + |(1 - P) L^-1 z|^2) / 2,   S = L L' = sd^2 k + noise,
#
# P the projection on L^-1 B, for c columns z: that of ``restricted_deviance``. What does not depend on v is kept.


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

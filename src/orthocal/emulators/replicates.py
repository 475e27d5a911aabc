"""Simulators with random numbers: what runs that were repeated at one theta say about the scatter of a single run.

A run's target is t(u) + e, e ~ N(0, s^2 r(u)): of the replicates at one u the mean, with the variance s^2 r(u) / count,
and the squares about it are all that a regression needs. r is 1 unless the replicates are uneven (Bartlett's test);
then log r is a Gaussian process, learnt from the replicates' log variances, whose own errors are those of the logarithm
of a chi-square with their degrees of freedom (the idea of stochastic kriging, Ankenman, Nelson and Staum 2010, with the
variances smoothed: those of five replicates are off by a factor of two).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import digamma, polygamma
from scipy.stats import chi2

from ..arrays import Array, repeated_rows
from ..regression.gaussian_process import (
    MergedValues,
    correlation,
    fit_hyperparameters,
    jittered_cholesky,
    merged_values,
)

#: replicates that scatter by less, for targets of sd 1, are one run and its copies: no noise can be smaller in a search
LEAST_VAR = 1e-9
#: level of the test for uneven variances, and fewest thetas with replicates that could tell how they vary
LEVEL, LEAST_SETS = 0.01, 6
#: a variance below this share of the usual one counts as this: replicates that were rounded may be equal
LEAST_SHARE = 1e-4
#: smoothness of the log variance
SMOOTHNESS = 2.5


class UnevenScatter:
    """log r(u) = the mean of a Gaussian process with a trend, within the range that the replicates have."""

    def __init__(self, inputs: Array, log_var: Array, error_var: Array) -> None:
        """From log variances (u,) at inputs (u, k), with the variances of their errors, (u,)."""
        self._inputs = inputs
        self._size = trend_size(inputs)
        basis = trend_basis(inputs, self._size)
        fit = fit_hyperparameters(
            inputs,
            log_var,
            SMOOTHNESS,
            span=np.ones(inputs.shape[1]),
            basis=basis,
            relative_var=error_var,
            # few log variances may happen to lie on a curve
            cautious=True,
        )
        self._var, self._lengthscale = fit.sd**2, fit.lengthscale
        covariance = self._var * correlation(inputs, inputs, fit.lengthscale, SMOOTHNESS)
        # larger than the chi-square's where noise has heavy tails
        covariance[np.diag_indices_from(covariance)] += fit.noise_var * error_var
        lower, _ = jittered_cholesky(covariance)
        solved = cho_solve((lower, True), basis)
        self._trend = np.linalg.solve(basis.T @ solved, solved.T @ log_var)
        self._alpha = cho_solve((lower, True), log_var - basis @ self._trend)
        self._low, self._high, self._level = -np.inf, np.inf, 0.0
        own = self._log(inputs)
        self._low, self._high, self._level = float(own.min()), float(own.max()), float(own.mean())

    def at(self, inputs: Array) -> Array:
        """r at inputs (M, k), (M,)."""
        return np.asarray(np.exp(self._log(inputs) - self._level))

    def _log(self, inputs: Array) -> Array:
        k = self._var * correlation(inputs, self._inputs, self._lengthscale, SMOOTHNESS)
        return np.clip(trend_basis(inputs, self._size) @ self._trend + k @ self._alpha, self._low, self._high)


class MergedRuns(NamedTuple):
    """Targets of a process, merged where the inputs repeat; what is known of a single run's scatter.

    Attributes
    ----------
    values
        One row for each distinct input; their ``relative_var`` is r / count.
    known
        Whether replicates tell the noise of a run from what the process does not explain.
    uneven
        r as a function, None where it is 1.
    """

    values: MergedValues
    known: bool
    uneven: UnevenScatter | None


def merged_runs(inputs: Array, targets: Array) -> MergedRuns:
    """The runs of a process at inputs (N, k) with targets (N, c)."""
    no_basis = np.empty((len(inputs), 0))
    values = merged_values(inputs, targets, no_basis, np.ones(len(inputs)))
    freedom = values.freedom
    if not freedom.any():
        return MergedRuns(values, False, None)
    if values.scatter.sum() <= LEAST_VAR * freedom.sum():
        nothing = np.zeros(len(values.x))
        alone = values._replace(relative_var=nothing + 1, counts=nothing + 1, scatter=nothing, log_scale=nothing)
        return MergedRuns(alone, False, None)
    uneven = _uneven(values)
    if uneven is not None:
        values = merged_values(inputs, targets, no_basis, uneven.at(inputs))
    return MergedRuns(values, True, uneven)


def _uneven(values: MergedValues) -> UnevenScatter | None:
    """How the variance varies, where the replicates show that it does."""
    seen = values.freedom > 0
    freedom, squares = values.freedom[seen], values.scatter[seen]
    if seen.sum() < LEAST_SETS or bartlett(freedom, squares) >= LEVEL:
        return None
    var = np.maximum(squares / freedom, LEAST_SHARE * squares.sum() / freedom.sum())
    # mean and variance of the logarithm of a chi-square, a degree of freedom
    log_var = np.log(var) - digamma(freedom / 2) + np.log(freedom / 2)
    return UnevenScatter(values.x[seen], log_var, polygamma(1, freedom / 2))


def bartlett(freedom: Array, squares: Array) -> float:
    """p-value of equal variances, by Bartlett's test, from sums of squares and their degrees of freedom."""
    total, sets = float(freedom.sum()), len(freedom)
    pooled = float(squares.sum()) / total
    if sets < 2 or not pooled > 0:
        return 1.0
    logs = np.log(np.maximum(squares / freedom, LEAST_SHARE * pooled) / pooled)
    correction = 1 + (float(np.sum(1 / freedom)) - 1 / total) / (3 * (sets - 1))
    return float(chi2.sf(-float(freedom @ logs) / correction, sets - 1))


def pure_var(inputs: Array, targets: Array) -> Array | None:
    """Variance of replicates about their means, for each of the targets (N, r), (r,); None without replicates."""
    repeats = repeated_rows(inputs)
    if repeats is None:
        return None
    means = repeats.sums(targets) / repeats.counts[:, None]
    squares = np.sum((targets - means[repeats.place]) ** 2, axis=0)
    var = np.asarray(squares / (len(inputs) - len(repeats.first)))
    return var if (var > LEAST_VAR).any() else None


def trend_size(inputs: Array) -> int:
    """A linear trend where there are runs enough to tell it, a constant otherwise."""
    varied = np.unique(inputs, axis=0)
    slopes = 1 + inputs.shape[1]
    determined = np.linalg.matrix_rank(np.hstack([np.ones((len(varied), 1)), varied])) == slopes
    return slopes if determined and len(varied) >= 3 * slopes else 1


def trend_basis(inputs: Array, size: int) -> Array:
    return np.hstack([np.ones((len(inputs), 1)), inputs])[:, :size]

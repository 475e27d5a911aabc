"""How well draws predict observations: CRPS, errors, coverage, and leave-one-out by importance sampling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from ...arrays import Array, IntArray
from ...errors import InputError
from ...methods.joint.weights import pareto_smoothed
from ..record import Record
from .likelihood import log_likelihood, require_density

#: probability of the intervals whose coverage is counted
INTERVAL = 0.95
#: Pareto shapes beyond this make importance sampling unreliable (Vehtari and others, JMLR 2024)
K_LIMIT = 0.7


def crps(draws: Array, y: Array) -> Array:
    """E|X - y| - E|X - X'| / 2, from draws (s, ...) for observations y (...).

    The second expectation is over pairs of different draws: so the number of draws has no influence on the mean of
    the score. It is the error of the forecast in the unit of y, and smaller is better.
    """
    count = len(draws)
    if count < 2:
        raise InputError(f"the CRPS needs at least 2 draws, there are {count}")
    # sum over pairs |x_i - x_j| = sum_i (2 i - s - 1) x_(i), for the sorted draws
    rank_weights = 2 * np.arange(1, count + 1) - count - 1.0
    # differences from y first: no digits are lost where y is far from zero
    apart = np.sort(draws - y, axis=0)
    pairs = np.tensordot(rank_weights, apart, axes=1)
    return np.asarray(np.abs(apart).mean(axis=0) - pairs / (count * (count - 1)))


class CellScores(NamedTuple):
    """Scores of every cell of y, (n, q), NaN where it is missing.

    ``error`` is y less the predictive mean; ``covered`` 1 where the interval holds y, 0 where not; ``interval`` the
    interval's width, and 40 times what y is beyond it (Gneiting and Raftery, JASA 2007): smaller is better.
    """

    error: Array
    crps: Array
    covered: Array
    interval: Array


def cell_scores(draws: Array, y: Array) -> CellScores:
    """Scores of draws of observations, (s, n, q), for the observed y (n, q)."""
    lower, upper = np.quantile(draws, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], axis=0)
    covered = np.where(np.isnan(y), np.nan, (lower <= y) & (y <= upper))
    beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    interval = upper - lower + 2 / (1 - INTERVAL) * beyond
    return CellScores(y - draws.mean(axis=0), crps(draws, y), covered, interval)


def score_table(cells: CellScores, outcome_names: tuple[str, ...], groups: IntArray | None = None) -> pd.DataFrame:
    """One row an outcome: RMSE, CRPS and coverage, each with its standard error over the cells.

    Where rows were held out by ``groups`` (n,), the standard errors are those over groups.
    """
    rows = [
        _scores(cells.error[:, k], cells.crps[:, k], cells.covered[:, k], groups) for k in range(len(outcome_names))
    ]
    return pd.DataFrame(rows, index=pd.Index(outcome_names, name="outcome"))


def _scores(error: Array, crps_: Array, covered: Array, groups: IntArray | None) -> dict[str, float]:
    count = int((~np.isnan(error)).sum())
    if not count:
        return dict.fromkeys(("rmse", "rmse_se", "crps", "crps_se", "coverage", "coverage_se"), np.nan)
    mse, mse_se = mean_and_error(error**2, groups)
    rmse = np.sqrt(mse)
    mean, mean_se = mean_and_error(crps_, groups)
    coverage, coverage_se = mean_and_error(covered, groups)
    # two successes and two failures more (Agresti and Coull): otherwise 100 % would have no error
    share = (coverage * count + 2) / (count + 4)
    least = float(np.sqrt(share * (1 - share) / (count + 4)))
    return {
        "rmse": rmse,
        "rmse_se": mse_se / (2 * rmse) if rmse > 0 else 0.0,
        "crps": mean,
        "crps_se": mean_se,
        "coverage": coverage,
        "coverage_se": least if groups is None else float(np.fmax(least, coverage_se)),
    }


def mean_and_error(values: Array, groups: IntArray | None = None) -> tuple[float, float]:
    """Mean of the values that are there, and its standard error as if they, or their groups, were independent."""
    there = ~np.isnan(values)
    seen = values[there]
    if not len(seen):
        return np.nan, np.nan
    mean = float(seen.mean())
    if groups is None:
        return mean, float(seen.std(ddof=1) / np.sqrt(len(seen))) if len(seen) > 1 else np.nan
    codes = np.unique(groups[there], return_inverse=True)[1]
    sums = np.bincount(codes, weights=seen - mean)
    count = len(sums)
    return mean, float(np.sqrt(count / (count - 1) * np.sum(sums**2)) / len(seen)) if count > 1 else np.nan


class Loo(NamedTuple):
    """Leave-one-out by Pareto-smoothed importance sampling.

    Attributes
    ----------
    elpd, se
        Sum over the rows of log p(y_i | the other rows), and its standard error.
    p
        Effective number of parameters: how much better the rows are fitted than predicted.
    pareto_k
        Shape of each row's importance weights; above 0.7, or NaN, the estimate for this row is unreliable.
    """

    elpd: float
    se: float
    p: float
    pareto_k: Array

    @property
    def high_k(self) -> int:
        """Number of rows whose estimate is unreliable."""
        return int((~(self.pareto_k <= K_LIMIT)).sum())

    def __str__(self) -> str:
        text = f"elpd {self.elpd:.4g} ± {self.se:.2g}, effective parameters {self.p:.3g}"
        if not self.high_k:
            return f"{text}; all Pareto k at most {K_LIMIT}"
        return (
            f"{text}; NOT to be relied on: {self.high_k} of {len(self.pareto_k)} rows have a Pareto k above {K_LIMIT}, "
            "because the bias leans on single observations there; take oc.compare(..., folds=10)"
        )


def loo(record: Record) -> Loo:
    """PSIS-LOO of a posterior's results; rows without any observation are left out.

    The likelihood of a row is that of its observed cells given theta and the bias of the draw.
    """
    require_density(record.transforms, record.native_y)
    density = log_likelihood(record)
    chains, draws, rows = density.shape
    by_row = np.moveaxis(density.reshape(chains * draws, rows), 0, 1)
    efficiency = _relative_efficiency(record)
    log_weights, pareto_k = (
        np.array(part) for part in zip(*(_smoothed(one, efficiency) for one in by_row), strict=True)
    )
    log_weights = log_weights - logsumexp(log_weights, axis=1, keepdims=True)
    elpd = logsumexp(by_row + log_weights, axis=1)
    fitted = logsumexp(by_row, axis=1) - np.log(chains * draws)
    se = float(np.sqrt(rows * np.var(elpd)))
    return Loo(float(elpd.sum()), se, float((fitted - elpd).sum()), pareto_k)


def _smoothed(density: Array, efficiency: float) -> tuple[Array, float]:
    """Log weights 1 / p(y_i | draw), Pareto-smoothed, and k."""
    if np.ptp(density) < 1e-12:
        # a row that says nothing, at x = 0 of a line through the origin for instance: all weights are the same
        return np.zeros_like(density), 0.0
    return pareto_smoothed(-density, efficiency)


def _relative_efficiency(record: Record) -> float:
    """Effective draws of what was sampled over draws, on average; it decides how long a tail is fitted, as in ArviZ."""
    from arviz_stats.base import array_stats

    if record.chains == 1:
        return 1.0
    sampled = [values.values for values in record.data["posterior"].to_dataset().data_vars.values()]
    columns = np.concatenate([one.reshape(*one.shape[:2], -1) for one in sampled], axis=2)
    sizes = [array_stats.ess(columns[:, :, j], method="mean") for j in range(columns.shape[2])]
    efficiency = float(np.mean(sizes)) / columns[:, :, 0].size
    return efficiency if np.isfinite(efficiency) else 1.0

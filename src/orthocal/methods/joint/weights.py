"""Importance weights: what the prior of theta has beyond the Gaussian that the draws were made with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array, BoolArray, IntArray
from ...errors import InputError
from ...problem.problem import Problem
from .closest import Closest
from .regress import Regressed

#: log weights that differ by less than this are all the same
NO_DIFFERENCE = 1e-3
#: beyond this a weight is zero
LEAST_LOG_WEIGHT = 700.0


class Weights(NamedTuple):
    """Which draws to keep, (s,), some more than once; the weights' Pareto shape, and how many draws they are worth.

    The last two are None where all weights are the same. ``impossible`` is the share of the draws without a theta.
    """

    rows: IntArray
    pareto_k: float | None
    effective: float | None
    impossible: float = 0.0


def importance_weights(
    problem: Problem,
    found: Closest,
    regressed: Regressed,
    rngs: list[np.random.Generator],
    outside: BoolArray | None = None,
) -> Weights:
    """Resample draws, chain by chain, by pi(theta) over the Gaussian prior of their linearised theta.

    Those that are impossible have the weight 0, and so have those ``outside`` (s,) of the prior's support, of which
    no more is said.
    """
    impossible, rows = found.impossible, np.arange(len(found.theta), dtype=np.intp)
    log_weights = problem.parameters.log_prior(found.theta) - regressed.log_prior - found.stretch
    if outside is not None and outside.any():
        inside = _of_possible(np.where(impossible | outside, -np.inf, log_weights), rngs)
        return inside._replace(impossible=float(impossible.mean()))
    if impossible.any():
        return _of_possible(np.where(impossible, -np.inf, log_weights), rngs)
    if not np.isfinite(log_weights).any():
        raise InputError(
            "no draw of theta has any density under its prior: the prior excludes where the simulator is closest to "
            "the real process; widen it"
        )
    if np.ptp(log_weights) < NO_DIFFERENCE:
        return Weights(rows, None, None)
    smoothed, pareto_k = pareto_smoothed(log_weights)
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    return Weights(_resampled(weights, rngs), pareto_k, float(1 / np.sum(weights**2)))


def _of_possible(log_weights: Array, rngs: list[np.random.Generator]) -> Weights:
    """The same where some draws, at least, have the weight 0: the others alone are smoothed."""
    possible = np.isfinite(log_weights)
    each = possible.reshape(len(rngs), -1).sum(axis=1)
    if each.min() == 0:
        raise InputError(
            f"the real process has its closest simulator at an allowed theta in {possible.sum()} of {possible.size} "
            "draws only: the constraint, or where the simulator fails, excludes what the data say; loosen it, or take "
            "a method that draws theta by a chain, for instance pgp"
        )
    own = log_weights[possible]
    smoothed, pareto_k = (own, None) if np.ptp(own) < NO_DIFFERENCE else pareto_smoothed(own)
    weights = np.zeros(len(log_weights))
    weights[possible] = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    effective = float(1 / np.sum(weights**2))
    return Weights(_resampled(weights, rngs), pareto_k, effective, 1 - float(possible.mean()))


def _resampled(weights: Array, rngs: list[np.random.Generator]) -> IntArray:
    """Numbers of draws, chain by chain, by their weights (s,)."""
    each = len(weights) // len(rngs)
    kept = []
    for c, rng in enumerate(rngs):
        own = weights[c * each : (c + 1) * each]
        # one uniform for all places: the least noise that resampling can add
        places = (rng.random() + np.arange(each)) / each
        chosen = np.searchsorted(np.cumsum(own / own.sum()), places)
        kept.append(c * each + rng.permutation(np.minimum(chosen, each - 1)))
    return np.concatenate(kept).astype(np.intp)


def pareto_smoothed(log_weights: Array, efficiency: float = 1.0) -> tuple[Array, float]:
    """Log weights with a smoothed tail, and its shape k (Vehtari and others, JMLR 2024), NaN where there is no tail.

    ``efficiency`` is that of the draws, effective ones over all.
    """
    # slow to import
    from arviz_stats.base import array_stats

    # a weight of zero stays one; draws that are all but excluded have no tail to fit, and k is NaN
    log_weights = np.maximum(log_weights, log_weights.max() - LEAST_LOG_WEIGHT)
    try:
        with np.errstate(all="ignore"):
            smoothed, pareto_k = array_stats.psislw(-log_weights, r_eff=efficiency)
    except (ValueError, IndexError):
        # fewer than 25 draws, or a chain that stands still
        return log_weights, np.nan
    if not np.isfinite(smoothed).all():
        return log_weights, np.nan
    return np.asarray(smoothed), float(pareto_k)

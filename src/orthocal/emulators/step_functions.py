"""Gradients of step functions: central differences that span a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array

#: with step functions, theta's difference is at least this share of the runs' range to either side: over less the steps
#: are noise (Model 2 and BART: errors of the gradient are 1.9, 0.75, 0.5 of its size with 0.02, 0.05, 0.1)
LEAST_STEP = 0.1


def usual_gaps(unit: Array) -> Array:
    """The usual gap between the values of each parameter, (p,), for theta (s, p) in the unit cube."""
    # 0 and 1 are values that every parameter has, but one that does not vary
    return np.array([np.median(np.diff(np.unique([0.0, 1.0, *column]))) for column in unit.T])


def difference(mean: Callable[[Array], Array], theta: Array, steps: Array, low: Array, high: Array) -> Array:
    """Central differences of ``mean`` over ``steps`` (p,) to either side; at an end of the runs' range to one side."""
    columns = []
    for j, step in enumerate(steps):
        ends = []
        for side in (-step, step):
            moved = theta.copy()
            # beyond the runs a step function is constant, and a difference across that end too small
            moved[j] = np.clip(theta[j] + side, min(low[j], theta[j]), max(high[j], theta[j]))
            ends.append(moved)
        width = ends[1][j] - ends[0][j]
        change = mean(ends[1]) - mean(ends[0])
        columns.append(change / width if width > 0 else np.zeros_like(change))
    return np.stack(columns, axis=-1)

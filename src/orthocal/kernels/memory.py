"""Does the theta step forget where it started? The diagnostic of an inexact theta step.

An exact draw from Pi(theta | b*, y) depends on the bias alone, not on the theta before it. So what is left of both
thetas after a regression on the bias must be uncorrelated. The bias enters by the centre of the linearised
conditional and its squares and products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from .base import Conditional, ThetaModel
from .laplace import LaplaceTuning, linear_centre, linearised


class Centre(NamedTuple):
    """The centre of Pi(theta | b*, y) for a linearised simulator: a function of bias and noise."""

    tuning: LaplaceTuning

    @staticmethod
    def at(model: ThetaModel, pivot: Array) -> Centre:
        """For the simulator linearised at ``pivot`` (p,)."""
        return Centre(linearised(model, pivot))

    def __call__(self, target: Conditional) -> Array:
        """(c, p)."""
        return linear_centre(self.tuning, target)


def memory(before: Array, after: Array, centre: Array) -> float | None:
    """The largest partial correlation of a parameter before and after the theta step given the bias.

    All arrays are (draws, p). None where they are fewer than four a coefficient of the regression.
    """
    spread = centre.std(axis=0)
    scaled = (centre - centre.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    p = scaled.shape[1]
    products = [scaled[:, i] * scaled[:, j] for i in range(p) for j in range(i, p)]
    features = np.column_stack([np.ones(len(scaled)), scaled, *products])
    if len(features) < 4 * features.shape[1]:
        return None
    left = []
    for theta in (before, after):
        fitted = features @ np.linalg.lstsq(features, theta, rcond=None)[0]
        left.append(theta - fitted)
    sizes = np.sqrt(np.sum(left[0] ** 2, axis=0) * np.sum(left[1] ** 2, axis=0))
    shared = np.abs(np.sum(left[0] * left[1], axis=0))
    return float(np.max(np.divide(shared, sizes, out=np.zeros_like(sizes), where=sizes > 0)))

"""Does the theta step forget where it started? The diagnostic of an inexact theta step.

An exact draw from Pi(theta | b*, y) depends on the bias alone, not on the theta before it. So what is left of both
thetas after a regression on the bias must be uncorrelated. The bias enters by the centre of the linearised
conditional and its squares and products.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .base import Conditional, ThetaModel
from .laplace import linear_centre, linearised


class Centre:
    """The centre of Pi(theta | b*, y) for a simulator that is linearised at ``pivot``: a function of bias and noise."""

    def __init__(self, model: ThetaModel, pivot: Array) -> None:
        self._tuning = linearised(model, pivot)

    def __call__(self, target: Conditional) -> Array:
        """(c, p)."""
        return linear_centre(self._tuning, target)


class Trace:
    """Where the theta steps started, where they aimed at, and where they ended."""

    def __init__(self) -> None:
        self._steps: list[tuple[Array, Array, Array]] = []

    def add(self, before: Array, after: Array, centre: Array) -> None:
        """One step of all chains, each (c, p)."""
        self._steps.append((before, after, centre))

    def memory(self) -> float | None:
        """How much of its start the theta step remembers; None where the draws are too few to tell."""
        return memory(*(np.concatenate(parts) for parts in zip(*self._steps, strict=True)))


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

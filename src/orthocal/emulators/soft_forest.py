"""Forests as smooth functions of theta.

A draw of BART is a staircase of theta: what is closest to it is a place on one of its steps, and between two of a
design's values each draw has its steps elsewhere. So a cut at c becomes a gate: with t +- w around it a point goes left
with the probability that t + w u < c, u with Epanechnikov's density. In x the trees stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from .lookup import Packed, distinct_rows
from .soft_forest_kernels import walk_softly


class SoftForest(NamedTuple):
    """offset + sum of trees, each leaf times a factor, of r targets: a function of inputs (M, k).

    Attributes
    ----------
    forests, factors
        The packed trees of each target, and what each of their nodes is multiplied by, (L,).
    offset
        (r,).
    cut_points
        Of each input.
    width
        Half the width of the gates of each input, (k,).
    """

    forests: list[Packed]
    factors: list[Array]
    offset: Array
    cut_points: list[Array]
    width: Array

    def predict(self, inputs: Array) -> Array:
        """(M, r): every input is smooth."""
        function = self.at(np.empty((1, 0)))
        return np.concatenate([function(row) for row in inputs])

    def gradient(self, inputs: Array) -> Array:
        """(M, r, k)."""
        function = self.at(np.empty((1, 0)))
        return np.concatenate([function.gradient(row) for row in inputs])

    def at(self, points: Array) -> SoftFunction:
        """The function of theta (p,), the other inputs, at points (m, d)."""
        return SoftFunction(self, points)


class SoftFunction:
    """theta (p,) -> (m, r) at fixed points (m, d), with its gradient (m, r, p)."""

    def __init__(self, forest: SoftForest, points: Array) -> None:
        d = points.shape[1]
        self._forest, self._width = forest, np.ascontiguousarray(forest.width[d:])
        self._point_bins, self._row_of_point = distinct_rows(points, forest.cut_points[:d])
        own = forest.cut_points[d:]
        self._cut_points = np.concatenate([np.empty(0), *own])
        self._starts = np.concatenate([[0], np.cumsum([len(cuts) for cuts in own], dtype=np.int64)])

    def __call__(self, theta: Array) -> Array:
        return self._walked(theta)[:, :, 0]

    def gradient(self, theta: Array) -> Array:
        return self._walked(theta)[:, :, 1:]

    def _walked(self, theta: Array) -> Array:
        """(m, r, 1 + p)."""
        targets = []
        for forest, factor, offset in zip(self._forest.forests, self._forest.factors, self._forest.offset, strict=True):
            output = np.zeros((1 + len(theta), self._point_bins.shape[1]))
            output[0] = offset
            walk_softly(
                *forest, factor, self._cut_points, self._starts, self._point_bins, np.ascontiguousarray(theta),
                self._width, output,
            )  # fmt: skip
            targets.append(output.T[self._row_of_point])
        return np.stack(targets, axis=1)

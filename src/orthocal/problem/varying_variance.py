"""Noise variances that differ between rows: log s = C g, the coefficients g by penalised restricted likelihood.

With P the precision of what a regression leaves of z, and s the variances, the deviance has the slopes
s_i (P_ii - (P z)_i^2) along log s_i and the expected curvature s_i s_j P_ij^2: Fisher scoring.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.interpolate import BSpline

from ..arrays import Array, IntArray

#: the longest change of a log variance in a step
LONGEST_STEP = 1.0
#: a group's log variance a priori: normal around the others', so a group of few rows is like them
GROUP_SD = 2.0
#: splines for each input, of this degree
SPLINES, DEGREE = 8, 3
#: range of the penalty's strength, and a ridge for what the penalty leaves free: the level and straight lines
LEAST_SMOOTHING, MOST_SMOOTHING, RIDGE = 1e-2, 1e6, 1e-2


class VarianceModel(Protocol):
    """What the rows' log variances are made of.

    Attributes
    ----------
    penalty
        Of the coefficients, (g, g).
    smooth
        Whether the strength of the penalty is found by likelihood; one otherwise.
    along_mean
        Whether they depend on what a regression predicts.
    """

    penalty: Array
    smooth: bool
    along_mean: bool

    def columns(self, rows: IntArray, mean: Array) -> Array:
        """C (m, g) for rows of the data (m,) where a regression predicts ``mean`` (m,)."""


class GroupVariance:
    """A log variance for each group, from the rows' group numbers (n,)."""

    smooth: bool = False
    along_mean: bool = False

    def __init__(self, codes: IntArray) -> None:
        self._codes, self._groups = codes, int(codes.max()) + 1
        self.penalty: Array = np.eye(self._groups) / GROUP_SD**2

    def columns(self, rows: IntArray, mean: Array) -> Array:
        return np.eye(self._groups)[self._codes[rows]]


class SmoothVariance:
    """A sum of splines in the inputs (n, d), or a spline in the mean where ``x`` is None."""

    smooth: bool = True

    def __init__(self, x: Array | None) -> None:
        self.along_mean = x is None
        self._x = None if x is None else x[:, np.ptp(x, axis=0) > 0]
        second = np.diff(np.eye(SPLINES), 2, axis=0)
        inputs = 1 if self._x is None else max(self._x.shape[1], 1)
        self.penalty: Array = np.kron(np.eye(inputs), second.T @ second)

    def columns(self, rows: IntArray, mean: Array) -> Array:
        along = mean[:, None] if self._x is None else self._x[rows]
        return np.column_stack([_splines(column) for column in along.T] or [np.ones((len(rows), SPLINES))])


def _splines(values: Array) -> Array:
    """Cubic B-splines over the range of the values, (m, SPLINES)."""
    width = float(np.ptp(values)) or 1.0
    unit = np.clip((values - values.min()) / width, 0.0, 1.0)
    pieces = SPLINES - DEGREE
    knots = np.arange(-DEGREE, pieces + DEGREE + 1) / pieces
    # the last spline's piece is half open
    return np.asarray(BSpline.design_matrix(np.minimum(unit, 1 - 1e-12), knots, DEGREE).toarray())


class Scored(NamedTuple):
    """Coefficients (g,), and the strength of their penalty."""

    coefficients: Array
    smoothing: float


def scored(model: VarianceModel, now: Scored, C: Array, variances: Array, P: Array, z: Array) -> Scored:
    """One step of Fisher scoring from ``now``, for rows with the columns C, variances s (m,) and precision P (m, m)."""
    curvature = C.T @ ((np.outer(variances, variances) * P**2) @ C) / 2
    slope = C.T @ (variances * (np.diag(P) - (P @ z) ** 2)) / 2
    penalty = now.smoothing * model.penalty + (RIDGE * np.eye(len(slope)) if model.smooth else 0.0)
    whole = curvature + penalty
    step = -np.linalg.solve(whole, slope + penalty @ now.coefficients)
    step *= min(1.0, LONGEST_STEP / max(float(np.max(np.abs(C @ step))), 1e-300))
    coefficients = now.coefficients + step
    if not model.smooth:
        return Scored(coefficients, now.smoothing)
    # the variance of the coefficients by likelihood (Schall 1991)
    used = np.linalg.matrix_rank(model.penalty) - now.smoothing * np.trace(np.linalg.solve(whole, model.penalty))
    size = float(coefficients @ model.penalty @ coefficients)
    smoothing = float(np.clip(used / max(size, 1e-300), LEAST_SMOOTHING, MOST_SMOOTHING))
    return Scored(coefficients, smoothing)

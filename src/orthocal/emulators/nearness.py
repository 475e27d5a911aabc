"""Where an emulator has runs nearby.

In many dimensions the convex hull of the runs says nothing: of a box that a few hundred runs fill, hardly any part lies
inside. So a theta counts as outside where it leaves the box of the runs, where one of its parameters lies in a gap of
the runs' values, or where the nearest run is further away than it is from hardly any theta where as many runs fill that
box evenly. Distances are in length-scales where the emulator has them: a parameter without effect does not count.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import qmc

from ..arrays import Array, BoolArray

#: how far beyond the runs' range theta may lie, as a share of it: so many of s runs' shares, and this at most
EDGE_SHARES, MOST_EDGE = 2.0, 0.1
#: a gap of a parameter's values: as a share of its range, and of the usual gap
GAP, USUAL_GAPS = 0.3, 4.0
#: even designs, places in them, and the quantile of the distance to the nearest run that is compared with
DESIGNS, PLACES, QUANTILE = 4, 500, 0.99
#: a hole is a ball that has so many times the volume of that distance's
VOLUMES = 2.5
#: nearer than this, in length-scales, a run tells enough
NEAR_ENOUGH = 0.5
#: designs of more runs are no denser
MOST_RUNS = 20_000


class Nearness:
    """Which theta have runs nearby, for runs at theta (s, p).

    ``lengthscale`` (p,) is the emulator's, in units of the runs' ranges; None for one that has none.
    """

    def __init__(self, theta: Array, lengthscale: Array | None = None) -> None:
        self._low, width = theta.min(axis=0), np.ptp(theta, axis=0)
        self._varies = width > 0
        self._width = np.where(self._varies, width, 1.0)
        self._points = (theta - self._low) / self._width
        self._known = lengthscale is not None
        scale = np.ones(theta.shape[1]) if lengthscale is None else 1 / lengthscale
        self._scale = np.where(self._varies, scale, 0.0)

    def outside(self, theta: Array) -> BoolArray:
        """Which of theta (c, p) have none."""
        unit = (theta - self._low) / self._width
        edge = np.where(self._varies, min(EDGE_SHARES / len(self._points), MOST_EDGE), 1e-9)
        beyond = ((unit < -edge) | (unit > np.where(self._varies, 1.0, 0.0) + edge)).any(axis=1)
        distance = self._tree.query(unit * self._scale)[0]
        return np.asarray(beyond | self._in_gap(unit) | (distance > self._limit))

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._points * self._scale)

    @cached_property
    def _limit(self) -> float:
        """The distance to the nearest run that is too far."""
        squares = self._scale**2
        if not squares.any():
            return float(np.inf)
        count, p = min(len(self._points), MOST_RUNS), len(squares)
        rng = np.random.default_rng(0)
        usual = []
        for _ in range(DESIGNS):
            # the sequence is shuffled with these numbers, so that no single design counts
            even = qmc.Sobol(p, rng=rng).random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]
            distance = cKDTree(even * self._scale).query(rng.random((PLACES, p)) * self._scale)[0]
            usual.append(np.quantile(distance, QUANTILE))
        # parameters of little effect hardly add a dimension
        dimensions = squares.sum() ** 2 / (squares**2).sum()
        limit = float(np.mean(usual)) * VOLUMES ** (1 / dimensions)
        return float(max(limit, NEAR_ENOUGH)) if self._known else limit

    def _in_gap(self, unit: Array) -> BoolArray:
        """Which of unit (c, p) have a parameter that lies between distant values of the runs."""
        found = np.zeros(len(unit), dtype=bool)
        for own, at, scale in zip(self._points.T, unit.T, self._scale, strict=True):
            values = np.unique(own)
            gaps = np.concatenate([[0.0], np.diff(values), [0.0]])
            usual = float(np.median(gaps[1:-1])) if len(values) > 1 else np.inf
            wide = gaps > max(GAP, USUAL_GAPS * usual)
            if self._known:
                wide &= 0.5 * gaps * scale > NEAR_ENOUGH
            found |= wide[np.searchsorted(values, at)]
        return found

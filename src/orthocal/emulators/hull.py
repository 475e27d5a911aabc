"""The convex hull of the runs: where an emulator interpolates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, QhullError

from ..arrays import Array, BoolArray

#: the facets of a hull in more dimensions are too many
MOST_PARAMETERS = 6
#: a point this far beyond a facet, relative to the runs' range, still counts as inside
TOLERANCE = 1e-9


class Hull:
    """The convex hull of theta (s, p)."""

    def __init__(self, theta: Array) -> None:
        self._low = theta.min(axis=0)
        self._span = np.where(np.ptp(theta, axis=0) > 0, np.ptp(theta, axis=0), 1.0)
        self._points = (theta - self._low) / self._span
        self._facets = self._found_facets()

    def outside(self, theta: Array) -> BoolArray:
        """Which of theta (c, p) lie outside."""
        unit = (theta - self._low) / self._span
        beyond = ((unit < -TOLERANCE) | (unit > self._points.max(axis=0) + TOLERANCE)).any(axis=1)
        if self._points.shape[1] == 1:
            return np.asarray(beyond)
        inner = np.flatnonzero(~beyond)
        if self._facets is not None:
            beyond[inner] = (unit[inner] @ self._facets[:, :-1].T + self._facets[:, -1] > TOLERANCE).any(axis=1)
        else:
            beyond[inner] = [not self._is_mixture(one) for one in unit[inner]]
        return np.asarray(beyond)

    def _found_facets(self) -> Array | None:
        """The facets as a'u + b <= 0, (f, p + 1); None where they are too many, or the runs lie in a plane."""
        if not 1 < self._points.shape[1] <= MOST_PARAMETERS:
            return None
        try:
            return np.unique(ConvexHull(self._points).equations.round(12), axis=0)
        except QhullError:
            return None

    def _is_mixture(self, one: Array) -> bool:
        """Whether weights exist that are not negative, sum to one, and give this point as a mean of the runs."""
        equations = np.vstack([self._points.T, np.ones(len(self._points))])
        found = linprog(np.zeros(len(self._points)), A_eq=equations, b_eq=np.append(one, 1.0), method="highs")
        return bool(found.status == 0)

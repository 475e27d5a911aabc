"""What an emulator is: a simulator with a gradient, learnt from a table of runs by a regressor.

A regressor is any object with ``fit(inputs, targets)``, (N, k) and (N, r), and ``predict(inputs)``, (M, r): those of
scikit-learn are. The inputs it is given lie in the unit cube of the runs, the targets have mean 0 and sd 1. A
``Layout`` says what the inputs and targets of a table of runs are, and makes outputs of predictions.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..arrays import Array, BoolArray, IntArray, as_columns, as_floats
from ..errors import InputError
from ..runs.table import RunTable
from .hull import Hull

#: with step functions, theta's difference is at least this share of the runs' range to either side: over less the steps
#: are noise (Model 2 and BART: errors of the gradient are 1.9, 0.75, 0.5 of its size with 0.02, 0.05, 0.1)
LEAST_STEP = 0.1


@runtime_checkable
class Regressor(Protocol):
    """Learns targets (N, r) from inputs (N, k).

    Optional: the fitted object may have ``gradient(inputs)``, (M, r, k), and ``variance(inputs)``, (M, r). Without a
    gradient the predictions count as step functions, whose cells are ``cell_width`` wide in the unit cube (default: the
    gaps between the values of the runs).
    """

    def fit(self, inputs: Array, targets: Array) -> Any:
        """The fitted object, which may be the regressor itself."""

    def predict(self, inputs: Array) -> Array:
        """The targets at inputs (M, k), (M, r)."""


class Range(NamedTuple):
    """An affine map of columns: v -> (v - shift) / scale."""

    shift: Array
    scale: Array

    @classmethod
    def of_box(cls, values: Array) -> Range:
        """The columns' ranges become [0, 1]; a constant column becomes 0."""
        low, high = values.min(axis=0), values.max(axis=0)
        return cls(low, np.where(high > low, high - low, 1.0))

    @classmethod
    def of_spread(cls, values: Array) -> Range:
        """The columns get mean 0 and sd 1; a constant column becomes 0."""
        mean, sd = values.mean(axis=0), values.std(axis=0)
        # what rounding leaves of a constant is no spread
        return cls(mean, np.where(sd > 1e-12 * np.abs(mean), sd, 1.0))

    def apply(self, values: Array) -> Array:
        return np.asarray((values - self.shift) / self.scale)


class Emulator:
    """f_hat(x, theta) with a gradient, and a variance where the regressor has one: it takes the simulator's place.

    Attributes
    ----------
    name
        Of the regressor.
    runs
        The runs that it was learnt from.
    smooth
        Whether the gradient is a derivative; of step functions it is a central difference.
    steps
        Half the width of these differences, (p,), in units of theta.
    """

    def __init__(self, name: str, runs: RunTable) -> None:
        self.name = name
        self.runs = runs
        self.parameter_names = runs.parameter_names
        self._hull = Hull(runs.theta)
        self.smooth = True
        self.steps = np.zeros(runs.p)

    def __call__(self, x: Any, theta: Any) -> Array:
        """f_hat at points x (m, d), or (m,) for one input, and theta (p,), (m, q)."""
        return self.mean(self._points(x), self._one_theta(theta))

    def gradient(self, x: Any, theta: Any) -> Array:
        """df_hat/dtheta, (m, q, p)."""
        points, one = self._points(x), self._one_theta(theta)
        return self.slope(points, one) if self.smooth else self._difference(points, one)

    def variance(self, x: Any, theta: Any) -> Array:
        """Variance of the emulator's error, (m, q)."""
        if not self.has_variance:
            raise InputError(f"the emulator {self.name!r} has no variance: take one that has, for instance 'gp'")
        return self.error_var(self._points(x), self._one_theta(theta))

    def outside(self, theta: Any) -> BoolArray:
        """Which of theta (c, p) lie outside of the convex hull of the runs."""
        return self._hull.outside(np.atleast_2d(as_floats(theta, "theta")))

    @property
    def has_variance(self) -> bool:
        raise NotImplementedError

    def mean(self, x: Array, theta: Array) -> Array:
        """f_hat, (m, q)."""
        raise NotImplementedError

    def slope(self, x: Array, theta: Array) -> Array:
        """The derivative of a smooth f_hat, (m, q, p)."""
        raise NotImplementedError

    def error_var(self, x: Array, theta: Array) -> Array:
        """The variance, (m, q)."""
        raise NotImplementedError

    def _difference(self, x: Array, theta: Array) -> Array:
        """Central differences over at least one cell on either side; at an end of the runs' range to one side."""
        low, high = self.runs.theta.min(axis=0), self.runs.theta.max(axis=0)
        columns = []
        for j, step in enumerate(self.steps):
            ends = []
            for side in (-step, step):
                moved = theta.copy()
                # beyond the runs a step function is constant, and a difference across that end too small
                moved[j] = np.clip(theta[j] + side, min(low[j], theta[j]), max(high[j], theta[j]))
                ends.append(moved)
            width = ends[1][j] - ends[0][j]
            change = self.mean(x, ends[1]) - self.mean(x, ends[0])
            columns.append(change / width if width > 0 else np.zeros_like(change))
        return np.stack(columns, axis=-1)

    def _points(self, x: Any) -> Array:
        points = as_columns(x, "x")
        if points.shape[1] != self.runs.d:
            raise InputError(f"x has {points.shape[1]} columns: the runs have {self.runs.d} inputs")
        return points

    def _one_theta(self, theta: Any) -> Array:
        one = np.atleast_1d(as_floats(theta, "theta"))
        if one.shape != (self.runs.p,):
            raise InputError(f"theta has shape {one.shape}: the runs have {self.runs.p} parameters")
        return one

    def _set_steps(self, fitted: list[Any]) -> None:
        """Differences span a cell: as wide as the regressor says, or the gap between the runs' values."""
        unit = Range.of_box(self.runs.theta)
        # 0 and 1 are values that every parameter has, but one that does not vary
        gaps = np.array(
            [np.median(np.diff(np.unique([0.0, 1.0, *column]))) for column in unit.apply(self.runs.theta).T]
        )
        # the last columns of a regressor's inputs are theta
        widths = [np.atleast_1d(getattr(one, "cell_width", gaps))[-self.runs.p :] for one in fitted]
        self.smooth = False
        self.steps = np.max([np.broadcast_to(width, self.runs.p) for width in widths], axis=0)
        self.steps = np.maximum(self.steps, LEAST_STEP) * unit.scale

    def __repr__(self) -> str:
        return f"Emulator({self.name!r}, {self.runs.s} runs)"


def rows_of(points: Array, table: Array) -> IntArray | None:
    """The row of ``table`` that each of ``points`` is, or None if one is not there."""
    if points is table or (points.shape == table.shape and np.array_equal(points, table)):
        return np.arange(len(points), dtype=np.intp)
    place = {row.tobytes(): i for i, row in enumerate(table)}
    found = [place.get(row.tobytes(), -1) for row in np.ascontiguousarray(points)]
    return None if -1 in found else np.array(found, dtype=np.intp)

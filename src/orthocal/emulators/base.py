"""What an emulator is: a simulator with a gradient, learnt from a table of runs by a regressor.

A regressor learns targets (N, r) from inputs (N, k), which lie in the unit cube of the runs; the targets have mean 0
and sd 1. What inputs and targets are is the layout: ``ComponentEmulator`` and ``StackedEmulator`` make them of a table
of runs, and outputs of the predictions. ``Foreign`` makes a regressor of any object with ``fit`` and ``predict``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray, as_columns, as_floats
from ..errors import InputError
from ..runs.table import RunTable
from .nearness import Nearness

#: with step functions, theta's difference is at least this share of the runs' range to either side: over less the steps
#: are noise (Model 2 and BART: errors of the gradient are 1.9, 0.75, 0.5 of its size with 0.02, 0.05, 0.1)
LEAST_STEP = 0.1


Layout = Literal["components", "stacked"]


class FittedRegressor(Protocol):
    """What was learnt. It may do more: see the Protocols below."""

    def predict(self, inputs: Array) -> Array:
        """The targets at inputs (M, k), (M, r)."""


@runtime_checkable
class WithGradient(FittedRegressor, Protocol):
    """Without a gradient the predictions count as step functions."""

    def gradient(self, inputs: Array) -> Array:
        """d predict / d inputs, (M, r, k)."""


@runtime_checkable
class WithVariance(FittedRegressor, Protocol):
    """Knows its error."""

    def variance(self, inputs: Array) -> Array:
        """Variance of the error of the predictions, (M, r)."""


@runtime_checkable
class WithLengthscales(FittedRegressor, Protocol):
    """Knows how far its inputs can change before the targets do."""

    #: of each target, (r, k), in the unit cube
    lengthscales: Array


@runtime_checkable
class WithCells(FittedRegressor, Protocol):
    """Step functions that know how wide their steps are; those of others span the gaps between the runs' values."""

    #: in the unit cube, (k,)
    cell_width: Array


@runtime_checkable
class WithPoints(FittedRegressor, Protocol):
    """Can compute once, for fixed points, what does not depend on theta."""

    def at(self, points: Array) -> Callable[[Array], Array]:
        """The function theta (p,) -> (m, r) for points (m, d); it may have ``gradient(theta)``, (m, r, p)."""


@runtime_checkable
class Regressor(Protocol):
    """Learns targets (N, r) from inputs (N, k), in the layout that suits it."""

    @property
    def layout(self) -> Layout:
        """For runs at common points."""

    def fit(self, inputs: Array, targets: Array) -> FittedRegressor:
        """What was learnt, which may be the regressor itself."""


@runtime_checkable
class LearnsComponents(Protocol):
    """Has a way of its own to learn targets in order of falling importance."""

    def fit_components(self, inputs: Array, targets: Array) -> FittedRegressor:
        """As ``fit``."""


class ListedRegressor(Regressor, Protocol):
    """A regressor that can be asked for by its name; called without arguments it has the default settings."""

    name: ClassVar[str]
    #: what it is, with its article
    words: ClassVar[str]


class Settings:
    """A base for the choices of a listed regressor: what it learns is an object of its own."""

    words: ClassVar[str]

    def predict(self, inputs: Array) -> Array:
        raise InputError(
            f"these settings of {self.words} have not been fitted: call fit, and predict of what it returns"
        )


#: name -> regressor, in the order of ``emulators/__init__.py``
EMULATORS: dict[str, type[ListedRegressor]] = {}

Listed = TypeVar("Listed", bound=type[ListedRegressor])


def listed(regressor: Listed) -> Listed:
    """Of a class: a regressor that can be named."""
    EMULATORS[regressor.name] = regressor
    return regressor


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
    has_variance
        Whether it knows its error.
    """

    def __init__(
        self, name: str, runs: RunTable, fitted: Sequence[FittedRegressor], sizes: Sequence[Array] | None = None
    ) -> None:
        """``sizes`` are those of the targets of each of ``fitted``, (r,), where they differ."""
        self.name = name
        self.runs = runs
        self.parameter_names = runs.parameter_names
        worked = runs.theta if runs.failed.all() else runs.theta[~runs.failed]
        self._nearness = Nearness(worked, _lengthscale(fitted, sizes, runs.p))
        self._with_gradient = [one for one in fitted if isinstance(one, WithGradient)]
        self._with_variance = [one for one in fitted if isinstance(one, WithVariance)]
        self.smooth = len(self._with_gradient) == len(fitted)
        self.has_variance = len(self._with_variance) == len(fitted)
        self.steps = np.zeros(runs.p) if self.smooth else self._found_steps(fitted)

    def __call__(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """f_hat at points x (m, d), or (m,) for one input, and theta (p,), (m, q)."""
        return self.mean(self._points(x), self._one_theta(theta))

    def gradient(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """df_hat/dtheta, (m, q, p)."""
        points, one = self._points(x), self._one_theta(theta)
        return self.slope(points, one) if self.smooth else self._difference(points, one)

    def variance(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """Variance of the emulator's error, (m, q)."""
        if not self.has_variance:
            raise InputError(f"the emulator {self.name!r} has no variance: take one that has, for instance 'gp'")
        return self.error_var(self._points(x), self._one_theta(theta))

    def outside(self, theta: ArrayLike) -> BoolArray:
        """Which of theta (c, p) have no runs nearby: outside of their box, in a gap, or far from all of them."""
        return self._nearness.outside(np.atleast_2d(as_floats(theta, "theta")))

    def outside_x(self, x: ArrayLike) -> BoolArray:
        """The same for points x (m, d): which have no points of the runs nearby."""
        return self._x_nearness.outside(self._points(x))

    @cached_property
    def _x_nearness(self) -> Nearness:
        x = self.runs.x
        return Nearness(np.unique(np.vstack(x) if isinstance(x, tuple) else x, axis=0))

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

    def _points(self, x: ArrayLike) -> Array:
        points = as_columns(x, "x")
        if points.shape[1] != self.runs.d:
            raise InputError(f"x has {points.shape[1]} columns: the runs have {self.runs.d} inputs")
        return points

    def _one_theta(self, theta: ArrayLike) -> Array:
        one = np.atleast_1d(as_floats(theta, "theta"))
        if one.shape != (self.runs.p,):
            raise InputError(f"theta has shape {one.shape}: the runs have {self.runs.p} parameters")
        return one

    def _found_steps(self, fitted: Sequence[FittedRegressor]) -> Array:
        """Differences span a cell: as wide as the regressor says, or the gap between the runs' values."""
        unit = Range.of_box(self.runs.theta)
        # 0 and 1 are values that every parameter has, but one that does not vary
        gaps = np.array(
            [np.median(np.diff(np.unique([0.0, 1.0, *column]))) for column in unit.apply(self.runs.theta).T]
        )
        # the last columns of a regressor's inputs are theta
        cells = [one.cell_width if isinstance(one, WithCells) else gaps for one in fitted]
        widths = [np.broadcast_to(np.atleast_1d(one)[-self.runs.p :], self.runs.p) for one in cells]
        return np.asarray(np.maximum(np.max(widths, axis=0), LEAST_STEP) * unit.scale)

    def __repr__(self) -> str:
        return f"Emulator({self.name!r}, {self.runs.s} runs)"


def _lengthscale(fitted: Sequence[FittedRegressor], sizes: Sequence[Array] | None, p: int) -> Array | None:
    """Those of theta, (p,), for all targets together: larger ones count for more; None where there are none."""
    own = [one.lengthscales[:, -p:] for one in fitted if isinstance(one, WithLengthscales)]
    if len(own) < len(fitted):
        return None
    weights = np.concatenate([np.ones(len(one)) for one in own] if sizes is None else [size**2 for size in sizes])
    # outputs that do not vary have no length
    weights = weights if weights.any() else np.ones_like(weights)
    return np.asarray(np.average(np.vstack(own) ** -2.0, axis=0, weights=weights) ** -0.5)


def rows_of(points: Array, table: Array) -> IntArray | None:
    """The row of ``table`` that each of ``points`` is, or None if one is not there."""
    if points is table or (points.shape == table.shape and np.array_equal(points, table)):
        return np.arange(len(points), dtype=np.intp)
    place = {row.tobytes(): i for i, row in enumerate(table)}
    found = [place.get(row.tobytes(), -1) for row in np.ascontiguousarray(points)]
    return None if -1 in found else np.array(found, dtype=np.intp)

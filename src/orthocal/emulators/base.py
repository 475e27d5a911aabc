"""What an emulator is: a simulator with a gradient, learnt from a table of runs by a regressor.

A regressor learns targets (N, r) from inputs (N, k), which lie in the unit cube of the runs; the targets have mean 0
and sd 1. What inputs and targets are is the layout: ``ComponentEmulator`` and ``StackedEmulator`` make them of a table
of runs, and outputs of the predictions. ``Foreign`` makes a regressor of any object with ``fit`` and ``predict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property, partial
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray, as_columns, as_floats, repeated_rows
from ..errors import InputError
from ..runs.table import RunTable
from .draw_spread import draw_spread, mixture
from .lazily import Lazy
from .learnt import FittedRegressor as FittedRegressor
from .learnt import WithCells as WithCells
from .learnt import WithDraws as WithDraws
from .learnt import WithGradient as WithGradient
from .learnt import WithKept as WithKept
from .learnt import WithLengthscales as WithLengthscales
from .learnt import WithPoints as WithPoints
from .learnt import WithScatter as WithScatter
from .learnt import WithVariance as WithVariance
from .nearness import Nearness
from .step_functions import LEAST_STEP, difference, usual_gaps

Layout = Literal["components", "stacked"]


@runtime_checkable
class Quick(Protocol):
    """Has a shorter way to learn, which shows how large its errors are."""

    def quick(self) -> Regressor:
        """With fewer draws."""


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


class Choice(NamedTuple):
    """The best of several emulators at held-out runs.

    Attributes
    ----------
    errors
        Rms error relative to the spread of the runs, the best first.
    rmse
        Of the best, in units of each outcome.
    held_out
        Number of runs that were predicted.
    dropped
        Which of the others were clearly worse after some of them, and dropped.
    """

    errors: dict[str, float]
    rmse: dict[str, float]
    held_out: int
    dropped: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        (best, error), *others = self.errors.items()
        words = [
            f"{name} {value:.2g}" + (" when it was dropped" if name in self.dropped else "") for name, value in others
        ]
        among = f" (the others: {', '.join(words)})" if others else ""
        return f"{best}, the best at {self.held_out} held-out runs: its rms error is {error:.2g} of their spread{among}"


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
    choice
        How it was chosen among others, at held-out runs; None where it was asked for.
    has_scatter
        Whether replicated runs told it how a single run scatters about the mean function, which is what it emulates.
    has_draws
        Whether it knows its error as a distribution of functions.
    """

    def __init__(
        self,
        name: str,
        runs: RunTable,
        regressor: Regressor,
        fitted: Sequence[FittedRegressor],
        sizes: Sequence[Array] | None = None,
    ) -> None:
        """``sizes`` are those of the targets of each of ``fitted``, (r,), where they differ."""
        self.name, self._regressor = name, regressor
        self.runs = runs
        self.choice: Choice | None = None
        self.parameter_names = runs.parameter_names
        worked = runs.theta if runs.failed.all() else runs.theta[~runs.failed]
        # replicates fill no gaps
        repeats = repeated_rows(worked)
        distinct = worked if repeats is None else worked[repeats.first]
        self._nearness = Nearness(distinct, _lengthscale(fitted, sizes, runs.p))
        self._with_gradient = [one for one in fitted if isinstance(one, WithGradient)]
        self._with_variance = [one for one in fitted if isinstance(one, WithVariance)]
        self.smooth = len(self._with_gradient) == len(fitted)
        self.has_variance = len(self._with_variance) == len(fitted)
        self._with_scatter = [one for one in fitted if isinstance(one, WithScatter)]
        self.has_scatter = len(self._with_scatter) == len(fitted) and any(
            one.scatter_known for one in self._with_scatter
        )
        self._fitted = list(fitted)
        self.has_draws = all(isinstance(one, WithDraws | WithKept) for one in fitted)
        self.steps = np.zeros(runs.p) if self.smooth else self._found_steps(fitted)

    def __call__(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """f_hat at points x (m, d), or (m,) for one input, and theta (p,), (m, q)."""
        return self.mean(self._points(x), self._one_theta(theta))

    def gradient(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """df_hat/dtheta, (m, q, p)."""
        points, one = self._points(x), self._one_theta(theta)
        if self.smooth:
            return self.slope(points, one)
        low, high = self.runs.theta.min(axis=0), self.runs.theta.max(axis=0)
        return difference(partial(self.mean, points), one, self.steps, low, high)

    def variance(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """Variance of the emulator's error, (m, q)."""
        if not self.has_variance:
            raise InputError(f"the emulator {self.name!r} has no variance: take one that has, for instance 'gp'")
        return self.error_var(self._points(x), self._one_theta(theta))

    def scatter_var(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """Variance of a single run about the mean function, (m, q), from replicated runs: the simulator's own noise."""
        if not self.has_scatter:
            raise InputError(
                f"the emulator {self.name!r} does not know how runs scatter: it takes runs repeated at one theta, "
                "oc.campaign(..., replicates=5), and 'gp', 'bart' or 'bmars'"
            )
        return self.run_scatter_var(self._points(x), self._one_theta(theta))

    def draws(self, count: int, seed: int = 0) -> Sequence[Emulator]:
        """Joint draws of the simulator as the runs leave it uncertain: functions f_s(x, theta) with gradients.

        Each is made when it is asked for; the same seed gives the same. Their mean is the emulator, and their variance
        its ``variance``; but unlike it they say how the errors at different x and theta go together.
        """
        if not self.has_draws:
            raise InputError(
                f"the emulator {self.name!r} has no draws: take one that has, for instance 'gp', or give the regressor "
                "a method draws(count, rng)"
            )
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"count={count!r}: give the number of draws, at least 1")
        return self.drawn(int(count), seed, self.draw_spread)

    @cached_property
    def draw_spread(self) -> Array:
        """What the spread of the kept draws of each outcome is multiplied by, (q,), from held-out runs; or ones."""
        if not any(isinstance(one, WithKept) for one in self._fitted) or not isinstance(self._regressor, Quick):
            return np.ones(self.runs.q)
        return draw_spread(partial(self._again, self._regressor.quick()), self.runs)

    def _again(self, regressor: Regressor, runs: RunTable) -> Emulator:
        """The same emulator learnt by another regressor from other runs."""
        raise NotImplementedError

    def drawn(self, count: int, seed: int, spread: Array) -> Sequence[Emulator]:
        """``draws`` with a given spread (q,) of the kept draws."""
        rest, *seeds = np.random.SeedSequence(seed).spawn(1 + len(self._fitted))
        each: list[Sequence[FittedRegressor]] = []
        for own, one, factor in zip(seeds, self._fitted, self._spread_of_parts(spread), strict=True):
            rng = np.random.default_rng(own)
            if isinstance(one, WithDraws):
                each.append(one.draws(count, rng))
            elif isinstance(one, WithKept):
                rows = [mixture(one.kept, factor, number, count, rng) for number in range(count)]
                each.append(Lazy([partial(one.mixed, weights) for weights in rows]))
        return Lazy([partial(self._drawn, each, number, own) for number, own in enumerate(rest.spawn(count))])

    def _spread_of_parts(self, spread: Array) -> list[float]:
        """That of each of what was fitted, from those of the outcomes (q,)."""
        raise NotImplementedError

    def _drawn(self, each: Sequence[Sequence[FittedRegressor]], number: int, seed: np.random.SeedSequence) -> Emulator:
        """The draw of that number, of those of each part, and of what else is uncertain."""
        other = copy(self)
        fitted = [draws[number] for draws in each]
        other._fitted, other._with_variance = fitted, []
        other._with_gradient = [one for one in fitted if isinstance(one, WithGradient)]
        other.smooth = len(other._with_gradient) == len(fitted)
        other.has_variance = other.has_draws = False
        other._become(self, fitted, np.random.default_rng(seed))
        return other

    def _become(self, learnt: Emulator, fitted: list[FittedRegressor], rng: np.random.Generator) -> None:
        """Take these functions in the place of what ``learnt`` has, of which this is a copy."""
        raise NotImplementedError

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

    def run_scatter_var(self, x: Array, theta: Array) -> Array:
        """That of a single run, (m, q)."""
        raise NotImplementedError

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
        gaps = usual_gaps(unit.apply(self.runs.theta))
        # the last columns of a regressor's inputs are theta
        cells = [one.cell_width if isinstance(one, WithCells) else gaps for one in fitted]
        widths = [np.broadcast_to(np.atleast_1d(one)[-self.runs.p :], self.runs.p) for one in cells]
        return np.asarray(np.maximum(np.max(widths, axis=0), LEAST_STEP) * unit.scale)

    @property
    def said(self) -> tuple[str, ...]:
        """What it was learnt from, and how it was chosen, in sentences."""
        return (*self.runs.notes, *(() if self.choice is None else (self.choice.sentence,)))

    @property
    def held_out_errors(self) -> dict[str, float]:
        """Of each emulator that was compared: its rms error at held-out runs, relative to their spread."""
        return {} if self.choice is None else dict(self.choice.errors)

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

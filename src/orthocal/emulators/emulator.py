"""An emulator as users have it: f_hat(x, theta) with its gradient, and what it knows of its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.stats import qmc

from ..arrays import Array, BoolArray, as_columns, as_floats, repeated_rows
from ..errors import InputError
from ..runs.table import RunTable
from .base import (
    Choice,
    FittedRegressor,
    Range,
    Regressor,
    common_lengthscale,
    that_have,
)
from .lazy_sequence import Lazy

# Gradients of step functions: central differences that span a step.

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


# Where an emulator has runs nearby.
#
# In many dimensions the convex hull of the runs says nothing: of a box that a few hundred runs fill, hardly any part
# lies inside. So a theta counts as outside where it leaves the box of the runs, where one of its parameters lies in a
# gap of the runs' values, or where the nearest run is further away than it is from hardly any theta where as many runs
# fill that box evenly. Distances are in length-scales where the emulator has them: a parameter without effect does not
# count.

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


class RunDistance:
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

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, "gp", progress=False)
    >>> emulator
    Emulator('gp', 10 runs)
    >>> bool(abs(emulator([0.5], [2.2]) - np.exp(-1.1)) < 1e-3)
    True
    >>> problem = oc.Problem(x, np.exp(-2 * x), emulator, {"rate": stats.uniform(1, 2)}, noise_cov=1e-4)
    >>> problem.theta_tilde.round(2)
    array([2.])
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
        self._run_distance = RunDistance(distinct, common_lengthscale(fitted, sizes, runs.p))
        self._gradients, self._variances = that_have(fitted, "gradient"), that_have(fitted, "variance")
        self.smooth = len(self._gradients) == len(fitted)
        self.has_variance = len(self._variances) == len(fitted)
        self._scatter_vars = that_have(fitted, "scatter_var")
        self.has_scatter = len(self._scatter_vars) == len(fitted) and any(that_have(fitted, "scatter_known"))
        self._fitted = list(fitted)
        self.has_draws = all(
            hasattr(one, "draws") or (hasattr(one, "mixed") and hasattr(one, "kept")) for one in fitted
        )
        self.steps = np.zeros(runs.p) if self.smooth else self._found_steps(fitted)

    def __call__(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """f_hat at points x (m, d), or (m,) for one input, and theta (p,), (m, q)."""
        return self.mean(self._points(x), self._one_theta(theta))

    def gradient(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """df_hat/dtheta, (m, q, p).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> emulator.gradient([0.5], [2.0]).round(2), float(np.round(-0.5 * np.exp(-1.0), 2))
        (array([[[-0.18]]]), -0.18)
        """
        points, one = self._points(x), self._one_theta(theta)
        if self.smooth:
            return self.slope(points, one)
        low, high = self.runs.theta.min(axis=0), self.runs.theta.max(axis=0)
        return difference(partial(self.mean, points), one, self.steps, low, high)

    def variance(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """Variance of the emulator's error, (m, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> bool(emulator.variance([0.5], [6.0]) > emulator.variance([0.5], [2.0]))
        True
        """
        if not self.has_variance:
            raise InputError(f"the emulator {self.name!r} has no variance: take one that has, for instance 'gp'")
        return self.error_var(self._points(x), self._one_theta(theta))

    def scatter_var(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """Variance of a single run about the mean function, (m, q), from replicated runs: the simulator's own noise.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> rng = np.random.default_rng(1)
        >>> theta, x = np.repeat(np.linspace(1, 3, 10), 5)[:, None], np.linspace(0, 1, 5)
        >>> output = np.exp(-theta * x) + 0.1 * rng.standard_normal((50, 5))
        >>> emulator = oc.emulate(oc.RunTable(theta, output, x, parameter_names=["rate"]), "gp", progress=False)
        >>> bool(0.05 < np.sqrt(emulator.scatter_var([0.5], [2.0])[0, 0]) < 0.2)
        True
        """
        if not self.has_scatter:
            raise InputError(
                f"the emulator {self.name!r} does not know how runs scatter: it takes runs repeated at one theta, "
                "oc.campaign(..., replicates=5), and 'gp', 'bart' or 'bmars'"
            )
        return self.run_scatter_var(self._points(x), self._one_theta(theta))

    def draws(self, count: int, seed: int = 0) -> Sequence[Emulator]:
        """Joint draws of the simulator as the runs leave it uncertain: functions f_s(x, theta) with gradients.

        Each is made when it is asked for; the same seed gives the same. Their mean is the emulator, and their variance
        its ``variance``; but unlike it they say how the errors at different x and theta go together. Of a ``gp`` with
        few runs they vary more: its hyperparameters are drawn as well.

        Parameters
        ----------
        count
            Their number.
        seed
            Of the draws.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 4)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> functions = emulator.draws(5, seed=1)
        >>> len(functions), functions[0](x, [2.2]).shape
        (5, (5, 1))
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
        """What the spread of the kept draws of each outcome is multiplied by, (q,), from held-out runs; or ones.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> oc.emulate(runs, "gp", progress=False).draw_spread
        array([1.])
        """
        if not that_have(self._fitted, "mixed") or not hasattr(self._regressor, "quick"):
            return np.ones(self.runs.q)
        return draw_spread(partial(self._again, self._regressor.quick()), self.runs)

    def _again(self, regressor: Regressor, runs: RunTable) -> Emulator:
        """The same emulator learnt by another regressor from other runs."""
        raise NotImplementedError

    def drawn(self, count: int, seed: int, spread: Array) -> Sequence[Emulator]:
        """``draws`` with a given spread (q,) of the kept draws.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 4)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> len(emulator.drawn(5, seed=1, spread=np.ones(1)))
        5
        """
        rest, *seeds = np.random.SeedSequence(seed).spawn(1 + len(self._fitted))
        each: list[Sequence[FittedRegressor]] = []
        for own, one, factor in zip(seeds, self._fitted, self._spread_of_parts(spread), strict=True):
            rng = np.random.default_rng(own)
            if hasattr(one, "draws"):
                each.append(one.draws(count, rng))
            elif hasattr(one, "mixed") and hasattr(one, "kept"):
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
        other._fitted, other._variances, other._gradients = fitted, [], that_have(fitted, "gradient")
        other.smooth = len(other._gradients) == len(fitted)
        other.has_variance = other.has_draws = False
        other._become(self, fitted, np.random.default_rng(seed))
        return other

    def _become(self, learnt: Emulator, fitted: list[FittedRegressor], rng: np.random.Generator) -> None:
        """Take these functions in the place of what ``learnt`` has, of which this is a copy."""
        raise NotImplementedError

    def outside(self, theta: ArrayLike) -> BoolArray:
        """Which of theta (c, p) have no runs nearby: outside of their box, in a gap, or far from all of them.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> oc.emulate(runs, "gp", progress=False).outside([[2.0], [4.0]])
        array([False,  True])
        """
        return self._run_distance.outside(np.atleast_2d(as_floats(theta, "theta")))

    def outside_x(self, x: ArrayLike) -> BoolArray:
        """The same for points x (m, d): which have no points of the runs nearby.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> oc.emulate(runs, "gp", progress=False).outside_x([0.5, 5.0])
        array([False,  True])
        """
        return self._x_distance.outside(self._points(x))

    @cached_property
    def _x_distance(self) -> RunDistance:
        x = self.runs.x
        return RunDistance(np.unique(np.vstack(x) if isinstance(x, tuple) else x, axis=0))

    def mean(self, x: Array, theta: Array) -> Array:
        """f_hat at points (m, d) and theta (p,) that are arrays already, (m, q): what a call returns.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> points, one = np.array([[0.5]]), np.array([2.2])
        >>> np.array_equal(emulator.mean(points, one), emulator(points, one))
        True
        """
        raise NotImplementedError

    def slope(self, x: Array, theta: Array) -> Array:
        """The derivative of a smooth f_hat, (m, q, p).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> emulator.slope(np.array([[0.5]]), np.array([2.2])).shape
        (1, 1, 1)
        """
        raise NotImplementedError

    def error_var(self, x: Array, theta: Array) -> Array:
        """The variance of the error at points (m, d) and theta (p,) that are arrays already, (m, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> emulator = oc.emulate(runs, "gp", progress=False)
        >>> emulator.error_var(np.array([[0.5], [0.7]]), np.array([2.2])).shape
        (2, 1)
        """
        raise NotImplementedError

    def run_scatter_var(self, x: Array, theta: Array) -> Array:
        """The variance of a single run at points (m, d) and theta (p,) that are arrays already, (m, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> rng = np.random.default_rng(1)
        >>> theta, x = np.repeat(np.linspace(1, 3, 10), 5)[:, None], np.linspace(0, 1, 5)
        >>> output = np.exp(-theta * x) + 0.1 * rng.standard_normal((50, 5))
        >>> emulator = oc.emulate(oc.RunTable(theta, output, x, parameter_names=["rate"]), "gp", progress=False)
        >>> emulator.run_scatter_var(np.array([[0.5], [0.7]]), np.array([2.2])).shape
        (2, 1)
        """
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
        cells = [getattr(one, "cell_width", gaps) for one in fitted]
        widths = [np.broadcast_to(np.atleast_1d(one)[-self.runs.p :], self.runs.p) for one in cells]
        return np.asarray(np.maximum(np.max(widths, axis=0), LEAST_STEP) * unit.scale)

    @property
    def said(self) -> tuple[str, ...]:
        """What it was learnt from, and how it was chosen, in sentences.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> frame = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"]).to_frame()
        >>> frame.to_csv("runs.csv", index=False)
        >>> runs = oc.RunTable.load("runs.csv", ["rate"], ["x"], ["y"])
        >>> for sentence in oc.emulate(runs, "gp", progress=False).said:
        ...     print(sentence)
        runs.csv: 10 runs, one row a run and point
        """
        return (*self.runs.notes, *(() if self.choice is None else (self.choice.sentence,)))

    @property
    def held_out_errors(self) -> dict[str, float]:
        """Of each emulator that was compared: its rms error at held-out runs, relative to their spread.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> oc.emulate(runs, "gp", progress=False).held_out_errors
        {}
        >>> errors = oc.compare_emulators(runs, ["gp"], folds=1, progress=False).choice.errors
        >>> list(errors), bool(errors["gp"] < 0.01)
        (['gp'], True)
        """
        return {} if self.choice is None else dict(self.choice.errors)

    def __repr__(self) -> str:
        return f"Emulator({self.name!r}, {self.runs.s} runs)"


# How far the draws of trees and splines are from the simulator: their spread, by runs that they have not seen.
#
# A Gaussian process is fitted so that its errors are what it says. A posterior of trees is not: between the values of a
# design each draw has its steps at places of its own, and their spread is several times the error of their mean (Model
# 2 from 7 x 7 runs: 1.3 and .27); with noise that the prior takes for small it may as well be too little. So runs are
# held out, and f_s = f_hat + c (draw - f_hat) with c the rms error there over the rms spread of the draws: of the
# values, or of A times them, A = (G'G)^-1 G' with the gradient G there, which is by how much an error moves a
# parameter. The largest of these counts. Trees are wrong by whole steps, at many x together: in Model 2 the values ask
# for c = .18 to .35, the second parameter for .45 to .63, and with the former its intervals were too short.
#
# Held out are, parameter by parameter, all runs with every third of its values, without the outermost: of a grid whole
# rows go, because a value that other runs have is no gap to the trees.

#: times that the emulator is learnt anew, and draws of each
MOST_FOLDS, DRAWS = 4, 24
#: a parameter with fewer values has none to leave out
LEAST_VALUES = 4
#: c is not believed beyond these: few runs tell it roughly
LEAST_SPREAD, MOST_SPREAD = 0.1, 5.0
#: of effects of parameters, each of length 1, combinations that are shorter are none
SHORT = 0.01


def folds(theta: Array) -> Iterator[BoolArray]:
    """Which of the runs at theta (s, p) are held out, a mask each time."""
    places = [np.unique(column, return_inverse=True)[1].ravel() for column in theta.T]
    places = [one for one in places if one.max() + 1 >= LEAST_VALUES]
    if not places:
        return
    for number in range(max(2, min(MOST_FOLDS, 2 * len(places)))):
        own = places[number % len(places)]
        inner = (own > 0) & (own < own.max())
        held = inner & (own % 3 == 1 + (number // len(places)) % 2)
        if held.any():
            yield held


def draw_spread(make: Callable[[RunTable], Emulator], runs: RunTable) -> Array:
    """c of each outcome, (q,); 1 where there are too few runs to hold any out."""
    errors, spreads = np.zeros((2, 1 + runs.p, runs.q))
    for held in folds(runs.theta):
        try:
            part = make(runs.subset(~held))
        except InputError:
            # too few are left to learn from
            continue
        draws = list(part.drawn(DRAWS, 0, np.ones(runs.q)))
        for s in np.flatnonzero(held):
            one, theta = runs.subset(int(s)), runs.theta[s]
            x, output = one.long.x, one.long.output
            each = np.stack([draw(x, theta) for draw in draws])
            missed, away = output - part(x, theta), each - each.mean(axis=0)
            slopes = part.gradient(x, theta)
            for k in range(runs.q):
                seen = ~np.isnan(output[:, k])
                errors[:, k] += _squares(missed[None, seen, k], slopes[seen, k])
                spreads[:, k] += _squares(away[:, seen, k], slopes[seen, k]) / (DRAWS - 1)
    known = (errors > 0) & (spreads > 0)
    ratios = np.divide(errors, spreads, out=np.zeros_like(errors), where=known)
    found = np.where(known[0], np.sqrt(ratios.max(axis=0)), 1.0)
    return np.clip(found, LEAST_SPREAD, MOST_SPREAD)


def _squares(rows: Array, slopes: Array) -> Array:
    """Sums of squares of rows (k, m), and of what each does to every parameter, where f has slopes (m, p): (1 + p,)."""
    length = np.linalg.norm(slopes, axis=0)
    length[length == 0] = 1.0
    moved = rows @ np.linalg.pinv(slopes / length, rcond=SHORT).T / length
    return np.append(np.sum(rows**2), np.sum(moved**2, axis=0))


def mixture(kept: int, spread: float, number: int, count: int, rng: np.random.Generator) -> Array:
    """Weights of so many kept draws, (kept,), whose sum is 1 and whose squares add up to c^2, for one of ``count``.

    Less spread is that of a mean of several draws, more that of one and a multiple of the difference of two others.
    """
    weights = np.zeros(kept)
    first = (number * kept) // count if count <= kept else int(rng.integers(kept))
    others = rng.permutation(np.delete(np.arange(kept), first))
    if spread > 1 and kept > 2:
        weights[first], size = 1.0, np.sqrt((spread**2 - 1) / 2)
        weights[others[:2]] = size, -size
        return weights
    m = min(int(np.ceil(1 / min(spread, 1.0) ** 2)), kept)
    weights[first] = (1 + np.sqrt(max((m - 1) * (m * spread**2 - 1), 0.0))) / m if m > 1 else 1.0
    weights[others[: m - 1]] = (1 - weights[first]) / max(m - 1, 1)
    return weights

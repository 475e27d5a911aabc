"""One regression over x and theta together: for runs at points of their own, and for trees, which choose among both."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray
from ..errors import InputError
from ..problem.simulator.emulator import LeftOut
from ..runs.table import RunTable
from .base import FittedRegressor, Range, Regressor
from .emulator import Emulator

#: sets of points for which a collapsed regression is kept: data, nodes, coarse nodes, and one more
KEPT = 4


class OutcomeGroup(NamedTuple):
    """Outcomes that have the same cells, and what was learnt of them."""

    outcomes: list[int]
    targets: Range
    fitted: FittedRegressor


class Collapsed(NamedTuple):
    """A part at fixed points as functions of theta (p,) in the unit cube: (m, r), and (m, r, p) if it has its own."""

    mean: Callable[[Array], Array]
    gradient: Callable[[Array], Array] | None


class StackedEmulator(Emulator):
    """f_hat(x, theta) from rows (x, theta) -> outcomes, one row a run and point; missing cells are left out."""

    def __init__(self, name: str, runs: RunTable, regressor: Regressor) -> None:
        long = runs.long
        rows = np.hstack([long.x, runs.theta[long.run]])
        self._inputs = Range.of_box(rows)
        unit = self._inputs.apply(rows)
        known = ~np.isnan(long.output)
        self._parts: list[OutcomeGroup] = []
        for outcomes in _outcome_groups(known):
            used = known[:, outcomes[0]]
            if used.sum() < 2:
                raise InputError(f"outcome {runs.outcome_names[outcomes[0]]!r} has no output in any run")
            targets = Range.of_spread(long.output[used][:, outcomes])
            fitted = deepcopy(regressor).fit(unit[used], targets.apply(long.output[used][:, outcomes]))
            self._parts.append(OutcomeGroup(outcomes, targets, fitted))
        self._collapsed: dict[bytes, list[Collapsed]] = {}
        super().__init__(name, runs, regressor, [part.fitted for part in self._parts])

    def _again(self, regressor: Regressor, runs: RunTable) -> StackedEmulator:
        return StackedEmulator(self.name, runs, regressor)

    def _spread_of_parts(self, spread: Array) -> list[float]:
        # outcomes of one part have the same draws
        return [float(np.sqrt(np.mean(spread[part.outcomes] ** 2))) for part in self._parts]

    def _become(self, learnt: Emulator, fitted: list[FittedRegressor], rng: np.random.Generator) -> None:
        self._parts = [part._replace(fitted=one) for part, one in zip(self._parts, fitted, strict=True)]
        self._collapsed = {}

    def mean(self, x: Array, theta: Array) -> Array:
        output = np.empty((len(x), self.runs.q))
        theta_unit = self._theta_in_cube(theta)
        for (outcomes, targets, _), (mean, _) in zip(self._parts, self._at(x), strict=True):
            output[:, outcomes] = targets.shift + targets.scale * mean(theta_unit)
        return output

    def slope(self, x: Array, theta: Array) -> Array:
        gradient = np.empty((len(x), self.runs.q, self.runs.p))
        theta_unit = self._theta_in_cube(theta)
        for part, slope, (_, own) in zip(self._parts, self._gradients, self._at(x), strict=True):
            by_unit = slope(self._rows(x, theta))[:, :, self.runs.d :] if own is None else own(theta_unit)
            gradient[:, part.outcomes] = by_unit * part.targets.scale[:, None] / self._inputs.scale[self.runs.d :]
        return gradient

    def error_var(self, x: Array, theta: Array) -> Array:
        var = np.empty((len(x), self.runs.q))
        for (outcomes, targets, _), variance in zip(self._parts, self._variances, strict=True):
            var[:, outcomes] = targets.scale**2 * variance(self._rows(x, theta))
        return var

    def run_scatter_var(self, x: Array, theta: Array) -> Array:
        var = np.empty((len(x), self.runs.q))
        for (outcomes, targets, _), scatter_var in zip(self._parts, self._scatter_vars, strict=True):
            var[:, outcomes] = targets.scale**2 * scatter_var(self._rows(x, theta))
        return var

    def left_out(self, x: Array, theta: Array, count: int) -> LeftOut | None:
        """Nothing: it learns from the points of all runs together, and none is left out."""
        return None

    def _theta_in_cube(self, theta: Array) -> Array:
        return np.asarray((theta - self._inputs.shift[self.runs.d :]) / self._inputs.scale[self.runs.d :])

    def _rows(self, x: Array, theta: Array) -> Array:
        return self._inputs.apply(_with_theta(x, theta))

    def _at(self, x: Array) -> list[Collapsed]:
        """The parts at these points."""
        key = x.tobytes()
        found = self._collapsed.get(key)
        if found is None:
            unit = (x - self._inputs.shift[: self.runs.d]) / self._inputs.scale[: self.runs.d]
            found = self._collapsed[key] = [_collapsed(part.fitted, unit) for part in self._parts]
            if len(self._collapsed) > KEPT:
                self._collapsed.pop(next(iter(self._collapsed)))
        return found


def _collapsed(fitted: FittedRegressor, points: Array) -> Collapsed:
    if not hasattr(fitted, "at"):
        return Collapsed(partial(_by_rows, fitted, points), None)
    function = fitted.at(points)
    return Collapsed(function, getattr(function, "gradient", None))


def _by_rows(fitted: FittedRegressor, points: Array, theta: Array) -> Array:
    return fitted.predict(_with_theta(points, theta))


def _with_theta(points: Array, theta: Array) -> Array:
    return np.hstack([points, np.tile(theta, (len(points), 1))])


def _outcome_groups(known: BoolArray) -> list[list[int]]:
    """The outcomes in groups that have the same cells."""
    groups: dict[bytes, list[int]] = {}
    for k, column in enumerate(known.T):
        groups.setdefault(np.packbits(column).tobytes(), []).append(k)
    return list(groups.values())

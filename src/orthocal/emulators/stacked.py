"""One regression over x and theta together: for runs at points of their own, and for trees, which choose among both."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..runs.table import RunTable
from .base import Emulator, Range, Regressor

#: sets of points for which a collapsed regression is kept: data, nodes, coarse nodes, and one more
KEPT = 4


class StackedEmulator(Emulator):
    """f_hat(x, theta) from rows (x, theta) -> outcomes, one row a run and point; missing cells are left out.

    A fitted regressor may have ``at(points)``, which makes a function theta (p,) -> (m, r) for fixed points (m, d): it
    can compute once what does not depend on theta. That function may have ``gradient(theta)``, (m, r, p).
    """

    def __init__(self, name: str, runs: RunTable, regressor: Regressor) -> None:
        super().__init__(name, runs)
        long = runs.long
        rows = np.hstack([long.x, runs.theta[long.run]])
        self._inputs = Range.of_box(rows)
        unit = self._inputs.apply(rows)
        known = ~np.isnan(long.output)
        self._parts: list[tuple[list[int], Range, Any]] = []
        for outcomes in _together(known):
            used = known[:, outcomes[0]]
            if used.sum() < 2:
                raise InputError(f"outcome {runs.outcome_names[outcomes[0]]!r} has no output in any run")
            targets = Range.of_spread(long.output[used][:, outcomes])
            fitted = deepcopy(regressor).fit(unit[used], targets.apply(long.output[used][:, outcomes]))
            self._parts.append((outcomes, targets, fitted))
        self._collapsed: dict[bytes, list[Callable[[Array], Array]]] = {}
        if not all(hasattr(fitted, "gradient") for _, _, fitted in self._parts):
            self._set_steps([fitted for *_, fitted in self._parts])

    @property
    def has_variance(self) -> bool:
        return all(hasattr(fitted, "variance") for *_, fitted in self._parts)

    def mean(self, x: Array, theta: Array) -> Array:
        output = np.empty((len(x), self.runs.q))
        theta_unit = self._theta_in_cube(theta)
        for (outcomes, targets, _), function in zip(self._parts, self._functions(x), strict=True):
            output[:, outcomes] = targets.shift + targets.scale * function(theta_unit)
        return output

    def slope(self, x: Array, theta: Array) -> Array:
        gradient = np.empty((len(x), self.runs.q, self.runs.p))
        theta_unit = self._theta_in_cube(theta)
        for (outcomes, targets, fitted), function in zip(self._parts, self._functions(x), strict=True):
            if hasattr(function, "gradient"):
                by_unit = function.gradient(theta_unit)
            else:
                by_unit = fitted.gradient(self._rows(x, theta))[:, :, self.runs.d :]
            gradient[:, outcomes] = by_unit * targets.scale[:, None] / self._inputs.scale[self.runs.d :]
        return gradient

    def error_var(self, x: Array, theta: Array) -> Array:
        var = np.empty((len(x), self.runs.q))
        for outcomes, targets, fitted in self._parts:
            var[:, outcomes] = targets.scale**2 * fitted.variance(self._rows(x, theta))
        return var

    def _theta_in_cube(self, theta: Array) -> Array:
        return np.asarray((theta - self._inputs.shift[self.runs.d :]) / self._inputs.scale[self.runs.d :])

    def _rows(self, x: Array, theta: Array) -> Array:
        return self._inputs.apply(np.hstack([x, np.tile(theta, (len(x), 1))]))

    def _functions(self, x: Array) -> list[Callable[[Array], Array]]:
        """Functions of theta in the unit cube, one a part, for these points."""
        key = x.tobytes()
        functions = self._collapsed.get(key)
        if functions is None:
            unit = (x - self._inputs.shift[: self.runs.d]) / self._inputs.scale[: self.runs.d]
            functions = self._collapsed[key] = [_function(fitted, unit) for *_, fitted in self._parts]
            if len(self._collapsed) > KEPT:
                self._collapsed.pop(next(iter(self._collapsed)))
        return functions


def _function(fitted: Any, points: Array) -> Callable[[Array], Array]:
    if hasattr(fitted, "at"):
        made: Callable[[Array], Array] = fitted.at(points)
        return made
    return lambda theta: fitted.predict(np.hstack([points, np.tile(theta, (len(points), 1))]))


def _together(known: Any) -> list[list[int]]:
    """The outcomes in groups that have the same cells."""
    groups: dict[bytes, list[int]] = {}
    for k, column in enumerate(known.T):
        groups.setdefault(np.packbits(column).tobytes(), []).append(k)
    return list(groups.values())

"""Runs at common points: principal components of the output over the points, one regression on theta for each."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple
from warnings import warn

import numpy as np

from ..arrays import Array
from ..errors import InputError, OrthocalWarning
from ..runs.table import RunTable
from .base import Emulator, FittedRegressor, LearnsComponents, Range, Regressor, rows_of
from .gp import GP, FittedGP

#: share of the variance that may stay unexplained
TRUNCATION = 1e-12
#: with more points the functions of x are not interpolated
MOST_POINTS = 2000


class Basis(NamedTuple):
    """Output of one outcome = mean (m,) + scores (s, r) @ functions (r, m) + the rest, of variance left_var (m,)."""

    mean: Array
    functions: Array
    scores: Array
    left_var: Array


class Functions(NamedTuple):
    """Mean (m,), functions (r, m) and the variance that they leave (m,) of one outcome at some points."""

    mean: Array
    functions: Array
    left_var: Array


class ComponentEmulator(Emulator):
    """f_hat(x, theta) = mean(x) + sum_k score_k(theta) function_k(x), for each outcome.

    At other points than those of the runs, the functions of x are interpolated by Gaussian processes over x.
    """

    def __init__(self, name: str, runs: RunTable, regressor: Regressor, components: int | None = None) -> None:
        if components is not None and components < 1:
            raise InputError(f"components={components}: give the number of components of each outcome, at least 1")
        usable = _usable(runs)
        output = np.asarray(usable.output)
        self._bases = [_principal(output[:, :, k], components) for k in range(runs.q)]
        self.unit = Range.of_box(usable.theta)
        unit = self.unit.apply(usable.theta)
        # of targets that are learnt together, larger components shall count for more
        scaled = Range.of_spread if isinstance(regressor, LearnsComponents) else _between
        self.scores = [scaled(basis.scores) for basis in self._bases]
        self.fitted = [
            _learnt(regressor, unit, scale.apply(basis.scores))
            for scale, basis in zip(self.scores, self._bases, strict=True)
        ]
        super().__init__(name, runs, self.fitted, [basis.scores.std(axis=0) for basis in self._bases])
        self._elsewhere: list[tuple[Range, FittedGP]] | None = None
        self._kept: tuple[Array, list[Functions]] = (np.empty(0), [])

    @property
    def components(self) -> list[int]:
        """Number of components of each outcome."""
        return [len(basis.functions) for basis in self._bases]

    def mean(self, x: Array, theta: Array) -> Array:
        unit, functions = self.unit.apply(theta)[None], self.functions(x)
        columns = [
            one.mean + (scale.shift + scale.scale * fitted.predict(unit)[0]) @ one.functions
            for scale, fitted, one in zip(self.scores, self.fitted, functions, strict=True)
        ]
        return np.stack(columns, axis=1)

    def slope(self, x: Array, theta: Array) -> Array:
        unit, functions = self.unit.apply(theta)[None], self.functions(x)
        columns = [
            one.functions.T @ (scale.scale[:, None] * fitted.gradient(unit)[0] / self.unit.scale)
            for scale, fitted, one in zip(self.scores, self._with_gradient, functions, strict=True)
        ]
        return np.stack(columns, axis=1)

    def error_var(self, x: Array, theta: Array) -> Array:
        unit, functions = self.unit.apply(theta)[None], self.functions(x)
        columns = [
            (scale.scale**2 * fitted.variance(unit)[0]) @ one.functions**2 + one.left_var
            for scale, fitted, one in zip(self.scores, self._with_variance, functions, strict=True)
        ]
        return np.stack(columns, axis=1)

    def functions(self, x: Array) -> list[Functions]:
        """Of each outcome, at these points."""
        known_x, found = self._kept
        if known_x.shape == x.shape and np.array_equal(known_x, x):
            return found
        rows = rows_of(x, np.asarray(self.runs.x))
        if rows is not None:
            found = [
                Functions(basis.mean[rows], basis.functions[:, rows], basis.left_var[rows]) for basis in self._bases
            ]
        else:
            found = self._interpolated(x)
        self._kept = (x, found)
        return found

    def _interpolated(self, x: Array) -> list[Functions]:
        table = np.asarray(self.runs.x)
        if len(table) > MOST_POINTS:
            raise InputError(
                f"x has points that the runs do not have, and {len(table)} points are too many to interpolate between "
                "them: give oc.Points(x of the runs, weights) as the domain, or take a stacked emulator"
            )
        inputs = Range.of_box(table)
        if self._elsewhere is None:
            self._elsewhere = []
            for basis in self._bases:
                values = np.vstack([basis.mean, basis.functions]).T
                scale = Range.of_spread(values)
                self._elsewhere.append((scale, GP(nu=2.5).fit(inputs.apply(table), scale.apply(values))))
        found = []
        for basis, (scale, fitted) in zip(self._bases, self._elsewhere, strict=True):
            values = scale.shift + scale.scale * fitted.predict(inputs.apply(x))
            error_var = scale.scale**2 * fitted.variance(inputs.apply(x))
            left_var = error_var @ np.append(1.0, basis.scores.var(axis=0)) + basis.left_var.mean()
            found.append(Functions(values[:, 0], values[:, 1:].T, left_var))
        return found


def _learnt(regressor: Regressor, inputs: Array, scores: Array) -> FittedRegressor:
    own = deepcopy(regressor)
    return own.fit_components(inputs, scores) if isinstance(own, LearnsComponents) else own.fit(inputs, scores)


def _usable(runs: RunTable) -> RunTable:
    """The runs without missing cells; the others cannot be decomposed."""
    if runs.ragged:
        raise InputError("each run has points of its own: components need common points, take the stacked layout")
    complete = runs.complete
    lost = int((~complete & ~runs.failed).sum())
    if complete.sum() < 2 or lost > runs.s / 5:
        raise InputError(
            f"{lost} of {runs.s} runs have missing cells: components need complete runs, take the stacked layout"
        )
    if lost:
        warn(f"{lost} of {runs.s} runs have missing cells and were left out", OrthocalWarning, stacklevel=4)
    return runs.subset(complete)


def _between(scores: Array) -> Range:
    """Scores with the square roots of their sds, relative to the largest.

    Of their own size the later ones would not be learnt, with sd 1 their noise would be: on the 400 galaxy runs a
    forest leaves 0.41 and 0.40 of the spread, and 0.33 so.
    """
    sd = scores.std(axis=0)
    return Range(np.zeros(len(sd)), np.where(sd > 0, np.sqrt(sd * (sd.max() or 1.0)), 1.0))


def _principal(output: Array, components: int | None) -> Basis:
    mean = output.mean(axis=0)
    left, singular, right = np.linalg.svd(output - mean, full_matrices=False)
    share = 1 - np.cumsum(singular**2) / max(float((singular**2).sum()), np.finfo(float).tiny)
    needed = 1 + int((share > TRUNCATION).sum())
    count = min(needed, len(singular), len(output) - 1, components or needed)
    scores, functions = left[:, :count] * singular[:count], right[:count]
    return Basis(mean, functions, scores, np.mean((output - mean - scores @ functions) ** 2, axis=0))

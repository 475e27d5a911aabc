"""Runs at common points: principal components of the output over the points, one regression on theta for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import NamedTuple
from warnings import warn

import numpy as np
from scipy.spatial import cKDTree

from ..arrays import Array, IntArray, repeated_rows
from ..errors import InputError, OrthocalWarning
from ..problem.simulator.emulator import LeftOut
from ..runs.table import RunTable
from .base import FittedRegressor, Range, Regressor
from .emulator import Emulator
from .gp import GP, FittedGP
from .replicates import LEAST_VAR

#: share of the variance that may stay unexplained
TRUNCATION = 1e-12
#: with more points the functions of x are not interpolated
MOST_POINTS = 2000
#: sets of points at which the functions of x are kept: data, nodes, both together, and one more
KEPT = 4
#: error of the functions of x that draws leave out, as a share of that of the scores
NEGLIGIBLE = 0.01
#: places between the runs that tell the latter
PLACES = 32


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
        self._asked = components
        usable = _usable(runs)
        self._output = output = np.asarray(usable.output)
        self._bases = [
            without_common_noise(_principal(output[:, :, k], components), usable.theta) for k in range(runs.q)
        ]
        self.unit = Range.of_box(usable.theta)
        unit = self.unit.apply(usable.theta)
        # of targets that are learnt together, larger components shall count for more
        scaled = Range.of_spread if hasattr(regressor, "fit_components") else _between
        self.scores = [scaled(basis.scores) for basis in self._bases]
        self.fitted = [
            _fitted_scores(regressor, unit, scale.apply(basis.scores))
            for scale, basis in zip(self.scores, self._bases, strict=True)
        ]
        super().__init__(name, runs, regressor, self.fitted, [basis.scores.std(axis=0) for basis in self._bases])
        self._elsewhere: list[tuple[Range, FittedGP]] = []
        self._kept: dict[bytes, list[Functions]] = {}
        self._uncertain: _Uncertain | None = None

    def drawn(self, count: int, seed: int, spread: Array) -> Sequence[Emulator]:
        # once, for all of them: the draws are copies
        _ = self._score_vars
        return super().drawn(count, seed, spread)

    def _again(self, regressor: Regressor, runs: RunTable) -> ComponentEmulator:
        return ComponentEmulator(self.name, runs, regressor, self._asked)

    def _spread_of_parts(self, spread: Array) -> list[float]:
        return [float(one) for one in spread]

    def _become(self, learnt: Emulator, fitted: list[FittedRegressor], rng: np.random.Generator) -> None:
        assert isinstance(learnt, ComponentEmulator)
        self.fitted = fitted
        self._kept = {}
        self._uncertain = _Uncertain(learnt, self._output, self._bases, rng)

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
            one.functions.T @ (scale.scale[:, None] * slope(unit)[0] / self.unit.scale)
            for scale, slope, one in zip(self.scores, self._gradients, functions, strict=True)
        ]
        return np.stack(columns, axis=1)

    def error_var(self, x: Array, theta: Array) -> Array:
        unit, functions = self.unit.apply(theta)[None], self.functions(x)
        columns = [
            (scale.scale**2 * variance(unit)[0]) @ one.functions**2 + one.left_var
            for scale, variance, one in zip(self.scores, self._variances, functions, strict=True)
        ]
        return np.stack(columns, axis=1)

    def run_scatter_var(self, x: Array, theta: Array) -> Array:
        unit, functions = self.unit.apply(theta)[None], self.functions(x)
        columns = [
            (scale.scale**2 * scatter_var(unit)[0]) @ one.functions**2
            for scale, scatter_var, one in zip(self.scores, self._scatter_vars, functions, strict=True)
        ]
        return np.stack(columns, axis=1)

    def left_out(self, x: Array, theta: Array, count: int) -> LeftOut | None:
        """What is missed of the ``count`` runs nearest to theta when each is left out; None but for processes."""
        fitted = [one for one in self.fitted if isinstance(one, FittedGP)]
        if len(fitted) < len(self.fitted):
            return None
        unit = self.unit.apply(theta)
        near = np.argsort(np.sum((fitted[0].inputs - unit) ** 2, axis=1), kind="stable")[:count]
        errors, variances = zip(*(one.left_out(near) for one in fitted), strict=True)
        each = [scale.scale[:, None] * one.functions for scale, one in zip(self.scores, self.functions(x), strict=True)]
        functions = np.zeros((sum(map(len, each)), len(x), len(each)))
        start = 0
        for k, own in enumerate(each):
            functions[start : (start := start + len(own)), :, k] = own
        own = self.unit.shift + self.unit.scale * fitted[0].inputs[near]
        return LeftOut(own, np.tensordot(np.hstack(errors), functions, 1), functions, np.hstack(variances))

    @cached_property
    def _score_vars(self) -> list[float]:
        """Of each outcome, what the scores' errors make of it between the runs, over theta and the points."""
        if not self.has_variance:
            return [0.0] * self.runs.q
        rng = np.random.default_rng(0)
        between = np.ptp(self.unit.apply(self.runs.theta), axis=0) * rng.random((PLACES, self.runs.p))
        return [
            float(np.mean((scale.scale**2 * variance(between)) @ basis.functions**2))
            for scale, variance, basis in zip(self.scores, self._variances, self._bases, strict=True)
        ]

    def functions(self, x: Array) -> list[Functions]:
        """Of each outcome, at these points."""
        key = x.tobytes()
        known = self._kept.get(key)
        if known is not None:
            return known
        rows = _rows_of(x, np.asarray(self.runs.x))
        if rows is not None:
            found = [
                Functions(basis.mean[rows], basis.functions[:, rows], basis.left_var[rows]) for basis in self._bases
            ]
            found = found if self._uncertain is None else self._uncertain.with_rest(found, rows)
        elif self._uncertain is None:
            found = self._interpolated(x)
        else:
            found = self._drawn_over_x(x, self._uncertain.emulator.functions(x))
        self._kept[key] = found
        if len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        return found

    def _interpolated(self, x: Array) -> list[Functions]:
        table = np.asarray(self.runs.x)
        if len(table) > MOST_POINTS:
            raise InputError(
                f"x has points that the runs do not have, and {len(table)} points are too many to interpolate between "
                "them: give oc.Points(x of the runs, weights) as the domain, or take a stacked emulator"
            )
        inputs = Range.of_box(table).apply
        if not self._elsewhere:
            # one list for this emulator and its draws, which are copies of it
            self._elsewhere[:] = [_over_x(basis, inputs(table)) for basis in self._bases]
        found = []
        for basis, (scale, fitted) in zip(self._bases, self._elsewhere, strict=True):
            values = scale.shift + scale.scale * fitted.predict(inputs(x))
            error_var = scale.scale**2 * fitted.variance(inputs(x))
            left_var = error_var @ np.append(1.0, basis.scores.var(axis=0)) + basis.left_var.mean()
            found.append(Functions(values[:, 0], values[:, 1:].T, left_var))
        return found

    def _drawn_over_x(self, x: Array, known: list[Functions]) -> list[Functions]:
        """Draws of the functions at other points than those of the runs, where these are ``known`` but for errors."""
        assert self._uncertain is not None
        table = np.asarray(self.runs.x)
        inputs = Range.of_box(table).apply
        found = []
        for k, (basis, one, (scale, fitted)) in enumerate(zip(self._bases, known, self._elsewhere, strict=True)):
            error_var = float(one.left_var.mean() - basis.left_var.mean())
            if error_var > NEGLIGIBLE * self._score_vars[k]:
                values = scale.shift + scale.scale * self._uncertain.over_x(k, fitted).predict(inputs(x))
                one = one._replace(mean=values[:, 0], functions=values[:, 1:].T)
            found.append(one)
        return self._uncertain.with_rest(found, np.asarray(cKDTree(inputs(table)).query(inputs(x))[1]))


class _Uncertain:
    """What a draw has beside its scores: the functions between the points of the runs, and what no component has.

    That is a sum of what the components leave of each run, weighted by N(0, 1) / sqrt(runs): it has the variance of
    what they leave, and its covariance over the points.
    """

    def __init__(self, learnt: ComponentEmulator, output: Array, bases: list[Basis], rng: np.random.Generator) -> None:
        """``learnt`` is the emulator itself."""
        self.emulator = learnt
        weights = rng.standard_normal((len(bases), len(output))) / np.sqrt(len(output))
        self._rest = [
            own @ (output[:, :, k] - basis.mean - basis.scores @ basis.functions)
            for k, (basis, own) in enumerate(zip(bases, weights, strict=True))
        ]
        self._seeds = rng.integers(0, 2**63, len(bases))
        self._over_x: dict[int, FittedRegressor] = {}

    def with_rest(self, functions: list[Functions], rows: IntArray) -> list[Functions]:
        """The functions at points that are, or are nearest to, those numbered ``rows``."""
        return [one._replace(mean=one.mean + rest[rows]) for one, rest in zip(functions, self._rest, strict=True)]

    def over_x(self, k: int, fitted: FittedGP) -> FittedRegressor:
        """A draw of the functions of outcome k, always the same."""
        if k not in self._over_x:
            self._over_x[k] = fitted.draws(1, np.random.default_rng(self._seeds[k]))[0]
        return self._over_x[k]


def _over_x(basis: Basis, points: Array) -> tuple[Range, FittedGP]:
    """Mean and functions of an outcome as functions of x, learnt at the points (m, d), and their scale."""
    values = np.vstack([basis.mean, basis.functions]).T
    scale = Range.of_spread(values)
    return scale, GP(nu=2.5).fit(points, scale.apply(values))


def _fitted_scores(regressor: Regressor, inputs: Array, scores: Array) -> FittedRegressor:
    own = deepcopy(regressor)
    fit: Callable[[Array, Array], FittedRegressor] = getattr(own, "fit_components", own.fit)
    return fit(inputs, scores)


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


def without_common_noise(basis: Basis, theta: Array) -> Basis:
    """The basis turned such that the noise of replicates is uncorrelated between its scores, as the scores are.

    A simulator's random numbers move many points of a run together, and so several principal components: learnt one by
    one, their errors would have the right size and the wrong shape over x. With the scores in units of their sds, and
    W the covariance of replicates about their means, the eigenvectors of W make both diagonal. W has to be known: of
    many components only the first, half as many as it has degrees of freedom, are turned.
    """
    repeats = repeated_rows(theta)
    sd = basis.scores.std(axis=0)
    if repeats is None or not (sd > 0).all():
        return basis
    count = min(len(sd), (len(theta) - len(repeats.first)) // 2)
    unit = (basis.scores / sd)[:, :count]
    means = repeats.sums(unit) / repeats.counts[:, None]
    within = unit - means[repeats.place]
    if count < 2 or float(np.mean(within**2)) < LEAST_VAR:
        return basis
    _, turned = np.linalg.eigh(within.T @ within)
    functions = turned.T @ (sd[:count, None] * basis.functions[:count])
    size = np.linalg.norm(functions, axis=1)
    # larger ones first, as they were
    order = np.argsort(-size, kind="stable")
    scores = unit @ turned * size
    return basis._replace(
        functions=np.vstack([(functions / size[:, None])[order], basis.functions[count:]]),
        scores=np.hstack([scores[:, order], basis.scores[:, count:]]),
    )


def _principal(output: Array, components: int | None) -> Basis:
    mean = output.mean(axis=0)
    left, singular, right = np.linalg.svd(output - mean, full_matrices=False)
    share = 1 - np.cumsum(singular**2) / max(float((singular**2).sum()), np.finfo(float).tiny)
    needed = 1 + int((share > TRUNCATION).sum())
    count = min(needed, len(singular), len(output) - 1, components or needed)
    scores, functions = left[:, :count] * singular[:count], right[:count]
    return Basis(mean, functions, scores, np.mean((output - mean - scores @ functions) ** 2, axis=0))


def _rows_of(points: Array, table: Array) -> IntArray | None:
    """The row of ``table`` that each of ``points`` is, or None if one is not there."""
    if points is table or (points.shape == table.shape and np.array_equal(points, table)):
        return np.arange(len(points), dtype=np.intp)
    place = {row.tobytes(): i for i, row in enumerate(table)}
    found = [place.get(row.tobytes(), -1) for row in np.ascontiguousarray(points)]
    return None if -1 in found else np.array(found, dtype=np.intp)

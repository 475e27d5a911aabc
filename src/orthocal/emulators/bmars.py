"""Bayesian adaptive regression splines as an emulator: the posterior mean, with a gradient."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, IntArray
from ..progress import announced
from ..regression.bmars import BMARSSampler
from ..regression.bmars_kernels import basis_slopes, basis_values, evaluate, mean_slopes, mean_values
from ..regression.compiled import Record
from ..regression.settings import BMARSSettings
from .base import Layout, ListedRegressor, listed
from .replicates import pure_var
from .sampled_regression import (
    Chain,
    Sampled,
    SampledFunctions,
    check_rows,
    check_whole,
    keeps_from,
    noise_prior,
    sample_targets,
)

Codes: TypeAlias = NDArray[np.int16]

#: splines follow a smooth simulator closely: a noise prior of the scale of a linear fit's residuals would hinder that
NOISE_SHARE = 0.1


@listed
@dataclass(frozen=True)
class BMARS(ListedRegressor):
    """target = sum of products of hinges + N(0, noise variance): the posterior mean over the draws.

    Each target has a chain of its own, with the prior of ``oc.bias.BMARS``. The noise is what the basis functions leave
    of a deterministic simulator; its variance is sampled. Beyond the range of the inputs the mean is constant.

    Parameters
    ----------
    draws
        Kept draws.
    burn
        Updates before the first of them.
    thin
        Updates a kept draw.
    moves
        Births, deaths and changes of basis functions an update.
    order
        Most inputs of a basis function.
    degree
        Power of the hinges: 2 gives smooth functions; with 1 the gradient jumps at the knots.
    most
        Most basis functions.
    least
        Fewest rows where a hinge is not zero.
    seed
        Of the chains.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, oc.emulators.BMARS(draws=50, burn=50), progress=False)
    >>> bool(abs(emulator([0.5], [2.2]) - np.exp(-1.1)) < 0.05), emulator.smooth
    (True, True)
    """

    draws: int = 200
    burn: int = 200
    thin: int = 1
    moves: int = 50
    order: int = 3
    degree: int = 2
    most: int = 100
    least: int = 5
    seed: int = 0

    name: ClassVar[str] = "bmars"
    words: ClassVar[str] = "the posterior mean of adaptive splines"
    layout: ClassVar[Layout] = "components"

    def __post_init__(self) -> None:
        check_whole("BMARS", {"draws": (self.draws, 1), "burn": (self.burn, 0), "thin": (self.thin, 1)})
        check_whole("BMARS", {"seed": (self.seed, 0)})
        self._prior()

    def fit(self, inputs: Array, targets: Array) -> FittedBMARS:
        """The posterior of each column of targets (N, r) given inputs (N, k)."""
        check_rows(inputs, targets)

        def start(rng: np.random.Generator, target: Array) -> Chain:
            spread, largest = float(np.ptp(target)), float(np.abs(target).max())
            nowhere = np.empty((0, inputs.shape[1]))
            sampler = BMARSSampler(self._prior(), spread, largest, inputs, nowhere, np.ones(len(inputs)))
            prior_var = noise_prior(inputs, target, NOISE_SHARE)
            return Chain(sampler, rng, target, prior_var, keeps_from(self.burn, self.thin))

        sampled = sample_targets(targets, self.seed, self.burn + self.draws * self.thin, start)
        fitted = FittedBMARS(self, inputs, sampled._replace(pure_var=pure_var(inputs, targets)))
        with announced("compiling the mean of BMARS for its first use, some seconds, once"):
            fitted.predict(inputs[:1])
            fitted.gradient(inputs[:1])
        return fitted

    def quick(self) -> BMARS:
        """With fewer draws: enough to see how far draws and mean are from runs that are held out.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.emulators.BMARS(draws=500).quick().draws
        50
        """
        return replace(self, draws=min(self.draws, 50), burn=min(self.burn, 100))

    def _prior(self) -> BMARSSettings:
        return BMARSSettings(self.moves, self.order, self.degree, self.most, self.least)


class Splines(NamedTuple):
    """Splines functions: codes and knots of their hinges (B, order), and coefficients (B,)."""

    factors: Codes
    knots: Array
    coefficients: Array


class Hinges(NamedTuple):
    """The distinct hinges, code and knot (H,), and which of them make each basis function, (B, order)."""

    code: IntArray
    knot: Array
    members: IntArray


class FittedBMARS(SampledFunctions):
    """The posterior mean of r targets: one list of basis functions a target, those of all its draws."""

    def __init__(self, settings: BMARS, inputs: Array, sampled: Sampled) -> None:
        super().__init__(settings.draws, sampled)
        self.settings = settings
        self._low, self._width = inputs.min(axis=0), np.ptp(inputs, axis=0)
        self._order = min(settings.order, inputs.shape[1])
        self._draws = [[_basis(record) for record in records] for records in sampled.records]
        self._become(None)

    def _become(self, weights: Array | None) -> None:
        """Take the sum of the draws with these weights, (draws,), or their mean."""
        self.bases = [_merged(draws, self._order, weights) for draws in self._draws]
        factors, knots, coefficients = (np.concatenate(parts) for parts in zip(*self.bases, strict=True))
        self._hinges = _hinges(factors, knots)
        self._coefficients = coefficients
        self._ends = np.cumsum([len(basis.coefficients) for basis in self.bases], dtype=np.int64)

    def mixed(self, weights: Array) -> FittedBMARS:
        """sum_i weights_i draw_i over the draws, (draws,)."""
        other = copy(self)
        other.offset = self.offset * weights.sum()
        other._become(weights)
        return other

    def predict(self, inputs: Array) -> Array:
        """The posterior mean at inputs (M, k), (M, r)."""
        output = np.empty((len(inputs), len(self.offset)))
        scaled, degree = self._scaled(inputs), self.settings.degree
        mean_values(*self._hinges, self._coefficients, self._ends, scaled, degree, output)
        return output + self.offset

    def gradient(self, inputs: Array) -> Array:
        """Its derivative by each input, (M, r, k); 0 beyond the range of the data."""
        output = np.zeros((len(inputs), len(self.offset), inputs.shape[1]))
        scaled, degree = self._scaled(inputs), self.settings.degree
        mean_slopes(*self._hinges, self._coefficients, self._ends, scaled, degree, output)
        return output * self._slope_of_scale(inputs)[:, None]

    def variance(self, inputs: Array) -> Array:
        """Variance of the error of the prediction, (M, r): that of the draws' functions, and the noise.

        Where there are replicates, their variance is no part of it.
        """
        scaled = np.ascontiguousarray(self._scaled(inputs).T)
        columns = []
        for draws in self._draws:
            values = np.zeros((max(len(draws), 1), len(inputs)))
            for basis, value in zip(draws, values, strict=False):
                evaluate(*basis, scaled, self.settings.degree, value)
            columns.append(values.var(axis=0))
        return np.asarray(np.stack(columns, axis=1) + self._error_var)

    def at(self, points: Array) -> FixedPoints:
        """The posterior mean as a function of theta (p,) for fixed points (m, d), (m, r)."""
        return FixedPoints(self, points)

    def _scaled(self, inputs: Array, columns: slice = slice(None)) -> Array:
        """Inputs (M, k) in the range of the data, cut off there."""
        low, width = self._low[columns], self._width[columns]
        return np.ascontiguousarray(np.clip((inputs - low) / np.where(width > 0, width, 1.0), 0.0, 1.0))

    def _slope_of_scale(self, inputs: Array, columns: slice = slice(None)) -> Array:
        low, width = self._low[columns], self._width[columns]
        inside = (inputs >= low) & (inputs <= low + width) & (width > 0)
        return np.asarray(inside / np.where(width > 0, width, 1.0))


class FixedPoints:
    """The posterior mean at fixed points: the hinges in x are numbers, those in theta are left.

    f(x_i, theta) = sum_g weights[i, g] h_g(theta), over the distinct products h of hinges in theta.
    """

    def __init__(self, fitted: FittedBMARS, points: Array) -> None:
        self._fitted = fitted
        d, degree = points.shape[1], fitted.settings.degree
        self._theta = slice(d, None)
        scaled = fitted._scaled(points, slice(0, d))
        self._parts: list[tuple[Hinges, Array]] = []
        for basis in fitted.bases:
            in_x, in_theta = _split(basis, d)
            factors, knots, member = _unique(*in_theta)
            values = np.empty((len(points), len(member)))
            basis_values(*_hinges(*in_x), scaled, degree, values)
            weights = np.zeros((len(factors), len(points)))
            np.add.at(weights, member, (values * basis.coefficients).T)
            self._parts.append((_hinges(factors, knots), np.ascontiguousarray(weights.T)))

    def __call__(self, theta: Array) -> Array:
        scaled = self._fitted._scaled(theta[None], self._theta)
        columns = []
        for hinges, weights in self._parts:
            values = np.empty((1, weights.shape[1]))
            basis_values(*hinges, scaled, self._fitted.settings.degree, values)
            columns.append(weights @ values[0])
        return np.stack(columns, axis=1) + self._fitted.offset

    def gradient(self, theta: Array) -> Array:
        """The derivative by theta, (m, r, p)."""
        scaled = self._fitted._scaled(theta[None], self._theta)
        columns = []
        for hinges, weights in self._parts:
            slopes = np.zeros((1, weights.shape[1], len(theta)))
            basis_slopes(*hinges, scaled, self._fitted.settings.degree, slopes)
            columns.append(weights @ slopes[0])
        return np.stack(columns, axis=1) * self._fitted._slope_of_scale(theta[None], self._theta)


def _basis(record: Record) -> Splines:
    """A draw's basis functions, the hinges of each by their input."""
    factors, knots, coefficients = record["factor"], record["knot"], record["value"]
    # those without a hinge at the end, as the compiled code stops at the first
    by_input = np.argsort(np.where(factors == 0, np.iinfo(np.int16).max, np.abs(factors)), axis=1, kind="stable")
    ordered = np.take_along_axis(factors, by_input, axis=1)
    knots = np.where(ordered == 0, 0.0, np.take_along_axis(knots, by_input, axis=1))
    return Splines(ordered, knots, coefficients)


def _merged(draws: list[Splines], order: int, weights: Array | None) -> Splines:
    """The sum of draws with weights (draws,), or their mean, as one list, in which each basis function occurs once."""
    # a constant target has no draws
    used = range(len(draws)) if weights is None else [i for i in np.flatnonzero(weights) if i < len(draws)]
    factors = np.concatenate([np.empty((0, order), dtype=np.int16), *(draws[i].factors for i in used)])
    knots = np.concatenate([np.empty((0, order)), *(draws[i].knots for i in used)])
    parts = [draws[i].coefficients if weights is None else weights[i] * draws[i].coefficients for i in used]
    coefficients = np.concatenate([np.empty(0), *parts])
    distinct, distinct_knots, member = _unique(factors, knots)
    summed = np.bincount(member, coefficients, len(distinct)).astype(np.float64)
    return Splines(distinct, distinct_knots, summed / max(len(draws), 1) if weights is None else summed)


def _unique(factors: Codes, knots: Array) -> tuple[Codes, Array, IntArray]:
    """The distinct products of hinges, and which of them each one is."""
    _, place, member = np.unique(np.hstack([factors, knots]), axis=0, return_index=True, return_inverse=True)
    return factors[place], np.ascontiguousarray(knots[place]), member.ravel().astype(np.intp)


def _hinges(factors: Codes, knots: Array) -> Hinges:
    """Splines functions by the numbers of their hinges."""
    used = factors != 0
    pairs = np.column_stack([factors[used], knots[used]])
    distinct, member = np.unique(pairs, axis=0, return_inverse=True)
    members = np.full(factors.shape, -1, dtype=np.int64)
    members[used] = member.ravel()
    return Hinges(distinct[:, 0].astype(np.int64), np.ascontiguousarray(distinct[:, 1]), members)


def _split(basis: Splines, d: int) -> tuple[tuple[Codes, Array], tuple[Codes, Array]]:
    """The hinges in the first d inputs, and those in the others, numbered anew."""
    inputs = np.abs(basis.factors)
    in_x = _packed_left(np.where(inputs <= d, basis.factors, 0), basis.knots)
    shifted = np.sign(basis.factors) * (inputs - d)
    return in_x, _packed_left(np.where(inputs > d, shifted, 0).astype(np.int16), basis.knots)


def _packed_left(factors: Codes, knots: Array) -> tuple[Codes, Array]:
    """The hinges that are left before the empty places."""
    order = np.argsort(factors == 0, axis=1, kind="stable")
    packed = np.take_along_axis(factors, order, axis=1)
    return packed, np.where(packed == 0, 0.0, np.take_along_axis(knots, order, axis=1))

"""The size of a sum of trees, drawn with the trees: few data do not tell it.

    b = c f,   f the sum of trees with the usual leaves,   c half-Cauchy of scale ``TYPICAL``

f | c has the response z / c and the noise of z over c²; c | f has a density in one variable. Leaves that are as large
as the data's range says are a guess; with ten points the real process between them, and so theta, would be known too
well (Gelman 2006 for the law).
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from ..arrays import Array, IntArray, summed
from ..regression.compiled import Gridded, Record
from .base import BiasSampler

# A constant beside a sum of trees: their prior is centred at zero, and a bias need not be.


class OffsetState(NamedTuple):
    """The constant of each chain, (c,), and the state of the trees."""

    offset: Array
    own: Any


class WithOffset:
    """b = a + b_own with a ~ N(0, offset_sd^2), and b_own drawn by the sampler ``own``: Gibbs between the two."""

    takes_noise_scale = True

    def __init__(self, own: BiasSampler, offset_sd: float, noise_var: Array) -> None:
        self.own, self._offset_sd = own, offset_sd
        self._weight: Array = 1 / noise_var

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: OffsetState | None,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[OffsetState, Array]:
        scale = np.ones(len(rngs)) if noise_scale is None else noise_scale
        given = {} if noise_scale is None else {"noise_scale": noise_scale}
        offset = self._level(residual, scale) if state is None else state.offset
        own, values = self.own.draw(rngs, None if state is None else state.own, residual - offset[:, None], **given)
        # a | b_own is a Gaussian
        precision = self._offset_sd**-2 + self._weight.sum() / scale
        left = (residual - values[:, : residual.shape[1]]) @ self._weight / scale
        normal = np.array([rng.standard_normal() for rng in rngs])
        offset = left / precision + normal / np.sqrt(precision)
        return OffsetState(offset, own), values + offset[:, None]

    def _level(self, residual: Array, scale: Array) -> Array:
        """Where the first draw starts."""
        return np.asarray(residual @ self._weight / (self._weight.sum() + scale * self._offset_sd**-2))

    def record(self, state: OffsetState) -> dict[str, Array]:
        return {**self.own.record(state.own), "offset": state.offset[:, None]}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        return np.asarray(self.own.predict(rng, records, x_new) + records["offset"])

    def findings(self) -> dict[str, Any]:
        unit = float(self.own.settings()["unit"])
        return {**self.own.findings(), "offset_sd": self._offset_sd / unit}

    def settings(self) -> dict[str, Any]:
        return {**self.own.settings(), "offset_sd": self._offset_sd}


class _AroundGridded(Gridded):
    """The same beside functions ``own`` that are constant in the cells of a grid."""

    own: Any
    _weight: Array

    @property
    def cut_points(self) -> list[Array]:
        return list(self.own.cut_points)

    def cells(self, x: Array) -> IntArray:
        return np.asarray(self.own.cells(x))

    def on_cells(self, cells: IntArray, place: IntArray, nodes: Array) -> Self:
        part = copy(self)
        part.own = self.own.on_cells(cells, place, nodes)
        part._weight = summed(place, self._weight, len(cells))
        return part

    def in_cells(self, records: Record) -> Array:
        return np.asarray(self.own.in_cells(records))

    def at_cells(self, records: Record) -> Array:
        return np.asarray(self.own.at_cells(records))


class GriddedOffset(_AroundGridded, WithOffset):
    """The same beside functions that are constant in the cells of a grid."""

    def in_cells(self, records: Record) -> Array:
        return np.asarray(super().in_cells(records) + records["offset"])

    def at_cells(self, records: Record) -> Array:
        return np.asarray(super().at_cells(records) + records["offset"])


def with_offset(own: BiasSampler, residual: Array, noise_var: Array) -> WithOffset:
    """With an offset of the size of the residual at theta_tilde; whitened noise has sd 1."""
    kind = GriddedOffset if isinstance(own, Gridded) else WithOffset
    return kind(own, max(float(np.abs(residual).max()), 1.0), noise_var)


def restored_offset(own: BiasSampler, settings: dict[str, Any], noise_var: Array) -> BiasSampler:
    """The sampler of a stored posterior; version 0.1 had no offset."""
    return WithOffset(own, float(settings["offset_sd"]), noise_var) if "offset_sd" in settings else own


#: root mean square of c where its logarithm is normal, with a factor of three either way: sds below are as probable as
#: each other, as with Gaussian processes
TYPICAL = float(np.exp(np.log(3.0) ** 2))
#: updates of the trees and of c a draw: of few data they cost little, and large sizes are left slowly
TURNS = 4
#: first width of the interval that a slice sampler looks at, in log c
WIDTH = 1.0


class SizedState(NamedTuple):
    """c of each chain, (c,), and the state of the trees."""

    size: Array
    own: Any


class WithSize:
    """The trees of the sampler ``own`` times c."""

    takes_noise_scale = True

    def __init__(self, own: Any, noise_var: Array) -> None:
        self.own = own
        self._weight: Array = 1 / noise_var

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: SizedState | None,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[SizedState, Array]:
        noise = np.ones(len(rngs)) if noise_scale is None else noise_scale
        size, own = (np.ones(len(rngs)), None) if state is None else state
        for _ in range(TURNS):
            own, values = self.own.draw(rngs, own, residual / size[:, None], noise_scale=noise / size**2)
            at_data = values[:, : residual.shape[1]]
            precision, pull = (np.sum(at_data * one * self._weight, axis=1) / noise for one in (at_data, residual))
            each = zip(rngs, size, precision, pull, strict=True)
            size = np.array([_drawn_size(*one) for one in each])
        return SizedState(size, own), values * size[:, None]

    def record(self, state: SizedState) -> dict[str, Array]:
        """Trees with leaves of the right size: what is predicted from them needs no more."""
        own = self.own.record(state.own)
        sized = own["value"] * state.size[:, None]
        if own["kind"].ndim == 2:
            # inner nodes of smooth trees have their cuts among the values
            sized = np.where(own["kind"] < 0, sized, own["value"])
        return {**own, "value": sized}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        return np.asarray(self.own.predict(rng, records, x_new))

    def findings(self) -> dict[str, Any]:
        return dict(self.own.findings())

    def settings(self) -> dict[str, Any]:
        return dict(self.own.settings())


class GriddedSize(_AroundGridded, WithSize):
    """The same with functions that are constant in the cells of a grid."""


def with_size(trees: WithOffset, noise_var: Array) -> WithOffset:
    """A constant and trees of a size that is drawn, in place of one that is given."""
    part, kind = copy(trees), GriddedSize if isinstance(trees.own, Gridded) else WithSize
    part.own = kind(trees.own, noise_var)
    return part


def _drawn_size(rng: np.random.Generator, size: float, precision: float, pull: float) -> float:
    """A step of a slice sampler for c: exp(pull c - precision c² / 2) / (1 + c² / TYPICAL²)."""

    def log_density(log_size: float) -> float:
        c, u = np.exp(log_size), log_size - np.log(TYPICAL)
        # that of log c
        return float(pull * c - 0.5 * precision * c**2 - np.logaddexp(-u, u))

    here = float(np.log(size))
    level = log_density(here) - rng.exponential()
    lower = here - WIDTH * rng.random()
    upper = lower + WIDTH
    while log_density(lower) > level:
        lower -= WIDTH
    while log_density(upper) > level:
        upper += WIDTH
    while True:
        new = rng.uniform(lower, upper)
        if log_density(new) > level:
            return float(np.exp(new))
        lower, upper = (new, upper) if new < here else (lower, new)

"""A constant beside a sum of trees: their prior is centred at zero, and a bias need not be."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, IntArray, summed
from .base import BiasSampler, Gridded


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


class GriddedOffset(WithOffset):
    """The same beside functions that are constant in the cells of a grid."""

    own: Any

    @property
    def cut_points(self) -> list[Array]:
        return list(self.own.cut_points)

    def cells(self, x: Array) -> IntArray:
        return np.asarray(self.own.cells(x))

    def on_cells(self, cells: IntArray, place: IntArray, nodes: Array) -> GriddedOffset:
        part = copy(self)
        part.own = self.own.on_cells(cells, place, nodes)
        part._weight = summed(place, self._weight, len(cells))
        return part

    def in_cells(self, records: dict[str, Array]) -> Array:
        return np.asarray(self.own.in_cells(records) + records["offset"])

    def at_cells(self, records: dict[str, Array]) -> Array:
        return np.asarray(self.own.at_cells(records) + records["offset"])


def with_offset(own: BiasSampler, residual: Array, noise_var: Array) -> WithOffset:
    """With an offset of the size of the residual at theta_tilde; whitened noise has sd 1."""
    kind = GriddedOffset if isinstance(own, Gridded) else WithOffset
    return kind(own, max(float(np.abs(residual).max()), 1.0), noise_var)


def restored_offset(own: BiasSampler, settings: dict[str, Any], noise_var: Array) -> BiasSampler:
    """The sampler of a stored posterior; version 0.1 had no offset."""
    return WithOffset(own, float(settings["offset_sd"]), noise_var) if "offset_sd" in settings else own

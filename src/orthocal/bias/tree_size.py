"""A constant beside a sum of trees of a given size: their prior is centred at zero, and a bias need not be."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..regression.compiled import Gridded, Record
from .base import BiasSampler
from .sized import AroundGridded, Sized, sized


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
        return self._grown(records, self.own.predict(rng, records, x_new))

    @staticmethod
    def _grown(records: Record, values: Array) -> Array:
        return np.asarray(values + records["offset"])

    def findings(self) -> dict[str, Any]:
        unit = float(self.own.settings()["unit"])
        return {**self.own.findings(), "offset_sd": self._offset_sd / unit}

    def settings(self) -> dict[str, Any]:
        return {**self.own.settings(), "offset_sd": self._offset_sd}


class GriddedOffset(AroundGridded, WithOffset):
    """The same beside functions that are constant in the cells of a grid."""


def with_offset(own: BiasSampler, residual: Array, noise_var: Array) -> WithOffset:
    """With an offset of the size of the residual at theta_tilde; whitened noise has sd 1."""
    kind = GriddedOffset if isinstance(own, Gridded) else WithOffset
    return kind(own, max(float(np.abs(residual).max()), 1.0), noise_var)


def restored_offset(own: BiasSampler, settings: dict[str, Any], noise_var: Array) -> BiasSampler:
    """The sampler of a stored posterior; version 0.1 had no offset."""
    return WithOffset(own, float(settings["offset_sd"]), noise_var) if "offset_sd" in settings else own


def with_size(trees: WithOffset, noise_var: Array) -> Sized:
    """The trees with a size that is drawn, as ``oc.methods.Joint`` takes them."""
    own: Any = copy(trees.own)
    own.leaf_sd = 4 / (own.prior.k * np.sqrt(own.prior.trees))
    return sized(own, noise_var)

"""A bias whose size is drawn with it, in units of the noise.

    b = a + c f,   a / s and c / s Cauchy,   s the noise sd

f are the functions of a prior whose sd is about one; or two of trees, half of whose variance is a level. f and -f are
alike, so that c may have either sign, and |c| / s is half-Cauchy (Gelman 2006). Two updates of c take turns (Yu and
Meng 2011): given f, which moves it where the data are few, and given the coefficients of c f, which moves it where
they are many. Both are conjugate with one more number,

    c | w ~ N(0, s² / w),  w ~ Gamma(1/2, 1/2)      and      c² | h ~ IG(1/2, 1/h),  h ~ IG(1/2, 1/s²).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from ..arrays import Array, IntArray, summed
from ..regression.compiled import Gridded, Record
from .base import BiasSampler, Setting

Rngs = list[np.random.Generator]

#: so many data do not tell where between them a tree is to be cut, nor beyond them whether it is
FEW = 100
#: what a sampler finds about scales that are drawn here
_SCALES = ("leaf_sd", "coefficient_scale", "function_sd", "intercept_sd")


class UnitSampler(BiasSampler, Protocol):
    """Draws of functions with a prior sd of about ``function_sd``; their coefficients are normal."""

    function_sd: float

    def coefficients(self, state: Any) -> tuple[Array, Array]:
        """Of each chain the sum of squares of the coefficients, in prior sds, and their number, (c,) each."""

    def rescaled(self, state: Any, factor: Array) -> Any:
        """The state with all coefficients times ``factor`` (c,)."""


class SizedState(NamedTuple):
    """c and a of each chain, (c,), and the state of f."""

    size: Array
    offset: Array
    own: Any


class Sized:
    """b = a + c f with f drawn by the sampler ``own``."""

    takes_noise_scale = True

    def __init__(self, own: Any, noise_var: Array) -> None:
        self.own = own
        self._weight: Array = 1 / noise_var
        self._summary: dict[str, Any] = {}

    @property
    def trace(self) -> list[Any]:
        """What the sampler of f notes of its draws; nothing where it does not."""
        return list[Any]() if (own := getattr(self.own, "trace", None)) is None else own

    def draw(
        self,
        rngs: Rngs,
        state: SizedState | None,
        residual: Array,
        noise_scale: Array | None = None,
        noise_sd: Array | None = None,
    ) -> tuple[SizedState, Array]:
        """As samplers do; ``noise_scale`` may be one a data point, (c, n), and ``noise_sd`` (c,) is s."""
        sd = np.ones(len(rngs)) if noise_sd is None else noise_sd
        noise = np.ones((len(rngs), 1)) if noise_scale is None else noise_scale.reshape(len(rngs), -1)
        weight = self._weight / noise
        size, offset, own = self._start(residual, weight, sd) if state is None else state
        scale = noise / size[:, None] ** 2
        left = (residual - offset[:, None]) / size[:, None]
        own, f = self.own.draw(rngs, own, left, noise_scale=scale[:, 0] if scale.shape[1] == 1 else scale)
        size, offset = _line(rngs, f[:, : residual.shape[1]], residual, weight, size / sd, offset / sd, sd)
        squares, count = self.own.coefficients(own)
        given = _given_coefficients(rngs, size / sd, squares, count) * sd
        own, f = self.own.rescaled(own, size / given), f * (size / given)[:, None]
        return SizedState(given, offset, own), offset[:, None] + given[:, None] * f

    def _start(self, residual: Array, weight: Array, sd: Array) -> SizedState:
        """The size of the residual, and its middle."""
        offset = np.sum(residual * weight, axis=1) / weight.sum(axis=1)
        square = np.sum((residual - offset[:, None]) ** 2 * weight, axis=1) / weight.sum(axis=1)
        return SizedState(np.maximum(np.sqrt(square), sd), offset, None)

    def record(self, state: SizedState) -> dict[str, Array]:
        return {**self.own.record(state.own), "size": state.size[:, None], "offset": state.offset[:, None]}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        return self._grown(records, self.own.predict(rng, records, x_new))

    @staticmethod
    def _grown(records: Record, values: Array) -> Array:
        return np.asarray(records["offset"] + records["size"] * values)

    def summarise(self, sizes: Array) -> dict[str, Array]:
        """|c| (c, s) in the outcome's unit; ``findings`` tell its mean and interval from now on."""
        lower, upper = np.quantile(sizes, (0.025, 0.975))
        self._summary = {"sd": float(sizes.mean()), "sd_interval": [float(lower), float(upper)]}
        return self._summary

    def findings(self) -> dict[str, Any]:
        return {name: value for name, value in self.own.findings().items() if name not in _SCALES} | self._summary

    def settings(self) -> dict[str, Any]:
        return {**self.own.settings(), "sized": True}


class AroundGridded(Gridded):
    """More beside functions ``own`` that are constant in the cells of a grid."""

    own: Any
    _weight: Array
    _grown: Callable[[Record, Array], Array]

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
        return self._grown(records, self.own.in_cells(records))

    def at_cells(self, records: Record) -> Array:
        return self._grown(records, self.own.at_cells(records))


class GriddedSized(AroundGridded, Sized):
    """The same with functions that are constant in the cells of a grid."""


def with_bounds(setting: Setting) -> Setting:
    """With the ends of the domain as points, for trees that may be cut beyond the data."""
    return setting if setting.bounds is None else setting._replace(x=np.vstack([setting.x, setting.bounds]))


def sized(own: BiasSampler, noise_var: Array) -> Sized:
    """Functions of a size that is drawn, from those of size one."""
    return GriddedSized(own, noise_var) if isinstance(own, Gridded) else Sized(own, noise_var)


def _line(
    rngs: Rngs, f: Array, residual: Array, weight: Array, size: Array, offset: Array, sd: Array
) -> tuple[Array, Array]:
    """c and a given f: normal with precisions that are drawn given the ``size`` c / s and ``offset`` a / s before."""
    free = np.array([rng.standard_exponential(2) for rng in rngs]).T
    precision = 2 * free / (1 + np.stack([size, offset]) ** 2) / sd**2
    cc, ca, aa = (np.sum(weight * one, axis=1) for one in (f**2, f, np.ones_like(f)))
    cz, az = np.sum(weight * f * residual, axis=1), np.sum(weight * residual, axis=1)
    H = np.stack([np.stack([cc + precision[0], ca], axis=1), np.stack([ca, aa + precision[1]], axis=1)], axis=1)
    lower = np.linalg.cholesky(H)
    normal = np.array([rng.standard_normal(2) for rng in rngs])
    half = np.linalg.solve(lower, np.stack([cz, az], axis=1)[..., None])[..., 0] + normal
    found = np.linalg.solve(lower.swapaxes(1, 2), half[..., None])[..., 0]
    return found[:, 0], found[:, 1]


def _given_coefficients(rngs: Rngs, size: Array, squares: Array, count: Array) -> Array:
    """c / s given c f, from c / s before, the squares of the coefficients of f and their number."""
    free = np.array([rng.standard_exponential() for rng in rngs])
    inverse = free / (1 + size**-2)
    known = np.array([rng.standard_gamma(0.5 * (1 + one)) for rng, one in zip(rngs, count, strict=True)])
    return np.asarray(np.sign(size) * np.sqrt((inverse + 0.5 * size**2 * squares) / known))

"""What a regressor has learnt, and what more it may know: each a small Protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from ..arrays import Array


class FittedRegressor(Protocol):
    """What was learnt. It may do more: see the Protocols below."""

    def predict(self, inputs: Array) -> Array:
        """The targets at inputs (M, k), (M, r)."""


@runtime_checkable
class WithGradient(FittedRegressor, Protocol):
    """Without a gradient the predictions count as step functions."""

    def gradient(self, inputs: Array) -> Array:
        """d predict / d inputs, (M, r, k)."""


@runtime_checkable
class WithVariance(FittedRegressor, Protocol):
    """Knows its error."""

    def variance(self, inputs: Array) -> Array:
        """Variance of the error of the predictions, (M, r)."""


@runtime_checkable
class WithScatter(WithVariance, Protocol):
    """Tells the scatter of a single run from its own error, where replicates do; its variance is then the mean's."""

    @property
    def scatter_known(self) -> bool:
        """Whether there were replicates that differ."""

    def scatter_var(self, inputs: Array) -> Array:
        """Variance of a single run's targets about their mean function, (M, r)."""


@runtime_checkable
class WithLengthscales(FittedRegressor, Protocol):
    """Knows how far its inputs can change before the targets do."""

    #: of each target, (r, k), in the unit cube
    lengthscales: Array


@runtime_checkable
class WithCells(FittedRegressor, Protocol):
    """Step functions that know how wide their steps are; those of others span the gaps between the runs' values."""

    #: in the unit cube, (k,)
    cell_width: Array


@runtime_checkable
class WithPoints(FittedRegressor, Protocol):
    """Can compute once, for fixed points, what does not depend on theta."""

    def at(self, points: Array) -> Callable[[Array], Array]:
        """The function theta (p,) -> (m, r) for points (m, d); it may have ``gradient(theta)``, (m, r, p)."""


@runtime_checkable
class WithDraws(FittedRegressor, Protocol):
    """Knows its error as a distribution of functions, not only point by point."""

    def draws(self, count: int, rng: np.random.Generator) -> Sequence[FittedRegressor]:
        """So many functions that may be the one that was learnt, each of all targets together.

        Their mean is ``predict``, and their variance ``variance`` where there is one. Each has a gradient if this has
        one. They may be made when they are asked for.
        """


@runtime_checkable
class WithKept(FittedRegressor, Protocol):
    """Keeps draws of its posterior, whose spread is put right by held-out runs; see ``emulators/draw_spread.py``."""

    @property
    def kept(self) -> int:
        """Number of the draws."""

    def mixed(self, weights: Array) -> FittedRegressor:
        """sum_i weights_i draw_i, smooth in theta, with a gradient."""


def common_lengthscale(fitted: Sequence[FittedRegressor], sizes: Sequence[Array] | None, p: int) -> Array | None:
    """Those of theta, (p,), for all targets together: larger ones count for more; None where there are none."""
    own = [one.lengthscales[:, -p:] for one in fitted if isinstance(one, WithLengthscales)]
    if len(own) < len(fitted):
        return None
    weights = np.concatenate([np.ones(len(one)) for one in own] if sizes is None else [size**2 for size in sizes])
    # outputs that do not vary have no length
    weights = weights if weights.any() else np.ones_like(weights)
    return np.asarray(np.average(np.vstack(own) ** -2.0, axis=0, weights=weights) ** -0.5)

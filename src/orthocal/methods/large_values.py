"""Draws of the real process at many data points, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arrays import Array, IntArray
from ..bias.large_gp import LargeGP
from .base import Plan
from .regress import Linear


def values_at_data(
    linear: Linear, x: Array, beta: Array, samplers: Sequence[LargeGP], values: Sequence[Array], plan: Plan
) -> Callable[[IntArray], Array]:
    """``Regressed.at_data``: G beta + b for draws beta (s, p) and what each outcome's sampler recorded, (s, ...).

    Chance at a data point is the same whenever, and together with whatever other draws, a draw is asked for.
    """
    seed = int(plan.rngs[0].integers(2**62))

    def at_data(rows: IntArray) -> Array:
        real = np.einsum("nkp,sp->snk", linear.at_data, beta[rows])
        for k, (sampler, own) in enumerate(zip(samplers, values, strict=True)):

            def normal(shape: tuple[int, int], k: int = k) -> Array:
                each = [np.random.default_rng([seed, int(row), k]).standard_normal(shape[1]) for row in rows]
                return np.stack(each)

            real[:, :, k] += sampler.at(x, own[rows], normal)
        return np.asarray(real)

    return at_data

"""A family that shows what curvature does beside a bias."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example
from .registry import listed


def _wave(x: Array) -> tuple[Array, Array]:
    """Two orthonormal functions on [0, 1]."""
    return np.sqrt(2) * np.sin(2 * np.pi * x[:, 0]), np.sqrt(2) * np.cos(2 * np.pi * x[:, 0])


def _curved(x: Array, theta: Array) -> Array:
    a, e = _wave(x)
    return np.asarray(a * theta[0] + e * theta[0] ** 2 / 2)


def _curved_gradient(x: Array, theta: Array) -> Array:
    a, e = _wave(x)
    return np.asarray((a + e * theta[0])[:, None])


def curved(size: float) -> Example:
    """f = a t + e t^2 / 2 with a, e orthonormal, and y_R = size e: a curved simulator beside a large bias.

    theta* = 0, and least squares has the standard deviation noise / sqrt(n) / (1 - size).

    Examples
    --------
    >>> import orthocal as oc
    >>> example = oc.examples.curved(0.5)
    >>> example.theta_star, example.n
    ((0.0,), 200)
    """
    return Example(
        name=f"curved-{size:g}".replace("--", "-minus-"),
        title=f"curved, bias {size:g}",
        words="A bias along the simulator's curvature, which makes theta better known, or worse.",
        d=1,
        truth=lambda x: size * _wave(x)[1],
        simulator=_curved,
        gradient=_curved_gradient,
        theta_star=(0.0,),
        parameters={"theta": stats.norm(0, 10)},
        noise_sd=0.1,
        n=200,
        design=lambda rng, n: ((np.arange(n) + 0.5) / n)[:, None],
        source="orthocal",
        tags=("curved",),
    )


for _size in (-0.5, 0.5):
    listed(curved(_size))

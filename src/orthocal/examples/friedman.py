"""Friedman's function with all of its five inputs as parameters, known from a table of runs."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, listed

_STAR = (0.4, 0.55, 0.45, 0.5, 0.6)


def _friedman(x: Array, theta: Array) -> Array:
    a, b, c, d, e = theta
    u, v = x.T
    bent = 10 * np.sin(np.pi * (a * (0.3 + u) + 0.5 * b * v))
    return np.asarray(bent + 20 * (c - u) ** 2 + 10 * d * u * v + 5 * e * np.cos(np.pi * v))


#: f = 10 sin(pi (a (.3 + x1) + b x2 / 2)) + 20 (c - x1)^2 + 10 d x1 x2 + 5 e cos(pi x2): each of Friedman's terms has
#: an effect of its own along x, so that they can be told apart
FRIEDMAN = listed(
    Example(
        name="friedman",
        title="Friedman, from 60 runs",
        words="A simulator that is right, of five parameters, known from a table of 60 runs.",
        d=2,
        truth=lambda x: _friedman(x, np.array(_STAR)),
        simulator=_friedman,
        theta_star=_STAR,
        parameters={name: stats.uniform(0, 1) for name in "abcde"},
        n=80,
        runs=60,
        source="after J. H. Friedman (1991), Ann. Statist. 19, 1–67",
        tags=("curved", "emulator"),
    )
)

"""Whether a simulator's gradient is what its differences say."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..errors import NonFiniteError
from .simulator import BoundSimulator, GradientKind

#: rows that tell as much of a gradient as more would
MOST_ROWS = 10_000


def gradient_error(simulator: BoundSimulator, x: Array, theta: Array, units: Array) -> float:
    """Largest relative difference of the gradient from differences; of differences, from ones ten times as long.

    That of an emulator counts as it is: of step functions it is a difference over a cell, of the others it is analytic,
    and short differences would show their rounding only. NaN where no differences can be had. ``units`` (q, q) takes
    the outcomes to those in which they are compared. Of many rows some are looked at.
    """
    if simulator.outside is not None:
        return 0.0
    x = x[:: -(-len(x) // MOST_ROWS)]
    longer = 10.0 if simulator.gradient_kind is GradientKind.DIFFERENCE else 1.0
    try:
        pair = simulator.gradient(x, theta), simulator.difference_gradient(x, theta, longer)
    except NonFiniteError:
        return np.nan
    given, reference = (np.einsum("kl,nlp->nkp", units, one) for one in pair)
    size = np.sqrt(np.mean(reference**2, axis=(0, 1)))
    return float(np.max(np.abs(given - reference).max(axis=(0, 1)) / np.where(size > 0, size, 1.0)))

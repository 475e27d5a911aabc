"""What all chains of a neural network share: their weights, and the algebra of its last layer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array


class Network(NamedTuple):
    """The weights of all chains in units of their prior sds, and the chains' step sizes.

    Attributes
    ----------
    hidden
        Weights into the hidden units, (c, q), in the order of ``BNNSampler.shapes``.
    output
        Weights into the output, (c, hidden + 1), the intercept last.
    step
        Largest step of a trajectory, (c,): set in the first draw and fixed from then on.
    """

    hidden: Array
    output: Array
    step: Array


def ridge(columns: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of G = I + F'F."""
    # where a trajectory has left the numbers, its density is NaN by the weights themselves: here it must only not fail
    values, vectors = np.linalg.eigh(np.nan_to_num(columns.swapaxes(1, 2) @ columns))
    # rounding can make F'F indefinite if the prior is much wider than the noise; G is at least I
    return 1 + np.maximum(values, 0.0), vectors


def normals(rngs: list[np.random.Generator], size: int) -> Array:
    """Standard normals, a row (size,) from each chain's generator."""
    return np.stack([rng.standard_normal(size) for rng in rngs])

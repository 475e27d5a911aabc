"""A random walk that adapts while it warms up (Haario, Saksman, Tamminen 2001): proposals v + scale * root z.

It stands alone because theta kernels, hyperparameters of a method and those of an emulator all walk by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array

#: the acceptance rate aimed at, the paper's
TARGET_ACCEPTANCE = 0.3


class WalkTuning(NamedTuple):
    """Proposals are v + scale * root z, z ~ N(0, I)."""

    root: Array
    scale: float

    @classmethod
    def first(cls, root: Array) -> WalkTuning:
        """Where root root' is about the covariance of the draws, (p, p)."""
        return cls(root, 2.4 / np.sqrt(len(root)))

    def adapted(self, draws: Array, acceptance: float) -> WalkTuning:
        """Better tuning from a window of warm-up draws, (w, p)."""
        found = np.cov(draws, rowvar=False).reshape(self.root.shape)
        # half old, half new keeps the covariance regular when a window has hardly moved
        root = np.linalg.cholesky(0.5 * self.root @ self.root.T + 0.5 * found)
        return WalkTuning(root, float(self.scale * np.exp(acceptance - TARGET_ACCEPTANCE)))

"""What one outcome says about beta with its Gaussian-process bias integrated out, for noise of any size.

    B = G'S^-1 G,   pull = G'S^-1 z,   S = L L' + (t W)^-1

With W^1/2 L = U diag(s) V', S^-1 = t W^1/2 (I - U diag(t s² / (1 + t s²)) U') W^1/2: one decomposition serves all sizes
t of the noise's precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array

#: data beyond which the decomposition, which costs their number cubed, is not made
MOST_INTEGRATED = 2_000


class BiasIntegrated(NamedTuple):
    """W^1/2 (n,), its product with G (n, p), U (n, r) and s² (r,)."""

    root_weight: Array
    sloped: Array
    left: Array
    squares: Array

    @classmethod
    def of(cls, root: Array, G: Array, weight: Array) -> BiasIntegrated:
        """From L (n, r) and G (n, p) at the data, and W (n,)."""
        root_weight = np.sqrt(weight)
        left, sizes, _ = np.linalg.svd(root_weight[:, None] * root, full_matrices=False)
        return cls(root_weight, root_weight[:, None] * G, left, sizes**2)

    def information(self, z: Array, scale: Array) -> tuple[Array, Array]:
        """B (c, p, p) and pull (c, p), for z (c, n) and t (c,)."""
        white = z * self.root_weight
        taken = scale[:, None] * self.squares / (1 + scale[:, None] * self.squares)
        turned = self.left.T @ self.sloped
        B = self.sloped.T @ self.sloped - np.einsum("rp,cr,rk->cpk", turned, taken, turned)
        pull = white @ self.sloped - ((white @ self.left) * taken) @ turned
        return np.asarray(scale[:, None, None] * B), np.asarray(scale[:, None] * pull)

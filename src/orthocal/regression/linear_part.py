"""What a function that is linear in Gaussian coefficients says about other coefficients, its own integrated out.

    z = G beta + H'c + e,   c ~ N(0, D^-1),   e ~ N(0, W^-1)

With c integrated out beta ~ N(B^-1 pull, B^-1) for a flat prior, B = G'S^-1 G and pull = G'S^-1 z, S = H'D^-1 H + W^-1.
The coefficients are data, too: 0 = D^1/2 c + noise. So S^-1 = W^1/2 (I - P) W^1/2, P the projection on W^1/2 H' above
D^1/2. What is left of G beside P has the square B: no difference of large numbers, where H can follow G closely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ..arrays import Array


class LinearPart(NamedTuple):
    """H (k, n), the prior precisions of the coefficients D (k,), and W (n,)."""

    functions: Array
    precision: Array
    weight: Array

    def information(self, G: Array, z: Array) -> tuple[Array, Array]:
        """B (p, p) and pull (p,), for G (n, p) and z (n,)."""
        n, root = len(z), np.sqrt(self.weight)
        Q, _ = np.linalg.qr(np.vstack([self.functions.T * root[:, None], np.diag(np.sqrt(self.precision))]))
        sloped = np.vstack([G * root[:, None], np.zeros((len(self.precision), G.shape[1]))])
        # once more for what rounding has left of P
        left = sloped - Q @ (Q.T @ sloped)
        left -= Q @ (Q.T @ left)
        return left.T @ left, left[:n].T @ (root * z)


class Others(NamedTuple):
    """G (n, p) of coefficients beta beside those of the functions, and what else is known about beta.

    ``precision`` (c, p, p) and ``pull`` (c, p) of each chain: beta ~ N(precision^-1 pull, precision^-1) without these
    data. A precision that is singular says nothing along some of beta.
    """

    G: Array
    precision: Array
    pull: Array

    def of_chain(self, c: int) -> Others:
        return Others(self.G, self.precision[c], self.pull[c])

    def beside(self, weight: Array, z: Array) -> tuple[Array, Array]:
        """V' (p, n) and v (p,) of one chain, for W (n,) and z (n,).

        With beta integrated out, a and b have the inner product a'W b - (V'a)'(V'b), and a with z a'W z - (V'a)'v.
        """
        weighted = weight[:, None] * self.G
        lower = np.linalg.cholesky(self.G.T @ weighted + self.precision)
        found = solve_triangular(lower, np.column_stack([weighted.T, weighted.T @ z + self.pull]), lower=True)
        return np.ascontiguousarray(found[:, :-1]), np.ascontiguousarray(found[:, -1])

"""One experiment in the regression of all, as a Gaussian for any hyperparameters of its bias and noise.

    z = G beta + b + e,   b = L w,   w ~ N(0, I),   s = M w the part of lambda(b) that a prior of theta feels

With C the covariance of b + e, what z says of beta and s is

    H = G'C^-1 G,   h = G'C^-1 z,   s | beta, z ~ N(m - T beta, Z).

G and M are in units of the gradients' lengths, as beta is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..arrays import Array, IntArray
from ..bias import GP
from ..bias.outcomes import OutcomesBias
from ..methods.fine_nodes import Integrals
from ..methods.joint.gaussian_model import GaussianLaw, GaussianModel
from ..methods.joint.regress import Linear
from ..methods.joint.unknowns import Unknowns
from ..problem.problem import Problem


class RegressionPart(NamedTuple):
    """One experiment in the regression.

    Attributes
    ----------
    problem
        The experiment with the best fit of all, its rows merged.
    linear
        Its simulator as a function of all parameters, and what its bias adds to theta.
    columns
        The parameters that move its simulator.
    to_cells
        What takes whitened values at its nodes to cells of the stacked problem, (q, q).
    prior, unknowns
        Of a Gaussian process with something to integrate over, hyperparameters or noise; else None.
    bias, integrals
        The samplers of any other bias, and how these are integrated.
    """

    problem: Problem
    linear: Linear
    columns: IntArray
    to_cells: Array
    prior: GP | None
    unknowns: Unknowns | None
    bias: OutcomesBias | None
    integrals: Integrals | None

    def cells(self, values: Array) -> Array:
        """Whitened values at the nodes (s, m, q) as cells, (s, m q)."""
        return np.asarray((values @ self.to_cells.T).reshape(len(values), -1))

    def free_linear(self, nodes: Array, pull: Array | None = None, precision: Array | None = None) -> Linear:
        """Its simulator as a function of its own parameters, and what else is known of beta, in their units.

        Nothing is taken from b.
        """
        own, k, q = self.linear, len(self.columns), self.problem.data.q
        unit, at_nodes = own.unit[self.columns], own.at_nodes[: len(nodes), :, self.columns]
        pull = np.zeros(k) if pull is None else pull / unit
        precision = np.zeros((k, k)) if precision is None else precision / np.outer(unit, unit)
        return Linear(own.at_data[:, :, self.columns], at_nodes, np.zeros((k, len(nodes) * q)), pull, precision, unit)


class Told(NamedTuple):
    """What one experiment says: H (k, k) and h (k,) of its own beta; T (j, k), Z (j, j) and m (j,) of s."""

    H: Array
    h: Array
    T: Array
    Z: Array
    m: Array


class GivenPoint(NamedTuple):
    """Draws of one experiment with beta = 0 and no prior of theta, and what both change.

    Attributes
    ----------
    bias
        b at data and nodes, (s, n + m, q).
    pull
        What they leave for beta, G'C^-1 (z - b - e) with b and e from their priors, (s, k).
    added
        s, (s, j).
    slopes, along
        What beta (k, n + m, q) and the multipliers of the prior (j, n + m, q) add to b.
    """

    bias: Array
    pull: Array
    added: Array
    slopes: Array
    along: Array


class ExperimentModel(GaussianModel):
    """One experiment given a vector v of its ``unknowns``; ``felt`` are the parameters that have a prior."""

    def __init__(self, part: RegressionPart, prior: GP, unknowns: Unknowns, felt: IntArray) -> None:
        nodes = part.problem.rule.nodes
        super().__init__(part.problem, part.free_linear(nodes), prior, unknowns, nodes)
        coefficients = part.linear.coefficients[felt] / part.linear.unit[felt, None]
        self._adding = coefficients.reshape(len(felt), len(nodes), part.problem.data.q)
        self._at_nodes = self._everywhere[part.problem.data.n :]

    def _pushed(self, law: GaussianLaw) -> tuple[Array, Array]:
        """M (j, w), and G and L M' at the cells, side by side, (c, k + j)."""
        added = np.hstack([self._adding[:, :, k] @ root[self._at_nodes] for k, root in enumerate(law.roots)])
        return added, np.column_stack([self._gradient, law.design @ added.T])

    def told(self, v: Array) -> Told:
        law, k = self.law(v), self._gradient.shape[1]
        added, beside = self._pushed(law)
        half = solve_triangular(law.lower, np.column_stack([beside, self._z]), lower=True)
        both = half.T @ half
        return Told(both[:k, :k], both[:k, -1], both[k:-1, :k], added @ added.T - both[k:-1, k:-1], both[k:-1, -1])

    def drawn(self, rngs: list[np.random.Generator], counts: IntArray, v: Array) -> tuple[Told, GivenPoint]:
        """``counts`` draws by each generator, and what holds for all of them."""
        law, k = self.law(v), self._gradient.shape[1]
        added, beside = self._pushed(law)
        white, gap = self.from_priors(rngs, counts, law)
        solved = cho_solve((law.lower, True), beside)
        pull = gap @ solved[:, :k]
        white += cho_solve((law.lower, True), gap.T).T @ law.design
        moves = -solved.T @ law.design
        moves[k:] += added
        bias, moved = self.at_all_points(white, law.roots), self.at_all_points(moves, law.roots)
        both = beside.T @ solved
        told = Told(both[:k, :k], self._z @ solved[:, :k], both[k:, :k], moves[k:] @ added.T, self._z @ solved[:, k:])
        return told, GivenPoint(bias, pull, white @ added.T, moved[:k], moved[k:])

"""One experiment in the regression of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..bias.outcomes import OutcomesBias
from ..methods.bias_samplers import fitted_bias
from ..methods.fine_nodes import Integrals
from ..methods.joint.regress import Linear
from ..problem.problem import Problem
from .scales import KnownGP


class Part(NamedTuple):
    """One experiment in the regression.

    Attributes
    ----------
    problem
        The experiment with the best fit of all, its rows merged.
    linear
        Its simulator as a function of all parameters, and what its bias adds to theta.
    to_cells
        What takes whitened values at its nodes to cells of the stacked problem, (q, q).
    bias, integrals
        The samplers of its bias, and how these are integrated.
    sets
        The prior of its bias with sets of hyperparameters, of which every draw has one; none where they are fixed.
    """

    problem: Problem
    linear: Linear
    to_cells: Array
    bias: OutcomesBias
    integrals: Integrals | None
    sets: tuple[KnownGP, ...] = ()

    def bias_of(self, number: int) -> OutcomesBias:
        """The samplers of its bias in a set."""
        return fitted_bias(self.sets[number], self.problem, self.problem.rule.nodes) if self.sets else self.bias

    def cells(self, values: Array) -> Array:
        """Whitened values at the nodes (s, m, q) as cells, (s, m q)."""
        return np.asarray((values @ self.to_cells.T).reshape(len(values), -1))

"""One experiment in the regression of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..bias.outcomes import OutcomesBias
from ..methods.fine_nodes import Integrals
from ..methods.regress import Linear
from ..problem.problem import Problem


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
    """

    problem: Problem
    linear: Linear
    to_cells: Array
    bias: OutcomesBias
    integrals: Integrals | None

    def cells(self, values: Array) -> Array:
        """Whitened values at the nodes (s, m, q) as cells, (s, m q)."""
        return np.asarray((values @ self.to_cells.T).reshape(len(values), -1))

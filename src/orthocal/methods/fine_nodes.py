"""Where a rough bias is drawn, so that its integrals are right: at finer nodes than those of the simulator."""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Array
from ..problem.domain import Box
from ..problem.fine_rule import FineRule, SobolRule
from ..problem.problem import Problem


class BiasNodes(NamedTuple):
    """Nodes (M, d), and the way from values there to the problem's nodes; None where they are the same."""

    nodes: Array
    rule: FineRule | SobolRule | None

    def down(self, values: Array) -> Array:
        """Values (..., M, q) as those at the problem's nodes, (..., m, q)."""
        return values if self.rule is None else self.rule.down(values)


def bias_nodes(problem: Problem, count: int) -> BiasNodes:
    """At least ``count`` nodes, an input or in all (more than two inputs); those of the user's own stay as given."""
    box, d = problem.domain, problem.data.d
    if not isinstance(box, Box):
        return BiasNodes(problem.rule.nodes, None)
    if d <= 2:
        fine = FineRule.smooth(box, [max(count, box.legendre_nodes(d))] * d)
        return BiasNodes(fine.nodes, fine)
    if count <= len(problem.rule.nodes):
        return BiasNodes(problem.rule.nodes, None)
    nodes = box.sobol(d, count).nodes
    gradient = problem.whitened_gradient(nodes)
    if len(problem.directions.open):
        # the same functions without those that are combinations of others
        gradient = gradient @ problem.directions.basis
    return BiasNodes(nodes, SobolRule(nodes, gradient, len(problem.rule.nodes), problem.metric))

"""Where the bias is integrated, if there are many data: at more nodes than those at which the simulator is called."""

from __future__ import annotations

from typing import TypeAlias

from ..problem.domain import Box
from ..problem.fine_rule import FineRule, SobolRule
from ..problem.problem import Problem

#: observations from which on the error of the domain's own rule would count: the posterior's width is below it. With
#: BART in two inputs it makes the width of theta a tenth larger at 2000 points, twice as large at 10 000
LARGE = 2000
#: Gauss–Legendre nodes an input for functions without a grid of their own, by the number of inputs
FINE_NODES = {1: 1000, 2: 60}
#: Sobol nodes for more inputs
FINE_SOBOL = 2**14

Fine: TypeAlias = FineRule | SobolRule


def own_box(problem: Problem) -> Box | None:
    """The domain, if it is a box and there are many data: the nodes of other domains are the user's, and stay."""
    large = problem.unmerged.data.n >= LARGE
    return problem.domain if large and isinstance(problem.domain, Box) else None


def fine_nodes(problem: Problem) -> Fine | None:
    """Nodes for a bias without a grid of its own, or None where the problem's own nodes will do."""
    box, d = own_box(problem), problem.data.d
    if box is None:
        return None
    if d <= 2:
        return FineRule.smooth(box, [max(FINE_NODES[d], box.legendre_nodes(d))] * d)
    m = len(problem.rule.nodes)
    if m >= FINE_SOBOL:
        return None
    nodes = box.sobol(d, FINE_SOBOL).nodes
    return SobolRule(nodes, problem.whitened_gradient(nodes), m, problem.metric)

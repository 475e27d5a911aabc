"""How well nodes and weights integrate the products of gradients, Q_jl = <g_j, g_l>."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array
from ..projection import quadrature_error
from .domain import Box, Domain, Rule

#: where half the nodes change Q by more than this, twice as many say how good all of them are
LARGE = 0.01


def rule_error(domain: Domain, d: int, gram: Array, gram_of: Callable[[Rule], Array]) -> float | None:
    """The relative error of Q, (p, p), by the rule of the domain; None where it has no other.

    It is at most what half the nodes change it by. Where that is much it says little: a rule that is exact for the
    highest wave among the gradients may be of no use with half the nodes.
    """
    rule, coarse = domain.rules(d)
    if coarse is None:
        return None
    error = quadrature_error(gram, gram_of(coarse))
    if error < LARGE or not isinstance(domain, Box):
        return error
    finer = Box(domain.lower, domain.upper, 2 * round(len(rule.nodes) ** (1 / d if d <= 2 else 1)))
    return min(error, quadrature_error(gram, gram_of(finer.rules(d)[0])))

"""Where the bias is integrated: at more nodes than those at which the simulator is called, where these would be few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..arrays import Array
from ..bias.base import BiasSampler, Gridded
from ..problem.domain.domain import Box
from ..problem.fine_rule import FineRule, SobolRule
from ..problem.problem import Problem

#: observations from which on a bias is integrated at finer nodes in any number of inputs. With b at 256 nodes in three
#: inputs theta would be 12 % wider at 2000 points and 30 % at 10 000, with ESS 150 and 17 of 1200 in place of 800 and
#: 1000; in one input 200 nodes leave 1 to 2 %
LARGE = 2000
#: Gauss–Legendre nodes an input for functions without a grid of their own, by the number of inputs
FINE_NODES = {1: 1000, 2: 60}
#: Sobol nodes for more inputs
FINE_SOBOL = 2**14
#: cells of a grid that integrals are taken over, at most; trees with the usual 100 cuts have 10201 in two inputs
MOST_CELLS = 2**16
#: draws that tell the error of the nodes
LOOKED_AT = 40


class Integrals(Protocol):
    """b at the problem's nodes, such that its integrals there are those over finer ones."""

    @property
    def nodes(self) -> Array:
        """Where the samplers are to draw b, beside the data points."""

    def at_nodes(self, drawn: Array, records: dict[str, Array]) -> tuple[Array, Array]:
        """b at the problem's nodes (c, m, q), and what its square misses there (c, q).

        From b at ``nodes``, (c, M, q), and what predictions need of the draws; see ``problem.fine_rule``.
        """


class CellIntegrals(NamedTuple):
    """For functions that are constant between cuts: exact, and from the recorded functions alone."""

    samplers: Sequence[Gridded]
    rules: Sequence[FineRule]

    @property
    def nodes(self) -> Array:
        return np.empty((0, self.rules[0].nodes.shape[1]))

    def at_nodes(self, drawn: Array, records: dict[str, Array]) -> tuple[Array, Array]:
        own = [sampler.in_cells(of_outcome(records, k))[:, :, None] for k, sampler in enumerate(self.samplers)]
        pairs = list(zip(self.rules, own, strict=True))
        down = np.concatenate([rule.down(values) for rule, values in pairs], axis=-1)
        return down, np.concatenate([rule.missed_square(values) for rule, values in pairs], axis=-1)


class NodeIntegrals(NamedTuple):
    """For any functions, from their values at finer nodes."""

    rule: FineRule | SobolRule

    @property
    def nodes(self) -> Array:
        return self.rule.nodes

    def at_nodes(self, drawn: Array, records: dict[str, Array]) -> tuple[Array, Array]:
        return self.rule.down(drawn), self.rule.missed_square(drawn)


def fine_integrals(problem: Problem, samplers: Sequence[BiasSampler]) -> Integrals | None:
    """How the samplers' bias is integrated, or None where it is at the problem's own nodes.

    Those of a domain that is not a box are the user's, and stay. In two inputs the 15 x 15 nodes of a box are too few
    for trees whatever the data: with 500 points they make the posterior of theta half as wide again, with 2000 twice.
    """
    box, d, large = problem.domain, problem.data.d, problem.unmerged.data.n >= LARGE
    if not isinstance(box, Box):
        return None
    gridded = [sampler for sampler in samplers if isinstance(sampler, Gridded)]
    if d <= 2 and (large or d == 2) and len(gridded) == len(samplers):
        grids = [sampler.cut_points for sampler in gridded]
        if max(np.prod([len(points) + 1.0 for points in grid]) for grid in grids) <= MOST_CELLS:
            return CellIntegrals(gridded, [FineRule.of_cells(box, grid) for grid in grids])
    if not large:
        return None
    rule = bias_nodes(problem, FINE_NODES.get(d, FINE_SOBOL)).rule
    return None if rule is None else NodeIntegrals(rule)


class Integrated(NamedTuple):
    """At how many nodes the bias was integrated, 0 where that was exact, and what half of them would move theta by.

    ``moved`` is in posterior sds, the root mean square over draws, at most over the parameters.
    """

    nodes: int
    moved: float | None


def integrated(
    problem: Problem, integrals: Integrals, samplers: Sequence[BiasSampler], records: dict[str, Array], moved: Array
) -> Integrated:
    """What the nodes leave of the integrals, from some of the recorded draws; ``moved`` (s, p) are those of theta."""
    if not isinstance(integrals, NodeIntegrals):
        return Integrated(0, None)
    count, d = len(integrals.nodes), problem.data.d
    half = bias_nodes(problem, round((count / 2) ** (1 / d)) if d <= 2 else count // 2)
    if half.rule is None or len(half.nodes) >= count:
        return Integrated(count, None)
    some = np.linspace(0, len(moved) - 1, min(LOOKED_AT, len(moved))).round().astype(np.intp)
    rng = np.random.default_rng(0)

    def coefficients(nodes: BiasNodes) -> Array:
        each = [
            sampler.predict(rng, {name: own[some] for name, own in of_outcome(records, k).items()}, nodes.nodes)
            for k, sampler in enumerate(samplers)
        ]
        values = nodes.down(np.stack(each, axis=-1))
        image = np.einsum("m,kl,mlp->mkp", problem.rule.weights, problem.metric, problem.gradient_at_nodes)
        eta = values.reshape(len(values), -1) @ image.reshape(-1, image.shape[2])
        return np.asarray(np.linalg.lstsq(problem.sensitivity.gram, eta.T, rcond=None)[0].T)

    apart = coefficients(BiasNodes(integrals.nodes, integrals.rule)) - coefficients(half)
    sd = moved.std(axis=0)
    return Integrated(count, float(np.max(np.sqrt(np.mean(apart**2, axis=0)) / np.where(sd > 0, sd, np.inf))))


def of_outcome(records: dict[str, Array], k: int) -> dict[str, Array]:
    """The records of outcome k, whose number ends their names, by the names that its sampler has for them."""
    ending = f"_{k}"
    return {name.removesuffix(ending): values for name, values in records.items() if name.endswith(ending)}


class BiasNodes(NamedTuple):
    """Nodes (M, d), and the way from values there to the problem's nodes; None where they are the same."""

    nodes: Array
    rule: FineRule | SobolRule | None

    def down(self, values: Array) -> Array:
        """Values (..., M, q) as those at the problem's nodes, (..., m, q)."""
        return values if self.rule is None else self.rule.down(values)

    def up(self, functional: Array) -> Array:
        """A functional of values at the problem's nodes (p, m, q) as one of those here, (p, M, q)."""
        return functional if self.rule is None else self.rule.up(functional)


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

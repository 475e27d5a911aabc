"""Where the bias is integrated: at more nodes than those at which the simulator is called, where these would be few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from ..arrays import Array
from ..bias.base import BiasSampler
from ..errors import InputError
from ..problem.domain.domain import Box
from ..problem.problem import Problem
from ..regression.compiled import Gridded

# Integrals of a rough function that is known at many nodes, with the simulator at few.
#
#     b_r = (1 / w_r) ∫ b l_r dP_x,  l_r the Lagrange polynomial of node x_r, so that  sum_r w_r b_r h(x_r) = ∫ b h dP_x
#
# for every polynomial h of a degree below the number of nodes an input: b_r is, at the nodes of a Gauss–Legendre rule,
# the polynomial closest to b. Between the simulator's gradients, which the rule resolves, and a draw of the bias, which
# it does not, no error of the rule is left, and the simulator is not called at one more node.


@dataclass(frozen=True)
class FineRule:
    """A tensor of nodes that are finer than those of a box's Gauss–Legendre rule, and the way down to these.

    Attributes
    ----------
    nodes
        (M, d), the last input runs fastest.
    weights
        (M,), that sum to one.
    maps
        A_j (m_j, M_j) of each input: values at the fine nodes -> b_r.
    coarse_weights
        Those of the box's rule, (m,).
    """

    nodes: Array
    weights: Array
    maps: tuple[Array, ...]
    coarse_weights: Array

    @classmethod
    def of_cells(cls, box: Box, breaks: Sequence[Array]) -> FineRule:
        """One node a cell between the ``breaks`` of each input, for functions that are constant in every cell: exact.

        There is one cell more than breaks, which ascend, in every input; what of it lies outside of the box is not
        counted, and its node lies inside of it all the same.
        """
        lower, upper = box.bounds(len(breaks))
        count = box.legendre_nodes(len(breaks))
        middles, shares, maps = [], [], []
        for low, high, cuts in zip(lower, upper, breaks, strict=True):
            ends = np.clip(np.concatenate([[low], cuts, [high]]), low, high)
            unit = (ends - low) / (high - low)
            middles.append((ends[1:] + ends[:-1]) / 2)
            shares.append(np.diff(unit))
            maps.append(_polynomials_at_nodes(count) @ _integrals(count, unit))
        return cls._tensor(middles, shares, maps, count)

    @classmethod
    def smooth(cls, box: Box, counts: Sequence[int]) -> FineRule:
        """Gauss–Legendre nodes, ``counts`` in each input, for smooth functions; no fewer than the box's rule has."""
        lower, upper = box.bounds(len(counts))
        count = box.legendre_nodes(len(counts))
        middles, shares, maps = [], [], []
        for low, high, fine in zip(lower, upper, counts, strict=True):
            if fine < count:
                raise InputError(f"{fine} nodes in an input are fewer than the {count} of the box: give as many")
            points, weights = leggauss(fine)
            middles.append(low + (points + 1) / 2 * (high - low))
            shares.append(weights / 2)
            maps.append(_polynomials_at_nodes(count) @ (legvander(points, count - 1) * (weights / 2)[:, None]).T)
        return cls._tensor(middles, shares, maps, count)

    @classmethod
    def _tensor(cls, middles: Sequence[Array], shares: Sequence[Array], maps: Sequence[Array], count: int) -> FineRule:
        grids = np.meshgrid(*middles, indexing="ij")
        own = leggauss(count)[1] / 2
        return cls(
            np.stack([grid.ravel() for grid in grids], axis=1),
            _products(shares),
            tuple(maps),
            _products([own] * len(middles)),
        )

    def down(self, values: Array) -> Array:
        """Values at the fine nodes (..., M, q) as those at the nodes of the box's rule, (..., m, q)."""
        lead, q = values.shape[:-2], values.shape[-1]
        tensor = values.reshape(-1, *(own.shape[1] for own in self.maps), q)
        for axis, own in enumerate(self.maps, start=1):
            tensor = np.moveaxis(np.tensordot(own, tensor, axes=(1, axis)), 0, axis)
        return np.asarray(tensor.reshape(*lead, -1, q))

    def up(self, functional: Array) -> Array:
        """A functional of values at the box's nodes (p, m, q) as one of those at the fine nodes, (p, M, q)."""
        tensor = functional.reshape(len(functional), *(own.shape[0] for own in self.maps), -1)
        for axis, own in enumerate(self.maps, start=1):
            tensor = np.moveaxis(np.tensordot(own, tensor, axes=(0, axis)), 0, axis)
        return np.asarray(tensor.reshape(len(functional), -1, functional.shape[2]))

    def missed_square(self, values: Array) -> Array:
        """∫ (b - b_r)² dP_x, (..., q): what the square of b has beyond that of its values at the box's nodes."""
        return _missed(values, self.weights, self.down(values), self.coarse_weights)


@dataclass(frozen=True)
class SobolRule:
    """More nodes of the same Sobol sequence (``Box.sobol``), and b at the first m of them with the coefficients of all:

        b_r + G_r (lambda_M(b) - lambda_m(b)),   lambda_k(b) = (∫_k G'W G)^-1 ∫_k G'W b,

    the smallest change, in the metric W, after which the projection of b on G over m nodes is that over all M.

    Attributes
    ----------
    nodes, gradient
        (M, d) and G there, (M, q, p), whitened.
    coarse
        m.
    metric
        W, (q, q), whitened.
    """

    nodes: Array
    gradient: Array
    coarse: int
    metric: Array

    def down(self, values: Array) -> Array:
        """Values at the fine nodes (..., M, q) as those at the first m, (..., m, q)."""
        few, many = (self._coefficients(values, count) for count in (self.coarse, len(self.nodes)))
        moved = np.einsum("mkp,...p->...mk", self.gradient[: self.coarse], many - few)
        return np.asarray(values[..., : self.coarse, :] + moved)

    def up(self, functional: Array) -> Array:
        """A functional of values at the first m nodes (p, m, q) as one of those at all, (p, M, q)."""
        along = np.einsum("amk,mkp->ap", functional, self.gradient[: self.coarse])
        many, few = (self._image(count) for count in (len(self.nodes), self.coarse))
        found = np.einsum("ap,pmk->amk", along, many)
        found[:, : self.coarse] += functional - np.einsum("ap,pmk->amk", along, few)
        return np.asarray(found)

    def _image(self, count: int) -> Array:
        """What takes values at the first ``count`` nodes to lambda over them, (p, m, q)."""
        G = self.gradient[:count]
        image = G.swapaxes(1, 2) @ self.metric
        gram = np.einsum("mpk,mkr->pr", image, G)
        return np.asarray(np.linalg.solve(gram, image.transpose(1, 0, 2).reshape(len(gram), -1))).reshape(
            len(gram), count, -1
        )

    def _coefficients(self, values: Array, count: int) -> Array:
        """lambda over the first ``count`` nodes, (..., p)."""
        G = self.gradient[:count]
        image = G.swapaxes(1, 2) @ self.metric
        gram = np.einsum("mpk,mkr->pr", image, G)
        pull = np.einsum("mpk,...mk->...p", image, values[..., :count, :])
        return np.asarray(np.linalg.solve(gram, pull[..., None])[..., 0])

    def missed_square(self, values: Array) -> Array:
        """By how much ∫ b² over all nodes exceeds that of ``down`` over the first m, (..., q); it may be negative."""
        many, few = (np.full(count, 1.0 / count) for count in (len(self.nodes), self.coarse))
        return _missed(values, many, self.down(values), few)


def _polynomials_at_nodes(count: int) -> Array:
    """(2 k + 1) P_k at the Gauss–Legendre nodes, (m, m): l_r / w_r = sum_k (2 k + 1) P_k(x_r) P_k, on [0, 1]."""
    return np.asarray(legvander(leggauss(count)[0], count - 1) * (2 * np.arange(count) + 1))


def _integrals(count: int, ends: Array) -> Array:
    """∫ P_k over each cell of [0, 1], (m, M): (2 k + 1) P_k is the derivative of P_(k+1) - P_(k-1)."""
    values = legvander(2 * ends - 1, count)
    primitive = values[:, 1:].copy()
    primitive[:, 1:] -= values[:, : count - 1]
    return np.asarray(np.diff(primitive, axis=0).T / (2 * (2 * np.arange(count) + 1))[:, None])


def _products(shares: Sequence[Array]) -> Array:
    return np.asarray(np.prod(np.meshgrid(*shares, indexing="ij"), axis=0).ravel())


def _missed(fine: Array, weights: Array, coarse: Array, coarse_weights: Array) -> Array:
    return np.asarray(
        np.einsum("...mk,m->...k", fine**2, weights) - np.einsum("...mk,m->...k", coarse**2, coarse_weights)
    )


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


class CellIntegrals(NamedTuple):
    """For functions that are constant between cuts: exact, and from the recorded functions alone.

    Samplers draw b at ``nodes``, beside the data points. ``at_nodes`` is b at the problem's nodes (c, m, q), such that
    its integrals there are those over the finer ones, and what its square misses there (c, q); from b at ``nodes``,
    (c, M, q), and what predictions need of the draws.
    """

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
    """The same for any functions, from their values at finer nodes."""

    rule: FineRule | SobolRule

    @property
    def nodes(self) -> Array:
        return self.rule.nodes

    def at_nodes(self, drawn: Array, records: dict[str, Array]) -> tuple[Array, Array]:
        return self.rule.down(drawn), self.rule.missed_square(drawn)


Integrals = CellIntegrals | NodeIntegrals


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
    problem: Problem,
    integrals: Integrals,
    samplers: Sequence[BiasSampler],
    records: dict[str, Array],
    moved: Array,
    coefficients: Array,
) -> Integrated:
    """What the nodes leave of the integrals, from some of the recorded draws.

    ``moved`` (s, p) are the draws of theta, and ``coefficients`` (p, m q) what takes b at the nodes to theta.
    """
    if not isinstance(integrals, NodeIntegrals):
        return Integrated(0, None)
    count, d = len(integrals.nodes), problem.data.d
    half = bias_nodes(problem, round((count / 2) ** (1 / d)) if d <= 2 else count // 2)
    if half.rule is None or len(half.nodes) >= count:
        return Integrated(count, None)
    some = np.linspace(0, len(moved) - 1, min(LOOKED_AT, len(moved))).round().astype(np.intp)
    rng = np.random.default_rng(0)

    def shifts(nodes: BiasNodes) -> Array:
        each = [
            sampler.predict(rng, {name: own[some] for name, own in of_outcome(records, k).items()}, nodes.nodes)
            for k, sampler in enumerate(samplers)
        ]
        values = nodes.down(np.stack(each, axis=-1))
        return np.asarray(values.reshape(len(values), -1) @ coefficients.T)

    apart = shifts(BiasNodes(integrals.nodes, integrals.rule)) - shifts(half)
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

"""Integrals of a rough function that is known at many nodes, with the simulator at few.

    b_r = (1 / w_r) ∫ b l_r dP_x,  l_r the Lagrange polynomial of node x_r,  so that  sum_r w_r b_r h(x_r) = ∫ b h dP_x

for every polynomial h of a degree below the number of nodes an input: b_r is, at the nodes of a Gauss–Legendre rule,
the polynomial closest to b. Between the simulator's gradients, which the rule resolves, and a draw of the bias, which
it does not, no error of the rule is left, and the simulator is not called at one more node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from ..arrays import Array
from ..errors import InputError
from .domain.domain import Box


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

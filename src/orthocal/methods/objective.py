"""The loss of every draw as a function of theta, by the simulator's expansion: what Newton's method needs of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ..arrays import Array, IntArray
from .distance import Distance
from .expansion import Correction, Expansion

#: differences of a loss of the user's, in units of the draws' spread: long enough to see over small corners
LOSS_STEP = 1e-2


class Slopes(NamedTuple):
    """Loss (s,), half its gradient (s, p) and half its Hessian (s, p, p)."""

    loss: Array
    gradient: Array
    hessian: Array


class Objective(Protocol):
    """The losses of draws whose targets are given; d (r, p) are places of those numbered ``rows``."""

    def loss(self, d: Array, rows: IntArray) -> Array:
        """(r,)."""

    def slopes(self, d: Array, rows: IntArray) -> Slopes:
        """The loss with its derivatives."""


def objective(distance: Distance, expansion: Expansion, target: Array, correction: Correction) -> Objective:
    """For targets (s, k): y_R less what the expansion misses of the simulator."""
    if distance.squared:
        return _Squared(expansion, target, correction)
    kind = _OfValues if distance.own else _OfSlopes
    return kind(distance, expansion, target, correction)


class _Squared:
    """|target - f|^2, with f in the span of few vectors: only products with these are needed."""

    def __init__(self, expansion: Expansion, target: Array, correction: Correction) -> None:
        self._expansion, self._correction = expansion, correction
        left = target - expansion.value
        self._square = np.einsum("sk,sk->s", left, left)
        self._pull = left @ expansion.basis
        self._gram = expansion.basis.T @ expansion.basis
        self._along, self._cross = (correction.along(values) for values in (left, expansion.basis.T))

    def loss(self, d: Array, rows: IntArray) -> Array:
        features = self._expansion.features(d)
        product = np.sum(features * (2 * self._pull[rows] - features @ self._gram), axis=1)
        return np.asarray(np.maximum(self._square[rows] - product, 0.0))

    def slopes(self, d: Array, rows: IntArray) -> Slopes:
        features, jacobian = self._expansion.features(d), self._expansion.jacobian(d)
        left = self._pull[rows] - features @ self._gram
        downhill = np.einsum("srp,sr->sp", jacobian, left)
        if self._along is not None and self._cross is not None:
            downhill += self._correction.slope(d, self._along[rows] - features @ self._cross)
        hessian = jacobian.swapaxes(1, 2) @ (self._gram @ jacobian)
        hessian -= np.tensordot(left, self._expansion.bends, axes=1)
        return Slopes(self.loss(d, rows), -downhill, hessian)


class _OfSlopes:
    """A loss whose derivatives are known."""

    def __init__(self, distance: Distance, expansion: Expansion, target: Array, correction: Correction) -> None:
        self._distance, self._expansion, self._target, self._correction = distance, expansion, target, correction

    def loss(self, d: Array, rows: IntArray) -> Array:
        return self._distance.loss(self._target[rows] - self._expansion.at(d))

    def slopes(self, d: Array, rows: IntArray) -> Slopes:
        left = self._target[rows] - self._expansion.at(d)
        # df/dd, (s, k, p)
        tangent = np.tensordot(self._expansion.jacobian(d), self._expansion.basis, axes=(1, 1)).swapaxes(1, 2)
        pull = self._distance.pull(left)
        downhill = np.einsum("ski,sk->si", tangent, pull.force)
        along = self._correction.along(pull.force)
        if along is not None:
            downhill += self._correction.slope(d, along)
        hessian = tangent.swapaxes(1, 2) @ (pull.weight[:, :, None] * tangent)
        hessian -= np.tensordot(pull.force @ self._expansion.basis, self._expansion.bends, axes=1)
        if pull.bend is not None:
            cells = (*pull.bend.shape, -1)
            bent = np.einsum("smqi,smq->smi", tangent.reshape(*cells, d.shape[1]), left.reshape(cells))
            hessian += bent.swapaxes(1, 2) @ (pull.bend[:, :, None] * bent)
        return Slopes(pull.loss, -downhill, hessian)


class _OfValues(_OfSlopes):
    """A loss of which only values can be had: derivatives by differences."""

    def slopes(self, d: Array, rows: IntArray) -> Slopes:
        p, h = d.shape[1], LOSS_STEP

        def at(move: Array) -> Array:
            moved = d + move
            return self._distance.loss(
                self._target[rows] - self._expansion.at(moved) - self._correction.change(d, moved)
            )

        here, units = at(np.zeros(p)), h * np.eye(p)
        up, down = (np.stack([at(sign * unit) for unit in units], axis=1) for sign in (1, -1))
        hessian = np.empty((len(d), p, p))
        for i in range(p):
            hessian[:, i, i] = (up[:, i] + down[:, i] - 2 * here) / h**2
            for j in range(i):
                both = at(units[i] + units[j]) - up[:, i] - up[:, j] + here
                hessian[:, i, j] = hessian[:, j, i] = both / h**2
        return Slopes(here, (up - down) / (4 * h), hessian / 2)

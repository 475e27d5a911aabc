"""The loss of every draw as a function of theta, by the simulator's expansion: what Newton's method needs of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array, IntArray
from ...losses import Loss, OwnLoss
from ...problem.problem import Problem
from .expansion import Expansion

# How far the simulator is from the real process: a loss of values at the nodes.


class Pull(NamedTuple):
    """The loss (s,) of what is left (s, k); half its gradient by that, (s, k), and half its Hessian.

    The Hessian is ``weight`` (s, k) on the diagonal and, where ``bend`` (s, m) is given, bend v v' for the vector v of
    each node beside it.
    """

    loss: Array
    force: Array
    weight: Array
    bend: Array | None


class Distance:
    """A loss of values at the nodes (..., m, q), whitened, in vectors (..., m q) whose dot product is <u, v>."""

    def __init__(self, problem: Problem, loss: Loss | OwnLoss, typical: float = 1.0) -> None:
        """``typical`` is the size of the residuals at the best fit, see ``Loss.at``."""
        self._problem, self._loss, self._typical = problem, loss, typical
        self._root = np.linalg.cholesky(problem.metric)
        self._weights = problem.rule.weights
        self._scale = np.sqrt(self._weights)[:, None]
        self._noise = float(np.sqrt(np.trace(problem.metric) / problem.data.q))

    @property
    def own(self) -> bool:
        """Whether only values of the loss can be had."""
        return isinstance(self._loss, OwnLoss)

    @property
    def squared(self) -> bool:
        return not isinstance(self._loss, OwnLoss) and self._loss.name == "squared"

    def vectors(self, values: Array) -> Array:
        scaled = self._scale * (values @ self._root)
        return np.asarray(scaled.reshape(*values.shape[:-2], -1))

    def residuals(self, left: Array) -> Array:
        """What is left as residuals in the outcomes' units, (s, m, q); 0 at nodes of no weight."""
        cells = left.reshape(len(left), len(self._weights), -1)
        safe = np.where(self._scale > 0, self._scale, np.inf)
        return self._problem.unwhiten((cells / safe) @ np.linalg.inv(self._root))

    def loss(self, left: Array) -> Array:
        """The loss of what is left, (s, k) -> (s,)."""
        if isinstance(self._loss, OwnLoss):
            return self._loss(self.residuals(left), self._weights)
        return np.asarray(self._loss.at(self._sizes(left), self._typical, self._noise).value @ self._weights)

    def pull(self, left: Array) -> Pull:
        """The loss and its derivatives."""
        if self.squared:
            return Pull(np.einsum("sk,sk->s", left, left), left, np.ones_like(left), None)
        assert not isinstance(self._loss, OwnLoss)
        value, first, second = self._loss.at(self._sizes(left), self._typical, self._noise)
        weight = np.repeat(first, self._problem.data.q, axis=1)
        bend = 2 * second / np.where(self._weights > 0, self._weights, np.inf)
        return Pull(value @ self._weights, weight * left, weight, bend)

    def _sizes(self, left: Array) -> Array:
        """|r|^2 at each node, (s, m)."""
        cells = left.reshape(len(left), len(self._weights), -1)
        squares = np.einsum("smq,smq->sm", cells, cells)
        return np.asarray(squares / np.where(self._weights > 0, self._weights, np.inf))


def domain_squares(bias: Array, real: Array, weights: Array) -> tuple[Array, Array]:
    """∫ b^2 dP_x and the variance of y_R over the domain, (..., q), from values at the nodes (..., m, q)."""
    centred = real - np.tensordot(real, weights, axes=(-2, 0))[..., None, :]
    square, variance = (np.tensordot(values**2, weights, axes=(-2, 0)) for values in (bias, centred))
    return square, variance


#: differences of a loss of the user's, in units of the draws' spread: long enough to see over small corners
LOSS_STEP = 1e-2


class Held(NamedTuple):
    """What the projection leaves where it is: ``rows`` (k, p) times theta, at its values for ``theta`` (s, p).

    Attributes
    ----------
    along, functions
        The directions of theta that are determined, (p, r), and what takes f at the nodes to coordinates along them
        where it is linear, (m, q, r) with the product <., .>.
    """

    rows: Array
    theta: Array
    along: Array
    functions: Array

    def part(self, draws: slice | IntArray) -> Held:
        return self._replace(theta=self.theta[draws])

    @property
    def middle(self) -> Held:
        return self._replace(theta=self.theta.mean(axis=0, keepdims=True))


class LossDerivatives(NamedTuple):
    """Loss (s,), half its gradient (s, p) and half its Hessian (s, p, p)."""

    loss: Array
    gradient: Array
    hessian: Array


# An objective has the losses (r,) of draws whose targets are given, and their ``slopes``, the loss with its
# derivatives; d (r, p) are places of those numbered ``rows``.


def objective(distance: Distance, expansion: Expansion, target: Array) -> Objective:
    """For targets (s, k): y_R less what the expansion misses of the simulator."""
    if distance.squared:
        return _Squared(expansion, target)
    kind = _OfValues if distance.own else _OfSlopes
    return kind(distance, expansion, target)


class Holding:
    """Another objective, and (rows d - place)^2: it has no say but where the other is flat."""

    def __init__(self, free: Objective, rows: Array, places: Array) -> None:
        self.free, self._rows, self._places = free, rows, places

    def loss(self, d: Array, rows: IntArray) -> Array:
        return np.asarray(self.free.loss(d, rows) + np.sum(self._away(d, rows) ** 2, axis=1))

    def slopes(self, d: Array, rows: IntArray) -> LossDerivatives:
        found, away = self.free.slopes(d, rows), self._away(d, rows)
        loss, hessian = found.loss + np.sum(away**2, axis=1), found.hessian + self._rows.T @ self._rows
        return LossDerivatives(loss, found.gradient + away @ self._rows, hessian)

    def _away(self, d: Array, rows: IntArray) -> Array:
        return np.asarray(d @ self._rows.T - self._places[rows])


class _Squared:
    """|target - f|^2, with f in the span of few vectors: only products with these are needed."""

    def __init__(self, expansion: Expansion, target: Array) -> None:
        self._expansion = expansion
        left = target - expansion.value
        self._square = np.einsum("sk,sk->s", left, left)
        self._pull = left @ expansion.basis
        self._gram = expansion.basis.T @ expansion.basis

    def loss(self, d: Array, rows: IntArray) -> Array:
        features = self._expansion.features(d)
        product = np.sum(features * (2 * self._pull[rows] - features @ self._gram), axis=1)
        return np.asarray(np.maximum(self._square[rows] - product, 0.0))

    def slopes(self, d: Array, rows: IntArray) -> LossDerivatives:
        features, jacobian = self._expansion.features(d), self._expansion.jacobian(d)
        left = self._pull[rows] - features @ self._gram
        downhill = np.einsum("srp,sr->sp", jacobian, left)
        hessian = jacobian.swapaxes(1, 2) @ (self._gram @ jacobian)
        hessian -= self._expansion.curvature(left)
        return LossDerivatives(self.loss(d, rows), -downhill, hessian)


class _OfSlopes:
    """A loss whose derivatives are known."""

    def __init__(self, distance: Distance, expansion: Expansion, target: Array) -> None:
        self._distance, self._expansion, self._target = distance, expansion, target

    def loss(self, d: Array, rows: IntArray) -> Array:
        return self._distance.loss(self._target[rows] - self._expansion.at(d))

    def slopes(self, d: Array, rows: IntArray) -> LossDerivatives:
        left = self._target[rows] - self._expansion.at(d)
        # df/dd, (s, k, p)
        tangent = np.tensordot(self._expansion.jacobian(d), self._expansion.basis, axes=(1, 1)).swapaxes(1, 2)
        pull = self._distance.pull(left)
        downhill = np.einsum("ski,sk->si", tangent, pull.force)
        hessian = tangent.swapaxes(1, 2) @ (pull.weight[:, :, None] * tangent)
        hessian -= self._expansion.curvature(pull.force @ self._expansion.basis)
        if pull.bend is not None:
            cells = (*pull.bend.shape, -1)
            bent = np.einsum("smqi,smq->smi", tangent.reshape(*cells, d.shape[1]), left.reshape(cells))
            hessian += bent.swapaxes(1, 2) @ (pull.bend[:, :, None] * bent)
        return LossDerivatives(pull.loss, -downhill, hessian)


class _OfValues(_OfSlopes):
    """A loss of which only values can be had: derivatives by differences."""

    def slopes(self, d: Array, rows: IntArray) -> LossDerivatives:
        p, h = d.shape[1], LOSS_STEP

        def at(move: Array) -> Array:
            return self._distance.loss(self._target[rows] - self._expansion.at(d + move))

        here, units = at(np.zeros(p)), h * np.eye(p)
        up, down = (np.stack([at(sign * unit) for unit in units], axis=1) for sign in (1, -1))
        hessian = np.empty((len(d), p, p))
        for i in range(p):
            hessian[:, i, i] = (up[:, i] + down[:, i] - 2 * here) / h**2
            for j in range(i):
                both = at(units[i] + units[j]) - up[:, i] - up[:, j] + here
                hessian[:, i, j] = hessian[:, j, i] = both / h**2
        return LossDerivatives(here, (up - down) / (4 * h), hessian / 2)


Objective = _Squared | _OfSlopes | Holding

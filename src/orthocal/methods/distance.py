"""How far the simulator is from the real process: a loss of values at the nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..losses import Loss, OwnLoss
from ..problem.problem import Problem


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

"""df/dtheta by differences of second order: central ones, or to one side beside a bound or a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ...arrays import Array
from ...errors import NonFiniteError
from ..prior.parameters import Support

#: relative step of a central difference: the cube root of the rounding error balances the two errors
DIFFERENCE_STEP = float(np.cbrt(np.finfo(np.float64).eps))


#: f at fixed points for theta: of many, (c, p) -> (c, m, q), NaN where it fails; or of one, (p,) -> (m, q), or an error
Values: TypeAlias = Callable[[Array], Array]


class Differences(NamedTuple):
    """The steps that are made: ``step`` is relative to the parameter's scale.

    ``batch`` gives f for many theta, ``required`` for one.
    """

    support: Support
    step: float

    def gradient(self, batch: Values, required: Values, theta: Array, lengthened: float = 1.0) -> Array:
        """df/dtheta at theta (p,), (m, q, p), or an error where it cannot be had; ``lengthened`` multiplies steps."""
        steps = self._steps(theta, lengthened)
        shifts = _both_ways(steps)
        moved = self._moved(batch, theta + shifts, shifts)
        return self._completed(batch, required, theta, steps, moved)

    def gradients(self, batch: Values, required: Values, theta: Array) -> Array:
        """The same for theta (c, p), (c, m, q, p), with all calls in one batch; NaN where it cannot be had."""
        p = theta.shape[1]
        steps = np.stack([self._steps(one, 1.0) for one in theta])
        shifts = np.stack([_both_ways(one) for one in steps])
        moved = self._moved(batch, (theta[:, None] + shifts).reshape(-1, p), shifts.reshape(-1, p))
        each = moved.reshape(len(theta), 2 * p, *moved.shape[1:])
        found = np.full((len(theta), *moved.shape[1:], p), np.nan)
        for c, one in enumerate(theta):
            try:
                found[c] = self._completed(batch, required, one, steps[c], each[c])
            except NonFiniteError:
                continue
        return found

    def _steps(self, theta: Array, lengthened: float) -> Array:
        support = self.support
        size = np.clip(np.abs(theta), 0.1 * support.spread, support.spread)
        # a theta that is huge beside its prior must still move
        meant = np.maximum(lengthened * self.step * size, 1e-8 * np.abs(theta))
        # the steps that are made, not those that were meant: theta + h is rounded
        return np.asarray((theta + meant) - theta)

    def _moved(self, batch: Values, moved: Array, shifts: Array) -> Array:
        """f(x, moved) for places (c, p) that shifts (c, p) led to, NaN where these leave the bounds of the priors."""
        inside = np.all((shifts == 0) | ((self.support.lower < moved) & (moved < self.support.upper)), axis=1)
        called = batch(moved[inside])
        if inside.all():
            return called
        models = np.full((len(moved), *called.shape[1:]), np.nan)
        models[inside] = called
        return models

    def _completed(self, batch: Values, required: Values, theta: Array, steps: Array, moved: Array) -> Array:
        """From f at both ends of every step, (2p, m, q); to one side where one of them has none."""
        p = len(theta)
        there, back = moved[:p], moved[p:]
        columns = [(there[j] - back[j]) / (2 * h) for j, h in enumerate(steps)]
        for j in range(p):
            if not np.isfinite(columns[j]).all():
                columns[j] = self._one_sided(batch, required, theta, j, float(steps[j]))
        return np.stack(columns, axis=-1)

    def _one_sided(self, batch: Values, required: Values, theta: Array, j: int, h: float) -> Array:
        here = required(theta)
        for side in (h, -h):
            shifts = np.outer([side, 2 * side], np.eye(len(theta))[j])
            near, far = self._moved(batch, theta + shifts, shifts)
            difference = (4 * near - 3 * here - far) / (2 * side)
            if np.isfinite(difference).all():
                return np.asarray(difference)
        raise NonFiniteError(
            f"the simulator returned NaN or infinity on either side of {self.support.describe(theta)}: "
            "restrict the priors to where it works, or fix it there"
        )


def _both_ways(steps: Array) -> Array:
    return np.vstack([np.diag(steps), -np.diag(steps)])

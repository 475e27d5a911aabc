"""By how much the draws of an emulator are stretched: what it misses of its own runs, beside what it expects to miss.

    f_k = f_hat + e_k + (c - 1) e_k(., theta_tilde),   c^2 = max_j mean_i (A_i e_i)_j^2 / (A_i V_i A_i')_jj,   c >= 1,

e_i is what the emulator misses of run i when it is learnt from the others, V_i the covariance that it expects of that,
and A_i = (G'WG)^-1 G'W takes errors to theta, with the gradient G at that run. The mean is over the runs nearest to
theta_tilde.

A process is fitted so that its errors have the size that it says on the whole, each component by itself. What moves
theta is a sum over many components and outcomes whose errors go together, in one part of the box: of 400 runs of the
mock galaxy single components are missed by 1.0 to 1.3 of their sds, parameters near the best fit by 2.0 to 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from ..arrays import Array
from ..problem.problem import Problem
from ..problem.simulator.emulator import DrawLike, WithLeftOut

#: runs that tell it, which makes it uncertain by a tenth, and the largest that is believed
NEAREST, MOST = 60, 5.0
#: of effects of parameters, each of length 1, combinations that are shorter are none
SHORT = 0.01


def stretch(problem: Problem) -> float:
    """c; 1 where the emulator does not know what it misses of its runs."""
    emulator, nodes = problem.simulator.emulator, problem.rule.nodes
    found = emulator.left_out(nodes, problem.theta_tilde, NEAREST) if isinstance(emulator, WithLeftOut) else None
    if emulator is None or found is None:
        return 1.0
    transforms, root = problem.data.transforms, np.sqrt(problem.rule.weights)[:, None]

    def whitened(values: Array, slope: Array) -> Array:
        """Values (k, m, q) as rows whose squares add up to the loss."""
        return np.asarray((problem.whiten(values * slope) * root).reshape(len(values), -1))

    ratios = []
    for theta, errors, variances in zip(found.theta, found.errors, found.variances, strict=True):
        slope = transforms.slope(emulator(nodes, theta)) if transforms else np.ones(errors.shape)
        A = _to_theta(whitened(np.moveaxis(emulator.gradient(nodes, theta), 2, 0), slope).T)
        expected = (A @ whitened(found.functions, slope).T) ** 2 @ variances
        moved = (A @ whitened(errors[None], slope).T)[:, 0]
        ratios.append(np.divide(moved**2, expected, out=np.zeros_like(moved), where=expected > 0))
    return float(np.clip(np.sqrt(np.mean(ratios, axis=0).max()), 1.0, MOST))


def _to_theta(G: Array) -> Array:
    """(G'G)^-1 G', (p, m), for G (m, p) whose columns may be alike, or zero."""
    length = np.linalg.norm(G, axis=0)
    length[length == 0] = 1.0
    return np.asarray(np.linalg.pinv(G / length, rcond=SHORT) / length[:, None])


class StretchedDraws(Sequence[DrawLike]):
    """Draws of an emulator with c times their errors at theta_tilde, and their own beside it.

    What is missed of runs tells about values. Slopes it does not tell about, and they stay as they are.
    """

    def __init__(self, mean: DrawLike, draws: Sequence[DrawLike], factor: float, theta: Array) -> None:
        self._mean, self._draws, self._factor, self._theta = mean, draws, factor, theta

    def __len__(self) -> int:
        return len(self._draws)

    @overload
    def __getitem__(self, number: int) -> DrawLike: ...
    @overload
    def __getitem__(self, number: slice) -> StretchedDraws: ...
    def __getitem__(self, number: int | slice) -> DrawLike | StretchedDraws:
        if isinstance(number, slice):
            return StretchedDraws(self._mean, self._draws[number], self._factor, self._theta)
        return _Stretched(self._mean, self._draws[number], self._factor, self._theta)


class _Stretched:
    """f_k(x, theta) + (c - 1) (f_k - f_hat)(x, theta_tilde)."""

    def __init__(self, mean: DrawLike, draw: DrawLike, factor: float, theta: Array) -> None:
        self._mean, self._draw, self._factor, self._theta = mean, draw, factor, theta
        self._added: dict[bytes, Array] = {}

    def __call__(self, x: Array, theta: Array) -> Array:
        return np.asarray(self._draw(x, theta) + self._more(x))

    def gradient(self, x: Array, theta: Array) -> Array:
        return self._draw.gradient(x, theta)

    def _more(self, x: Array) -> Array:
        """The same for every theta."""
        key = np.ascontiguousarray(x).tobytes()
        if key not in self._added:
            error = self._draw(x, self._theta) - self._mean(x, self._theta)
            self._added = {key: np.asarray((self._factor - 1) * error)}
        return self._added[key]

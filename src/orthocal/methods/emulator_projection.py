"""The projection of draws of the real process where draws of an emulator say what is not known about the simulator."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..arrays import Array
from ..problem.problem import Problem
from .closest import Closest
from .emulator_draws import EmulatorDraws, counted, with_simulator
from .objective import Held
from .regress import Linear


class Projects(Protocol):
    """``Joint.projected``."""

    def __call__(
        self, problem: Problem, real: Array, spread: Array, at_data: bool = True, held: Held | None = None
    ) -> Closest: ...


def projected_on_draws(
    projected: Projects,
    problem: Problem,
    target: Array,
    spread: Array,
    held: Held | None,
    draws: EmulatorDraws,
    linear: Linear,
) -> Closest:
    """Where the simulator is closest to draws of y_R, ``target`` (s, m, q), whitened: see ``emulator_draws.py``.

    ``spread`` is that of theta, roughly, (p,), ``held`` what of it is known before, and ``linear`` what y was regressed
    on.
    """
    along = _along(target, linear) if draws.smooth else None
    parts, order = [], []
    for simulator, rows in draws.groups(np.arange(len(target)), "projection"):
        part, own = with_simulator(problem, simulator), target[rows]
        if along is not None:
            gradient = part.whitened_gradient(problem.rule.nodes)
            gradient = gradient if linear.basis is None else gradient @ linear.basis
            own = own + np.einsum("xkp,sp->sxk", gradient - linear.at_nodes, along[rows])
        parts.append(projected(part, own, spread, False, None if held is None else held.part(rows)))
        order.append(rows)
        counted(problem.simulator, simulator)
    place = np.argsort(np.concatenate(order))
    return Closest(*(np.concatenate(own)[place] for own in zip(*parts, strict=True)))


def _along(target: Array, linear: Linear) -> Array:
    """How far each draw is from their mean along the gradient that y was regressed on, (s, p)."""
    away = target - target.mean(axis=0)
    return np.asarray(away.reshape(len(away), -1) @ linear.coefficients.T)

"""The projection of draws of the real process where draws of an emulator say what is not known about the simulator."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..arrays import Array
from ..problem.problem import Problem
from .closest import Closest
from .emulator_draws import EmulatorDraws, counted, with_simulator
from .objective import Held


class Projects(Protocol):
    """``Joint.projected``."""

    def __call__(
        self, problem: Problem, real: Array, spread: Array, at_data: bool = True, held: Held | None = None
    ) -> Closest: ...


def projected_on_draws(
    projected: Projects, problem: Problem, target: Array, spread: Array, held: Held | None, draws: EmulatorDraws
) -> Closest:
    """Where the simulator is closest to draws of y_R, ``target`` (s, m, q), whitened: see ``emulator_draws.py``.

    ``spread`` is that of theta, roughly, (p,), and ``held`` what of it is known before.
    """
    if draws.by_shifts:
        middle = None if held is None else held.middle
        near = projected(problem, target.mean(axis=0)[None], spread, False, middle)
        # beyond a bound f_hat cannot follow: there the draws of the emulator alone say where theta may be
        if not near.on_bound.any():
            return _with_shifts(projected, problem, target, spread, held, draws, near.theta)
    parts, order = [], []
    for simulator, rows in draws.groups(np.arange(len(target)), "projection"):
        own = None if held is None else held.part(rows)
        parts.append(projected(with_simulator(problem, simulator), target[rows], spread, False, own))
        order.append(rows)
        counted(problem.simulator, simulator)
    place = np.argsort(np.concatenate(order))
    return Closest(*(np.concatenate(own)[place] for own in zip(*parts, strict=True)))


def _with_shifts(
    projected: Projects,
    problem: Problem,
    target: Array,
    spread: Array,
    held: Held | None,
    draws: EmulatorDraws,
    theta: Array,
) -> Closest:
    """Each draw of y_R on f_hat, moved as its draw of the emulator moves that of their mean, ``theta`` (1, p)."""
    mean, middle, shifted = target.mean(axis=0)[None], None if held is None else held.middle, np.array(target)
    failed = np.zeros(len(target), dtype=bool)
    for simulator, rows in draws.groups(np.arange(len(target)), "projection"):
        one = projected(with_simulator(problem, simulator), mean, spread, False, middle)
        counted(problem.simulator, simulator)
        before, after = problem.whiten(problem.simulator.batch(problem.rule.nodes, np.vstack([theta, one.theta])))
        shifted[rows] += after - before
        failed[rows] = one.stuck | one.impossible
    found = projected(problem, shifted, spread, False, held)
    return found._replace(stuck=found.stuck | failed)

"""Draws of the experiments' emulators, which stand together for all that is unknown about their simulators.

The k-th draw of all experiments has the k-th of each emulator, and the other simulators as they are. Emulators of the
same runs have the same draws, since their errors are the same in all experiments; others have seeds of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, overload

import numpy as np

from ..arrays import Array, IntArray
from ..emulators import Emulator
from ..methods.base import Plan
from ..methods.joint.emulator_draws import Emulated, EmulatorDraws, bound_as, emulator_numbers, with_simulator
from ..methods.joint.regress import Linear
from ..problem.fingerprint import digest
from ..problem.problem import Problem
from ..problem.simulator.emulator import DrawLike, WithDraws, emulator_with_draws
from .stacked import Cells, Stacked, StackedSimulator


class StackedDraws(Sequence[DrawLike]):
    """The cells of all experiments, with draws of their emulators in the place of these."""

    def __init__(self, stacked: Stacked, own: Mapping[str, EmulatorDraws]) -> None:
        self._stacked, self._own = stacked, own

    def __len__(self) -> int:
        return len(next(iter(self._own.values())).draws)

    @overload
    def __getitem__(self, number: int) -> DrawLike: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[DrawLike]: ...
    def __getitem__(self, number: int | slice) -> DrawLike | Sequence[DrawLike]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        parts = [self._drawn(name, cells, number) for name, cells in self._stacked.parts.items()]
        return StackedSimulator(parts, self._stacked.problem.parameters.p)

    def _drawn(self, name: str, cells: Cells, number: int) -> Cells:
        if name not in self._own:
            return cells
        return cells._replace(problem=with_simulator(cells.problem, self._own[name].simulator(number)))


def draws_of_each(problems: Mapping[str, Problem], plan: Plan) -> dict[str, EmulatorDraws]:
    """The draws of the emulator of each experiment that has one with draws, as a plan asks for them."""
    if not plan.emulator_draws:
        return {}
    found: dict[str, EmulatorDraws] = {}
    seeds: dict[str, int] = {}
    made: dict[int, Sequence[DrawLike]] = {}
    for name, problem in problems.items():
        emulator = emulator_with_draws(problem.simulator.emulator)
        if emulator is None or problem.emulator_error:
            continue
        seed = seeds.setdefault(_learnt_from(emulator), plan.emulator_seed + len(seeds))
        own = EmulatorDraws.of(problem, plan._replace(emulator_seed=seed), made)
        if own is not None:
            found[name] = own
    return found


def _learnt_from(emulator: WithDraws) -> str:
    """The runs, where it has them: each table of a problem file has an emulator of its own, of runs that may be one."""
    if not isinstance(emulator, Emulator):
        return str(id(emulator))
    output = emulator.runs.output
    return digest(emulator.runs.theta, *(output if isinstance(output, tuple) else (output,)))


class Emulators(NamedTuple):
    """The draws of the emulators of several experiments.

    Attributes
    ----------
    own
        Those of each experiment that has any.
    whole
        Those of all of them as draws of the simulator of the stacked problem; None where there are none.
    coefficients
        What takes errors at the nodes of all to theta, (P, cells).
    """

    own: dict[str, EmulatorDraws]
    whole: Emulated | None
    coefficients: Array

    @classmethod
    def of(cls, stacked: Stacked, problems: Mapping[str, Problem], linear: Linear, plan: Plan) -> Emulators:
        """As a plan asks for them; ``problems`` have the best fit of all, where the stacked one is ``linear``."""
        own = draws_of_each(problems, plan)
        if not own:
            return cls(own, None, linear.coefficients)
        smooth = all(one.smooth for one in own.values())
        drawn = StackedDraws(stacked, own)
        draws = EmulatorDraws(drawn, emulator_numbers(plan), bound_as(stacked.problem), smooth=smooth)
        return cls(own, Emulated.with_draws(stacked.problem, draws, linear), linear.coefficients)

    def shift(self, name: str, nodes: slice, columns: IntArray) -> Array | None:
        """By how much the errors of one emulator move the parameters ``columns``, to first order, (k, p).

        ``nodes`` are the cells of its experiment. None where parameters are not told apart.
        """
        if self.whole is None or name not in self.own or len(self.coefficients) <= columns.max():
            return None
        return np.asarray(self.whole.errors[:, nodes, 0] @ self.coefficients[columns, nodes].T)

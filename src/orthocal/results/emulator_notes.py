"""What a calibration knows about an emulator in the simulator's place: how its draws are taken, and what is noted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..emulators.components import ComponentEmulator
from ..emulators.error_reduction import runs_to_halve
from ..errors import InputError
from ..methods import Draws, Method
from ..methods.base import ListedMethod
from ..problem.problem import Problem
from ..problem.simulator.emulator import emulator_with_draws
from .emulator_share import emulator_share

#: draws of an emulator where none are asked for
EMULATOR_DRAWS = 64
#: the emulator's share of a parameter's variance from which on the runs that would halve it are counted, and most runs
COUNTED_SHARE, MOST_RUNS = 0.05, 100


def asked_draws(problem: Problem, method: Method, asked: int | None) -> int:
    """How many draws of the emulator are taken, or an error where those that are asked for cannot be."""
    possible = isinstance(method, ListedMethod) and method.draws_emulators
    there = emulator_with_draws(problem.simulator.emulator) is not None
    if asked is None:
        return EMULATOR_DRAWS if possible and there and not problem.emulator_error else 0
    if isinstance(asked, bool) or not isinstance(asked, int | np.integer) or asked < 0:
        raise InputError(f"emulator_draws={asked!r}: give the number of draws of the emulator, or 0 for its mean alone")
    if not asked:
        return 0
    if not there:
        raise InputError(
            f"emulator_draws={asked}: the simulator is no emulator that has draws; oc.emulate(runs, 'gp') makes one, "
            "'bart' and 'bmars' have them too"
        )
    if not possible:
        raise InputError(
            f"emulator_draws={asked}: draws of an emulator go with the joint projection, gp for instance; for other "
            "methods give the problem emulator_error=True"
        )
    if problem.emulator_error:
        raise InputError(
            f"emulator_draws={asked} and the problem's emulator_error=True would count its error twice: leave "
            "emulator_error out"
        )
    return int(asked)


def asked_draws_of_each(problems: Iterable[Problem], method: Method, asked: int | None) -> int:
    """The same for several experiments: those that have an emulator with draws take as many."""
    each = list(problems)
    drawn = [one for one in each if emulator_with_draws(one.simulator.emulator) is not None]
    return max(asked_draws(one, method, asked) for one in drawn or each[:1])


def emulator_seed(seed: int) -> int:
    """The emulator's draws have a seed of their own, which the run's gives."""
    return int(np.random.SeedSequence(seed, spawn_key=(2**31 + 1,)).generate_state(1, np.uint32)[0])


def emulator_spread(problem: Problem, drawn: Draws) -> tuple[float, ...] | None:
    """What the spread of the emulator's draws was multiplied by, where it says so."""
    found = getattr(problem.simulator.emulator, "draw_spread", None) if drawn.notes.emulator_draws else None
    return None if found is None else tuple(float(one) for one in found)


def halving_runs(problem: Problem, drawn: Draws) -> int | None:
    """How many runs would halve the emulator's part, 0 for very many; None where it is small, or not known."""
    emulator, theta = problem.simulator.emulator, drawn.theta.reshape(-1, drawn.theta.shape[-1])
    gaussian = isinstance(emulator, ComponentEmulator) and emulator.name == "gp"
    if drawn.emulator_number is None or not isinstance(emulator, ComponentEmulator) or not gaussian:
        return None
    if not np.max(emulator_share(theta, drawn.emulator_number.ravel())) > COUNTED_SHARE:
        return None
    data = problem.unmerged.data
    found = runs_to_halve(emulator, data.x, data.observed, problem.noise.cov, data.transforms, theta, MOST_RUNS)
    return found or 0

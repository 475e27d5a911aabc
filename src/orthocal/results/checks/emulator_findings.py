"""What is to be known about an emulator that took the simulator's place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...advice import COMPARE_EMULATORS, DRAWS, EMULATOR_DRAWS, EMULATOR_ERROR, KNOWS_ITS_ERROR, NEXT_RUNS
from ...arrays import Array, IntArray
from ...emulators.components import ComponentEmulator
from ...emulators.error_reduction import runs_to_halve
from ...errors import InputError
from ...findings import Finding
from ...methods import Draws, Method
from ...methods.base import ListedMethod
from ...problem.common_findings import emulator_error, outside_x
from ...problem.problem import Problem
from ...problem.simulator.emulator import emulator_with_draws
from ..record import Record
from ..run_facts import Notes

# How much of theta's variance is the emulator's, from draws that were made with several draws of it.


def emulator_share(theta: Array, numbers: IntArray) -> Array:
    """The share of the variance of theta (s, p) that is between groups of the same number, (p,).

    One-way random effects, theta_s = m + u_k + w_s with k the number of the emulator's draw: the means of groups differ
    by chance as well, by the variance within them over their size, which is taken away.
    """
    used, group, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    total, count = len(theta), len(used)
    if count < 2 or total <= count:
        return np.full(theta.shape[1], np.nan)
    sums = np.zeros((count, theta.shape[1]))
    np.add.at(sums, group.ravel(), theta)
    means = sums / sizes[:, None]
    within = np.sum((theta - means[group.ravel()]) ** 2, axis=0) / (total - count)
    between = np.sum(sizes[:, None] * (means - theta.mean(axis=0)) ** 2, axis=0) / (count - 1)
    size = (total - np.sum(sizes**2) / total) / (count - 1)
    own = np.maximum(between - within, 0.0) / size
    whole = own + within
    return np.asarray(np.divide(own, whole, out=np.zeros_like(own), where=whole > 0))


#: the emulator's share of a parameter's variance that is worth a word, and a problem: the field data hardly count then
SHARE_LIMITS = 0.1, 0.8
#: share of the draws without runs nearby that is a problem
OUTSIDE_LIMIT = 0.2


def emulator_findings(record: Record, notes: Notes) -> Iterator[Finding]:
    share = notes.outside_runs
    if share is None:
        return
    for sentence in notes.emulator_said:
        yield Finding("fine", "emulator", sentence)
    if share == 0:
        yield Finding("fine", "emulator", "all draws of theta have runs nearby")
    else:
        message = (
            f"{share:.1%} of the draws of theta have no runs nearby (outside of the runs' box, in a gap of it, or far "
            "from all runs): it extrapolates there"
        )
        advice = "add runs there " + NEXT_RUNS + ", or restrict the priors to where runs are"
        yield Finding("note" if share < OUTSIDE_LIMIT else "problem", "emulator", message, advice)
    if notes.outside_runs_x is not None:
        yield outside_x(*notes.outside_runs_x)
    if notes.emulator_draws:
        yield from _propagated(record, notes)
        return
    if notes.emulator_sd is None:
        message = "it does not know its own error, and neither do the posterior and these checks"
        advice = "see its error at held-out runs (" + COMPARE_EMULATORS + "), or take " + KNOWS_ITS_ERROR
        yield Finding("note", "emulator", message, advice)
        return
    message = f"its own standard deviation at the draws is {notes.emulator_sd:.2g} of the noise's"
    if notes.emulator_counted:
        yield Finding("fine", "emulator", f"{message}, which the noise includes")
        return
    advice = (
        "the posterior does not know of it: take the joint projection, which has it from the emulator's draws "
        "(" + EMULATOR_DRAWS + "), add runs " + NEXT_RUNS + ", or take " + EMULATOR_ERROR
    )
    yield emulator_error(notes.emulator_sd, message, advice)


def _propagated(record: Record, notes: Notes) -> Iterator[Finding]:
    """The emulator's part of the variance of each parameter, where its draws stood for the simulator."""
    whose, share = _share(record)
    if not np.isfinite(share).all():
        message = f"{notes.emulator_draws} of its draws stood for the simulator: too few draws of theta tell its part"
        yield Finding("note", "emulator", message, "take more " + DRAWS)
        return
    each = ", ".join(f"{one:.0%} of {name}'s" for name, one in zip(record.parameter_names, share, strict=True))
    message = f"{whose.format(notes.emulator_draws)}, is part of the variance: {each}"
    most = float(share.max())
    if notes.emulator_spread is not None and any(one != 1 for one in notes.emulator_spread):
        factors = ", ".join(f"{one:.2g}" for one in notes.emulator_spread)
        message += f" (the spread of its draws was multiplied by {factors}, as held-out runs ask for)"
    if notes.emulator_stretch != 1:
        message += (
            f" (at the best fit its draws are {notes.emulator_stretch:.2g} times as far from it as it says: by so much "
            "more it misses its own runs when they are left out)"
        )
    if most < SHARE_LIMITS[0]:
        yield Finding("fine", "emulator", message)
        return
    if notes.runs_to_halve:
        runs = "run, where" if notes.runs_to_halve == 1 else "runs, each where"
        message += f"; {notes.runs_to_halve} more {runs} it is best, would halve it"
    elif notes.runs_to_halve == 0:
        message += "; it would take many more runs to halve it"
    advice = "add runs " + NEXT_RUNS + " and fit the emulator again"
    yield Finding("note" if most < SHARE_LIMITS[1] else "problem", "emulator", message, advice)


def _share(record: Record) -> tuple[str, Array]:
    """Whose uncertainty it is, and its share of the variance of each parameter, (p,)."""
    theta = record.theta.reshape(-1, len(record.parameter_names))
    of_several, own = "experiment_weight" in record.data.attrs, "its uncertainty, from {} draws of it"
    if of_several and record.has("constant_data", "emulator_shift"):
        # the draws of all experiments' emulators go together: what that of this one does to theta, to first order
        moved, var = record.constant("emulator_shift").var(axis=0), theta.var(axis=0)
        return own, np.minimum(1.0, np.divide(moved, var, out=np.zeros_like(var), where=var > 0))
    whose = "the uncertainty of all experiments' emulators, from {} draws of each" if of_several else own
    return whose, emulator_share(theta, record.values("projection", "emulator_number").ravel().astype(np.intp))


# What a calibration knows about an emulator in the simulator's place: how its draws are taken, and what is noted.

#: draws of an emulator where none are asked for
DRAWS_BY_DEFAULT = 64
#: the emulator's share of a parameter's variance from which on the runs that would halve it are counted, and most runs
COUNTED_SHARE, MOST_RUNS = 0.05, 100


def asked_draws(problem: Problem, method: Method, asked: int | None) -> int:
    """How many draws of the emulator are taken, or an error where those that are asked for cannot be."""
    possible = isinstance(method, ListedMethod) and method.draws_emulators
    there = emulator_with_draws(problem.simulator.emulator) is not None
    if asked is None:
        return DRAWS_BY_DEFAULT if possible and there and not problem.emulator_error else 0
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
            "methods give the problem " + EMULATOR_ERROR
        )
    if problem.emulator_error:
        raise InputError(
            f"emulator_draws={asked} and the problem's " + EMULATOR_ERROR + " would count its error twice: leave "
            "one of them out"
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

"""What is found about the simulator, or the emulator in its place: its work, gradient, runs, and part in theta."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import COMPARE_EMULATORS, DRAWS, EMULATOR_DRAWS, EMULATOR_ERROR, KNOWS_ITS_ERROR, NEXT_RUNS, Advice
from ...arrays import Array, IntArray
from ...findings import Finding
from ...problem.shared_findings import emulator_error, outside_x, rows_depend
from ...problem.simulator.simulator import GradientKind
from ..record import Record
from ..run_facts import RunFacts

#: the emulator's share of a parameter's variance that is worth a word, and a problem: the field data hardly count then
SHARE_LIMITS = 0.1, 0.8
#: share of the draws without runs nearby that is a problem
OUTSIDE_LIMIT = 0.2


def simulator_work(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """How often it was called, how long that took, and how often it failed."""
    calls, seconds = facts.simulator_calls, facts.simulator_seconds
    share = seconds / max(facts.seconds, 1e-9)
    message = f"{calls} calls, {seconds:.2g} s of {facts.seconds:.2g} s in all"
    if share > 0.5 and facts.seconds > 10 and facts.outside_runs is None:
        yield Finding("note", "simulator", message, "replace it by an emulator fitted to a table of its runs")
    else:
        yield Finding("fine", "simulator", message)
    if facts.simulator_failures:
        share = facts.simulator_failures / max(calls, 1)
        first = "" if facts.simulator_failure is None else f"; the first: {facts.simulator_failure}"
        message = f"{facts.simulator_failures} calls ({share:.1%}) failed, and their theta count as impossible{first}"
        yield Finding("note", "simulator", message, "restrict the priors to where it works")
    yield from rows_depend(facts.row_error)


def gradient_error(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Whether the gradient agrees with differences."""
    if facts.outside_runs is not None:
        # an emulator's own
        return
    if np.isnan(facts.gradient_error):
        message = "it could not be compared with longer differences: the simulator fails, or nothing is allowed, beside"
        yield Finding("note", "gradient", f"{message} the best fit")
        return
    error, differences = facts.gradient_error, facts.gradient_kind is GradientKind.DIFFERENCE
    other = "differences with a longer step" if differences else "central differences"
    message = f"the gradient ({facts.gradient_kind}) differs from {other} by {error:.1g} (relative)"
    if error < 1e-3:
        yield Finding("fine", "gradient", message)
    elif differences:
        advice = "the simulator's output is rounded or noisy: " + Advice(
            "give a longer step, oc.Simulator(f, step=1e-3)",
            "let it return more digits, or give gradient in [simulator]",
        )
        yield Finding("problem", "gradient", message, advice)
    else:
        yield Finding("problem", "gradient", message, "check the gradient: the projection depends on it")


def emulator_findings(record: Record, facts: RunFacts) -> Iterator[Finding]:
    share = facts.outside_runs
    if share is None:
        return
    for sentence in facts.emulator_said:
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
    if facts.outside_runs_x is not None:
        yield outside_x(*facts.outside_runs_x)
    if facts.emulator_draws:
        yield from _propagated(record, facts)
        return
    if facts.emulator_sd is None:
        message = "it does not know its own error, and neither do the posterior and these checks"
        advice = "see its error at held-out runs (" + COMPARE_EMULATORS + "), or take " + KNOWS_ITS_ERROR
        yield Finding("note", "emulator", message, advice)
        return
    message = f"its own standard deviation at the draws is {facts.emulator_sd:.2g} of the noise's"
    if facts.emulator_counted:
        yield Finding("fine", "emulator", f"{message}, which the noise includes")
        return
    advice = (
        "the posterior does not know of it: take the joint projection, which has it from the emulator's draws "
        "(" + EMULATOR_DRAWS + "), add runs " + NEXT_RUNS + ", or take " + EMULATOR_ERROR
    )
    yield emulator_error(facts.emulator_sd, message, advice)


def _propagated(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """The emulator's part of the variance of each parameter, where its draws stood for the simulator."""
    whose, share = _share(record)
    if not np.isfinite(share).all():
        message = f"{facts.emulator_draws} of its draws stood for the simulator: too few draws of theta tell its part"
        yield Finding("note", "emulator", message, "take more " + DRAWS)
        return
    each = ", ".join(f"{one:.0%} of {name}'s" for name, one in zip(record.parameter_names, share, strict=True))
    message = f"{whose.format(facts.emulator_draws)}, is part of the variance: {each}"
    most = float(share.max())
    if facts.emulator_spread is not None and any(one != 1 for one in facts.emulator_spread):
        factors = ", ".join(f"{one:.2g}" for one in facts.emulator_spread)
        message += f" (the spread of its draws was multiplied by {factors}, as held-out runs ask for)"
    if facts.emulator_stretch != 1:
        message += (
            f" (at the best fit its draws are {facts.emulator_stretch:.2g} times as far from it as it says: by so much "
            "more it misses its own runs when they are left out)"
        )
    if most < SHARE_LIMITS[0]:
        yield Finding("fine", "emulator", message)
        return
    if facts.runs_to_halve:
        runs = "run, where" if facts.runs_to_halve == 1 else "runs, each where"
        message += f"; {facts.runs_to_halve} more {runs} it is best, would halve it"
    elif facts.runs_to_halve == 0:
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

"""What a run will cost: how often its method calls the simulator, how long that takes, and what would be cheaper.

A method states its calls under ``@listed``. They were counted in runs of problems with two to four parameters, from
linear to strongly curved ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from ...advice import BATCHED, Advice
from ...findings import Finding
from ..search.minima import search_calls
from .probe import Probe, Setup

#: seconds of a run that are worth a word, and a way out
LONG, VERY_LONG = 60.0, 3600.0


class CallsEach(NamedTuple):
    """Calls of the simulator, and of its gradient, for each draw, at least and at most."""

    values: tuple[float, float]
    gradients: tuple[float, float] = (0.0, 0.0)


class RunCost(NamedTuple):
    """How often a method calls the simulator.

    Attributes
    ----------
    linear, curved
        For each draw, of a simulator that is a linear function of theta and of one that is not.
    chains
        Whether the draws are Markov chains: their warm-up counts, too, and each chain waits for each of its steps.
    """

    linear: CallsEach
    curved: CallsEach
    chains: bool = True


#: name of a method -> its cost; methods add themselves where they are listed
COSTS: dict[str, RunCost] = {}


class Planned(NamedTuple):
    """What a run is asked for."""

    method: str
    draws: int
    chains: int
    warmup: int


class ExpectedCalls(NamedTuple):
    """Calls of the search, and of what follows it, at least and at most."""

    search: float
    least: float
    most: float

    @property
    def middle(self) -> float:
        """Between least and most, by their ratio."""
        return float((self.least * self.most) ** 0.5)


def cost_findings(setup: Setup, probe: Probe, planned: Planned) -> Iterator[Finding]:
    # methods stand above problems, which therefore do not import them: here they are loaded to add their costs
    import_module("orthocal.methods")
    a_call = f"{in_words(probe.call)} a call"
    cost = COSTS.get(planned.method)
    if cost is None:
        message = f"{a_call}; how many calls the method {planned.method!r} takes is not known"
        yield Finding("note", "cost", message)
        return
    calls = _expected(setup, probe, planned, cost)
    low, high = (_seconds(setup, probe, planned, cost, calls.search, rest) for rest in (calls.least, calls.most))
    number = _counted(calls.search + calls.least)
    if high > 1.3 * low:
        number += f" to {_counted(calls.search + calls.most)}"
    took = in_words(low) if high < 1.3 * low else f"{in_words(low)} to {in_words(high)}"
    searched = f", {_counted(calls.search)} of them for the best fit" if calls.search else ""
    jobs = setup.simulator.jobs
    sharing = f", {jobs} at a time" if jobs > 1 else ""
    message = (
        f"{planned.method} with {planned.chains} x {planned.draws} draws will call the simulator about {number} "
        f"times{searched}, which takes {took} ({a_call}{sharing}){_others(setup, probe, planned)}"
    )
    if low < LONG or setup.simulator.emulator is not None:
        yield Finding("fine", "cost", message)
    else:
        yield Finding("note", "cost", message, _cheaper(jobs, low))
    if jobs > 1 and not setup.simulator.many_at_a_time:
        message = f"jobs do not pay: a call takes {in_words(probe.call)}, less than to send it to another process"
        yield Finding("note", "cost", message, "leave jobs out, or let the function take many theta, " + BATCHED)


def _expected(setup: Setup, probe: Probe, planned: Planned, cost: RunCost) -> ExpectedCalls:
    """Calls of the whole run."""
    p, a_gradient = setup.parameters.p, setup.simulator.gradient_calls
    draws = planned.chains * (planned.draws + (planned.warmup if cost.chains else 0))
    each = cost.linear if probe.linear else cost.curved
    # gradients at data and nodes with their checks, and the expansion of the projection
    around = 12 * a_gradient + 3 * p * p
    least, most = (
        around + (values + gradients * a_gradient) * draws
        for values, gradients in zip(each.values, each.gradients, strict=True)
    )
    search = 0.0 if probe.whole else search_calls(setup.simulator, p, len(setup.starts), probe.linear)
    return ExpectedCalls(search, least, most)


def _seconds(setup: Setup, probe: Probe, planned: Planned, cost: RunCost, search: float, rest: float) -> float:
    """Of waiting for the simulator."""
    jobs = setup.simulator.jobs
    together = min(jobs, planned.chains) if cost.chains else jobs
    return search * probe.call / jobs + rest * max(probe.call, probe.call_at_nodes) / together


def _others(setup: Setup, probe: Probe, planned: Planned) -> str:
    """The first method of each other cost."""
    words, seen = [], {COSTS[planned.method]}
    for name, cost in COSTS.items():
        if cost not in seen and not setup.data.without_inputs:
            calls = _expected(setup, probe, planned, cost)
            seconds = _seconds(setup, probe, planned, cost, calls.search, calls.middle)
            words.append(f"{name} {_counted(calls.search + calls.middle)} calls, {in_words(seconds)}")
            seen.add(cost)
    return f"; roughly, {'; '.join(words)}" if words else ""


def _cheaper(jobs: int, seconds: float) -> str:
    table = "an emulator fitted to a table of some hundred runs " + Advice(
        "(oc.campaign, oc.emulate)", "(orthocal simulate, and runs in [simulator])"
    )
    if seconds > VERY_LONG or jobs > 1:
        return "take " + table
    several = Advice("oc.Simulator(f, jobs=...)", "jobs in [simulator]")
    return "call it in several processes, " + several + ", or take " + table


def _counted(number: float) -> str:
    """A number of calls, with two digits that count."""
    return f"{float(f'{number:.2g}'):,.0f}".replace(",", " ")


def in_words(seconds: float) -> str:
    """A time as people say it, with two digits that count."""
    for longest, unit, name in ((1e-3, 1e-6, "µs"), (1, 1e-3, "ms"), (100, 1, "s"), (6000, 60, "min")):
        if seconds < longest:
            return f"{_counted(seconds / unit) if seconds >= 10 * unit else f'{seconds / unit:.2g}'} {name}"
    return f"{_counted(seconds / 3600) if seconds >= 36000 else f'{seconds / 3600:.2g}'} h"

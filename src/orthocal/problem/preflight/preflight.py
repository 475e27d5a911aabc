"""What is to be known before a run: what it will cost, and what speaks against it already. Findings, in plain words.

Each says what was looked at. What few calls of the simulator cannot show is said, too, and is never fine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import BATCHED, NOISE_COV, Advice
from ...arrays import Array
from ...errors import IdentifiabilityError, SimulatorError
from ...findings import Finding, Findings, Level
from ...projection import gram_matrix, quadrature_error, sensitivity
from ..common_findings import (
    QUADRATURE_LIMIT,
    RIVAL_LIMITS,
    best_on_bound,
    misses_data,
    quadrature_finding,
    rival_minimum,
    rows_depend,
    told_apart,
)
from ..known import Known
from .cost import JOINT, Calls, Planned, expected_calls
from .emulator import emulator_look
from .probe import FirstLook, first_look, least_squares_step, short_descent

# Priors and data beside each other, before a run: what the simulator gives all over the priors, and what y is.
#
# Where one of them is in other units, all that the priors allow is far from the data, and the best fit far out in a
# prior or on its bound.

#: ratio of the simulator's typical size to the data's, over the priors, that looks like another unit
OTHER_UNIT = 30.0
#: distance of the data from all that the priors give, in their own range: beyond, they have nothing in common
APART = 3.0
#: best fits further out in a prior than this, in its sds: one in 16 000 of a normal prior that is right
FAR = 4.0


def prior_look(problem: Known, look: FirstLook) -> Iterator[Finding]:
    """Findings about both."""
    far = [*_far(problem, look)]
    odd = [*_sizes(problem, look), *(far or _held(problem, look))]
    yield from odd
    if not odd:
        count = int((~look.failing).sum())
        message = f"the simulator at {count} theta of the priors and the data are of one size, and the best fit so far"
        yield Finding("fine", "priors", f"{message} lies well inside of the priors")


def _sizes(problem: Known, look: FirstLook) -> Iterator[Finding]:
    """By outcome: are they of one size, and in one place?"""
    y, models = problem._criterion.y, look.models[~look.failing]
    names = problem.data.outcome_names
    seen = np.einsum("nkk->nk", problem._criterion.root) > 0
    for k, name in enumerate(names):
        own, given = y[seen[:, k], k], models[:, seen[:, k], k]
        if not len(own) or not len(given):
            continue
        # of each theta, so that one wild theta does not speak for all
        sizes = np.median(np.abs(given), axis=1), np.abs(own)
        here, there = (max(float(np.median(one)), 1e-300) for one in sizes)
        low, high = float(given.min()), float(given.max())
        room = max(float(np.ptp(own)), high - low, float(np.sqrt(problem._own_noise.cov[k, k])))
        advice = f"check the units of {name}, x and theta, and the priors"
        if max(here / there, there / here) > OTHER_UNIT and not low <= np.median(own) <= high:
            many = f"{here / there:.3g} times" if here > there else f"1 / {there / here:.3g} of"
            message = f"over the priors the simulator gives numbers of {name} that are {many} the data's"
            yield Finding("problem", "priors", message, advice)
        elif max(own.min() - high, low - own.max()) > APART * room:
            message = (
                f"all that the simulator gives of {name} over the priors, {low:.4g} to {high:.4g}, is far from the "
                f"data, {own.min():.4g} to {own.max():.4g}"
            )
            yield Finding("problem", "priors", message, advice)


def _far(problem: Known, look: FirstLook) -> Iterator[Finding]:
    """Parameters whose best fit lies far out in their prior; of uniform ones a bound is a finding of its own."""
    parameters = problem.parameters
    away = np.abs(look.theta - parameters.median) / parameters.spread
    for j in np.flatnonzero(away > FAR):
        name, value = parameters.names[j], look.theta[j]
        message = (
            f"the best fit so far has {name} = {value:.4g}, {away[j]:.1f} prior sds from the middle of its prior, "
            f"{parameters.median[j]:.4g}"
        )
        advice = f"check the units of {name}, x and y first; then the prior, or the simulator"
        yield Finding("problem", "priors", message, advice)


def _held(problem: Known, look: FirstLook) -> Iterator[Finding]:
    """Parameters that the prior alone keeps from going where the data have them; a descent without it tells."""
    parameters, alone = problem.parameters, problem._criterion.without_prior()
    if look.gradient is None or parameters.flat:
        return
    slope = alone.slopes(look.theta, look.gradient[-len(look.fit) :]) * parameters.spread
    residual = alone.residual(look.theta, look.fit)
    value, step = float(np.sum(residual**2)), least_squares_step(alone, look.theta, slope, residual)
    if value - float(np.sum((residual + slope @ step) ** 2)) < FAR**2:
        # the data would not go far
        return
    end = short_descent(alone, look.theta, residual, slope)
    moved, away = end.theta, np.abs(end.theta - parameters.median) / parameters.spread
    # a bias shifts least squares, too: by as much, at most, as if all that is left were noise
    if value - end.value < FAR**2 * max(1.0, end.value / max(alone.cells, 1)) or not (away > FAR).any():
        return
    names = ", ".join(
        f"{parameters.names[j]} at {moved[j]:.4g} ({away[j]:.1f} prior sds from {parameters.median[j]:.4g})"
        for j in np.flatnonzero(away > FAR)
    )
    message = f"the data alone would have {names}: prior and data contradict each other, as far as was looked"
    advice = "check the units of these parameters, of x and y first; then the priors, or the simulator"
    yield Finding("problem", "priors", message, advice)


#: seconds of a run that are worth a word, and a way out
LONG, VERY_LONG = 60.0, 3600.0
#: other methods whose calls are said
OTHERS = ("gp", "pgp", "none", "ogp", "pcal")
#: short descents that end nearer to each other than this, in spreads of the prior, have come to one place
ONE_PLACE = 0.1
#: an end whose criterion is higher by less than this, or this share, fits as well: odds of 150
AS_GOOD, AS_GOOD_SHARE = 10.0, 0.05
#: share of theta for which the simulator fails that is a problem
FAILING = 0.5


def before_run(problem: Known, planned: Planned) -> Findings:
    """All of them."""
    try:
        look = first_look(problem)
    except SimulatorError as error:
        return Findings([Finding("problem", "simulator", str(error), "nothing else was looked at")])
    parts = (_failures, _rows, _best_fit, _sensitivity, _quadrature, prior_look, emulator_look)
    found = [finding for part in parts for finding in part(problem, look)]
    return Findings([*_cost(problem, look, planned), *found, *_not_looked_at(problem, look)])


def _cost(problem: Known, look: FirstLook, planned: Planned) -> Iterator[Finding]:
    calls = expected_calls(problem, planned, look.linear)
    a_call = f"{in_words(look.call)} a call"
    if calls is None:
        message = f"{a_call}; how many calls the method {planned.method!r} takes is not known"
        yield Finding("note", "cost", message)
        return
    low, high = (_seconds(problem, look, planned, calls, one) for one in (calls.least, calls.most))
    number = _counted(calls.search + calls.least)
    if high > 1.3 * low:
        number += f" to {_counted(calls.search + calls.most)}"
    took = in_words(low) if high < 1.3 * low else f"{in_words(low)} to {in_words(high)}"
    searched = f", {_counted(calls.search)} of them for the best fit" if calls.search else ""
    message = (
        f"{planned.method} with {planned.chains} x {planned.draws} draws will call the simulator about {number} "
        f"times{searched}, which takes {took} ({a_call}{_sharing(problem)})"
    )
    others = _others(problem, look, planned)
    if low < LONG or problem.simulator.emulator is not None:
        yield Finding("fine", "cost", f"{message}{others}")
    else:
        yield Finding("note", "cost", f"{message}{others}", _cheaper(problem, low))
    yield from _jobs(problem, look)


def _seconds(problem: Known, look: FirstLook, planned: Planned, calls: Calls, rest: float) -> float:
    """Of waiting for the simulator."""
    jobs = problem.simulator.jobs
    # a chain waits for each of its steps
    together = jobs if planned.method in (*JOINT, "pcal") else min(jobs, planned.chains)
    return calls.search * look.call / jobs + rest * max(look.call, look.call_at_nodes) / together


def _sharing(problem: Known) -> str:
    jobs = problem.simulator.jobs
    return f", {jobs} at a time" if jobs > 1 else ""


def _others(problem: Known, look: FirstLook, planned: Planned) -> str:
    words = []
    for name in OTHERS:
        other = planned._replace(method=name)
        calls = expected_calls(problem, other, look.linear)
        if name != planned.method and calls is not None and not problem.data.without_inputs:
            seconds = _seconds(problem, look, other, calls, calls.middle)
            words.append(f"{name} {_counted(calls.search + calls.middle)} calls, {in_words(seconds)}")
    return f"; roughly, {'; '.join(words)}" if words else ""


def _cheaper(problem: Known, seconds: float) -> str:
    table = "an emulator fitted to a table of some hundred runs " + Advice(
        "(oc.campaign, oc.emulate)", "(orthocal simulate, and runs in [simulator])"
    )
    if seconds > VERY_LONG or problem.simulator.jobs > 1:
        return "take " + table
    jobs = Advice("oc.Simulator(f, jobs=...)", "jobs in [simulator]")
    return "call it in several processes, " + jobs + ", or take " + table


def _jobs(problem: Known, look: FirstLook) -> Iterator[Finding]:
    if problem.simulator.jobs > 1 and not problem.simulator.many_at_a_time:
        message = f"jobs do not pay: a call takes {in_words(look.call)}, less than to send it to another process"
        yield Finding("note", "cost", message, "leave jobs out, or let the function take many theta, " + BATCHED)


def _failures(problem: Known, look: FirstLook) -> Iterator[Finding]:
    failing, count = int(look.failing.sum()), len(look.starts)
    if failing:
        message = f"it fails at {failing} of {count} theta that fill the priors; the first: {problem.simulator.failure}"
        level: Level = "problem" if failing > FAILING * count else "note"
        yield Finding(level, "simulator", message, "restrict the priors to where it works")
    else:
        yield Finding("fine", "simulator", f"it works at {count} theta that fill the priors")


def _rows(problem: Known, look: FirstLook) -> Iterator[Finding]:
    if look.row_error is None:
        return
    yield from rows_depend(float((look.row_error / np.sqrt(np.diag(problem._own_noise.cov))).max()))


def _best_fit(problem: Known, look: FirstLook) -> Iterator[Finding]:
    parameters = problem.parameters
    place = parameters.support.describe(look.theta, 4)
    yield from best_on_bound(parameters.on_bound(look.theta), f"as far as was looked ({place})")
    size = problem._criterion.loss(look.theta) / float(np.trace(problem.weight @ problem._own_noise.cov))
    advice = "check the units of x, y and theta; the noise may be far too small: give " + NOISE_COV
    yield from misses_data(size, f"at {place}", advice)
    yield _minima(problem, look, place)


def _minima(problem: Known, look: FirstLook, place: str) -> Finding:
    if look.whole:
        others = len(problem.minima) - 1
        nearest = min(problem.rivals, default=np.inf)
        if not others:
            return Finding("fine", "best fit", f"every start of the search led to {place}")
        if nearest < RIVAL_LIMITS[1]:
            other = problem.parameters.support.describe(problem.minima[1 + problem.rivals.index(nearest)].theta, 4)
            return rival_minimum(nearest, other, f"the best is {place}")
        return Finding("fine", "best fit", f"the best of {others + 1} minima is at {place}")
    best, *rest = look.descents
    starts = f"{len(look.descents)} short descents from the best of {len(look.starts)} theta"
    later = f"the run searches from {len(problem._starts)} starts, and will say whether there are other minima"
    unit = problem.parameters.spread
    apart = [one for one in rest if np.abs((one.theta - best.theta) / unit).max() > ONE_PLACE]
    good = [one for one in apart if one.value - best.value < max(AS_GOOD, AS_GOOD_SHARE * best.value)]
    if good:
        places = "; ".join([place, *(problem.parameters.support.describe(one.theta, 4) for one in good)])
        message = f"{starts} came to different places that fit about as well: {places}"
        return Finding("note", "best fit", f"{message}; {later}", "if one of them is meant, restrict the priors to it")
    if not best.finished:
        return Finding("note", "best fit", f"{starts} have not come to a minimum, the best is at {place}: {later}")
    same = f"{1 + len(rest) - len(apart)} of {starts} came to {place}" if rest else f"a short descent came to {place}"
    return Finding("note", "best fit", f"{same}: {later}")


def _sensitivity(problem: Known, look: FirstLook) -> Iterator[Finding]:
    nodes, where = len(problem.rule.nodes), "" if look.whole else ", as far as was looked"
    if look.gradient is None:
        message = "the simulator has no gradient where it fits best: it fails beside, or nothing is allowed there"
        yield Finding("problem", "parameters", message, "restrict the priors to where it works")
        return
    size = float(np.sqrt(np.nanmean((problem.data.y @ problem._own_noise.whitener.T) ** 2)))
    floor = 1e-8 * size / problem.parameters.spread
    try:
        found = sensitivity(
            _whitened(problem, look.gradient[:nodes]),
            problem.rule.weights,
            _metric(problem),
            problem.parameters.names,
            floor,
        )
    except IdentifiabilityError as error:
        yield Finding("problem", "parameters", error.args[0])
        return
    yield told_apart(found.weakest, f" where it fits best{where}")


def _quadrature(problem: Known, look: FirstLook) -> Iterator[Finding]:
    rule, coarse = problem.domain.rules(problem.data.d)
    if coarse is None or look.gradient is None:
        return
    fine, half = len(rule.nodes), len(coarse.nodes)
    metric, gradient = _metric(problem), _whitened(problem, look.gradient[: fine + half])
    gram = gram_matrix(gradient[:fine], rule.weights, metric)
    if not (np.diag(gram) > 0).all():
        # a parameter without effect is a finding of its own
        return
    error = quadrature_error(gram, gram_matrix(gradient[fine:], coarse.weights, metric))
    message = f"integrals over the domain with {fine} nodes: half of them change these by {error:.1g} (relative)"
    # a rule that is exact for the highest wave may be of no use with half its nodes: the run will look closer
    enough = error < QUADRATURE_LIMIT
    yield quadrature_finding(error, message if enough else f"{message}, and the run will look at more nodes", "note")


def _whitened(problem: Known, gradient: Array) -> Array:
    return np.asarray(np.einsum("kl,nlp->nkp", problem._own_noise.whitener, gradient))


def _metric(problem: Known) -> Array:
    """W in whitened coordinates."""
    unwhitener = problem._own_noise.unwhitener
    return np.asarray(unwhitener.T @ problem.weight @ unwhitener)


def _not_looked_at(problem: Known, look: FirstLook) -> Iterator[Finding]:
    """What only a run can show."""
    missing = [] if look.whole else [f"minima beyond those that {len(look.descents)} short descents may come to"]
    missing += ["the bias and whether its prior fits", "the draws"]
    if problem.simulator.emulator is None:
        missing.append("how exact the gradient is")
    message = f"{', '.join(missing)}; this look took {look.calls} calls of the simulator"
    advice = Advice("posterior.check() says it after a run", "orthocal run says it")
    yield Finding("note", "not looked at", message, advice)


def _counted(number: float) -> str:
    """A number of calls, with two digits that count."""
    return f"{float(f'{number:.2g}'):,.0f}".replace(",", " ")


def in_words(seconds: float) -> str:
    """A time as people say it, with two digits that count."""
    for longest, unit, name in ((1e-3, 1e-6, "µs"), (1, 1e-3, "ms"), (100, 1, "s"), (6000, 60, "min")):
        if seconds < longest:
            return f"{_counted(seconds / unit) if seconds >= 10 * unit else f'{seconds / unit:.2g}'} {name}"
    return f"{_counted(seconds / 3600) if seconds >= 36000 else f'{seconds / 3600:.2g}'} h"

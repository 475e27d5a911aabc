"""Findings before a run: what it will cost, and what speaks against it already.

Each says what was looked at. What few calls of the simulator cannot show is said, too, and is never fine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import NOISE_COV, Advice
from ...arrays import Array
from ...errors import IdentifiabilityError, SimulatorError
from ...findings import Finding, Findings, Level
from ...projection import gram_matrix, quadrature_error, sensitivity
from ..search.minima import advantages
from ..shared_findings import (
    QUADRATURE_LIMIT,
    RIVAL_LIMITS,
    best_on_bound,
    misses_data,
    quadrature_finding,
    rival_minimum,
    rows_depend,
    told_apart,
)
from ..simulator.simulator import NO_EFFECT
from .cost import Planned, cost_findings
from .emulator import emulator_findings
from .probe import Probe, Setup, least_squares_step, probed, short_descent

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


def prior_findings(setup: Setup, probe: Probe) -> Iterator[Finding]:
    """Findings about both."""
    far = [*_far(setup, probe)]
    odd = [*_sizes(setup, probe), *(far or _held(setup, probe))]
    yield from odd
    if not odd:
        count = int((~probe.failing).sum())
        message = f"the simulator at {count} theta of the priors and the data are of one size, and the best fit so far"
        yield Finding("fine", "priors", f"{message} lies well inside of the priors")


def _sizes(setup: Setup, probe: Probe) -> Iterator[Finding]:
    """By outcome: are they of one size, and in one place?"""
    y, models = setup.criterion.y, probe.models[~probe.failing]
    names = setup.data.outcome_names
    seen = np.einsum("nkk->nk", setup.criterion.root) > 0
    for k, name in enumerate(names):
        own, given = y[seen[:, k], k], models[:, seen[:, k], k]
        if not len(own) or not len(given):
            continue
        # of each theta, so that one wild theta does not speak for all
        sizes = np.median(np.abs(given), axis=1), np.abs(own)
        here, there = (max(float(np.median(one)), 1e-300) for one in sizes)
        low, high = float(given.min()), float(given.max())
        room = max(float(np.ptp(own)), high - low, float(np.sqrt(setup.noise.cov[k, k])))
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


def _far(setup: Setup, probe: Probe) -> Iterator[Finding]:
    """Parameters whose best fit lies far out in their prior; of uniform ones a bound is a finding of its own."""
    parameters = setup.parameters
    away = np.abs(probe.theta - parameters.median) / parameters.spread
    for j in np.flatnonzero(away > FAR):
        name, value = parameters.names[j], probe.theta[j]
        message = (
            f"the best fit so far has {name} = {value:.4g}, {away[j]:.1f} prior sds from the middle of its prior, "
            f"{parameters.median[j]:.4g}"
        )
        advice = f"check the units of {name}, x and y first; then the prior, or the simulator"
        yield Finding("problem", "priors", message, advice)


def _held(setup: Setup, probe: Probe) -> Iterator[Finding]:
    """Parameters that the prior alone keeps from going where the data have them; a descent without it tells."""
    parameters, alone = setup.parameters, setup.criterion.without_prior()
    if probe.gradient is None or parameters.flat:
        return
    slope = alone.slopes(probe.theta, probe.gradient[-len(probe.fit) :]) * parameters.spread
    residual = alone.residual(probe.theta, probe.fit)
    value, step = float(np.sum(residual**2)), least_squares_step(alone, probe.theta, slope, residual)
    if value - float(np.sum((residual + slope @ step) ** 2)) < FAR**2:
        # the data would not go far
        return
    end = short_descent(alone, probe.theta, residual, slope)
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


#: short descents that end nearer to each other than this, in spreads of the prior, have come to one place
ONE_PLACE = 0.1
#: an end whose criterion is higher by less than this, or this share, fits as well: odds of 150
AS_GOOD, AS_GOOD_SHARE = 10.0, 0.05
#: share of theta for which the simulator fails that is a problem
FAILING = 0.5


def preflight(setup: Setup, planned: Planned) -> Findings:
    """All of them."""
    try:
        probe = probed(setup)
    except SimulatorError as error:
        return Findings([Finding("problem", "simulator", str(error), "nothing else was looked at")])
    parts = (_failures, _rows, _best_fit, _sensitivity, _quadrature, prior_findings, emulator_findings)
    found = [finding for part in parts for finding in part(setup, probe)]
    return Findings([*cost_findings(setup, probe, planned), *found, *_not_looked_at(setup, probe)])


def _failures(setup: Setup, probe: Probe) -> Iterator[Finding]:
    failing, count = int(probe.failing.sum()), len(probe.starts)
    if failing:
        message = f"it fails at {failing} of {count} theta that fill the priors; the first: {setup.simulator.failure}"
        level: Level = "problem" if failing > FAILING * count else "note"
        yield Finding(level, "simulator", message, "restrict the priors to where it works")
    else:
        yield Finding("fine", "simulator", f"it works at {count} theta that fill the priors")


def _rows(setup: Setup, probe: Probe) -> Iterator[Finding]:
    if probe.row_error is None:
        return
    yield from rows_depend(float((probe.row_error / np.sqrt(np.diag(setup.noise.cov))).max()))


def _best_fit(setup: Setup, probe: Probe) -> Iterator[Finding]:
    parameters = setup.parameters
    place = parameters.support.describe(probe.theta, 4)
    yield from best_on_bound(parameters.on_bound(probe.theta), f"as far as was looked ({place})")
    size = setup.criterion.loss(probe.theta) / float(np.trace(setup.weight @ setup.noise.cov))
    advice = "check the units of x, y and theta; the noise may be far too small: give " + NOISE_COV
    yield from misses_data(size, f"at {place}", advice)
    yield _minima(setup, probe, place)


def _minima(setup: Setup, probe: Probe, place: str) -> Finding:
    if probe.whole:
        others, behind = len(probe.minima) - 1, advantages(setup.criterion, probe.minima)
        nearest = min(behind, default=np.inf)
        if not others:
            return Finding("fine", "best fit", f"every start of the search led to {place}")
        if nearest < RIVAL_LIMITS[1]:
            other = setup.parameters.support.describe(probe.minima[1 + behind.index(nearest)].theta, 4)
            return rival_minimum(nearest, other, f"the best is {place}")
        return Finding("fine", "best fit", f"the best of {others + 1} minima is at {place}")
    best, *rest = probe.descents
    starts = f"{len(probe.descents)} short descents from the best of {len(probe.starts)} theta"
    later = f"the run searches from {len(setup.starts)} starts, and will say whether there are other minima"
    unit = setup.parameters.spread
    apart = [one for one in rest if np.abs((one.theta - best.theta) / unit).max() > ONE_PLACE]
    good = [one for one in apart if one.value - best.value < max(AS_GOOD, AS_GOOD_SHARE * best.value)]
    if good:
        places = "; ".join([place, *(setup.parameters.support.describe(one.theta, 4) for one in good)])
        message = f"{starts} came to different places that fit about as well: {places}"
        return Finding("note", "best fit", f"{message}; {later}", "if one of them is meant, restrict the priors to it")
    if not best.finished:
        return Finding("note", "best fit", f"{starts} have not come to a minimum, the best is at {place}: {later}")
    same = f"{1 + len(rest) - len(apart)} of {starts} came to {place}" if rest else f"a short descent came to {place}"
    return Finding("note", "best fit", f"{same}: {later}")


def _sensitivity(setup: Setup, probe: Probe) -> Iterator[Finding]:
    nodes, where = len(setup.rule.nodes), "" if probe.whole else ", as far as was looked"
    if probe.gradient is None:
        message = "the simulator has no gradient where it fits best: it fails beside, or nothing is allowed there"
        yield Finding("problem", "parameters", message, "restrict the priors to where it works")
        return
    size = float(np.sqrt(np.nanmean((setup.data.y @ setup.noise.whitener.T) ** 2)))
    floor = NO_EFFECT * size / setup.parameters.spread
    try:
        found = sensitivity(
            _whitened(setup, probe.gradient[:nodes]),
            setup.rule.weights,
            _metric(setup),
            setup.parameters.names,
            floor,
        )
    except IdentifiabilityError as error:
        yield Finding("problem", "parameters", error.args[0])
        return
    yield told_apart(found.weakest, f" where it fits best{where}")


def _quadrature(setup: Setup, probe: Probe) -> Iterator[Finding]:
    rule, coarse = setup.domain.rules(setup.data.d)
    if coarse is None or probe.gradient is None:
        return
    fine, half = len(rule.nodes), len(coarse.nodes)
    metric, gradient = _metric(setup), _whitened(setup, probe.gradient[: fine + half])
    gram = gram_matrix(gradient[:fine], rule.weights, metric)
    if not (np.diag(gram) > 0).all():
        # a parameter without effect is a finding of its own
        return
    error = quadrature_error(gram, gram_matrix(gradient[fine:], coarse.weights, metric))
    message = f"integrals over the domain with {fine} nodes: half of them change these by {error:.1g} (relative)"
    # a rule that is exact for the highest wave may be of no use with half its nodes: the run will look closer
    enough = error < QUADRATURE_LIMIT
    yield quadrature_finding(error, message if enough else f"{message}, and the run will look at more nodes", "note")


def _whitened(setup: Setup, gradient: Array) -> Array:
    return np.asarray(np.einsum("kl,nlp->nkp", setup.noise.whitener, gradient))


def _metric(setup: Setup) -> Array:
    """W in whitened coordinates."""
    unwhitener = setup.noise.unwhitener
    return np.asarray(unwhitener.T @ setup.weight @ unwhitener)


def _not_looked_at(setup: Setup, probe: Probe) -> Iterator[Finding]:
    """What only a run can show."""
    missing = [] if probe.whole else [f"minima beyond those that {len(probe.descents)} short descents may come to"]
    missing += ["the bias and whether its prior fits", "the draws"]
    if setup.simulator.emulator is None:
        missing.append("how exact the gradient is")
    message = f"{', '.join(missing)}; this look took {probe.calls} calls of the simulator"
    advice = Advice("posterior.check() says it after a run", "orthocal run says it")
    yield Finding("note", "not looked at", message, advice)

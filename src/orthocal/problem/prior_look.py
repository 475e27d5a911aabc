"""Priors and data beside each other, before a run: what the simulator gives all over the priors, and what y is.

Where one of them is in other units, all that the priors allow is far from the data, and the best fit far out in a
prior or on its bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Finding
from .first_look import FirstLook, least_squares_step, short_descent
from .known import Known

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

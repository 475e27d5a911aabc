"""A first look at a problem for few calls of the simulator: how long they take, where it works, roughly where it fits.

From some of the starts of the search a short descent each: Levenberg and Marquardt's, with a Jacobian that is found by
differences once, and then learns from every step (Broyden 1965), so that a step is one call. Where a call takes so
little that the whole search takes seconds, the search itself is made, and a run that follows does not make it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from ...arrays import Array, BoolArray
from ...errors import NonFiniteError, OrthocalError
from ..data.field_data import FieldData
from ..domain.domain import Domain, Rule
from ..noise.noise import Noise
from ..prior.parameters import Parameters
from ..search.best_fit import Criterion, Descent
from ..search.minima import Minimum, search_calls
from ..simulator.simulator import BoundSimulator, GradientKind

#: starts that are looked at, short descents from the best of them, and their steps
LOOKED, DESCENTS, STEPS = 12, 3, 15
#: seconds that the whole search may take to be made here
CHEAP = 2.0
#: step of the differences, in spreads of the prior: long enough for output that is rounded
STEP = 1e-4
#: a descent has come to its end when a step promises less of the criterion, which is in units of the noise
SETTLED = 0.01
#: the same by the gradient: half of it is a change of the log posterior
AT_MINIMUM = 1.0
#: what a linear simulator may change by beside its gradient, as a share
LINEAR = 1e-4


class Setup(NamedTuple):
    """A problem as it is before the search for its best fit.

    Attributes
    ----------
    noise, weight
        That of the field data alone, and W.
    starts
        Of the search, (s, p).
    searched, found_minima
        Whether the search was made, and what gives its minima, after the search where it was not.
    """

    data: FieldData
    parameters: Parameters
    simulator: BoundSimulator
    domain: Domain
    rule: Rule
    noise: Noise
    weight: Array
    criterion: Criterion
    starts: Array
    searched: bool
    found_minima: Callable[[], tuple[Minimum, ...]]


class Probe(NamedTuple):
    """What few calls say.

    Attributes
    ----------
    theta
        Where the simulator fits best, as far as was looked, (p,).
    minima
        Those that the search for the best fit found, where it was made.
    starts, models
        Theta that fill the priors, (k, p), and the simulator at the distinct data points there, (k, u, q), NaN where it
        fails.
    descents
        The short descents, the best first; none where the whole search was made.
    call, call_at_nodes
        Seconds of a call at the data, and at data and nodes together: the mean of those that were made.
    fit
        The simulator at the distinct data points and theta, (u, q).
    gradient
        df/dtheta at theta, at nodes, coarse nodes and distinct data points, (k, q, p); None where it cannot be had.
    linear
        Whether the simulator is a linear function of theta, as far as was looked.
    row_error
        By how much f at every other row changes where these are asked for alone; None where there is one row.
    calls
        Calls that the look took.
    """

    theta: Array
    minima: tuple[Minimum, ...]
    starts: Array
    models: Array
    descents: tuple[Descent, ...]
    call: float
    call_at_nodes: float
    fit: Array
    gradient: Array | None
    linear: bool
    row_error: Array | None
    calls: int

    @property
    def whole(self) -> bool:
        """Whether the search for the best fit was made to its end."""
        return bool(self.minima)

    @property
    def failing(self) -> BoolArray:
        """Which of the starts the simulator fails at, (k,)."""
        return np.asarray(np.isnan(self.models).any(axis=(1, 2)))


def probed(setup: Setup) -> Probe:
    """At most about 60 + 5 p calls, or the whole search where that is a matter of seconds."""
    simulator, criterion, nodes = setup.simulator, setup.criterion, setup.rule.nodes
    before, starts = simulator.calls, setup.starts[:LOOKED]
    models, clock = _models(setup, criterion.x, starts)
    search = simulator.seconds_a_call * search_calls(simulator, setup.parameters.p, len(setup.starts))
    minima = setup.found_minima() if setup.searched or search < CHEAP else ()
    descents = () if minima else _descents(criterion, starts, models)
    theta = minima[0].theta if minima else descents[0].theta
    call = max(simulator.seconds_a_call, clock.mean())
    points = np.vstack([nodes, criterion.x])
    # twice: the first call with so many points may have something to prepare
    simulator.evaluate(points, theta)
    clock = _Clock.of(simulator)
    here = simulator.evaluate(points, theta)[len(nodes) :]
    alone = clock.mean()
    gradient = _gradient(setup, criterion.x, theta)
    # those of a gradient by differences are of the same kind, unless several are made at a time
    differences = simulator.gradient_kind is GradientKind.DIFFERENCE and simulator.jobs == 1
    at_nodes = clock.mean() if differences else alone
    at_data = None if gradient is None else gradient[-len(here) :]
    if descents:
        descents = (_verified(criterion, descents[0], here, at_data), *descents[1:])
    return Probe(
        theta,
        minima,
        starts,
        models,
        descents,
        call,
        at_nodes,
        here,
        gradient,
        at_data is not None and _linear(starts - theta, models - here, at_data),
        _row_error(setup, criterion.x, theta, here),
        simulator.calls - before,
    )


class _Clock(NamedTuple):
    """A mean over the calls since some moment.

    The median is below it on a machine that others use, too, where a call is held up now and then; it is the sum of all
    calls that is waited for.
    """

    simulator: BoundSimulator
    calls: int
    seconds: float

    @classmethod
    def of(cls, simulator: BoundSimulator) -> _Clock:
        return cls(simulator, simulator.calls, simulator.seconds)

    def mean(self) -> float:
        """Seconds of a call, 0 where there was none; of those that were made at a time each has its share."""
        calls = self.simulator.calls - self.calls
        return (self.simulator.seconds - self.seconds) / calls if calls else 0.0


def _models(setup: Setup, x: Array, starts: Array) -> tuple[Array, _Clock]:
    """The simulator at x for the starts; the first that works finds out what it takes, and the clock begins there."""
    simulator, models = setup.simulator, list[Array]()
    failure: NonFiniteError | None = None
    for number, start in enumerate(starts):
        if simulator.works and number:
            clock = _Clock.of(simulator)
            return np.stack([*models, *simulator.batch(x, starts[number:])]), clock
        try:
            models.append(simulator.required(x, start))
        except NonFiniteError as error:
            models.append(np.full((len(x), setup.data.q), np.nan))
            failure = failure or error
    if failure is not None and not simulator.works:
        raise failure
    return np.stack(models), _Clock.of(simulator)


def _descents(criterion: Criterion, starts: Array, models: Array) -> tuple[Descent, ...]:
    """From the best of the starts, best end first."""
    residuals = [criterion.residual(*pair) for pair in zip(starts, models, strict=True)]
    values = np.array([float(np.sum(one**2)) for one in residuals])
    works = [k for k in np.argsort(values, kind="stable") if np.isfinite(values[k])]
    if not works:
        raise NonFiniteError(
            f"the simulator fails at all of {len(starts)} theta that fill the priors: restrict the priors to where it "
            "works, or fix it"
        )
    ends = [short_descent(criterion, starts[k], residuals[k]) for k in works[:DESCENTS]]
    return tuple(sorted(ends, key=lambda one: one.value))


def short_descent(criterion: Criterion, start: Array, residual: Array, slope: Array | None = None) -> Descent:
    """A short descent from a start, where the residual is known, and perhaps its slope in units of the spreads."""
    unit, theta = criterion.parameters.spread, start
    slope = _slope(criterion, theta, residual) if slope is None else slope
    if slope is None:
        return Descent(theta, float(np.sum(residual**2)), False)
    damping = 1e-3
    for _ in range(STEPS):
        moved = criterion.parameters.clipped(
            theta + unit * least_squares_step(criterion, theta, slope, residual, damping), 1e-9
        )
        step = (moved - theta) / unit
        value = float(np.sum(residual**2))
        promised = value - float(np.sum((residual + slope @ step) ** 2))
        if promised < SETTLED:
            return Descent(theta, value, True)
        there = criterion.residual(moved)
        if np.isfinite(there).all():
            # what the step has taught, whether it led down or not
            slope = slope + np.outer(there - residual - slope @ step, step) / float(step @ step)
        if float(np.sum(there**2)) < value:
            theta, residual, damping = moved, there, 0.3 * damping
        else:
            damping = max(10 * damping, 1e-3)
    return Descent(theta, float(np.sum(residual**2)), False)


def _verified(criterion: Criterion, end: Descent, here: Array, gradient: Array | None) -> Descent:
    """Whether it is at a minimum by its gradient, too: the descent only guessed it, from its steps."""
    if gradient is None:
        return end._replace(finished=False)
    slope = criterion.slopes(end.theta, gradient) * criterion.parameters.spread
    residual = criterion.residual(end.theta, here)
    step = least_squares_step(criterion, end.theta, slope, residual)
    promised = float(np.sum(residual**2) - np.sum((residual + slope @ step) ** 2))
    return end._replace(finished=promised < AT_MINIMUM)


def least_squares_step(
    criterion: Criterion, theta: Array, slope: Array, residual: Array, damping: float = 0.0
) -> Array:
    """Of Levenberg and Marquardt, in units of the spreads, within the bounds."""
    parameters = criterion.parameters
    lengths = np.linalg.norm(slope, axis=0)
    damped = np.sqrt(damping) * np.diag(np.maximum(lengths, 1e-6 * lengths.max() + 1e-300))
    ends = tuple((end - theta) / parameters.spread for end in (parameters.lower, parameters.upper))
    # a step that is cut off at a bound alone would go uphill where parameters are correlated
    found = lsq_linear(np.vstack([slope, damped]), np.concatenate([-residual, np.zeros(len(theta))]), ends)
    return np.asarray(found.x)


def _slope(criterion: Criterion, theta: Array, residual: Array) -> Array | None:
    """The residual's derivative in units of the spreads, by differences to one side; None where there is none."""
    parameters, columns = criterion.parameters, []
    for j, unit in enumerate(parameters.spread):
        for side in (STEP, -STEP):
            moved = theta.copy()
            moved[j] += side * unit
            inside = parameters.lower[j] < moved[j] < parameters.upper[j]
            there = criterion.residual(moved) if inside else np.array([np.nan])
            if np.isfinite(there).all():
                columns.append((there - residual) / side)
                break
        else:
            return None
    return np.stack(columns, axis=1)


def _gradient(setup: Setup, x: Array, theta: Array) -> Array | None:
    """At nodes, coarse nodes and x, with the calls of one gradient."""
    rule, coarse = setup.domain.rules(setup.data.d)
    parts = [rule.nodes, *([] if coarse is None else [coarse.nodes]), x]
    try:
        return setup.simulator.gradient(np.vstack(parts), setup.parameters.clipped(theta, 1e-6))
    except OrthocalError:
        return None


def _linear(moved: Array, change: Array, gradient: Array) -> bool:
    """Whether changes (k, u, q) of the simulator are its gradient (u, q, p) times those of theta (k, p)."""
    works = np.isfinite(change).all(axis=(1, 2))
    missed = change[works] - np.einsum("uqp,kp->kuq", gradient, moved[works])
    return bool(np.abs(missed).max() < LINEAR * max(float(np.abs(change[works]).max()), 1e-300))


def _row_error(setup: Setup, x: Array, theta: Array, here: Array) -> Array | None:
    """f at every other row alone less f there, (r, q); infinite where it fails."""
    rows = slice(1, None, 2)
    if setup.simulator.emulator is not None or setup.data.without_inputs or len(x) < 2:
        return None
    try:
        return np.abs(setup.simulator.required(x[rows], theta) - here[rows])
    except OrthocalError:
        return np.full((len(x[rows]), setup.data.q), np.inf)

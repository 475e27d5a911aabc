"""theta_tilde: where the simulator fits the field data best, with every other local minimum.

loss(t) = sum_i v_i (y_i - f(x_i, t))' W (y_i - f(x_i, t)), with v_i the share of the domain that is nearest to point i.
Where cells of a row are missing, its W is ((W^-1)_oo)^-1 at the observed ones: the loss is least over what is missing.
What is minimised is n loss / noise - 2 log pi, from many starts: roughly from all of them, and then to the end from
wherever they came to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...arrays import Array, BoolArray
from ...errors import NonFiniteError, SimulatorError
from ...progress import progress_bar
from ...projection import COLLINEAR
from ...regression.gaussian_process import sample_of_points
from ..prior.parameters import Parameters
from ..simulator.simulator import BoundSimulator
from .batched_search import BatchedSearch, SearchThread
from .best_fit import Criterion, Descent

# Minima that lie in one valley: where the simulator answers to a combination of the parameters only, and the prior
# does not say where along the valley theta is, every start ends at another point of it.

#: values that differ by less than this share of the best are equal
SAME_VALUE = 1e-6
#: evaluations and tolerance of the descents between two minima
DESCENT = (60, 1e-9)
#: a descent from half way between two minima that ends nearer to one of them than this share of their distance has
#: gone there; otherwise it has come to the floor of the valley between them
NEARER = 0.1
#: how much higher the floor may be, as a share, and where between the minima it is looked for
LEVEL, SHARES = 1e-4, (0.5, 0.3, 0.7)


def without_equals(ends: list[Descent], criterion: Criterion) -> list[Descent]:
    """The minima, best first, where those in one valley with the best are one: that nearest to the prior's middle."""
    best = ends[0]
    equal = [one for one in ends[1:] if one.value - best.value <= SAME_VALUE * best.value]
    if not equal or not _collinear(criterion, best.theta):
        return ends
    members = [best, *(one for one in equal if _floor_joins(best, one, criterion))]
    middle, spread = criterion.parameters.median, criterion.parameters.spread
    chosen = min(members, key=lambda one: float(np.sum(((one.theta - middle) / spread) ** 2)))
    return [chosen, *(one for one in ends if not any(one is other for other in members))]


def _collinear(criterion: Criterion, theta: Array) -> bool:
    try:
        slope = criterion.without_prior().jacobian(theta)
    except NonFiniteError:
        return False
    lengths = np.linalg.norm(slope, axis=0)
    singular = np.linalg.svd(slope / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
    # by differences, and away from the very minimum, it is not as small as it should be
    return bool(singular[-1] < 10 * COLLINEAR)


def _floor_joins(one: Descent, other: Descent, criterion: Criterion) -> bool:
    """Whether there is a floor of the valley somewhere between two minima; along it descents may go astray."""
    return any(_floor_between(one, other, share, criterion) for share in SHARES)


def _floor_between(one: Descent, other: Descent, share: float, criterion: Criterion) -> bool:
    parameters, level = criterion.parameters, one.value * (1 + LEVEL)

    def apart(a: Array, b: Array) -> float:
        return float(np.linalg.norm((a - b) / parameters.spread))

    start = parameters.clipped(one.theta + share * (other.theta - one.theta), 1e-9)
    if criterion.value(start) <= level:
        return True
    end = criterion.descend(start, *DESCENT)
    near = min(apart(end.theta, one.theta), apart(end.theta, other.theta))
    return bool(end.value <= level and near > NEARER * apart(one.theta, other.theta))


# Best fits on the edge of what a constraint allows: least squares stops where it first meets the edge, not where the
# criterion is least along it.
#
# A Gauss–Newton step has a goal; where that is not allowed, the next theta is the allowed one that is nearest to it, in
# the metric of the step. Of a constraint no slope is known, so the nearest is found by random moves that are drawn
# towards the goal: they ask the constraint, and never the simulator.

#: steps along the edge, and halvings of one
MOST_STEPS, EDGE_HALVINGS = 30, 8
#: a step that lowers the criterion by less than this share of it is the last
SETTLED = 1e-7
#: random moves at a time, how often they are made, and halvings of the way to the goal
MOVES, ROUNDS, BISECTIONS = 16, 40, 30


def along_edge(criterion: Criterion, place: Descent) -> Descent:
    """Where a descent that has met the edge comes to along it; one that has not is as it was."""
    inside, rng = criterion.parameters.inside, np.random.default_rng(0)
    for number in range(MOST_STEPS):
        try:
            slope, left = criterion.jacobian(place.theta), criterion.residual(place.theta)
        except NonFiniteError:
            return place
        scaled = slope * criterion.parameters.spread
        step = criterion.parameters.spread * np.linalg.lstsq(scaled, -left, rcond=None)[0]
        goal = criterion.parameters.clipped(place.theta + step, 1e-9)
        if inside(goal) and number == 0:
            return place
        metric = slope.T @ slope + 1e-9 * np.diag(np.sum(slope**2, axis=0) + 1e-300)
        nearest = goal if inside(goal) else nearest_allowed(inside, place.theta, goal, metric, rng)
        better = _lower(criterion, place, nearest)
        if better is None or place.value - better.value < SETTLED * place.value:
            return Descent((better or place).theta, (better or place).value, True)
        place = better
    return place._replace(finished=False)


def _lower(criterion: Criterion, place: Descent, goal: Array) -> Descent | None:
    """The first point on the way back from the goal at which the criterion is lower; None where there is none."""
    for size in 0.5 ** np.arange(EDGE_HALVINGS):
        theta = place.theta + size * (goal - place.theta)
        # infinite where theta is not allowed
        value = criterion.value(theta)
        if value < place.value:
            return Descent(theta, value, False)
    return None


def nearest_allowed(
    inside: Callable[[Array], BoolArray], start: Array, goal: Array, metric: Array, rng: np.random.Generator
) -> Array:
    """The t inside with the least (t - goal)' metric (t - goal), from ``start`` (p,), which is inside."""
    root = np.linalg.cholesky(metric).T
    back = np.linalg.inv(root)

    def distance(points: Array) -> Array:
        return np.asarray(np.linalg.norm((points - goal) @ root.T, axis=-1))

    best = _drawn_towards(inside, start[None], goal)[0]
    size = float(distance(best))
    least = 1e-6 * size
    for _ in range(ROUNDS):
        moves = best + size * rng.standard_normal((MOVES, len(start))) @ back.T
        allowed = moves[inside(moves)]
        nearer = _drawn_towards(inside, allowed, goal)
        found = distance(nearer)
        improved = len(found) > 0 and found.min() < distance(best)
        if improved:
            best = nearer[np.argmin(found)]
        else:
            size /= 2
        if size <= least:
            break
    return np.asarray(best)


def _drawn_towards(inside: Callable[[Array], BoolArray], points: Array, goal: Array) -> Array:
    """Points (k, p) that are inside, moved towards the goal as far as the way is."""
    near, far = np.zeros(len(points)), np.ones(len(points))
    for _ in range(BISECTIONS):
        middle = 0.5 * (near + far)
        allowed = inside(points + middle[:, None] * (goal - points))
        near, far = np.where(allowed, middle, near), np.where(allowed, far, middle)
    return np.asarray(points + near[:, None] * (goal - points))


#: two minima closer than this share of the prior's spread are one
SAME_MINIMUM = 1e-4
#: those closer than this are one if no barrier of this share of the loss parts them
NEIGHBOUR, BARRIER = 0.05, 1e-3
#: losses that differ by less than this share of the best are equal
SAME_LOSS = 1e-6
#: evaluations and tolerance of the rough descents, and of those that end them
ROUGH, FINE = (60, 1e-5), (200, 1e-12)
#: a descent that has not finished is continued so many times while it is the best, or might become it
CONTINUED = 6
#: a rough descent that came as near to a minimum as this, in spreads and as a share of the criterion, belongs to it
ARRIVED, ARRIVED_VALUE = 1e-2, 1e-3
#: places that are tried where the simulator fails at every start
MORE_STARTS = 512
#: halvings of the way from a start that fails to the nearest one that works
HALVINGS = 6
#: places that are followed where there is a constraint: its edge can end the rough descents anywhere
MOST_EDGES = 8
#: rows that the rough descents use of large data
ROUGH_ROWS = 2000
#: with more parameters than this, whose gradients are most of the work, so many descents to one place are enough
MANY, ALIKE = 12, 10
#: steps of a descent of the search: of a linear simulator, of a curved one
STEPS = {True: 3.0, False: 7.0}


class Minimum(NamedTuple):
    """A local minimum: theta (p,), the loss there, and whether the search had finished."""

    theta: Array
    loss: float
    finished: bool = True


def find_minima(criterion: Criterion, starts: Array) -> tuple[Minimum, ...]:
    """Every distinct local minimum reached from ``starts`` (s, p), best first.

    Equals are ordered by the prior's density, then by non-negative and small values first, so that the choice among
    symmetric minima does not depend on rounding.
    """
    parameters, n = criterion.parameters, len(criterion.y)
    rough = criterion if n <= ROUGH_ROWS else criterion.of_rows(sample_of_points(n, ROUGH_ROWS))
    places = _rough_descents(rough, _working_starts(rough, starts))
    ends: list[Descent] = []
    followed: list[Descent] = []
    for place in sorted(places, key=lambda one: one.value):
        # what a part of the data gave can be compared with the like only
        known = followed if rough is not criterion else [*followed, *ends]
        if not any(_arrived(place, other, parameters) for other in known):
            best = min((end.value for end in ends), default=np.inf)
            if parameters.support.possible is None:
                _keep_better(ends, _to_the_end(criterion, place, best), parameters)
            elif len(followed) < MOST_EDGES:
                _keep_better(ends, _to_the_end_or_edge(criterion, place, best), parameters)
            followed.append(place)
    best = min((end.value for end in ends if end.finished), default=np.inf)
    # an unfinished descent counts where it has come further down than those that finished
    found = [end for end in ends if end.finished or end.value < best]
    if not found:
        raise SimulatorError("no start of the search for theta_tilde converged: check the simulator")
    apart = without_equals(_merged(_ordered(found, criterion), criterion), criterion)
    return tuple(Minimum(one.theta, criterion.loss(one.theta), one.finished) for one in apart)


def rough_minimum(criterion: Criterion, starts: Array) -> Array:
    """theta (p,) where the best of rough descents from ``starts`` (s, p) ended: where other searches may begin."""
    return min(_rough_descents(criterion, _working_starts(criterion, starts)), key=lambda one: one.value).theta


def least_squares_minima(criterion: Criterion, minima: tuple[Minimum, ...], most: int = 3) -> tuple[Minimum, ...]:
    """The minima of the loss alone that the first ``most`` minima lead to, best first."""
    if not criterion.prior_matters:
        return minima
    alone = criterion.without_prior()
    ends: list[Descent] = []
    for one in minima[:most]:
        start = criterion.parameters.clipped(one.theta, 1e-9)
        _keep_better(ends, alone.descend(start, *FINE), criterion.parameters)
    ordered = sorted((end for end in ends if np.isfinite(end.value)), key=lambda end: end.value)
    return tuple(Minimum(end.theta, alone.loss(end.theta), end.finished) for end in ordered)


def advantages(criterion: Criterion, minima: tuple[Minimum, ...]) -> tuple[float, ...]:
    """By how much the best is better than the others, at most eight, in standard errors."""
    return tuple(criterion.advantage(minima[0].theta, one.theta) for one in minima[1:9])


def search_calls(simulator: BoundSimulator, p: int, starts: int, linear: bool = False) -> float:
    """About how many calls the search takes, for p parameters and so many starts."""
    descents = min(starts, ALIKE) if p > MANY else starts
    # those that go to the end, from the best place at least, and to the minima of the loss alone
    return starts + (descents + 2) * STEPS[linear] * (1 + simulator.gradient_calls)


def _rough_descents(criterion: Criterion, began: list[_Start]) -> list[Descent]:
    """Where the starts lead, roughly."""
    if isinstance(criterion.simulator, BoundSimulator) and criterion.simulator.many_at_a_time:
        return _batched_descents(criterion, criterion.simulator, began)
    places = list[Descent]()
    for one in progress_bar(began, "best fit"):
        places.append(criterion.descend(one.theta, *ROUGH, known=one.residual))
        if _enough(places, criterion.parameters):
            break
    return places


def _batched_descents(criterion: Criterion, simulator: BoundSimulator, began: list[_Start]) -> list[Descent]:
    """The same where the simulator takes many theta at a time: the starts go down side by side."""

    def descent(start: _Start) -> Callable[[SearchThread[Descent]], Descent]:
        return lambda search: criterion.asking(search).descend(start.theta, *ROUGH, known=start.residual)

    places = list[Descent]()
    # as many as may be enough, then the others
    first = ALIKE if criterion.parameters.p > MANY else len(began)
    for part in (began[:first], began[first:]):
        ends = dict(progress_bar(BatchedSearch(simulator, [descent(one) for one in part]), "best fit"))
        places += [ends[number] for number in range(len(part))]
        if _enough(places, criterion.parameters):
            break
    return places


def _enough(places: list[Descent], parameters: Parameters) -> bool:
    return parameters.p > MANY and len(places) == ALIKE and _alike(places, parameters)


class _Start(NamedTuple):
    """Where a descent begins, and the residual there: the simulator need not be called for it again."""

    theta: Array
    residual: Array


def _working_starts(criterion: Criterion, starts: Array) -> list[_Start]:
    """The starts; those where the simulator fails come nearer to one where it works."""
    parameters = criterion.parameters
    working, failing, failure = _tried(criterion, starts)
    if failing and not working:
        more = (_start(criterion, one) for one in parameters.starts(MORE_STARTS))
        working = list(islice((start for start in more if start is not None), len(starts)))
    if not working:
        raise failure or SimulatorError("no start of the search for theta_tilde: give at least one")
    known = np.array([start.theta for start in working])
    for place in failing:
        near = known[np.argmin(np.sum(((known - place) / parameters.spread) ** 2, axis=1))]
        for _ in range(HALVINGS):
            place = 0.5 * (place + near)
            start = _start(criterion, place)
            if start is not None:
                working.append(start)
                break
    return working


def _tried(criterion: Criterion, starts: Array) -> tuple[list[_Start], list[Array], SimulatorError | None]:
    """The starts where the simulator works, those where it fails, and how it fails at the first of these."""
    failure: SimulatorError | None = None
    working: list[_Start] = []
    failing: list[Array] = []
    for start, model in _models(criterion, starts):
        if isinstance(model, NonFiniteError):
            failing.append(start)
            failure = failure or model
        else:
            working.append(_Start(start, criterion.residual(start, model)))
    return working, failing, failure


def _models(criterion: Criterion, starts: Array) -> Iterator[tuple[Array, Array | NonFiniteError]]:
    """Every start with the simulator there, or how it fails."""
    simulator = criterion.simulator
    assert isinstance(simulator, BoundSimulator)
    rest = starts
    for number, start in enumerate(starts):
        # the first that works finds out what the simulator takes; then all others go together
        if simulator.many_at_a_time and number and simulator.works:
            break
        rest = starts[number + 1 :]
        try:
            yield start, simulator.required(criterion.x, start)
        except NonFiniteError as error:
            yield start, error
    for start, model in zip(rest, simulator.batch(criterion.x, rest), strict=True):
        yield start, model if np.isfinite(model).all() else NonFiniteError(simulator.failure or "the simulator fails")


def _start(criterion: Criterion, theta: Array) -> _Start | None:
    """None where the simulator fails."""
    residual = criterion.residual(theta)
    return _Start(theta, residual) if np.isfinite(np.sum(residual**2)) else None


def _to_the_end(criterion: Criterion, place: Descent, best: float) -> Descent:
    """The descent from a place; unfinished ones go on as long as they might be the best."""
    start = criterion.parameters.clipped(place.theta, 1e-9)
    end = criterion.descend(start, *FINE)
    for attempt in range(CONTINUED):
        if end.finished or not end.value < best * (1 + BARRIER):
            break
        before = end
        # with other scales: those that were have not led to the end
        end = criterion.descend(criterion.parameters.clipped(end.theta, 1e-9), *FINE, scaled=attempt % 2 == 0)
        end = end if end.value <= before.value else before
        if before.value - end.value <= SAME_LOSS * before.value:
            break
    return end


def _to_the_end_or_edge(criterion: Criterion, place: Descent, best: float) -> Descent:
    """The same where a constraint may be in the way."""
    here = place._replace(value=criterion.value(place.theta))
    end = along_edge(criterion, here)
    return along_edge(criterion, _to_the_end(criterion, place, best)) if end is here else end


def _arrived(place: Descent, end: Descent, parameters: Parameters) -> bool:
    near = np.all(np.abs(place.theta - end.theta) < ARRIVED * parameters.spread)
    return bool(near and abs(place.value - end.value) <= ARRIVED_VALUE * end.value)


def _alike(places: list[Descent], parameters: Parameters) -> bool:
    """Whether all descents have come to one place."""
    best = min(places, key=lambda one: one.value)
    return all(_arrived(one, best, parameters) for one in places)


def _merged(ends: list[Descent], criterion: Criterion) -> list[Descent]:
    """Without those that no barrier parts from a better neighbour: rounding of the simulator ended the search there."""
    kept: list[Descent] = []
    reach = NEIGHBOUR * criterion.parameters.spread
    for one in ends:
        near = (other for other in kept if np.all(np.abs(one.theta - other.theta) < reach))
        if not any(_in_one_valley(one, other, criterion) for other in near):
            kept.append(one)
    return kept


def _in_one_valley(one: Descent, other: Descent, criterion: Criterion) -> bool:
    between = (other.theta + share * (one.theta - other.theta) for share in (0.25, 0.5, 0.75))
    # a failure (infinite) is a barrier
    return all(criterion.value(theta) <= one.value * (1 + BARRIER) for theta in between)


def _keep_better(ends: list[Descent], candidate: Descent, parameters: Parameters) -> None:
    """Add a candidate; of several at one place the best stays."""
    twins = [one for one in ends if _same(candidate, one, parameters)]
    if all(candidate.value < one.value for one in twins):
        ends[:] = [one for one in ends if not _same(candidate, one, parameters)] + [candidate]


def _same(a: Descent, b: Descent, parameters: Parameters) -> bool:
    return bool(np.all(np.abs(a.theta - b.theta) < SAME_MINIMUM * parameters.spread))


def _ordered(ends: list[Descent], criterion: Criterion) -> list[Descent]:
    """Best first."""
    parameters = criterion.parameters
    best = min(one.value for one in ends)
    tolerance = SAME_LOSS * max(best, 1e-10 * criterion.size / criterion.scale)

    def key(one: Descent) -> tuple[float, ...]:
        rank = 0.0 if one.value - best <= tolerance else one.value - best
        density = round(float(parameters.log_prior(one.theta)), 5)
        rounded = np.round(one.theta / parameters.spread, 3)
        return (rank, -density, float(np.sum(rounded < 0)), *rounded)

    return sorted(ends, key=key)

"""Best fits on the edge of what a constraint allows: least squares stops where it first meets the edge, not where the
criterion is least along it.

A Gauss–Newton step has a goal; where that is not allowed, the next theta is the allowed one that is nearest to it, in
the metric of the step. Of a constraint no slope is known, so the nearest is found by random moves that are drawn
towards the goal: they ask the constraint, and never the simulator.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array, BoolArray
from ..errors import NonFiniteError
from .best_fit import Criterion, Descent

#: steps along the edge, and halvings of one
MOST_STEPS, HALVINGS = 30, 8
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
    for size in 0.5 ** np.arange(HALVINGS):
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

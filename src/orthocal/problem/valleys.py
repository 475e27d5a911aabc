"""Minima that lie in one valley: where the simulator answers to a combination of the parameters only, and the prior
does not say where along the valley theta is, every start ends at another point of it.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..errors import NonFiniteError
from ..projection import COLLINEAR
from .best_fit import Criterion, Descent

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
    members = [best, *(one for one in equal if _in_one_valley(best, one, criterion))]
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


def _in_one_valley(one: Descent, other: Descent, criterion: Criterion) -> bool:
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

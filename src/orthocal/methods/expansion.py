"""The simulator around one theta: expanded to second order, and what the expansion misses learnt from the draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from ..arrays import Array
from ..problem.parameters import Parameters

#: half the width of the differences, in sds of theta: wide enough to see over rounding, narrow enough to be local
REACH = 1.0
#: with more parameters than this the expansion has no mixed terms: their differences would be too many calls
MOST_MIXED = 12
#: second differences below this share of the simulator's size are rounding
ROUNDING = 1e-12
#: the regression of what the expansion missed needs so many draws a coefficient
DRAWS_A_TERM = 10


@dataclass(frozen=True)
class Expansion:
    """f(t) = value + basis phi(d) with d = (t - origin) / scale, as vectors whose dot product is <., .>.

    phi(d) = (d_i, and d' bend d / 2 for each bend): what is not curved has no bends.

    Attributes
    ----------
    value, basis
        (k,) and (k, r).
    bends
        The second derivatives of phi, (r, p, p), zeros for the first p.
    """

    origin: Array
    scale: Array
    value: Array
    basis: Array
    bends: Array

    def features(self, d: Array) -> Array:
        """phi at d (s, p), (s, r)."""
        p = d.shape[1]
        curved = [0.5 * np.einsum("si,ij,sj->s", d, bend, d) for bend in self.bends[p:]]
        return np.column_stack([d, *curved])

    def jacobian(self, d: Array) -> Array:
        """dphi/dd, (s, r, p)."""
        linear = np.eye(len(self.bends), d.shape[1])
        return np.asarray(linear + np.tensordot(d, self.bends, axes=(1, 2)))

    def at(self, d: Array) -> Array:
        """f at d (s, p), (s, k)."""
        return np.asarray(self.value + self.features(d) @ self.basis.T)


def second_differences(
    values_at: Callable[[Array], Array], theta: Array, steps: Array, pairs: list[tuple[int, int]]
) -> tuple[Array, list[Array], list[Array]]:
    """f at theta, its second differences along each of ``steps`` (r, p), and mixed ones for pairs of these.

    ``values_at`` takes theta (s, p) to values (s, ...).
    """
    moves = [np.zeros(len(theta)), *(sign * step for step in steps for sign in (1, -1))]
    moves += [a * steps[i] + b * steps[j] for i, j in pairs for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
    middle, *around = values_at(theta + np.array(moves))
    corners = around[2 * len(steps) :]
    straight = [around[2 * i] + around[2 * i + 1] - 2 * middle for i in range(len(steps))]
    mixed = [(corners[k] + corners[k + 1] - corners[k + 2] - corners[k + 3]) / 4 for k in range(0, len(corners), 4)]
    return middle, straight, mixed


def with_room(support: Parameters, theta: Array, spread: Array) -> Array:
    """A theta nearby from which the expansion can look to both sides: curvature cannot be seen from a bound."""
    room = np.minimum(_reach(support, spread), 0.25 * (support.upper - support.lower))
    return np.clip(theta, support.lower + room, support.upper - room)


def _reach(support: Parameters, spread: Array) -> Array:
    return REACH * np.where(np.isfinite(spread) & (spread > 0), spread, support.spread)


def expanded(
    values_at: Callable[[Array], Array], slope: Array, support: Parameters, origin: Array, spread: Array
) -> Expansion:
    """The simulator around ``origin`` by central differences that stay within the support.

    ``values_at`` takes theta (s, p) to vectors (s, k), NaN where it fails; ``slope`` (k, p) is its gradient there, and
    ``spread`` (p,) that of theta, roughly.
    """
    room = np.minimum(origin - support.lower, support.upper - origin)
    step = _reach(support, spread)
    p = len(origin)
    # an origin beside a bound leaves no room to look on both sides: the expansion is then linear there
    curved = 0.5 * room > 1e-3 * step
    step = np.where(curved, np.minimum(step, 0.5 * room), step)
    along = np.flatnonzero(curved)
    pairs = list(combinations(range(len(along)), 2)) if p <= MOST_MIXED else []
    value, straight, mixed = second_differences(values_at, origin, np.diag(step)[along], pairs)
    columns: list[Array] = [slope * step]
    bends: list[Array] = [np.zeros((p, p, p))]
    units = np.eye(p)[along]
    for unit, change in zip(units, straight, strict=True):
        columns.append(change[:, None])
        bends.append(np.outer(unit, unit)[None])
    for (i, j), change in zip(pairs, mixed, strict=True):
        columns.append(change[:, None])
        both = np.outer(units[i], units[j])
        bends.append((both + both.T)[None])
    basis, curves = np.concatenate(columns, axis=1), np.concatenate(bends)
    # rounding is no curvature; and where the simulator fails beside the origin, the slope alone is known
    small = ROUNDING * max(np.linalg.norm(value), np.linalg.norm(slope * step))
    kept = np.linalg.norm(basis, axis=0) > small
    kept[:p] = True
    return Expansion(origin, step, value, basis[:, kept], curves[kept])


class Correction:
    """What the expansion missed, regressed on cubic and quartic terms of theta."""

    def __init__(self, p: int) -> None:
        self._terms: list[tuple[int, ...]] = [
            term for degree in (3, 4) for term in combinations_with_replacement(range(p), degree)
        ]
        self._coefficient: Array | None = None
        self._unit = 1.0

    def learnt(self, d: Array, missed: Array, unit: float) -> Correction:
        """From draws at d (s, p) and what was missed there, (s, k); ``unit`` scales d."""
        learner = Correction(d.shape[1])
        cubic = [term for term in self._terms if len(term) == 3]
        learner._terms = self._terms if DRAWS_A_TERM * len(self._terms) <= len(d) else list(cubic)
        if len(d) >= DRAWS_A_TERM * len(learner._terms):
            learner._unit = unit
            learner._coefficient = np.linalg.lstsq(learner._features(d), missed, rcond=None)[0]
        return learner

    def _features(self, d: Array) -> Array:
        return np.stack([np.prod(d[:, list(term)] / self._unit, axis=1) for term in self._terms], axis=1)

    def change(self, d: Array, moved: Array) -> Array | float:
        """What it changes by from d to ``moved`` (s, p), (s, k)."""
        if self._coefficient is None:
            return 0.0
        return np.asarray((self._features(moved) - self._features(d)) @ self._coefficient)

    def along(self, left: Array) -> Array | None:
        """Products of what is left, (s, k), with the terms' coefficients; None where nothing is learnt."""
        return None if self._coefficient is None else np.asarray(left @ self._coefficient.T)

    def slope(self, d: Array, along: Array) -> Array:
        """The correction's gradient times what is left, (s, p), from its products with the coefficients."""
        found = np.zeros_like(d)
        scaled = d / self._unit
        for number, term in enumerate(self._terms):
            for place in range(len(term)):
                rest = [j for other, j in enumerate(term) if other != place]
                found[:, term[place]] += along[:, number] * np.prod(scaled[:, rest], axis=1) / self._unit
        return found

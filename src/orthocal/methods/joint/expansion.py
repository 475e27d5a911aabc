"""The simulator around one theta: expanded to second order, and to fourth by what the draws show that it misses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

import numpy as np

from ...arrays import Array
from ...errors import NonFiniteError
from ...problem.prior.parameters import Parameters

#: half the width of the differences, in sds of theta: wide enough to see over rounding, narrow enough to be local
REACH = 1.0
#: with more parameters than this the expansion has no mixed terms: their differences would be too many calls
MOST_MIXED = 12
#: second differences below this share of the simulator's size are rounding
ROUNDING = 1e-12
#: the regression of what the expansion missed needs so many draws a coefficient
DRAWS_A_TERM = 10
#: places that are tried for one with room inside of a constraint, and shorter differences where there is none
PLACES, SHORTENINGS = 100, 5
#: a parameter whose draws differ by less, in units of the draws' spread, does not vary
LEAST_APART = 1e-3


@dataclass(frozen=True)
class Expansion:
    """f(t) = value + basis phi(d) with d = (t - origin) / scale, as vectors whose dot product is <., .>.

    phi(d) = (d_i, d' bend d / 2 for each bend, and the products of d / unit that the terms name): what is not curved
    has no bends, and what is not learnt no terms.

    Attributes
    ----------
    value, basis
        (k,) and (k, r).
    bends
        The second derivatives of the first of phi, (., p, p), zeros for the first p.
    terms
        Numbers of the parameters whose product each of the last of phi is.
    """

    origin: Array
    scale: Array
    value: Array
    basis: Array
    bends: Array
    terms: tuple[tuple[int, ...], ...] = ()
    unit: float = 1.0

    def features(self, d: Array) -> Array:
        """phi at d (s, p), (s, r)."""
        p = d.shape[1]
        curved = 0.5 * np.sum((d @ self.bends[p:]) * d, axis=2)
        return np.column_stack([d, curved.T, *_products(d / self.unit, self.terms)])

    def jacobian(self, d: Array) -> Array:
        """dphi/dd, (s, r, p)."""
        linear = np.eye(len(self.bends), d.shape[1])
        slopes = np.asarray(linear + np.tensordot(d, self.bends, axes=(1, 2)))
        if not self.terms:
            return slopes
        rests = {term[:place] + term[place + 1 :] for term in self.terms for place in range(len(term))}
        less = dict(zip(rests, _products(d / self.unit, tuple(rests)), strict=True))
        further = np.zeros((len(self.terms), d.shape[1], len(d)))
        for own, term in zip(further, self.terms, strict=True):
            for place, j in enumerate(term):
                own[j] += less[term[:place] + term[place + 1 :]] / self.unit
        return np.concatenate([slopes, further.transpose(2, 0, 1)], axis=1)

    def curvature(self, along: Array) -> Array:
        """sum_r along_r d2phi_r / dd2 for along (s, r), (s, p, p); that of the terms, which is small, is left out."""
        return np.asarray(np.tensordot(along[:, : len(self.bends)], self.bends, axes=1))

    def updated(self, d: Array, missed: Array, unit: float) -> Expansion:
        """With cubic and quartic terms, by regression of what was missed, (s, k), at d (s, p); ``unit`` scales d.

        The terms that are there already stay, with what they miss added to them.
        """
        terms = self.terms or _terms(_varying(d, unit), len(d))
        unit = self.unit if self.terms else unit
        if not terms or len(d) < DRAWS_A_TERM * len(terms):
            return self
        found = np.linalg.lstsq(np.column_stack(_products(d / unit, terms)), missed, rcond=None)[0].T
        known = self.basis[:, : len(self.bends)]
        before = self.basis[:, len(self.bends) :] if self.terms else 0.0
        return replace(self, basis=np.column_stack([known, before + found]), terms=terms, unit=unit)

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


def with_room(support: Parameters, theta: Array, spread: Array) -> tuple[Array, Array]:
    """A theta nearby from which the expansion can look to all sides, and how far: from an edge no curvature is seen."""
    room = np.minimum(_reach(support, spread), 0.25 * (support.upper - support.lower))
    near = np.clip(theta, support.lower + room, support.upper - room)
    if support.support.possible is None:
        return near, spread
    p = len(theta)
    units = np.eye(p)
    pairs = list(combinations(range(p), 2)) if p <= MOST_MIXED else []
    mixed = [a * units[i] + b * units[j] for i, j in pairs for a in (1, -1) for b in (1, -1)]
    corners = np.array([np.zeros(p), *units, *-units, *mixed])
    # first where it is, then further and further away
    moves = np.random.default_rng(0).standard_normal((PLACES, p)) * np.linspace(0, 3, PLACES)[:, None]
    for shortened in 0.5 ** np.arange(SHORTENINGS):
        for move in moves:
            if support.inside(near + (move + corners) * shortened * room).all():
                return near + move * shortened * room, shortened * spread
    return theta, shortened * spread


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
    longest = np.where(curved, np.minimum(step, 0.5 * room), step)
    along = np.flatnonzero(curved)
    pairs = list(combinations(range(len(along)), 2)) if p <= MOST_MIXED else []
    # where the simulator fails beside the origin, nearer to it
    for shortened in 0.25 ** np.arange(SHORTENINGS):
        step = shortened * longest
        value, straight, mixed = second_differences(values_at, origin, np.diag(step)[along], pairs)
        if np.isfinite(straight).all() and np.isfinite(mixed).all():
            break
    else:
        step = longest
    if not np.isfinite(value).all():
        raise NonFiniteError(f"the simulator fails at {support.support.describe(origin)}")
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


def _varying(d: Array, unit: float) -> list[int]:
    """The parameters that differ between most of the draws: of one at a bound nothing can be learnt."""
    apart = np.median(np.abs(d - np.median(d, axis=0)), axis=0)
    return [int(j) for j in np.flatnonzero(apart > LEAST_APART * unit)]


def _terms(parameters: list[int], draws: int) -> tuple[tuple[int, ...], ...]:
    """Products of three and four parameters, or of three, or none: as many as so many draws can tell."""
    cubic, quartic = (tuple(combinations_with_replacement(parameters, degree)) for degree in (3, 4))
    for terms in (cubic + quartic, cubic):
        if DRAWS_A_TERM * len(terms) <= draws:
            return terms
    return ()


def _products(scaled: Array, terms: tuple[tuple[int, ...], ...]) -> list[Array]:
    """Those of the columns of (s, p) that each term names, (s,): Newton's steps ask for them very often."""
    known: dict[tuple[int, ...], Array] = {(j,): column for j, column in enumerate(np.ascontiguousarray(scaled.T))}

    def product(term: tuple[int, ...]) -> Array:
        if term not in known:
            # many terms begin alike
            known[term] = product(term[:-1]) * known[term[-1:]]
        return known[term]

    return [product(term) for term in terms]

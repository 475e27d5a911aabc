"""How far the draws of trees and splines are from the simulator: their spread, by runs that they have not seen.

A Gaussian process is fitted so that its errors are what it says. A posterior of trees is not: between the values of a
design each draw has its steps at places of its own, and their spread is several times the error of their mean (Model 2
from 7 x 7 runs: 1.3 and .27); with noise that the prior takes for small it may as well be too little. So runs are held
out, and f_s = f_hat + c (draw - f_hat) with c the rms error there over the rms spread of the draws: of the values, or
of A times them, A = (G'G)^-1 G' with the gradient G there, which is by how much an error moves a parameter. The largest
of these counts. Trees are wrong by whole steps, at many x together: in Model 2 the values ask for c = .18 to .35, the
second parameter for .45 to .63, and with the former its intervals were too short.

Held out are, parameter by parameter, all runs with every third of its values, without the outermost: of a grid whole
rows go, because a value that other runs have is no gap to the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from ...arrays import Array, BoolArray
from ...errors import InputError
from ...runs.table import RunTable

#: times that the emulator is learnt anew, and draws of each
MOST_FOLDS, DRAWS = 4, 24
#: a parameter with fewer values has none to leave out
LEAST_VALUES = 4
#: c is not believed beyond these: few runs tell it roughly
LEAST_SPREAD, MOST_SPREAD = 0.1, 5.0
#: of effects of parameters, each of length 1, combinations that are shorter are none
SHORT = 0.01


class Drawing(Protocol):
    """An emulator with draws of a given spread."""

    def __call__(self, x: Array, theta: Array) -> Array: ...
    def gradient(self, x: Array, theta: Array) -> Array: ...
    def drawn(self, count: int, seed: int, spread: Array) -> Sequence[Drawing]: ...


def folds(theta: Array) -> Iterator[BoolArray]:
    """Which of the runs at theta (s, p) are held out, a mask each time."""
    places = [np.unique(column, return_inverse=True)[1].ravel() for column in theta.T]
    places = [one for one in places if one.max() + 1 >= LEAST_VALUES]
    if not places:
        return
    for number in range(max(2, min(MOST_FOLDS, 2 * len(places)))):
        own = places[number % len(places)]
        inner = (own > 0) & (own < own.max())
        held = inner & (own % 3 == 1 + (number // len(places)) % 2)
        if held.any():
            yield held


def draw_spread(make: Callable[[RunTable], Drawing], runs: RunTable) -> Array:
    """c of each outcome, (q,); 1 where there are too few runs to hold any out."""
    errors, spreads = np.zeros((2, 1 + runs.p, runs.q))
    for held in folds(runs.theta):
        try:
            part = make(runs.subset(~held))
        except InputError:
            # too few are left to learn from
            continue
        draws = list(part.drawn(DRAWS, 0, np.ones(runs.q)))
        for s in np.flatnonzero(held):
            one, theta = runs.subset(int(s)), runs.theta[s]
            x, output = one.long.x, one.long.output
            each = np.stack([draw(x, theta) for draw in draws])
            missed, away = output - part(x, theta), each - each.mean(axis=0)
            slopes = part.gradient(x, theta)
            for k in range(runs.q):
                seen = ~np.isnan(output[:, k])
                errors[:, k] += _squares(missed[None, seen, k], slopes[seen, k])
                spreads[:, k] += _squares(away[:, seen, k], slopes[seen, k]) / (DRAWS - 1)
    known = (errors > 0) & (spreads > 0)
    ratios = np.divide(errors, spreads, out=np.zeros_like(errors), where=known)
    found = np.where(known[0], np.sqrt(ratios.max(axis=0)), 1.0)
    return np.clip(found, LEAST_SPREAD, MOST_SPREAD)


def _squares(rows: Array, slopes: Array) -> Array:
    """Sums of squares of rows (k, m), and of what each does to every parameter, where f has slopes (m, p): (1 + p,)."""
    length = np.linalg.norm(slopes, axis=0)
    length[length == 0] = 1.0
    moved = rows @ np.linalg.pinv(slopes / length, rcond=SHORT).T / length
    return np.append(np.sum(rows**2), np.sum(moved**2, axis=0))


def mixture(kept: int, spread: float, number: int, count: int, rng: np.random.Generator) -> Array:
    """Weights of so many kept draws, (kept,), whose sum is 1 and whose squares add up to c^2, for one of ``count``.

    Less spread is that of a mean of several draws, more that of one and a multiple of the difference of two others.
    """
    weights = np.zeros(kept)
    first = (number * kept) // count if count <= kept else int(rng.integers(kept))
    others = rng.permutation(np.delete(np.arange(kept), first))
    if spread > 1 and kept > 2:
        weights[first], size = 1.0, np.sqrt((spread**2 - 1) / 2)
        weights[others[:2]] = size, -size
        return weights
    m = min(int(np.ceil(1 / min(spread, 1.0) ** 2)), kept)
    weights[first] = (1 + np.sqrt(max((m - 1) * (m * spread**2 - 1), 0.0))) / m if m > 1 else 1.0
    weights[others[: m - 1]] = (1 - weights[first]) / max(m - 1, 1)
    return weights

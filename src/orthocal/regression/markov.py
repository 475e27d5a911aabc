"""Matern processes along one input, exactly, in one pass over the data: what they know at some support points.

    z = G beta + b + e,   b ~ GP(0, sd^2 k),  k Matern with nu = 1/2, 3/2 or 5/2,   beta flat

The pass leaves a Markov chain on the support points, from the last to the first, each state with a Gaussian law given
the next one: draws cost nothing that grows with the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray, IntArray, matrix_root
from .process_kernels import condense, moves

#: smoothness -> number of components of the state
COMPONENTS = {0.5: 1, 1.5: 2, 2.5: 3}
#: new points whose bridges are found together
BLOCK = 100_000


class Ordered(NamedTuple):
    """Data and support points in one ascending order.

    Attributes
    ----------
    x, weight, values
        (N,), 1 / noise variance (N,), columns (N, c); zeros at support points.
    support
        Which of them are support points, (N,).
    """

    x: Array
    weight: Array
    values: Array
    support: BoolArray

    @classmethod
    def of(cls, x: Array, weight: Array, values: Array, support: Array) -> Ordered:
        """From data x (n,), weight (n,), values (n, c) and ascending support points (r,)."""
        everywhere = np.concatenate([x, support])
        order = np.argsort(everywhere, kind="stable")
        n, r = len(x), len(support)
        return cls(
            everywhere[order],
            np.concatenate([weight, np.zeros(r)])[order],
            np.concatenate([values, np.zeros((r, values.shape[1]))])[order],
            (np.arange(n + r) >= n)[order],
        )


class Condensed(NamedTuple):
    """What the data say: V' S^-1 V of the columns (c, c), log |S| of data in units of noise, and a chain of states.

    ``links`` E, ``shifts`` a and ``scatters`` V are those of ``process_kernels.condense``, ``last_mean`` and
    ``last_cov`` the law of the last state.
    """

    gram: Array
    log_det: float
    links: Array
    shifts: Array
    scatters: Array
    last_mean: Array
    last_cov: Array

    @property
    def deviance(self) -> float:
        """-2 log restricted likelihood: log |S| + log |G'S^-1 G| + z'P z."""
        quadratic, pull, information = self.gram[0, 0], self.gram[1:, 0], self.gram[1:, 1:]
        if not len(pull):
            return self.log_det + float(quadratic)
        left = quadratic - pull @ np.linalg.solve(information, pull)
        return self.log_det + float(np.linalg.slogdet(information)[1] + left)

    def means(self) -> Array:
        """Means of the states at the support points for each column, (r, k, c)."""
        state, found = self.last_mean, np.empty_like(self.shifts)
        for r in range(len(found) - 1, -1, -1):
            state = self.links[r] @ state + self.shifts[r]
            found[r] = state
        return found

    def covariance_with(self, functional: Array) -> Array:
        """Cov(s_r, L s | y, beta) of the states s_r with linear functionals L (p, r, k) of all of them, (r, k, p)."""
        points, k = self.links.shape[:2]
        # how L s depends on s_r: by itself, and through all that come before it
        depends = np.empty((points + 1, len(functional), k))
        depends[0] = functional[:, 0]
        for r in range(points):
            own = functional[:, r + 1] if r + 1 < points else 0.0
            depends[r + 1] = own + depends[r] @ self.links[r]
        state = self.last_cov @ depends[points].T
        found = np.empty((points, k, len(functional)))
        for r in range(points - 1, -1, -1):
            state = self.links[r] @ state + self.scatters[r] @ depends[r].T
            found[r] = state
        return found

    def draw(self, rngs: list[np.random.Generator], draws: int, beta: Array) -> Array:
        """States at the support points, (s, r, k), given beta (s, p), the generators' draws one after the other."""
        weights = np.column_stack([np.ones(len(beta)), -beta])
        points, k = self.links.shape[:2]
        normal = np.concatenate([rng.standard_normal((draws, points + 1, k)) for rng in rngs])
        roots = matrix_root(np.concatenate([self.scatters, self.last_cov[None]]))
        state = weights @ self.last_mean.T + normal[:, points] @ roots[points]
        states = np.empty((len(beta), points, k))
        for r in range(points - 1, -1, -1):
            state = state @ self.links[r].T + weights @ self.shifts[r].T + normal[:, r] @ roots[r]
            states[:, r] = state
        return states


def condensed(points: Ordered, nu: float, sd: float, lengthscale: float) -> Condensed:
    """One pass over the data."""
    k, c, r = COMPONENTS[nu], points.values.shape[1], int(points.support.sum())
    gram, links, shifts = np.zeros((c, c)), np.zeros((r, k, k)), np.zeros((r, k, c))
    scatters, mean, cov = np.zeros((r, k, k)), np.zeros((k, c)), np.zeros((k, k))
    rate = np.sqrt(2 * nu) / lengthscale
    log_det = condense(*points, rate, sd**2, k, gram, links, shifts, scatters, mean, cov)
    return Condensed(gram, float(log_det), links, shifts, scatters, mean, cov)


class Bridges(NamedTuple):
    """b between support points, given the states there: b = A s_left + B s_right + sd e for each new point.

    Attributes
    ----------
    left, right
        Numbers of the support points on either side, (m,), the same one beyond the ends.
    from_left, from_right
        A and B, (m, k).
    sd
        (m,): what is left to chance. Points between the same two are drawn by themselves.
    """

    left: IntArray
    right: IntArray
    from_left: Array
    from_right: Array
    sd: Array

    @classmethod
    def of(cls, x_new: Array, support: Array, nu: float, sd: float, lengthscale: float) -> Bridges:
        """For x_new (m,) and ascending support points (r,)."""
        starts = range(0, max(len(x_new), 1), BLOCK)
        blocks = [_bridges(x_new[start : start + BLOCK], support, nu, sd, lengthscale) for start in starts]
        return cls(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def at(self, states: Array, normal: Array) -> Array:
        """b of states (s, r, k) and standard normals (s, m), (s, m)."""
        found = np.einsum("smk,mk->sm", states[:, self.left], self.from_left)
        found += np.einsum("smk,mk->sm", states[:, self.right], self.from_right)
        return np.asarray(found + self.sd * normal)


def _bridges(x_new: Array, support: Array, nu: float, sd: float, lengthscale: float) -> Bridges:
    k, rate = COMPONENTS[nu], np.sqrt(2 * nu) / lengthscale
    place = np.searchsorted(support, x_new)
    inside = (place > 0) & (place < len(support))
    left, right = np.maximum(place - 1, 0), np.minimum(place, len(support) - 1)
    F, Q = _moves(rate * np.abs(x_new - support[left]), k)
    ahead, added = _moves(np.where(inside, rate * (support[right] - x_new), 0.0), k)
    # before the first point the process goes on in the other direction, in which b' has the other sign
    turned = np.where(place == 0, -1.0, 1.0)[:, None] ** np.arange(k)
    F, Q = (values * turned[:, :, None] * turned[:, None, :] for values in (F, Q))
    # s_right given s_left has this covariance; beyond the ends nothing is known on the other side
    whole = ahead @ Q @ ahead.swapaxes(1, 2) + added
    whole[~inside] = np.eye(k)
    gain = np.linalg.solve(whole, ahead @ Q).swapaxes(1, 2) * inside[:, None, None]
    start, rest = F - gain @ ahead @ F, Q - gain @ ahead @ Q
    return Bridges(left, right, start[:, 0], gain[:, 0], sd * np.sqrt(np.maximum(rest[:, 0, 0], 0.0)))


def _moves(steps: Array, k: int) -> tuple[Array, Array]:
    """F and Q of steps (m,), (m, k, k) each."""
    F, Q = np.zeros((2, len(steps), k, k))
    moves(steps, k, F, Q)
    return F, Q

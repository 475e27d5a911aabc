"""The projection step: for each draw of the real process, the theta whose simulator is closest to it.

    theta(y_R) = argmin_t ∫ (y_R - f(., t))' W (y_R - f(., t)) dP_x

over the support of the priors, from theta_tilde, for all draws at a time. f is expanded at theta_tilde once, to second
order; then every draw's minimum is found for the expansion, the simulator is called there, and what the expansion
missed is taken away from the draw, until nothing moves. What it missed is regressed on theta over all draws, so that
the gradient is that of the simulator and not of the expansion: no draw needs a gradient of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray
from ..problem.problem import Problem

#: rounds of calls before a draw is taken as it is
MOST_ROUNDS = 12
#: a draw has settled when it moves by less than this share of the draws' spread
SETTLED = 1e-6
#: rounds after which the correction of the gradient is kept as it is, so that settled draws stay settled
LEARNING_ROUNDS = 2
#: Newton steps on the expansion, and halvings of one
MOST_STEPS, MOST_HALVINGS = 50, 10
#: a smaller bias, in noise sds, counts as this large in the error of its orthogonality
LEAST_BIAS = 0.01
#: half the width of the differences, in sds of theta: wide enough to see over rounding, narrow enough to be local
REACH = 1.0
#: with more parameters than this the expansion has no mixed terms: their differences would be too many calls
MOST_MIXED = 12
#: the regression of what the expansion missed needs so many draws a coefficient
DRAWS_A_TERM = 10


class Closest(NamedTuple):
    """theta (s, p) of every draw, the loss there (s,), and how sure it is a minimum.

    Attributes
    ----------
    model
        The simulator at the data points, (s, n, q), whitened.
    error
        Largest |<b*, g_j>| / (|b*| |g_j|) at the draw's own theta, (s,).
    on_bound
        Which draws lie on a bound of the support, (s,).
    stuck
        Which did not settle, or are no minimum, (s,).
    """

    theta: Array
    loss: Array
    model: Array
    error: Array
    on_bound: BoolArray
    stuck: BoolArray


@dataclass(frozen=True)
class Expansion:
    """f(t) = value + slope d + d' curve d / 2 with d = (t - origin) / scale, as vectors whose dot product is <., .>.

    ``value`` (k,), ``slope`` (k, p), ``curve`` (k, p, p).
    """

    origin: Array
    scale: Array
    value: Array
    slope: Array
    curve: Array

    def at(self, d: Array) -> Array:
        """f at d (s, p), (s, k)."""
        return np.asarray(self.value + d @ self.slope.T + 0.5 * np.einsum("kij,si,sj->sk", self.curve, d, d))


class _Metric:
    """Values at the nodes (..., m, q), whitened, as vectors (..., m q) whose dot product is <u, v>."""

    def __init__(self, problem: Problem) -> None:
        self._root = np.linalg.cholesky(problem.metric)
        self._weight = np.sqrt(problem.rule.weights)[:, None]

    def vectors(self, values: Array) -> Array:
        scaled = self._weight * (values @ self._root)
        return np.asarray(scaled.reshape(*values.shape[:-2], -1))


def closest(problem: Problem, real: Array, spread: Array) -> Closest:
    """The projection of draws of y_R at the nodes, (s, m, q), whitened; ``spread`` (p,) is theta's, roughly."""
    return _Search(problem, real, spread).run()


class _Search:
    def __init__(self, problem: Problem, real: Array, spread: Array) -> None:
        nodes, x = problem.rule.nodes, problem.data.x
        # one call for both; where the nodes are the data points, they are one
        self._points = x if np.array_equal(nodes, x) else np.vstack([nodes, x])
        self._problem, self._nodes = problem, len(nodes)
        self._metric = _Metric(problem)
        self._target = self._metric.vectors(real)
        parameters = problem.parameters
        self._tilde = parameters.clipped(problem.theta_tilde, 1e-9)
        self._expansion = self._expanded(spread)
        scale = self._expansion.scale
        self._lower, self._upper = ((end - self._tilde) / scale for end in (parameters.lower, parameters.upper))

    def _simulated(self, theta: Array) -> tuple[Array, Array]:
        """f at the nodes for theta (s, p), as vectors (s, k), and at the data (s, n, q); NaN where it fails."""
        model = self._problem.whiten(self._problem.simulator.batch(self._points, theta))
        return self._metric.vectors(model[:, : self._nodes]), model[:, -self._problem.data.n :]

    def _expanded(self, spread: Array) -> Expansion:
        """The simulator around theta_tilde, by central differences that stay within the support."""
        problem, tilde = self._problem, self._tilde
        support = problem.parameters
        room = np.minimum(tilde - support.lower, support.upper - tilde)
        step = REACH * np.where(np.isfinite(spread) & (spread > 0), spread, support.spread)
        p = len(tilde)
        # a theta_tilde beside a bound leaves no room to look on both sides: the expansion is then linear there
        curved = 0.5 * room > 1e-3 * step
        step = np.where(curved, np.minimum(step, 0.5 * room), step)
        pairs = list(combinations(np.flatnonzero(curved), 2)) if p <= MOST_MIXED else []
        moves = [sign * step[j] * np.eye(p)[j] for j in range(p) if curved[j] for sign in (1, -1)]
        moves += [
            a * step[i] * np.eye(p)[i] + b * step[j] * np.eye(p)[j]
            for i, j in pairs
            for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1))
        ]
        gradient = problem.gradient_at_nodes * step
        slope = np.stack([self._metric.vectors(gradient[:, :, j]) for j in range(p)], axis=1)
        value = self._simulated(tilde[None])[0][0]
        curve = np.zeros((len(value), p, p))
        if moves:
            around, _ = self._simulated(tilde + np.array(moves))
            for number, j in enumerate(np.flatnonzero(curved)):
                up, down = around[2 * number : 2 * number + 2]
                curve[:, j, j] = up + down - 2 * value
            for number, (i, j) in enumerate(pairs):
                a, b, c, d = around[2 * int(curved.sum()) + 4 * number :][:4]
                curve[:, i, j] = curve[:, j, i] = (a + b - c - d) / 4
        # where the simulator fails beside theta_tilde, the slope alone is known
        curve[~np.isfinite(curve)] = 0.0
        return Expansion(tilde, step, value, slope, curve)

    def run(self) -> Closest:
        (count, _), p = self._target.shape, len(self._tilde)
        d, missed = np.zeros((count, p)), np.zeros_like(self._target)
        self._model = np.full((count, self._problem.data.n, self._problem.data.q), np.nan)
        correction = _Correction(p)
        settled, known, blocked = np.zeros((3, count), dtype=bool)
        for number in range(MOST_ROUNDS):
            moving = np.flatnonzero(~settled)
            new = self._minimised(d[moving], self._target[moving] - missed[moving], correction)
            # where the simulator has failed, half way back towards theta_tilde, where it works
            new = np.where(blocked[moving, None], 0.5 * d[moving], new)
            exact, at_data = self._simulated(self._inside(new))
            works = np.isfinite(exact).all(axis=1)
            d[moving] = new
            blocked[moving[~works]] = True
            moved = moving[works]
            missed[moved] = exact[works] - self._expansion.at(d[moved])
            self._model[moved] = at_data[works]
            known[moved] = True
            unit = self._unit(d)
            if number < LEARNING_ROUNDS:
                correction = correction.learnt(d[known], missed[known], unit)
            _, gradient, hessian = self._slopes(d[moved], self._target[moved] - missed[moved], correction)
            step = np.abs(self._newton(d[moved], gradient, hessian)).max(axis=1)
            settled[moved] = blocked[moved] | (step < SETTLED * unit)
            if settled.all():
                break
        self._give_up(d, missed, known)
        settled &= ~blocked
        return self._verified(d, missed, correction, settled)

    def _give_up(self, d: Array, missed: Array, known: BoolArray) -> None:
        """A draw for which the simulator has never worked stays at theta_tilde, and counts as stuck."""
        lost = ~known
        if lost.any():
            exact, at_data = self._simulated(self._tilde[None])
            d[lost], missed[lost] = 0.0, exact[0] - self._expansion.value
            self._model[lost] = at_data[0]

    def _inside(self, d: Array) -> Array:
        """theta at d, inside of the support."""
        return self._problem.parameters.clipped(self._tilde + d * self._expansion.scale, 1e-9)

    def _unit(self, d: Array) -> float:
        """The draws' spread in units of the expansion's: the unit in which a draw moves much or little."""
        return float(max(np.median(np.abs(d - np.median(d, axis=0)).max(axis=1)), 1e-3))

    def _slopes(self, d: Array, target: Array, correction: _Correction) -> tuple[Array, Array, Array]:
        """Loss (s,), its gradient (s, p) and Hessian (s, p, p) / 2 in d, for targets (s, k)."""
        left = target - self._expansion.at(d)
        tangent = self._expansion.slope + np.einsum("kij,sj->ski", self._expansion.curve, d)
        downhill = np.einsum("ski,sk->si", tangent, left) + correction.slope(d, left)
        hessian = np.einsum("ski,skj->sij", tangent, tangent) - np.einsum("kij,sk->sij", self._expansion.curve, left)
        return np.einsum("sk,sk->s", left, left), -downhill, hessian

    def _minimised(self, d: Array, target: Array, correction: _Correction) -> Array:
        """Newton's method on the expansion, all draws at a time, inside of the support."""
        d = d.copy()
        moving = np.arange(len(d))
        for _ in range(MOST_STEPS):
            loss, gradient, hessian = self._slopes(d[moving], target[moving], correction)
            step = self._newton(d[moving], gradient, hessian)
            size = np.ones(len(moving))
            for _ in range(MOST_HALVINGS):
                trial = np.clip(d[moving] + size[:, None] * step, self._lower, self._upper)
                left = target[moving] - self._expansion.at(trial)
                worse = np.einsum("sk,sk->s", left, left) > loss * (1 + 1e-12)
                if not worse.any():
                    break
                size = np.where(worse, size / 2, size)
            done = np.abs(trial - d[moving]).max(axis=1) < 1e-10
            d[moving] = np.where(worse[:, None], d[moving], trial)
            moving = moving[~(done | worse)]
            if not len(moving):
                break
        return d

    def _newton(self, d: Array, gradient: Array, hessian: Array) -> Array:
        """Newton steps (s, p); a parameter that is pushed out of the support at a bound stays there."""
        held = ((d <= self._lower) & (gradient > 0)) | ((d >= self._upper) & (gradient < 0))
        free = ~held
        masked = hessian * free[:, :, None] * free[:, None, :]
        values, vectors = np.linalg.eigh(masked)
        # where the loss is not convex, downhill all the same
        least = 1e-6 * np.abs(values).max(axis=1, keepdims=True) + 1e-300
        values = np.maximum(np.abs(values), least)
        down = np.where(held, 0.0, -gradient)
        step = np.einsum("sij,sj,skj,sk->si", vectors, 1 / values, vectors, down)
        return np.where(held, 0.0, step)

    def _verified(self, d: Array, missed: Array, correction: _Correction, settled: BoolArray) -> Closest:
        target = self._target - missed
        loss, gradient, hessian = self._slopes(d, target, correction)
        on_bound = ((d <= self._lower) | (d >= self._upper)).any(axis=1)
        lowest = np.linalg.eigvalsh(hessian)[:, 0]
        tangent = np.linalg.norm(self._expansion.slope, axis=0)
        # beside a bias far below the noise, rounding would count
        size = np.maximum(np.sqrt(loss), LEAST_BIAS * np.sqrt(np.trace(self._problem.metric)))[:, None]
        error = np.max(np.abs(gradient) / (size * tangent), axis=1)
        stuck = ~settled | ((lowest <= 0) & ~on_bound)
        return Closest(self._inside(d), loss, self._model, np.where(on_bound, 0.0, error), on_bound, stuck)


class _Correction:
    """What the expansion missed, regressed on cubic and quartic terms of theta; only its gradient is used."""

    def __init__(self, p: int) -> None:
        self._terms: list[tuple[int, ...]] = [
            term for degree in (3, 4) for term in combinations_with_replacement(range(p), degree)
        ]
        self._coefficient: Array | None = None
        self._unit = 1.0

    def learnt(self, d: Array, missed: Array, unit: float) -> _Correction:
        """From draws at d (s, p) and what was missed there, (s, k); ``unit`` scales d."""
        learner = _Correction(d.shape[1])
        cubic = [term for term in self._terms if len(term) == 3]
        learner._terms = self._terms if DRAWS_A_TERM * len(self._terms) <= len(d) else list(cubic)
        if len(d) >= DRAWS_A_TERM * len(learner._terms):
            learner._unit = unit
            features = np.stack([np.prod(d[:, list(term)] / unit, axis=1) for term in learner._terms], axis=1)
            learner._coefficient = np.linalg.lstsq(features, missed, rcond=None)[0]
        return learner

    def slope(self, d: Array, left: Array) -> Array:
        """The correction's gradient times what is left, (s, p)."""
        found = np.zeros_like(d)
        if self._coefficient is None:
            return found
        along = left @ self._coefficient.T
        scaled = d / self._unit
        for number, term in enumerate(self._terms):
            for place in range(len(term)):
                rest = [j for other, j in enumerate(term) if other != place]
                found[:, term[place]] += along[:, number] * np.prod(scaled[:, rest], axis=1) / self._unit
        return found

"""The projection step: for each draw of the real process, the theta whose simulator is closest to it.

    theta(y_R) = argmin_t ∫ rho(|y_R - f(., t)|) dP_x

over the support of the priors, for all draws at a time. f is expanded once, to second order, where it is closest to
the mean of the draws; then every draw's minimum is found for the expansion, the simulator is called there, and what the
expansion missed is taken away from the draw, until nothing moves. What it missed is regressed on theta over all draws
and added to the expansion, so that its gradient is the simulator's: no draw needs a gradient of its own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ...arrays import Array, BoolArray, IntArray
from ...errors import NonFiniteError
from ...losses import Loss, OwnLoss, Squared
from ...problem.problem import Problem
from .expansion import Expansion, expanded, with_room
from .objective import Distance, Held, Holding, LossDerivatives, Objective, domain_squares, objective

#: rounds of calls before a draw is taken as it is
MOST_ROUNDS = 12
#: a draw has settled when it moves by less than this share of the draws' spread
SETTLED = 1e-6
#: the same for a loss of the user's, whose differences are rough
OWN_SETTLED = 1e-3
#: one that is still to move by more, after the last round, is stuck
NEAR, OWN_NEAR = 1e-3, 1e-2
#: how often a draw that led to where the simulator fails is tried again from where it works
SECOND_TRIES = 1
#: rounds after which the correction of the gradient is kept as it is, so that settled draws stay settled
LEARNING_ROUNDS = 2
#: Newton steps on the expansion, and halvings of one
MOST_STEPS, MOST_HALVINGS = 50, 10
#: nearer to a bound than this share of its distance is on it
ROUNDING = 1e-12
#: a smaller bias, in noise sds, counts as this large in the error of its orthogonality
LEAST_BIAS = 0.01
#: a parameter that moves the simulator by less than this share of what another does has no effect: it is rounding
NO_EFFECT = 1e-9
#: expansions until the one for the mean of the draws is where the simulator is closest to it, to within a spread
MOST_ORIGINS, NEAR_ORIGIN = 8, 0.5
#: other minima of the loss that are looked at, and by how much of the loss one must be closer
OTHER_MINIMA, CLOSER = 3, 1e-6


class Closest(NamedTuple):
    """theta (s, p) of every draw, the loss there (s,), and how sure it is a minimum.

    Attributes
    ----------
    model
        The simulator at the data points, (s, n, q), whitened; (s, 0, q) where it was not called there.
    error
        Largest |<b*, g_j>| / (|b*| |g_j|) at the draw's own theta, (s,).
    on_bound
        Which draws lie on a bound of the support, (s,).
    stuck
        Which did not settle, or are no minimum, (s,).
    elsewhere
        Which are closer to the simulator at another of the problem's minima, (s,).
    impossible
        Which are closest where theta is not allowed, or where the simulator fails, (s,): their theta is none.
    stretch
        Log of the volume that determined coordinates of theta take up in f, in that at theta_tilde, (s,); 0 where
        nothing is held.
    bias_square, process_square
        ∫ b*_k^2 dP_x and the variance of y_R over the domain, in the outcomes' units, (s, q).
    """

    theta: Array
    loss: Array
    model: Array
    error: Array
    on_bound: BoolArray
    stuck: BoolArray
    elsewhere: BoolArray
    impossible: BoolArray
    stretch: Array
    bias_square: Array
    process_square: Array


def closest(
    problem: Problem,
    real: Array,
    spread: Array,
    loss: Loss | OwnLoss | None = None,
    at_data: bool = True,
    held: Held | None = None,
) -> Closest:
    """The projection of draws of y_R at the nodes, (s, m, q), whitened; ``spread`` (p,) is theta's, roughly.

    Without ``at_data`` the simulator is called at the nodes only. What is ``held`` of theta stays where it is.
    """
    loss = loss or Squared()
    mean = real.mean(axis=0, keepdims=True)
    # the size of the residuals at the best fit
    square = Distance(problem, Squared()).vectors(mean[0] - problem.whiten(problem.fit_at_nodes))
    distance = Distance(problem, loss, typical=float(np.linalg.norm(square)))
    x = problem.data.x if at_data else problem.data.x[:0]
    origin = _origin(problem, mean, spread, distance, x, None if held is None else held.middle)
    found = _ClosestSearch(problem, real, spread, distance, origin, x, held).run()
    return found._replace(elsewhere=_elsewhere(problem, real, spread, distance, found.loss, x))


def _origin(
    problem: Problem, mean: Array, spread: Array, distance: Distance, x: Array, held: Held | None = None
) -> Array:
    """Where the simulator is closest to the draws' mean, roughly: there it is expanded."""
    start = problem.theta_tilde
    for _ in range(MOST_ORIGINS):
        try:
            found = _ClosestSearch(problem, mean, spread, distance, start, x, held).run().theta[0]
        except NonFiniteError:
            # beside it the simulator fails
            return problem.theta_tilde
        moved = np.abs(found - start) / np.where(spread > 0, spread, problem.parameters.spread)
        start = found
        if moved.max() < NEAR_ORIGIN:
            break
    return start


def _elsewhere(problem: Problem, real: Array, spread: Array, distance: Distance, loss: Array, x: Array) -> BoolArray:
    """Which draws are closer at another minimum: those that the expansion there has closer, if the simulator agrees."""
    better = np.zeros(len(real), dtype=bool)
    for other in problem.minima[1 : 1 + OTHER_MINIMA]:
        with suppress(NonFiniteError):
            better |= _ClosestSearch(problem, real, spread, distance, other.theta, x).closer_than((1 - CLOSER) * loss)
    return better


class _ClosestSearch:
    def __init__(
        self,
        problem: Problem,
        real: Array,
        spread: Array,
        distance: Distance,
        near: Array,
        x: Array,
        held: Held | None = None,
    ) -> None:
        """``x`` (n, d) are the data points at which the simulator is wanted."""
        nodes = problem.rule.nodes
        self._n = len(x)
        # one call for both; where the nodes are the data points, they are one
        self._points = x if np.array_equal(nodes, x) else np.vstack([nodes, x])
        self._problem, self._nodes, self._distance = problem, len(nodes), distance
        self._real, self._target = real, distance.vectors(real)
        self._expansion = self._expanded(near, spread)
        scale, origin, parameters = self._expansion.scale, self._expansion.origin, problem.parameters
        self._lower, self._upper = ((end - origin) / scale for end in (parameters.lower, parameters.upper))
        self._known = held

    def _expanded(self, near: Array, spread: Array) -> Expansion:
        """The simulator where there is room around ``near``; there itself, where the simulator fails in that room."""
        parameters = self._problem.parameters
        roomy, reach = with_room(parameters, near, spread)
        for origin in (roomy, near):
            with suppress(NonFiniteError):
                gradient = self._problem.whitened_gradient(self._problem.rule.nodes, origin)
                slope = np.stack([self._distance.vectors(gradient[:, :, j]) for j in range(len(origin))], axis=1)
                return expanded(lambda theta: self._simulated(theta)[0], slope, parameters, origin, reach)
        raise NonFiniteError(f"the simulator fails around {parameters.support.describe(near)}")

    def _simulated(self, theta: Array) -> tuple[Array, Array]:
        """f at the nodes for theta (s, p), as vectors (s, k), and at the data (s, n, q); NaN where it fails."""
        model = self._problem.whiten(self._problem.simulator.batch(self._points, theta, "projection"))
        return self._distance.vectors(model[:, : self._nodes]), model[:, model.shape[1] - self._n :]

    def closer_than(self, loss: Array) -> BoolArray:
        """Which draws have a smaller loss than (s,) where the expansion alone is closest to them."""
        every = np.arange(len(self._target))
        loss_at = self._objective(every, np.zeros(1))
        d = self._minimised(np.zeros((len(every), len(self._lower))), loss_at)
        closer = loss_at.loss(d, every) < loss
        if closer.any():
            model, _ = self._simulated(self._inside(d[closer]))
            # NaN, where the simulator fails, is not closer
            closer[closer] = self._distance.loss(self._target[closer] - model) < loss[closer]
        return np.asarray(closer)

    def run(self) -> Closest:
        (count, _), p = self._target.shape, len(self._lower)
        d, missed = self._start(count, p), np.zeros_like(self._target)
        self._model = np.full((count, self._n, self._problem.data.q), np.nan)
        settled, known, blocked = np.zeros((3, count), dtype=bool)
        failures = np.zeros(count, dtype=int)
        for number in range(MOST_ROUNDS):
            moving = np.flatnonzero(~settled)
            new = self._minimised(d[moving], self._objective(moving, missed[moving]))
            # where the simulator has failed, half way back towards the origin, where it works
            new = np.where(blocked[moving, None], 0.5 * d[moving], new)
            exact, at_data = self._simulated(self._inside(new))
            works = np.isfinite(exact).all(axis=1)
            d[moving] = new
            failures[moving[~works & ~blocked[moving]]] += 1
            blocked[moving[~works]] = True
            moved = moving[works]
            # knowing more of the simulator there, once more to where it is closest
            blocked[moved] &= failures[moved] > SECOND_TRIES
            missed[moved] = exact[works] - self._expansion.at(d[moved])
            self._model[moved] = at_data[works]
            known[moved] = True
            unit = self._unit(d)
            if number < LEARNING_ROUNDS and known.any():
                before = self._expansion
                self._expansion = before.updated(d[known], missed[known], unit)
                missed[known] -= self._expansion.at(d[known]) - before.at(d[known])
            at_these = self._objective(moved, missed[moved]).slopes(d[moved], np.arange(len(moved)))
            step = np.abs(self._newton(d[moved], at_these.gradient, at_these.hessian)).max(axis=1)
            settled[moved] = blocked[moved] | (step < (OWN_SETTLED if self._distance.own else SETTLED) * unit)
            if settled.all():
                break
        self._give_up(d, missed, known)
        return self._verified(d, missed, blocked | ~known)

    def _start(self, count: int, p: int) -> Array:
        """Where the search of every draw begins, (s, p)."""
        if self._known is None:
            return np.zeros((count, p))
        start = (self._known.theta - self._expansion.origin) / self._expansion.scale
        return np.asarray(np.clip(start, self._lower, self._upper))

    def _give_up(self, d: Array, missed: Array, known: BoolArray) -> None:
        """A draw for which the simulator has never worked stays at the origin."""
        lost = ~known
        if lost.any():
            exact, at_data = self._simulated(self._expansion.origin[None])
            d[lost], missed[lost] = 0.0, exact[0] - self._expansion.value
            self._model[lost] = at_data[0]

    def _inside(self, d: Array) -> Array:
        """theta at d, inside of the support."""
        return self._problem.parameters.clipped(self._expansion.origin + d * self._expansion.scale, 1e-9)

    def _unit(self, d: Array) -> float:
        """The draws' spread in units of the expansion's: the unit in which a draw moves much or little."""
        return float(max(np.median(np.abs(d - np.median(d, axis=0)).max(axis=1)), 1e-3))

    def _objective(self, rows: IntArray, missed: Array) -> Objective:
        """The loss of the draws numbered ``rows``, and what the expansion misses for each, (r, k)."""
        free = objective(self._distance, self._expansion, self._target[rows] - missed)
        if self._known is None:
            return free
        away = self._known.theta[rows] - self._expansion.origin
        return Holding(free, self._known.rows * self._expansion.scale, away @ self._known.rows.T)

    def _minimised(self, d: Array, loss_at: Objective) -> Array:
        """Newton's method on the expansion, all draws at a time, inside of the support."""
        d = d.copy()
        moving = np.arange(len(d))
        for _ in range(MOST_STEPS):
            here, slopes = d[moving], loss_at.slopes(d[moving], moving)
            trial, worse = self._along(
                here, self._newton(here, slopes.gradient, slopes.hessian), slopes, loss_at, moving
            )
            if worse.any():
                # where the loss is not convex a step to a bound may lead uphill; each parameter by itself never does
                curvature = np.abs(np.einsum("sii->si", slopes.hessian[worse])) + 1e-300
                part = LossDerivatives(*(values[worse] for values in slopes))
                trial[worse], worse[worse] = self._along(
                    here[worse], -part.gradient / curvature, part, loss_at, moving[worse]
                )
            done = np.abs(trial - here).max(axis=1) < 1e-10
            d[moving] = np.where(worse[:, None], here, trial)
            moving = moving[~(done | worse)]
            if not len(moving):
                break
        return d

    def _along(
        self, d: Array, step: Array, slopes: LossDerivatives, loss_at: Objective, rows: IntArray
    ) -> tuple[Array, BoolArray]:
        """Where steps lead, halved until the loss falls, and for which draws it never does."""
        size = np.ones(len(d))
        for _ in range(MOST_HALVINGS):
            trial = np.clip(d + size[:, None] * step, self._lower, self._upper)
            worse = np.asarray(loss_at.loss(trial, rows) > slopes.loss * (1 + 1e-12))
            if not worse.any():
                break
            size = np.where(worse, size / 2, size)
        return trial, worse

    def _newton(self, d: Array, gradient: Array, hessian: Array) -> Array:
        """Newton steps (s, p); a parameter that is pushed out of the support at a bound stays there."""
        held = self._held(d, gradient)
        values, vectors = np.linalg.eigh(_of_free(hessian, held))
        # where the loss is not convex, downhill all the same
        least = 1e-6 * np.abs(values).max(axis=1, keepdims=True) + 1e-300
        values = np.maximum(np.abs(values), least)
        down = np.where(held, 0.0, -gradient)
        step = np.where(held, 0.0, np.einsum("sij,sj,skj,sk->si", vectors, 1 / values, vectors, down))
        crossing = np.flatnonzero(((d + step < self._lower) | (d + step > self._upper)).any(axis=1))
        if len(crossing):
            convex = (vectors[crossing] * values[crossing, None]) @ vectors[crossing].swapaxes(1, 2)
            step[crossing] = self._to_bounds(d[crossing], down[crossing], convex, held[crossing], step[crossing])
        return step

    def _to_bounds(self, d: Array, down: Array, hessian: Array, held: BoolArray, step: Array) -> Array:
        """Steps that would leave the support go to its bound, and the other parameters follow.

        Cutting a step off at the bound alone would go uphill where parameters are correlated.
        """
        for _ in range(d.shape[1]):
            to = np.clip(d + step, self._lower, self._upper) - d
            held = held | (to != step)
            fixed = np.where(held, to, 0.0)
            follow = np.where(held, 0.0, down - np.einsum("sij,sj->si", hessian, fixed))
            alone = _of_free(hessian, held) + held[:, :, None] * np.eye(d.shape[1])
            step = fixed + np.linalg.solve(alone, follow[:, :, None])[:, :, 0]
        return np.clip(d + step, self._lower, self._upper) - d

    def _held(self, d: Array, gradient: Array) -> BoolArray:
        """Which parameters are pushed out of the support at a bound of it."""
        low, high = self._at_bound(d)
        return np.asarray((low & (gradient > 0)) | (high & (gradient < 0)))

    def _at_bound(self, d: Array) -> tuple[BoolArray, BoolArray]:
        """Which parameters lie on their lower and upper bounds, to rounding."""
        return d <= self._lower + ROUNDING * np.abs(d), d >= self._upper - ROUNDING * np.abs(d)

    def _verified(self, d: Array, missed: Array, impossible: BoolArray) -> Closest:
        every = np.arange(len(d))
        loss_at = self._objective(every, missed)
        _, gradient, hessian = loss_at.slopes(d, every)
        on_bound = np.any(self._at_bound(d), axis=(0, 2))
        held = self._held(d, gradient)
        curvature = np.linalg.eigvalsh(_of_free(hessian, held))
        # a parameter that is held at a bound has the curvature 0 here
        far = np.abs(self._newton(d, gradient, hessian)).max(axis=1) / self._unit(d)
        near = OWN_NEAR if self._distance.own else NEAR
        stuck = (far > near) | (np.sum(curvature > 0, axis=1) < np.sum(~held, axis=1))
        left = self._target - missed - self._expansion.at(d)
        if self._distance.own:
            # there is no product to be zero: how far theta is from its place, in units of its spread
            error = far
        else:
            pulled = np.linalg.norm(self._distance.pull(left).force, axis=1)
            # beside a bias far below the noise, rounding would count
            least = LEAST_BIAS * np.sqrt(np.trace(self._problem.metric)) if self._distance.squared else 0.0
            size = np.maximum(pulled, max(least, 1e-300))[:, None]
            if isinstance(loss_at, Holding):
                # of the loss alone
                gradient = loss_at.free.slopes(d, every).gradient
            lengths = np.linalg.norm(self._expansion.basis[:, : d.shape[1]], axis=0)
            # to a parameter without effect nothing is orthogonal, or everything
            felt = lengths > NO_EFFECT * lengths.max()
            error = np.max(np.abs(gradient[:, felt]) / (size * lengths[felt]), axis=1, initial=0.0)
        real = self._problem.unwhiten(self._real)
        squares = domain_squares(self._distance.residuals(left), real, self._problem.rule.weights)
        return Closest(
            self._inside(d),
            self._distance.loss(left),
            self._model,
            np.where(on_bound, 0.0, error),
            on_bound,
            stuck & ~impossible,
            np.zeros(len(d), dtype=bool),
            impossible,
            self._stretch(d),
            *squares,
        )

    def _stretch(self, d: Array) -> Array:
        """log |det| of how f moves along what is determined, (s,)."""
        if self._known is None:
            return np.zeros(len(d))
        count = self._known.along.shape[1]
        dual = np.stack([self._distance.vectors(self._known.functions[:, :, k]) for k in range(count)])
        slopes = (dual @ self._expansion.basis) @ self._expansion.jacobian(d) / self._expansion.scale
        return np.asarray(np.linalg.slogdet(slopes @ self._known.along)[1])


def _of_free(hessian: Array, held: BoolArray) -> Array:
    """Hessians (s, p, p) with zeros for the parameters that are held."""
    free = ~held
    return np.asarray(hessian * free[:, :, None] * free[:, None, :])

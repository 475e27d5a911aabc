"""The default theta step: an independence proposal from the Laplace approximation, Metropolis-corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import log_ndtr, ndtri_exp

from ..arrays import Array, IntArray
from ..errors import InputError, NonFiniteError
from ..problem.prior.parameters import Parameters
from .base import (
    Conditional,
    Rngs,
    StepInfo,
    ThetaModel,
    ThetaState,
    accept,
    at_middle,
    laplace_precision,
    listed,
    normals,
    weighted,
)
from .slice import swept

# Gaussian proposals that stay within the bounds of theta: one coordinate after the other, each truncated.
#
# theta = centre + R z with R upper triangular. The last coordinate depends on its own z alone, the one before it on
# two, and so on: each z_j is a standard normal between the bounds that the later ones leave it. So the density is
# known,
#
#     log q = sum_j [ -z_j^2 / 2 - log(Phi(b_j) - Phi(a_j)) ],
#
# and a Gaussian conditional at one bound is met exactly; at several, up to a bounded weight (Geweke 1991).


class Truncated(NamedTuple):
    """The proposals of all chains; each chain has its own order of the coordinates, the most bounded one last.

    ``centre``, ``low`` and ``high`` are (c, p), ``root`` is (c, p, p), all in the order ``order`` (c, p).
    """

    centre: Array
    root: Array
    low: Array
    high: Array
    order: IntArray

    @classmethod
    def of(cls, centre: Array, lower: Array, support: Parameters) -> Truncated:
        """N(centre, H^-1) for centre (c, p) and H = ``lower`` ``lower``', (c, p, p) or (1, p, p)."""
        precision = np.broadcast_to(lower @ lower.swapaxes(1, 2), (len(centre), *lower.shape[1:]))
        sd = np.sqrt(np.einsum("cii->ci", np.linalg.inv(precision)))
        order = np.argsort(np.maximum(support.lower - centre, centre - support.upper) / sd, axis=1, kind="stable")
        own = np.linalg.cholesky(
            np.stack([one[np.ix_(rows, rows)] for one, rows in zip(precision, order, strict=True)])
        )
        root = np.linalg.inv(own).swapaxes(1, 2)
        return cls(np.take_along_axis(centre, order, 1), root, support.lower[order], support.upper[order], order)

    def draw(self, rngs: Rngs) -> tuple[Array, Array]:
        """theta (c, p) within the support, and log q there, (c,)."""
        uniform = np.array([rng.random(self.centre.shape[1]) for rng in rngs])
        z, density = np.zeros_like(self.centre), np.zeros(len(self.centre))
        theta = np.empty_like(self.centre)
        for j in reversed(range(theta.shape[1])):
            middle, low, high, size = self._limits(j, z)
            z[:, j] = _normal_between(low, high, size, uniform[:, j])
            np.put_along_axis(theta, self.order[:, [j]], (middle + self.root[:, j, j] * z[:, j])[:, None], 1)
            density -= 0.5 * z[:, j] ** 2 + size
        return theta, density

    def log_density(self, theta: Array) -> Array:
        """log q at theta (c, p), (c,)."""
        own = np.take_along_axis(theta, self.order, 1)
        z, density = np.zeros_like(own), np.zeros(len(own))
        for j in reversed(range(own.shape[1])):
            middle, _, _, size = self._limits(j, z)
            z[:, j] = (own[:, j] - middle) / self.root[:, j, j]
            density -= 0.5 * z[:, j] ** 2 + size
        return density

    def _limits(self, j: int, z: Array) -> tuple[Array, Array, Array, Array]:
        """Of coordinate j given the later ones: its mean, the bounds of z_j, log(Phi(b_j) - Phi(a_j)), (c,) each."""
        middle = self.centre[:, j] + np.sum(self.root[:, j] * z, axis=1)
        low, high = ((bound[:, j] - middle) / self.root[:, j, j] for bound in (self.low, self.high))
        return middle, low, high, _log_between(*_mirrored(low, high))


def share_outside(centre: Array, root: Array, support: Parameters) -> float:
    """How much of N(centre, R R') lies outside of the support, at most: the sum over the bounds."""
    sd = np.sqrt(np.sum(root**2, axis=1))
    sides = ((support.lower - centre) / sd, (centre - support.upper) / sd)
    return float(sum(np.exp(log_ndtr(side)).sum() for side in sides))


def _mirrored(low: Array, high: Array) -> tuple[Array, Array]:
    """The bounds, or those of -z: the ones whose tail lies to the left, where Phi can be told from 0."""
    turned = low > -high
    return np.where(turned, -high, low), np.where(turned, -low, high)


def _log_between(low: Array, high: Array) -> Array:
    top = log_ndtr(high)
    return np.asarray(top + np.log(-np.expm1(log_ndtr(low) - top)))


def _normal_between(low: Array, high: Array, size: Array, uniform: Array) -> Array:
    """Standard normals between the bounds, by the inverse of Phi on the log scale."""
    below, above = _mirrored(low, high)
    # 1 - u is never zero
    drawn = ndtri_exp(np.minimum(np.logaddexp(log_ndtr(below), np.log1p(-uniform) + size), 0.0))
    drawn = np.clip(drawn, below, above)
    return np.asarray(np.where(low > -high, -drawn, drawn))


#: how likely it may be that no inner proposal is accepted
LEFT_OVER = 0.01
#: degrees of freedom of the proposal where the conditional is not close to Gaussian
HEAVY_TAILS = 4.0
#: how often a random-walk step follows where practically every proposal is accepted
RARE_WALK = 0.1
#: redraws of a proposal that falls outside the support
REDRAWS = 20
#: acceptance below which the proposal gets better at the price of more work
POOR = 0.5
#: share of the proposals outside the support beyond which they are then truncated at its bounds instead
OUTSIDE = 0.2
#: proposals of a step in the first window
FIRST_STEPS = 2
#: share of the steps without any move beyond which slice sampling is needed, the proposals' acceptance above which it
#: no longer is, and its sweeps
STANDSTILL, RECOVERED, SWEEPS = 0.5, 0.2, 2


class LaplaceTuning(NamedTuple):
    """The linearised simulator around ``pivot`` and how much work a step does.

    The conditional is approximated by N(centre + gain (y - b*), H^-1) with H = ``lower`` ``lower``'; ``root`` is the
    inverse of ``lower``'. ``freedom`` makes it a Student t; random-walk steps follow with probability ``walk``.
    ``model`` (n, q) and ``gradient`` (n, q, p) are the simulator's at the pivot. ``truncated`` proposals end at the
    bounds of the support; ``sweeps`` of slice sampling take the place of the random walk where proposals fail.
    """

    pivot: Array
    model: Array
    gradient: Array
    centre: Array
    gain: Array
    lower: Array
    root: Array
    steps: int
    refinements: int
    walk: float
    freedom: float
    truncated: bool = False
    sweeps: int = 0


def inner_steps(tuning: object) -> int | None:
    """The number of proposals that were chosen in warm-up; None for the tuning of another kernel."""
    return tuning.steps if isinstance(tuning, LaplaceTuning) else None


@listed
@dataclass(frozen=True)
class Laplace:
    """Independence proposals from the Gauss–Newton approximation of Pi(theta | b*, y), then a random-walk step.

    The simulator is linearised once, at theta_tilde and then at the mean of the warm-up: a proposal costs one call.
    Where the conditional is not that close to Gaussian (acceptance below 95 % in warm-up) the proposal gets the tails
    of a Student t; where it is strongly curved (below 50 %) Gauss–Newton steps follow for each bias, at the price of a
    gradient each. The number of inner proposals (at most ``most_steps``) is chosen in warm-up such that all of them
    are refused in about one step in a hundred or less; the random-walk step, which helps in heavy tails, becomes rare
    where that takes one proposal. For a simulator that is linear in theta with Gaussian priors every step is an exact
    draw.

    Where few are accepted and a fifth or more of the proposals would fall outside the support, they are truncated at
    its bounds. Where most steps pass without a move all the same, sweeps of slice sampling follow, along the axes of
    the approximation and of theta.

    Parameters
    ----------
    steps
        Number of inner proposals; None (default) chooses it in warm-up.
    most_steps
        Upper limit of that choice.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> method = oc.methods.Projected(kernel=oc.kernels.Laplace(steps=3))
    >>> posterior = oc.calibrate(problem, method, draws=50, chains=2, seed=1, progress=False)
    >>> bool(posterior.data["sample_stats"]["acceptance_rate"].mean() > 0.9)
    True
    """

    name: ClassVar[str] = "laplace"

    steps: int | None = None
    most_steps: int = 25

    def __post_init__(self) -> None:
        if (self.steps is not None and self.steps < 1) or self.most_steps < 1:
            raise InputError("the theta step needs at least one inner step")

    def tune(self, model: ThetaModel, pivot: Array) -> LaplaceTuning:
        return linearised(model, pivot, self.steps or FIRST_STEPS)

    def adapt(self, tuning: LaplaceTuning, model: ThetaModel, thetas: Array, acceptance: Array) -> LaplaceTuning:
        rate = float(np.clip(acceptance.mean(), 1e-3, 1 - 1e-9))
        refinements = min(tuning.refinements + (rate < POOR), 3)
        freedom = HEAVY_TAILS if rate < 0.95 else tuning.freedom
        needed = np.ceil(np.log(LEFT_OVER) / np.log1p(-rate))
        # refusals come in runs: the share of steps without any move has the last word
        stuck = np.mean(acceptance == 0.0)
        if stuck > LEFT_OVER:
            needed = max(needed, 2 * tuning.steps)
        elif stuck > 0:
            needed = max(needed, tuning.steps)
        steps = self.steps or int(np.clip(needed, 1, self.most_steps))
        walk = RARE_WALK if rate > 1 - LEFT_OVER else 1.0
        new: LaplaceTuning = at_middle(
            lambda pivot: linearised(model, pivot, steps, refinements, walk, freedom), model.parameters, thetas
        )
        outside = share_outside(new.pivot, new.root, model.parameters) > OUTSIDE
        truncated = outside and (tuning.truncated or rate < POOR)
        # away from bounds the first window may only have begun far out
        again = tuning.refinements > 0 or tuning.steps > FIRST_STEPS
        fails = (stuck > STANDSTILL and (outside or again)) or (tuning.sweeps > 0 and rate < RECOVERED)
        if not fails:
            return new._replace(truncated=truncated)
        # the sweeps do the work
        return new._replace(truncated=truncated, sweeps=SWEEPS, steps=self.steps or 1)

    def step(
        self, rngs: Rngs, tuning: LaplaceTuning, state: ThetaState, target: Conditional
    ) -> tuple[ThetaState, StepInfo]:
        centre, lower, root = _approximation(tuning, target)
        truncated = Truncated.of(centre, lower, target.base.parameters) if tuning.truncated else None
        density = target.log_density(state)
        accepted = np.zeros(len(rngs))
        for _ in range(tuning.steps):
            if truncated is not None:
                theta, log_q = truncated.draw(rngs)
                log_q = log_q - truncated.log_density(state.theta)
            else:
                theta, scaled = _proposal(rngs, centre, root, tuning.freedom, target)
                own = ((state.theta - centre)[:, None] @ lower)[:, 0]
                log_q = _log_kernel(scaled, tuning.freedom) - _log_kernel(own, tuning.freedom)
            proposal = target.base.state(theta)
            proposed = target.log_density(proposal)
            state, density, moved = accept(rngs, state, density, proposal, proposed, proposed - density - log_q)
            accepted += moved
        if tuning.sweeps:
            state, density = swept(rngs, state, target, slice_directions(tuning), tuning.sweeps)
            return state, StepInfo(np.ones(len(rngs)), density, accepted / tuning.steps)
        if tuning.walk == 1.0 or rngs[0].random() < tuning.walk:
            p = state.theta.shape[1]
            walk = normals(rngs, p) @ tuning.root.T * (2.4 / np.sqrt(p))
            proposal = target.base.state(state.theta + walk)
            proposed = target.log_density(proposal)
            state, density, _ = accept(rngs, state, density, proposal, proposed, proposed - density)
        return state, StepInfo(accepted / tuning.steps, density)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, "steps": self.steps}


def linearised(
    model: ThetaModel,
    pivot: Array,
    steps: int = 1,
    refinements: int = 0,
    walk: float = 1.0,
    freedom: float = np.inf,
) -> LaplaceTuning:
    """The conditional of a simulator that is linearised at ``pivot`` (p,)."""
    gradient, fit = model.gradient(pivot), model.simulate(pivot[None])[0]
    lower = np.linalg.cholesky(laplace_precision(model, pivot, gradient))
    p = len(pivot)
    gain = cho_solve((lower, True), weighted(model.precision, np.moveaxis(gradient, -1, 0)).reshape(p, -1))
    pull = cho_solve((lower, True), model.parameters.log_prior_gradient(pivot))
    if not np.isfinite(fit).all():
        raise NonFiniteError(f"the simulator fails at {model.parameters.support.describe(pivot)}")
    centre = pivot + pull - gain @ fit.ravel()
    root = np.linalg.inv(lower).T
    return LaplaceTuning(pivot, fit, gradient, centre, gain, lower, root, steps, refinements, walk, freedom)


def linear_centre(tuning: LaplaceTuning, target: Conditional) -> Array:
    """The centre of the linearised conditional, (c, p); each chain has its own noise where that is sampled."""
    c = len(target.offset)
    if target.noise_precision is None:
        return np.asarray(tuning.centre + target.offset.reshape(c, -1) @ tuning.gain.T)
    return _own_noise(tuning, target)[0]


def _own_noise(tuning: LaplaceTuning, target: Conditional) -> tuple[Array, Array]:
    """Centre (c, p) and precision (c, p, p) at the pivot: the same formulas, with each chain's noise."""
    c = len(target.offset)
    pivots = np.tile(tuning.pivot, (c, 1))
    state = ThetaState(pivots, np.broadcast_to(tuning.model, target.offset.shape), np.zeros(c))
    gradient = np.broadcast_to(tuning.gradient, (c, *tuning.gradient.shape))
    precision = target.precision(pivots, gradient)
    return pivots + np.linalg.solve(precision, target.score(state, gradient)[..., None])[..., 0], precision


def _approximation(tuning: LaplaceTuning, target: Conditional) -> tuple[Array, Array, Array]:
    """Centre (c, p), factor of the precision and its inverse (c, p, p): functions of the bias, never of theta.

    A truncated proposal may have its centre outside the support; any other would hardly ever propose anything inside.
    """
    model = target.base

    def within(theta: Array) -> Array:
        return theta if tuning.truncated else model.parameters.clipped(theta, 1e-6)

    if target.noise_precision is None:
        centre = within(linear_centre(tuning, target))
        if not tuning.refinements:
            return centre, tuning.lower[None], tuning.root[None]
    else:
        centre, precision = _own_noise(tuning, target)
        centre = within(centre)
    for _ in range(tuning.refinements):
        centre = model.parameters.clipped(centre, 1e-6)
        state = model.state(centre)
        failed = np.isnan(state.log_prior + state.model.sum(axis=(1, 2)))[:, None]
        bases = np.where(failed, tuning.pivot, centre)
        gradient = np.stack([_gradient(model, one, tuning) for one in bases])
        precision = target.precision(bases, gradient)
        step = np.linalg.solve(precision, target.score(state, gradient)[..., None])[..., 0]
        centre = within(centre + np.where(failed, 0.0, step))
    lower = np.linalg.cholesky(precision)
    return centre, lower, np.linalg.inv(lower).swapaxes(1, 2)


def _gradient(model: ThetaModel, theta: Array, tuning: LaplaceTuning) -> Array:
    """The gradient at theta; that at the pivot where the simulator fails on all sides."""
    try:
        return model.gradient(theta)
    except NonFiniteError:
        return tuning.gradient


def slice_directions(tuning: LaplaceTuning) -> Array:
    """Of slice sampling, (2 p, p): the axes of the approximation, and those of theta, along which corners open."""
    own = 1 / np.sqrt(np.sum(tuning.lower**2, axis=1))
    return 4 * np.concatenate([tuning.root.T, np.diag(own)])


def _proposal(rngs: Rngs, centre: Array, root: Array, freedom: float, target: Conditional) -> tuple[Array, Array]:
    """theta = centre + root z inside the support, and z: normal, or Student t with ``freedom``.

    Redrawing until inside samples the truncated distribution; its unknown constant does not depend on the current
    theta and cancels.
    """
    p = centre.shape[1]
    inside = target.base.parameters.inside
    scaled = np.array([_standard(rng, 1, p, freedom)[0] for rng in rngs])
    theta = centre + (root @ scaled[..., None])[..., 0]
    for c in np.flatnonzero(~inside(theta)):
        tries = _standard(rngs[c], REDRAWS, p, freedom)
        candidates = centre[c] + tries @ root[c if len(root) > 1 else 0].T
        first = np.flatnonzero(inside(candidates))
        if first.size:
            theta[c], scaled[c] = candidates[first[0]], tries[first[0]]
    return theta, scaled


def _standard(rng: np.random.Generator, count: int, p: int, freedom: float) -> Array:
    """Standard normal vectors, or Student t, (count, p)."""
    normal = rng.standard_normal((count, p))
    if freedom == np.inf:
        return normal
    return np.asarray(normal / np.sqrt(rng.chisquare(freedom, size=(count, 1)) / freedom))


def _log_kernel(z: Array, freedom: float) -> Array:
    """The log density of ``_standard`` at z (c, p) up to a constant, (c,)."""
    squared = np.sum(z**2, axis=1)
    if freedom == np.inf:
        return np.asarray(-0.5 * squared)
    return np.asarray(-0.5 * (freedom + z.shape[1]) * np.log1p(squared / freedom))

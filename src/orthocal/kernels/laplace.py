"""The default theta step: an independence proposal from the Laplace approximation, Metropolis-corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..arrays import Array
from ..errors import InputError
from .base import Conditional, Rngs, StepInfo, ThetaModel, ThetaState, accept, laplace_precision, normals

#: how likely it may be that no inner proposal is accepted
LEFT_OVER = 0.01
#: redraws of a proposal that falls outside the support
REDRAWS = 20


class LaplaceTuning(NamedTuple):
    """The linearised simulator around ``pivot`` and how much work a step does.

    The conditional is approximated by N(centre + gain (y - b*), H^-1) with H = ``lower`` ``lower``'.
    """

    pivot: Array
    centre: Array
    gain: Array
    lower: Array
    steps: int
    refinements: int


@dataclass(frozen=True)
class Laplace:
    """Independence proposals from the Gauss–Newton approximation of Pi(theta | b*, y), then a random-walk step.

    The simulator is linearised once, at theta_tilde and then at the mean of the warm-up: a proposal costs one call.
    Where the conditional is too curved for that (low acceptance in warm-up), Gauss–Newton steps from there follow
    for each bias, at the price of a gradient each. The number of inner proposals is chosen in warm-up such that
    all of them are refused in less than one step in a hundred; the random-walk step helps in heavy tails. For a
    simulator that is linear in theta with Gaussian priors every step is an exact draw.

    Parameters
    ----------
    steps
        Number of inner proposals; None (default) chooses it in warm-up.
    most_steps
        Upper limit of that choice.
    """

    steps: int | None = None
    most_steps: int = 25

    def __post_init__(self) -> None:
        if (self.steps is not None and self.steps < 1) or self.most_steps < 1:
            raise InputError("the theta step needs at least one inner step")

    def tune(self, model: ThetaModel, pivot: Array) -> LaplaceTuning:
        return _linearised(model, pivot, self.steps or 2, 0)

    def adapt(self, tuning: LaplaceTuning, model: ThetaModel, thetas: Array, acceptance: Array) -> LaplaceTuning:
        rate = float(np.clip(acceptance.mean(), 1e-3, 1 - 1e-9))
        refinements = min(tuning.refinements + (rate < 0.5), 3)
        steps = self.steps or int(np.clip(np.ceil(np.log(LEFT_OVER) / np.log1p(-rate)), 1, self.most_steps))
        return _linearised(model, thetas.reshape(-1, thetas.shape[-1]).mean(axis=0), steps, refinements)

    def step(
        self, rngs: Rngs, tuning: LaplaceTuning, state: ThetaState, target: Conditional
    ) -> tuple[ThetaState, StepInfo]:
        centre, lower = _approximation(tuning, target)
        p = state.theta.shape[1]
        density = target.log_density(state)
        accepted = np.zeros(len(rngs))
        for _ in range(tuning.steps):
            theta, log_q = _proposal(rngs, centre, lower, target)
            own = np.einsum("cij,ci->cj", lower, state.theta - centre)
            proposal = target.base.state(theta)
            proposed = target.log_density(proposal)
            log_ratio = proposed - density - (log_q + 0.5 * np.sum(own**2, axis=1))
            state, density, moved = accept(rngs, state, density, proposal, proposed, log_ratio)
            accepted += moved
        walk = solve_triangular(tuning.lower, normals(rngs, p).T, lower=True, trans=1).T * (2.4 / np.sqrt(p))
        proposal = target.base.state(state.theta + walk)
        proposed = target.log_density(proposal)
        state, density, _ = accept(rngs, state, density, proposal, proposed, proposed - density)
        return state, StepInfo(accepted / tuning.steps, density)

    def describe(self) -> dict[str, Any]:
        return {"kind": "laplace", "steps": self.steps}


def _linearised(model: ThetaModel, pivot: Array, steps: int, refinements: int) -> LaplaceTuning:
    gradient = model.gradient(pivot)
    lower = np.linalg.cholesky(laplace_precision(model, pivot, gradient))
    p = len(pivot)
    gain = cho_solve((lower, True), (gradient * model.precision[:, :, None]).reshape(-1, p).T)
    pull = cho_solve((lower, True), model.parameters.log_prior_gradient(pivot))
    centre = pivot + pull - gain @ model.simulate(pivot).ravel()
    return LaplaceTuning(pivot, centre, gain, lower, steps, refinements)


def _approximation(tuning: LaplaceTuning, target: Conditional) -> tuple[Array, Array]:
    """Centre (c, p) and precision factor (c, p, p) of the proposal: a function of the bias, never of theta."""
    model = target.base
    c = len(target.offset)
    centre = tuning.centre + target.offset.reshape(c, -1) @ tuning.gain.T
    lower = np.broadcast_to(tuning.lower, (c, *tuning.lower.shape))
    margin = 1e-6 * model.parameters.spread
    for _ in range(tuning.refinements):
        centre = np.clip(centre, model.parameters.lower + margin, model.parameters.upper - margin)
        state = model.state(centre)
        failed = np.isnan(state.model).any(axis=(1, 2))
        gradient = np.stack([model.gradient(tuning.pivot if bad else one) for one, bad in zip(centre, failed, strict=True)])
        precision = np.stack([laplace_precision(model, one, g) for one, g in zip(centre, gradient, strict=True)])
        lower = np.linalg.cholesky(precision)
        step = np.linalg.solve(precision, target.score(state, gradient)[..., None])[..., 0]
        centre = centre + np.where(failed[:, None], 0.0, step)
    return centre, lower


def _proposal(rngs: Rngs, centre: Array, lower: Array, target: Conditional) -> tuple[Array, Array]:
    """Draws of N(centre, (L L')^-1) inside the support, and their log density up to a constant.

    Redrawing until inside samples the truncated normal; its unknown constant does not depend on theta and cancels.
    """
    p = centre.shape[1]
    # one block of normals a chain: the stream does not depend on what the other chains do
    normal = normals(rngs, p)
    theta = centre + np.linalg.solve(np.swapaxes(lower, 1, 2), normal[..., None])[..., 0]
    outside = ~target.base.parameters.inside(theta)
    for c in np.flatnonzero(outside):
        tries = rngs[c].standard_normal((REDRAWS, p))
        candidates = centre[c] + solve_triangular(lower[c], tries.T, lower=True, trans=1).T
        first = np.flatnonzero(target.base.parameters.inside(candidates))
        if first.size:
            theta[c], normal[c] = candidates[first[0]], tries[first[0]]
    return theta, -0.5 * np.sum(normal**2, axis=1)

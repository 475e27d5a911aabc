"""Hamiltonian Monte Carlo (Neal 2011) with the Laplace precision as mass, reflected at the support's bounds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InputError, NonFiniteError
from .base import Conditional, Rngs, StepInfo, ThetaModel, ThetaState, accept, at_middle, laplace_root, listed, normals

#: the acceptance rate aimed at
TARGET_ACCEPTANCE = 0.8


class HMCTuning(NamedTuple):
    """theta moves along ``root`` (p, p), with root root' = H^-1: all directions then have unit scale."""

    root: Array
    size: float


@listed
@dataclass(frozen=True)
class HMC:
    """Hamiltonian Monte Carlo with the simulator's gradient.

    Parameters
    ----------
    trajectories
        Trajectories for each bias.
    leapfrogs
        Leapfrog steps of a trajectory; each needs the gradient once.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> method = oc.methods.NoBias(kernel=oc.kernels.HMC(trajectories=2))
    >>> posterior = oc.calibrate(problem, method, draws=50, chains=2, warmup=50, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - problem.theta_tilde[0]) < 0.1)
    True
    """

    name: ClassVar[str] = "hmc"

    trajectories: int = 4
    leapfrogs: int = 5

    def __post_init__(self) -> None:
        if self.trajectories < 1 or self.leapfrogs < 1:
            raise InputError("HMC needs at least one trajectory of at least one leapfrog step")

    def tune(self, model: ThetaModel, pivot: Array) -> HMCTuning:
        return HMCTuning(laplace_root(model, pivot), 1.5 / self.leapfrogs)

    def adapt(self, tuning: HMCTuning, model: ThetaModel, thetas: Array, acceptance: Array) -> HMCTuning:
        root = at_middle(lambda pivot: laplace_root(model, pivot), model.parameters, thetas)
        # beyond a quarter of the period a trajectory turns back
        size = min(tuning.size * np.exp(acceptance.mean() - TARGET_ACCEPTANCE), 1.6 / self.leapfrogs)
        return HMCTuning(root, float(size))

    def step(
        self, rngs: Rngs, tuning: HMCTuning, state: ThetaState, target: Conditional
    ) -> tuple[ThetaState, StepInfo]:
        density = target.log_density(state)
        accepted = np.zeros(len(rngs))
        for _ in range(self.trajectories):
            momentum = normals(rngs, state.theta.shape[1])
            # a random length keeps trajectories from closing on themselves
            size = tuning.size * np.array([rng.uniform(0.8, 1.2) for rng in rngs])[:, None]
            proposal, end = self._trajectory(tuning, state, momentum, size, target)
            proposed = target.log_density(proposal)
            log_ratio = proposed - density + 0.5 * np.sum(momentum**2 - end**2, axis=1)
            state, density, moved = accept(rngs, state, density, proposal, proposed, log_ratio)
            accepted += moved
        return state, StepInfo(accepted / self.trajectories, density)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, "trajectories": self.trajectories, "leapfrogs": self.leapfrogs}

    def _trajectory(
        self, tuning: HMCTuning, state: ThetaState, momentum: Array, size: Array, target: Conditional
    ) -> tuple[ThetaState, Array]:
        momentum = momentum + 0.5 * size * _force(tuning, state, target)
        for leap in range(self.leapfrogs):
            moved = state.theta + size * momentum @ tuning.root.T
            theta, momentum = _reflected(moved, momentum, size, tuning, target)
            state = target.base.state(theta)
            share = 0.5 if leap == self.leapfrogs - 1 else 1.0
            momentum = momentum + share * size * _force(tuning, state, target)
        return state, momentum


def _force(tuning: HMCTuning, state: ThetaState, target: Conditional) -> Array:
    """The slope of the log density in the scaled coordinates; none where the simulator fails."""
    force = np.zeros_like(state.theta)
    gradients = {}
    for c in np.flatnonzero(np.isfinite(target.log_density(state))):
        # any force that depends on theta alone leaves the trajectory reversible
        with suppress(NonFiniteError):
            gradients[int(c)] = target.base.gradient(state.theta[c])
    if gradients:
        working = list(gradients)
        score = target.part(working).score(
            ThetaState(*(values[working] for values in state)), np.stack(list(gradients.values()))
        )
        force[working] = score @ tuning.root
    return force


def _reflected(
    theta: Array, momentum: Array, size: Array, tuning: HMCTuning, target: Conditional
) -> tuple[Array, Array]:
    """Reflect at a bound, in the metric of the mass matrix, after a move by ``size`` along ``momentum``.

    A reflection at theta_j = bound mirrors along root root' e_j, which keeps the kinetic energy. It is done only
    where the move back crosses the same bound and no other, which keeps the trajectory reversible; elsewhere theta
    stays outside and is refused.
    """
    parameters = target.base.parameters

    def beyond(place: Array) -> Array:
        """-1 below the lower bounds, 1 above the upper ones, else 0."""
        return (place > parameters.upper) * 1.0 - (place < parameters.lower)

    crossed = beyond(theta)
    theta, momentum = theta.copy(), momentum.copy()
    for c in np.flatnonzero(np.count_nonzero(crossed, axis=1) == 1):
        j = int(np.flatnonzero(crossed[c])[0])
        bound = parameters.lower[j] if crossed[c, j] < 0 else parameters.upper[j]
        normal = tuning.root[j] / np.linalg.norm(tuning.root[j])
        turned = momentum[c] - 2 * (momentum[c] @ normal) * normal
        mirror = 2 * tuning.root @ tuning.root[j] / np.sum(tuning.root[j] ** 2)
        landed = theta[c] - (theta[c, j] - bound) * mirror
        back = landed - size[c] * tuning.root @ turned
        if np.array_equal(beyond(back), crossed[c]):
            theta[c], momentum[c] = landed, turned
    return theta, momentum

"""Slice sampling (Neal 2003): stepping out and shrinking, along the axes of the Laplace approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InputError
from .base import Conditional, Rngs, StepInfo, ThetaModel, ThetaState, at_middle, laplace_root, listed

#: widenings of the bracket, on both sides together, before it is taken as it is
MOST_WIDENINGS = 100


class SliceTuning(NamedTuple):
    """Directions of the moves, (p, p), one a column, each as long as a typical move."""

    directions: Array


@listed
@dataclass(frozen=True)
class Slice:
    """Slice sampling along p directions that are uncorrelated under the Laplace approximation.

    Parameters
    ----------
    sweeps
        How often all directions are updated for each bias.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> method = oc.methods.NoBias(kernel=oc.kernels.Slice(sweeps=2))
    >>> posterior = oc.calibrate(problem, method, draws=50, chains=2, warmup=50, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - problem.theta_tilde[0]) < 0.1)
    True
    """

    name: ClassVar[str] = "slice"

    sweeps: int = 4

    def __post_init__(self) -> None:
        if self.sweeps < 1:
            raise InputError(f"sweeps={self.sweeps}: the theta step needs at least one sweep")

    def tune(self, model: ThetaModel, pivot: Array) -> SliceTuning:
        # a bracket of four standard deviations mostly needs no widening
        return SliceTuning(4 * laplace_root(model, pivot))

    def adapt(self, tuning: SliceTuning, model: ThetaModel, thetas: Array, acceptance: Array) -> SliceTuning:
        return at_middle(lambda pivot: self.tune(model, pivot), model.parameters, thetas)

    def step(
        self, rngs: Rngs, tuning: SliceTuning, state: ThetaState, target: Conditional
    ) -> tuple[ThetaState, StepInfo]:
        new, density = swept(rngs, state, target, tuning.directions.T, self.sweeps)
        return new, StepInfo(np.ones(len(rngs)), density)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, "sweeps": self.sweeps}


def swept(
    rngs: Rngs, state: ThetaState, target: Conditional, directions: Array, sweeps: int
) -> tuple[ThetaState, Array]:
    """The state after so many updates along each of the directions (r, p), and its log density, (c,)."""
    chains = [_Chain(rng, state, target, c) for c, rng in enumerate(rngs)]
    for chain in chains:
        for _ in range(sweeps):
            for direction in directions:
                chain.move(direction)
    new = ThetaState(*(np.concatenate(parts) for parts in zip(*(chain.state for chain in chains), strict=True)))
    return new, np.array([chain.density for chain in chains])


class _Chain:
    """One chain's state while it moves."""

    def __init__(self, rng: np.random.Generator, state: ThetaState, target: Conditional, c: int) -> None:
        self._rng = rng
        self._target = target.part(slice(c, c + 1))
        self.state = ThetaState(*(part[c : c + 1] for part in state))
        self.density = float(self._target.log_density(self.state)[0])

    def move(self, direction: Array) -> None:
        level = self.density - self._rng.exponential()
        left = -self._rng.random()
        right = left + 1.0
        # the limit is split at random between the sides: a fixed one would not be reversible (Neal 2003)
        to_the_left = int(self._rng.integers(MOST_WIDENINGS))
        for _ in range(to_the_left):
            if self._at(left, direction)[1] <= level:
                break
            left -= 1.0
        for _ in range(MOST_WIDENINGS - 1 - to_the_left):
            if self._at(right, direction)[1] <= level:
                break
            right += 1.0
        while True:
            shift = self._rng.uniform(left, right)
            state, density = self._at(shift, direction)
            if density > level or right - left < 1e-12:
                break
            left, right = (shift, right) if shift < 0 else (left, shift)
        if density > level:
            self.state, self.density = state, density

    def _at(self, shift: float, direction: Array) -> tuple[ThetaState, float]:
        state = self._target.base.state(self.state.theta + shift * direction)
        return state, float(self._target.log_density(state)[0])

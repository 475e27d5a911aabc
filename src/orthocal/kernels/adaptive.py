"""Adaptive Metropolis (Haario, Saksman, Tamminen 2001), adapted in warm-up only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InputError
from .base import Conditional, Rngs, StepInfo, ThetaModel, ThetaState, accept, laplace_root, listed, normals

#: the acceptance rate aimed at, the paper's
TARGET_ACCEPTANCE = 0.3


class WalkTuning(NamedTuple):
    """Proposals are v + scale * root z, z ~ N(0, I)."""

    root: Array
    scale: float

    @classmethod
    def first(cls, root: Array) -> WalkTuning:
        """Where root root' is about the covariance of the draws, (p, p)."""
        return cls(root, 2.4 / np.sqrt(len(root)))

    def adapted(self, draws: Array, acceptance: float) -> WalkTuning:
        """Better tuning from a window of warm-up draws, (w, p)."""
        found = np.cov(draws, rowvar=False).reshape(self.root.shape)
        # half old, half new keeps the covariance regular when a window has hardly moved
        root = np.linalg.cholesky(0.5 * self.root @ self.root.T + 0.5 * found)
        return WalkTuning(root, float(self.scale * np.exp(acceptance - TARGET_ACCEPTANCE)))


@listed
@dataclass(frozen=True)
class AdaptiveMetropolis:
    """Random-walk Metropolis with the covariance and scale learnt in warm-up.

    Parameters
    ----------
    steps
        Inner steps for each bias. One is not enough: the sampler's law would depend on the step size.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> method = oc.methods.NoBias(kernel=oc.kernels.AdaptiveMetropolis(steps=10))
    >>> posterior = oc.calibrate(problem, method, draws=50, chains=2, warmup=100, seed=1, progress=False)
    >>> bool(0.1 < posterior.data["sample_stats"]["acceptance_rate"].mean() < 0.7)
    True
    """

    name: ClassVar[str] = "adaptive"

    steps: int = 30

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"steps={self.steps}: the theta step needs at least one inner step")

    def tune(self, model: ThetaModel, pivot: Array) -> WalkTuning:
        return WalkTuning.first(laplace_root(model, pivot))

    def adapt(self, tuning: WalkTuning, model: ThetaModel, thetas: Array, acceptance: Array) -> WalkTuning:
        return tuning.adapted(thetas.reshape(-1, thetas.shape[-1]), float(acceptance.mean()))

    def step(
        self, rngs: Rngs, tuning: WalkTuning, state: ThetaState, target: Conditional
    ) -> tuple[ThetaState, StepInfo]:
        density = target.log_density(state)
        accepted = np.zeros(len(rngs))
        for _ in range(self.steps):
            walk = tuning.scale * normals(rngs, state.theta.shape[1]) @ tuning.root.T
            proposal = target.base.state(state.theta + walk)
            proposed = target.log_density(proposal)
            state, density, moved = accept(rngs, state, density, proposal, proposed, proposed - density)
            accepted += moved
        return state, StepInfo(accepted / self.steps, density)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, "steps": self.steps}

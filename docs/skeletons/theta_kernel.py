"""A theta kernel, to copy: random-walk Metropolis.

Inside the package: a file in ``kernels/`` under ``@listed`` and a line in its ``__init__.py``. Outside give the object,
``oc.methods.Projected(kernel=RandomWalk())``.
"""

from dataclasses import dataclass, replace

import numpy as np

from orthocal.kernels.base import StepInfo, accept, laplace_root, normals


@dataclass(frozen=True)
class Tuning:
    """What warm-up learns; it is fixed before the first draw that is kept."""

    root: np.ndarray
    scale: float


@dataclass(frozen=True)
class RandomWalk:
    """theta' = theta + scale R z, z ~ N(0, I), accepted with probability min(1, p(theta') / p(theta)).

    p is the density of theta given b* and y, R R' the covariance of its Laplace approximation.
    """

    # the user's choices
    steps: int = 50

    def tune(self, model, pivot):
        return Tuning(laplace_root(model, pivot), 2.4 / np.sqrt(len(pivot)))

    # after each window of the warm-up: thetas (w, c, p), acceptance (w, c)
    def adapt(self, tuning, model, thetas, acceptance):
        return replace(tuning, scale=tuning.scale * np.exp(acceptance.mean() - 0.3))

    # All chains at a time. Leaving p invariant is not enough: the bias moves between two steps, so theta must be a draw
    # from p, by many inner steps. The density is computed anew, because that of the last step has another bias.
    def step(self, rngs, tuning, state, target):
        density = target.log_density(state)
        accepted = np.zeros(len(rngs))
        for _ in range(self.steps):
            walk = tuning.scale * normals(rngs, state.theta.shape[1]) @ tuning.root.T
            proposal = target.base.state(state.theta + walk)
            proposed = target.log_density(proposal)
            state, density, moved = accept(rngs, state, density, proposal, proposed, proposed - density)
            accepted += moved
        return state, StepInfo(accepted / self.steps, density)

    # what JSON can store
    def describe(self):
        return {"kind": "random-walk", "steps": self.steps}

"""Kennedy and O'Hagan (2001): a Gaussian-process bias that is left free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, matrix_root
from ..bias import GP
from ..bias.joint_gp import JointGP
from ..bias.outcomes import OutcomesBias
from ..problem import Problem
from .base import Draws, Plan
from .marginal import DrawnBias, Marginal, gaussian_bias, sample


@dataclass(frozen=True)
class KO:
    """theta | y with y - f(theta) ~ N(0, K + noise): the bias is integrated out and not constrained.

    Theta and the bias cannot be told apart: the posterior is wide, and it depends on the prior of the bias however
    many data there are. It is here for comparison.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the bias, as for ``oc.bias.GP``.
    """

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None

    def __post_init__(self) -> None:
        self._prior()

    def run(self, problem: Problem, plan: Plan) -> Draws:
        bias = gaussian_bias(problem, self._prior(), np.empty((0, problem.data.d)))
        joint = bias.joint()
        marginal = Marginal(matrix_root(joint.evidence_precision()), free_bias(bias, joint))
        return sample(problem, plan, marginal, bias)

    def describe(self) -> dict[str, Any]:
        return {"kind": "ko", "bias": self._prior().describe()}

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)


def free_bias(bias: OutcomesBias, joint: JointGP) -> Any:
    """Draws of the bias given theta that nothing constrains."""

    def draw(rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
        state, values = bias.gathered(joint.draw(rngs, residual))
        return DrawnBias(values[:, : residual.shape[1]], bias.records(state), {})

    return draw

"""Calibration as if the simulator were right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array
from ..problem.problem import Problem
from .base import Draws, ListedMethod, Plan, listed
from .marginal import DrawnBias, Marginal, require_fixed_noise, sample


@listed
@dataclass(frozen=True)
class NoBias(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, noise).

    Where the simulator is wrong, the answer is confidently wrong: it depends on where the data happen to lie, and the
    interval knows of the noise only. The least-squares fit without priors is ``problem.theta_tilde``.
    """

    kind: ClassVar[str] = "none"

    def run(self, problem: Problem, plan: Plan) -> Draws:
        require_fixed_noise(problem)
        return sample(problem, plan, Marginal(None, _none), None)

    def words(self) -> str:
        return (
            "The simulator is taken as right and all that it misses as noise: where it is wrong, theta is confidently "
            "wrong, because its interval knows of the noise only."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind}


def _none(rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
    return DrawnBias(np.zeros_like(residual), {}, {})

"""Calibration as if the simulator were right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...arrays import Array
from ...kernels import Kernel, Laplace
from ...kernels.base import require_kernel
from ...problem.preflight.cost import RunCost
from ...problem.problem import Problem
from ..base import CHAIN_COST, Draws, ListedMethod, Plan, listed
from .marginal import DrawnBias, Marginal, sample


@listed
@dataclass(frozen=True)
class NoBias(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, noise).

    Where the simulator is wrong, the answer is confidently wrong: it depends on where the data happen to lie, and the
    interval knows of the noise only. Noise that is not given grows to what the simulator leaves. The best
    fit is ``problem.theta_tilde``.

    Parameters
    ----------
    kernel
        How theta is drawn, see ``orthocal.kernels``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> settings = {"draws": 100, "chains": 2, "seed": 1, "progress": False}
    >>> none = oc.calibrate(problem, oc.methods.NoBias(), **settings)
    >>> gp = oc.calibrate(problem, "gp", **settings)
    >>> bool(none.theta.std() < gp.theta.std())
    True
    """

    kind: ClassVar[str] = "none"
    cost: ClassVar[RunCost | None] = CHAIN_COST

    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        noise, cells = problem.noise, problem.data.y.size
        # errors that are correlated between rows are one Gaussian of all cells, as a bias that is integrated out is
        evidence = None if noise.rows is None else noise.joint_precision.reshape(cells, cells)
        return sample(problem, plan, lambda precision: Marginal(evidence, _none), None, self.kernel)

    def words(self) -> str:
        return (
            "The simulator is taken as right and all that it misses as noise: where it is wrong, theta is confidently "
            "wrong, because its interval knows of the noise only."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "kernel": self.kernel.describe()}


def _none(rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
    return DrawnBias(np.zeros_like(residual), {}, {})

"""The scaled Gaussian process (Gu and Wang 2018), discretised at the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...bias import GP
from ...errors import InputError
from ...kernels import Kernel, Laplace
from ...kernels.base import require_kernel
from ...problem.preflight.cost import RunCost
from ...problem.problem import Problem
from ..base import CHAIN_COST, Draws, ListedMethod, Plan, listed
from .marginal import MarginalRun, WithBias


@listed
@dataclass(frozen=True)
class SGaSP(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, K_z + noise), K_z = K - K (K + (n / lambda) sd^2 I)^-1 K.

    The prior favours a bias that is small at the data points: K_z is the covariance of a Gaussian process after it was
    seen there as 0 with the variance sd^2 n / lambda.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the bias before it is scaled, as for ``oc.bias.GP``; an sd and length-scales that are not given are
        integrated over, and their draws are in ``posterior.data["sample_stats"]``.
    scale
        lambda; None for the square root of n.
    kernel
        How theta is drawn, see ``orthocal.kernels``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> method = oc.methods.SGaSP(scale=30.0)
    >>> posterior = oc.calibrate(problem, method, draws=50, chains=2, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    kind: ClassVar[str] = "sgasp"
    cost: ClassVar[RunCost | None] = CHAIN_COST
    tells_apart: ClassVar[bool] = False

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    scale: float | None = None
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        self._prior()
        require_kernel(self.kernel)
        if self.scale is not None and not 0 < self.scale < np.inf:
            raise InputError(f"scale={self.scale}: lambda is a positive number, or None")

    def run(self, problem: Problem, plan: Plan) -> Draws:
        scale = np.sqrt(problem.unmerged.data.n) if self.scale is None else self.scale
        return MarginalRun(problem, plan, self.kernel, WithBias(problem, plan, self._prior(), pull=scale)).draws()

    def words(self) -> str:
        return (
            "The bias is a Gaussian process that is pulled towards zero at the data points: theta and the bias are "
            "told apart only as far as a small bias is preferred."
        )

    def describe(self) -> dict[str, Any]:
        described = {"kind": self.kind, "bias": self._prior().describe(), "scale": self.scale}
        return {**described, "kernel": self.kernel.describe()}

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)

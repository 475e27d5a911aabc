"""Kennedy and O'Hagan (2001): a Gaussian-process bias that is left free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...bias import GP
from ...kernels import Kernel, Laplace
from ...kernels.base import require_kernel
from ...problem.preflight.cost import RunCost
from ...problem.problem import Problem
from ..base import CHAIN_COST, Draws, ListedMethod, Plan, listed
from .marginal import MarginalRun, WithBias


@listed
@dataclass(frozen=True)
class KO(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, K + noise): the bias is integrated out and not constrained.

    Theta and the bias cannot be told apart: the posterior is wide, and it depends on the prior of the bias however
    many data there are. It is here for comparison.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the bias, as for ``oc.bias.GP``. An sd and length-scales that are not given are integrated over, with the
        priors of ``oc.bias.GP``. Their draws are in ``posterior.data["sample_stats"]``: ``sd_k`` and
        ``lengthscale_k_j`` for outcome k and input j, from 0 on, with sd in the unit of the outcome.
    kernel
        How theta is drawn, see ``orthocal.kernels``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> settings = {"draws": 100, "chains": 2, "seed": 1, "progress": False}
    >>> ko = oc.calibrate(problem, oc.methods.KO(nu=2.5), **settings)
    >>> gp = oc.calibrate(problem, "gp", **settings)
    >>> bool(ko.theta.std() > 1.5 * gp.theta.std())
    True
    """

    kind: ClassVar[str] = "ko"
    cost: ClassVar[RunCost | None] = CHAIN_COST
    tells_apart: ClassVar[bool] = False
    free_bias: ClassVar[bool] = True

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        self._prior()
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        return MarginalRun(problem, plan, self.kernel, WithBias(problem, plan, self._prior())).draws()

    def words(self) -> str:
        return (
            "The bias is a Gaussian process that nothing constrains, so theta and the bias cannot be told apart: where "
            "there is a bias, the posterior of theta is wide, it depends on the bias's prior, and more data do not "
            "help."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "bias": self._prior().describe(), "kernel": self.kernel.describe()}

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)

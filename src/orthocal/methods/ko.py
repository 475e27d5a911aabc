"""Kennedy and O'Hagan (2001): a Gaussian-process bias that is left free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ..arrays import Array
from ..bias import GP
from ..bias.gp import check_hyperparameters
from ..bias.joint_gp import JointGP
from ..bias.outcomes import OutcomesBias
from ..kernels import Kernel, Laplace
from ..kernels.base import require_kernel
from ..problem.problem import Problem
from .base import Draws, ListedMethod, Plan, listed
from .ko_sampled import sample_with_hyperparameters
from .marginal import DrawnBias, Marginal, gaussian_bias
from .marginal_sampled import sample


@listed
@dataclass(frozen=True)
class KO(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, K + noise): the bias is integrated out and not constrained.

    Theta and the bias cannot be told apart: the posterior is wide, and it depends on the prior of the bias however
    many data there are. It is here for comparison.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the bias, as for ``oc.bias.GP``.
    hyperparameters
        What happens to an sd and length-scales that are not given: ``"marginal-likelihood"`` fixes them at their best
        values for the residual at theta_tilde; ``"sample"`` draws them together with theta, for each whitened outcome,
        with the independent priors

            log sd ~ N(log s, 1.5^2),   log lengthscale_j ~ N(log(0.3 span_j), 1)

        where s is the root mean square of the residual at theta_tilde (of the noise, where the simulator fits exactly)
        and span_j the domain's width. So 95 % of the prior lie within a factor of 19 of s, and between 0.04 and 2.1
        domain widths. The cost grows as n^3, and n is at most 1000: four chains of 1000 draws take about ten seconds
        for n = 100, and a quarter of an hour for n = 1000. The draws are in ``posterior.data["sample_stats"]``:
        ``sd_k`` and ``lengthscale_k_j`` for outcome k and input j, from 0 on, with sd in the unit of the outcome.
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
    tells_apart: ClassVar[bool] = False
    free_bias: ClassVar[bool] = True

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    hyperparameters: Literal["marginal-likelihood", "sample"] = "marginal-likelihood"
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        self._prior()
        check_hyperparameters(self.hyperparameters)
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # with both given there is nothing to sample
        if self.hyperparameters == "sample" and (self.sd is None or self.lengthscale is None):
            return sample_with_hyperparameters(problem, plan, self._prior(), self.kernel)
        bias = gaussian_bias(problem, self._prior(), np.empty((0, problem.data.d)))
        return sample(problem, plan, lambda precision: free_bias(bias, bias.joint(None, precision)), bias, self.kernel)

    def words(self) -> str:
        return (
            "The bias is a Gaussian process that nothing constrains, so theta and the bias cannot be told apart: where "
            "there is a bias, the posterior of theta is wide, it depends on the bias's prior, and more data do not "
            "help."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bias": self._prior().describe(),
            "hyperparameters": self.hyperparameters,
            "kernel": self.kernel.describe(),
        }

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)


def free_bias(bias: OutcomesBias, joint: JointGP) -> Marginal:
    """Theta's marginal posterior with a bias that nothing constrains."""

    def draw(rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
        state, values = bias.gathered(joint.draw(rngs, residual))
        return DrawnBias(values[:, : residual.shape[1]], bias.records(state), {})

    return Marginal(joint.evidence_precision(), draw)

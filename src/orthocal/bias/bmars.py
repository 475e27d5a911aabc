"""Bayesian adaptive regression splines as the prior on the bias (Denison, Mallick, Smith 1998)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Array
from ..regression.settings import BMARSSettings
from .base import ListedPrior, Setting, listed

if TYPE_CHECKING:
    from ..regression.bmars import BMARSSampler


@listed
class BMARS(BMARSSettings, ListedPrior):
    """b(x) = beta_0 + sum_{k=1..K} beta_k prod_{j=1..J_k} h_kj(x)^degree, h(x) = [s (u_v - t)]_+ / max_u [s (u - t)]_+.

    u in [0, 1]^d are the inputs, scaled by the range of the data and cut off there, so that b is constant beyond
    it and no basis function exceeds 1. In ``oc.methods.Joint`` b is a + c times such a function with R = A = 1, a / s
    Cauchy and c / s half-Cauchy with median 1, s the noise sd. In ``oc.methods.Projected`` R = max(1, range of the
    residual at theta_tilde) and A = max(1, its largest absolute value) in units of the noise. The prior:

    - K, lambda: density proportional to Gamma(lambda; 10, rate 10) Poisson(K; lambda) for K <= ``most``, so that K is
      a negative binomial, truncated: P(K) proportional to Gamma(10 + K) / (K! 11^K). Shape and rate are those of BASS
      (Francom and Sanso 2020).
    - J_k uniform on 1..min(``order``, number of inputs that vary); its variables v a uniform set of J_k distinct inputs
      that vary; signs s = 1 or -1 with probability 1/2; knots t uniform over the distinct data values of u_v with at
      least ``least`` data points where s (u_v - t) > 0; the first value for s = 1 and the last for s = -1, which give
      the linear functions, are always among them.
    - beta_0 ~ N(0, A^2), beta_k ~ N(0, tau^2), tau^2 ~ inverse-gamma(2, R^2), whose mean is R^2.

    Basis functions that are linearly dependent are allowed, since the coefficients' prior is proper; only where less
    than 1e-12 of a basis function's posterior precision is left beside the others are they excluded from the support,
    for the sake of rounding. That needs tau > 10^6 / sqrt(n) noise sds.

    Parameters
    ----------
    moves
        Births, deaths and changes for each draw: after lambda and tau, before the coefficients.
    order
        Most inputs of a basis function.
    degree
        Power of the hinges: 1 gives continuous functions, 2 smooth ones.
    most
        Most basis functions beside the intercept.
    least
        Fewest data points where a hinge is not zero.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 50))
    >>> splines = oc.methods.Joint(bias=oc.bias.BMARS(order=1, degree=2))
    >>> posterior = oc.calibrate(problem, splines, draws=100, chains=2, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    name: ClassVar[str] = "bmars"
    words: ClassVar[str] = "The bias is a sum of adaptive splines"

    @staticmethod
    def restore(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BMARSSampler:
        from ..regression.bmars import BMARSSampler

        return BMARSSampler.restore(settings, x, nodes, noise_var)

    def prepare(self, setting: Setting) -> BMARSSampler:
        # whitened noise has sd 1: a residual much smaller than that says nothing about the scale of the bias
        residual = setting.every.residual
        return self._sampler(setting, max(float(np.ptp(residual)), 1.0), max(float(np.abs(residual).max()), 1.0))

    def prepare_unit(self, setting: Setting) -> BMARSSampler:
        """The sampler of functions of size one, whose size is drawn beside them, as ``oc.methods.Joint`` takes it.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> oc.bias.BMARS().prepare_unit(setting).settings()["kind"]
        'bmars'
        """
        return self._sampler(setting, 1.0, 1.0)

    def _sampler(self, setting: Setting, spread: float, offset: float) -> BMARSSampler:
        # compiled, and loaded by those who use it
        from ..regression.bmars import BMARSSampler

        return BMARSSampler(
            self, spread, offset, setting.x, setting.nodes, setting.noise_var, setting.unit, setting.counts
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, **super().describe()}

"""Bayesian additive regression trees as the prior on the bias (Chipman, George, McCulloch 2010)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Array
from ..regression.settings import BARTSettings
from .base import BiasSampler, ListedPrior, Setting, listed
from .sized import FEW, with_bounds
from .tree_size import restored_offset, with_offset

if TYPE_CHECKING:
    from ..regression.bart import BARTSampler


#: data are enough for as many leaves, whatever ``least`` says, where the size of the bias is drawn
FEWEST_LEAVES = 40


@listed
class BART(BARTSettings, ListedPrior):
    """b = a + sum of trees with leaves N(0, c^2 / trees), a a constant: a bias need not be centred at 0.

    In ``oc.methods.Joint`` c and a are drawn: c / s is half-Cauchy with median 4 / k and a / s Cauchy, s the noise sd.
    With fewer data than 40 times ``least`` leaves may have fewer than that, and with at most 100 cuts lie evenly in the
    domain. In ``oc.methods.Projected`` c is range / (2 k), the range that of the residual at theta_tilde, and
    a ~ N(0, A^2), A its largest absolute value; both at least the noise.

    Parameters
    ----------
    trees
        Number of trees.
    k
        The larger, the smaller the bias a priori. In ``oc.methods.Projected`` it lies within the range with probability
        2 Phi(k) - 1.
    alpha, beta
        A node of depth h splits with probability alpha (1 + h)^-beta.
    cuts
        Number of cut points an input, at most 255.
    grid
        ``"quantile"``: between the data's quantiles; ``"uniform"``: evenly over their range.
    least
        Fewest data points of a leaf.
    sweeps
        Backfitting sweeps for each draw.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 50))
    >>> trees = oc.methods.Joint(bias=oc.bias.BART(trees=50))
    >>> posterior = oc.calibrate(problem, trees, draws=100, chains=2, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    name: ClassVar[str] = "bart"
    words: ClassVar[str] = "The bias is a sum of trees and may have jumps"

    @staticmethod
    def restore(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BiasSampler:
        from ..regression.bart import BARTSampler

        return restored_offset(BARTSampler.restore(settings, x, nodes, noise_var), settings, noise_var)

    def cut_points(self, setting: Setting) -> list[Array]:
        """Where each column of x may be cut.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x, one = np.array([[0.0], [1.0], [4.0]]), np.ones(3)
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), noise_var=one, residual=one, gradient=x, unit=1.0)
        >>> oc.bias.BART().cut_points(setting)
        [array([0.5, 2.5])]
        """
        from ..regression.bart import spread_cut_points

        return [spread_cut_points(column, self.cuts, self.grid) for column in setting.x.T]

    def prepare(self, setting: Setting) -> BiasSampler:
        # whitened noise has sd 1: a residual much smaller than that says nothing about the scale of the bias
        residual = setting.every.residual
        own = self._sampler(setting, max(float(np.ptp(residual)), 1.0) / 4)
        return with_offset(own, residual, setting.noise_var)

    def prepare_unit(self, setting: Setting) -> BiasSampler:
        """The sampler of functions of size one, whose size is drawn beside them, as ``oc.methods.Joint`` takes it.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> oc.bias.BART(trees=20).prepare_unit(setting).settings()["kind"]
        'bart'
        """
        # few data would leave few leaves, and steps between the points alone: theta would be known too well
        n = len(setting.every.x)
        own = replace(self, least=min(self.least, n // FEWEST_LEAVES))
        if n > FEW:
            return own._sampler(setting, 2.0)
        return replace(own, grid="uniform")._sampler(setting, 2.0, with_bounds(setting))

    def _sampler(self, setting: Setting, spread: float, wide: Setting | None = None) -> BARTSampler:
        """With functions whose sd is ``spread`` for k = 2; cut points by those of ``wide``, if given."""
        # compiled, and loaded by those who use it
        from ..regression.bart import BARTSampler

        return BARTSampler(
            self,
            2 * spread / (self.k * np.sqrt(self.trees)),
            self.cut_points(setting if wide is None else wide),
            setting.x,
            setting.nodes,
            setting.noise_var,
            setting.unit,
            setting.counts,
            setting.shares,
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, **super().describe()}

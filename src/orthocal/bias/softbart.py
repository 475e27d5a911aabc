"""Soft Bayesian additive regression trees as the prior on the bias (Linero and Yang 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Array
from ..regression.settings import SoftBARTSettings
from .base import BiasSampler, ListedPrior, Setting, listed
from .sized import FEW, with_bounds
from .tree_size import restored_offset, with_offset

if TYPE_CHECKING:
    from ..regression.softbart import SoftBARTSampler


@listed
class SoftBART(SoftBARTSettings, ListedPrior):
    """b = a + sum_t sum_l phi_tl mu_tl, phi_tl a product of logistic gates psi((x_j - c) / tau_t): smooth trees.

    mu_tl ~ N(0, c^2 / trees), and a is a constant: a bias need not be centred at 0. In ``oc.methods.Joint`` c and a are
    drawn: c / s is half-Cauchy with median 4 / k and a / s Cauchy, s the noise sd. In ``oc.methods.Projected`` c is
    range / (2 k), the range that of the residual at theta_tilde, and a ~ N(0, A^2), A its largest absolute value; both
    at least the noise. Every point is in every leaf, so a soft tree costs about eight times as much as a hard one:
    hence 50 trees, where BART has 200.

    Parameters
    ----------
    trees
        Number of trees.
    k
        The larger, the smaller the bias a priori.
    alpha, beta
        A node of depth h splits with probability alpha (1 + h)^-beta.
    bandwidth
        Prior mean of each tree's tau, which is exponential, in units of the range of the data's inputs. The smaller,
        the sharper the gates.
    sparsity
        Splitting variables have probabilities s ~ Dirichlet(sparsity / d, ...). The smaller, the fewer are used. Of a
        categorical input, every label has a like part of its sparsity / d.
    sweeps
        Backfitting sweeps for each draw.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 50))
    >>> soft = oc.methods.Joint(bias=oc.bias.SoftBART(trees=10))
    >>> posterior = oc.calibrate(problem, soft, draws=50, chains=2, warmup=50, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    name: ClassVar[str] = "softbart"
    words: ClassVar[str] = "The bias is a sum of smooth trees"

    @staticmethod
    def restore(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BiasSampler:
        from ..regression.softbart import SoftBARTSampler

        return restored_offset(SoftBARTSampler.restore(settings, x, nodes, noise_var), settings, noise_var)

    def range_of_cuts(self, setting: Setting) -> tuple[Array, Array]:
        """Where the cuts of each input begin, and the width of their range, (d,) each.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x, one = np.array([[1.0], [2.0], [4.0]]), np.ones(3)
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), noise_var=one, residual=one, gradient=x, unit=1.0)
        >>> oc.bias.SoftBART().range_of_cuts(setting)
        (array([1.]), array([3.]))
        """
        return setting.x.min(axis=0), np.ptp(setting.x, axis=0)

    def prepare(self, setting: Setting) -> BiasSampler:
        # whitened noise has sd 1: a residual much smaller than that says nothing about the scale of the bias
        residual = setting.every.residual
        own = self._sampler(setting, max(float(np.ptp(residual)), 1.0) / 4, setting)
        return with_offset(own, residual, setting.noise_var)

    def prepare_unit(self, setting: Setting) -> BiasSampler:
        """The sampler of functions of size one, whose size is drawn beside them, as ``oc.methods.Joint`` takes it.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> oc.bias.SoftBART(trees=10).prepare_unit(setting).settings()["kind"]
        'softbart'
        """
        return self._sampler(setting, 2.0, with_bounds(setting) if len(setting.every.x) <= FEW else setting)

    def _sampler(self, setting: Setting, spread: float, wide: Setting) -> SoftBARTSampler:
        """With functions whose sd is ``spread`` for k = 2, but that gates make them smoother; cut in ``wide``."""
        # compiled, and loaded by those who use it
        from ..regression.softbart import SoftBARTSampler

        leaf_sd = 2 * spread / (self.k * np.sqrt(self.trees))
        low, width = self.range_of_cuts(wide)
        # the data say nothing about an input that is constant: the function must not depend on it
        scale = np.where(width > 0, 1 / np.where(width > 0, width, 1.0), 0.0)
        return SoftBARTSampler(
            self, leaf_sd, low, scale, setting.x, setting.nodes, setting.noise_var, setting.unit, setting.shares
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, **super().describe()}

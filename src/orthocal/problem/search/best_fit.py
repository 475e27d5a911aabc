"""How well a theta fits, as a sum of squares that can be minimised: n loss / noise - 2 log pi(theta).

With data that determine theta the prior has no say, and this is least squares; a direction that they leave open stays
where the prior has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from ...arrays import Array, BoolArray, IntArray, matrix_root, repeated_rows
from ...errors import NonFiniteError
from ..noise.noise import observed_precision
from ..prior.parameters import Parameters
from ..simulator.simulator import BoundSimulator
from .batched_search import SearchThread

#: a difference of the criterion that the prior alone makes counts as a standard error: four of them are odds of twenty
ODDS = 1.5
#: where more data points than this share are no node's nearest, all count alike in theta_tilde
EMPTY_SHARES = 0.1


class Descent(NamedTuple):
    """Where a descent ended: theta, the criterion there, and whether it had finished."""

    theta: Array
    value: float
    finished: bool


@dataclass(frozen=True)
class Criterion:
    """|residual(theta)|^2, for field data x (n, d) and y (n, q) without missing values.

    Rows with the same x are one, their mean, and what they scatter about it.

    Attributes
    ----------
    root
        Of the weights of the rows, (n, q, q), in units of the noise: zeros at missing cells.
    scale
        What takes the squares of the data's residuals to the loss.
    scatter
        The residual of what no theta changes: one number, or none.
    cells
        How many values were observed.
    with_prior
        Whether the prior counts; otherwise the criterion is n loss / noise.
    """

    simulator: BoundSimulator | SearchThread[Any]
    parameters: Parameters
    x: Array
    y: Array
    root: Array
    scale: float
    scatter: Array
    cells: int
    with_prior: bool = True

    @classmethod
    def of(
        cls, simulator: BoundSimulator, parameters: Parameters, x: Array, y: Array, weight: Array, noise: float
    ) -> Criterion:
        """For weights n v_i W, (n, q, q) or (q, q), and the noise of the loss."""
        complete, scatter, scale = np.where(np.isnan(y), 0.0, y), np.empty(0), noise / len(y)
        repeats = repeated_rows(x)
        if repeats is not None:
            weight = np.broadcast_to(weight, (*y.shape, y.shape[1]))
            total = repeats.sums(weight)
            mean = weighted_mean(total, repeats.sums(np.einsum("nkl,nl->nk", weight, complete)))
            apart = complete - mean[repeats.place]
            scatter = np.sqrt([np.einsum("nk,nkl,nl", apart, weight, apart) / noise])
            x, complete, weight = x[repeats.first], mean, total
        root = np.broadcast_to(matrix_root(weight) / np.sqrt(noise), (*complete.shape, y.shape[1]))
        return cls(simulator, parameters, x, complete, root, scale, scatter, int(np.isfinite(y).sum()))

    def of_rows(self, rows: IntArray) -> Criterion:
        """The same from some of the rows, which stand for all."""
        more = len(self.y) / len(rows)
        return replace(self, x=self.x[rows], y=self.y[rows], root=np.sqrt(more) * self.root[rows])

    def asking(self, search: SearchThread[Any]) -> Criterion:
        """The same for a search among several."""
        return replace(self, simulator=search)

    def without_prior(self) -> Criterion:
        """The loss alone, in the same unit."""
        return replace(self, with_prior=False)

    @property
    def prior_matters(self) -> bool:
        """Whether the prior differs within its support."""
        return self.with_prior and not self.parameters.flat

    def loss(self, theta: Array) -> float:
        """sum_i v_i (y_i - f)' W (y_i - f); NaN where the simulator fails."""
        return self.scale * float(np.sum(self._data(theta) ** 2))

    @property
    def size(self) -> float:
        """The loss of a simulator that gives zero: the scale on which a loss is zero."""
        squares = np.sum(np.einsum("nkl,nl->nk", self.root, self.y) ** 2) + np.sum(self.scatter**2)
        return self.scale * float(squares)

    def value(self, theta: Array) -> float:
        """The criterion; infinite where the simulator fails."""
        total = float(np.sum(self.residual(theta) ** 2))
        return total if np.isfinite(total) else np.inf

    def advantage(self, best: Array, other: Array) -> float:
        """By how much ``best`` is better than ``other``, in standard errors of that difference.

        |r - d|^2 - |r|^2 = |d|^2 - 2 r'd: the noise in r makes an error of 2 |d|, and where the data are makes one as
        large in units of what the simulator misses. Where both fit alike, the prior's odds are what is left.
        """
        left = self._data(best)
        apart = float(np.sum((self._data(other) - left) ** 2))
        error_var = 4 * apart * max(float(np.sum(left**2)) / self.cells, 1.0) + ODDS**2
        return (self.value(other) - self.value(best)) / float(np.sqrt(error_var))

    def residual(self, theta: Array, model: Array | None = None) -> Array:
        """Its squares are the criterion; ``model`` (n, q) is the simulator there, where it is known."""
        left = self._data(theta, model)
        return np.concatenate([left, self.parameters.prior_root(theta)]) if self.prior_matters else left

    def jacobian(self, theta: Array) -> Array:
        return self.slopes(theta, self.simulator.gradient(self.x, theta))

    def slopes(self, theta: Array, gradient: Array) -> Array:
        """The same from the simulator's gradient there, (n, q, p)."""
        slope = -np.einsum("nkl,nlp->nkp", self.root, gradient).reshape(self.y.size, -1)
        slope = np.vstack([slope, np.zeros((len(self.scatter), slope.shape[1]))])
        return np.vstack([slope, self.parameters.prior_root_slope(theta)]) if self.prior_matters else slope

    def _data(self, theta: Array, model: Array | None = None) -> Array:
        left = self.y - (self.simulator.evaluate(self.x, theta) if model is None else model)
        return np.concatenate([np.einsum("nkl,nl->nk", self.root, left).ravel(), self.scatter])

    def descend(
        self,
        start: Array,
        evaluations: int,
        tolerance: float,
        scaled: bool = False,
        known: Array | None = None,
    ) -> Descent:
        """Least squares from ``start``; what ends it, also a failure of the gradient, keeps the best theta so far.

        ``scaled`` takes the scales of theta from the gradient instead of from the priors; ``known`` is the residual at
        the start, where it is known.
        """
        best = Descent(start, np.inf, False)

        def watched(theta: Array) -> Array:
            nonlocal best, known
            residual, known = (self.residual(theta) if known is None else known), None
            value = float(np.sum(residual**2))
            if value < best.value:
                best = Descent(theta.copy(), value, False)
            return residual

        given: dict[str, Any] = {"bounds": (self.parameters.lower, self.parameters.upper), "max_nfev": evaluations}
        given["x_scale"] = "jac" if scaled else self.parameters.spread
        try:
            fit = least_squares(watched, start, self.jacobian, ftol=tolerance, xtol=tolerance, gtol=1e-14, **given)
        except NonFiniteError:
            # a theta beside which the simulator fails: no minimum can be told there
            return best
        return Descent(fit.x, float(2 * fit.cost), bool(fit.status > 0))


def row_weights(weight: Array, observed: BoolArray, shares: Array) -> Array:
    """W for the rows, each times its share of the domain, (n, q, q).

    So the fit is to the domain, wherever the data are. Where cells are missing, W is what is left of it at the others.
    """
    n, q = observed.shape
    whole = observed.all()
    each = np.broadcast_to(weight, (n, q, q)) if whole else observed_precision(np.linalg.inv(weight), observed)
    if np.mean(shares == 0) > EMPTY_SHARES:
        # few nodes beside the data points: most of these would not count
        return np.asarray(each)
    return np.asarray(n * shares[:, None, None] * each)


def weighted_mean(total: Array, summed: Array) -> Array:
    """The mean m with total m = summed, for sums of weights (u, q, q) and of weighted values (u, q); 0 where none are.

    Weights of cells that are never seen are zero.
    """
    scale = np.sqrt(np.einsum("uii->ui", total))
    safe = np.where(scale > 0, scale, 1.0)
    scaled = total / (safe[:, :, None] * safe[:, None, :])
    if total.shape[-1] == 1:
        inverse = np.divide(1.0, scaled, out=np.zeros_like(scaled), where=scaled > 0)
    else:
        inverse = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True)
    return np.asarray(np.einsum("ukl,ul->uk", inverse, summed / safe) / safe)

"""The orthogonal Gaussian process (Plumlee 2017): orthogonality built into the prior, for every theta anew."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, BoolArray
from ..bias import GP
from ..bias.outcomes import OutcomesBias
from ..errors import InputError, NonFiniteError
from ..kernels import Kernel, Laplace
from ..kernels.base import require_kernel
from ..problem.problem import Problem
from .base import CLOSEST, Draws, ListedMethod, Plan, listed
from .expansion import second_differences
from .marginal import DrawnBias, Marginal, gaussian_bias
from .marginal_sampled import sample

#: with a larger share of draws at other stationary points there is no posterior to speak of
MOST_MAXIMA = 0.9
#: gradients at the nodes that are kept
REMEMBERED = 100


@listed
@dataclass(frozen=True)
class OGP(ListedMethod):
    """theta | y with a Gaussian-process bias that is orthogonal to df/dtheta, for each theta.

    The kernel K - h' H^-1 h (h = ∫ g K, H = ∫∫ g K g') is that of the process given A'b = 0, with A'b = <b, g> at the
    nodes. So the likelihood is, by Bayes' rule,

        p(y | A'b = 0) = p(y) p(A'b = 0 | y) / p(A'b = 0)

    with Gaussians of dimension p beside the free process's p(y), which is factorised once: no Cholesky factor of size n
    is needed for a new theta.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the bias before the constraint, as for ``oc.bias.GP``.
    kernel
        How theta is drawn, see ``orthocal.kernels``.
    """

    kind: ClassVar[str] = "ogp"

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        self._prior()
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # an error about the parameters comes before any long work
        _ = problem.sensitivity
        bias = gaussian_bias(problem, self._prior(), problem.rule.nodes)
        constraint = _Constraint(problem, bias)
        drawn = sample(problem, plan, lambda rows: constraint.at(rows).marginal(), bias, self.kernel, nodes_drawn=True)
        return only_minima(drawn, plan.rngs)

    def words(self) -> str:
        return (
            "The bias is a Gaussian process whose prior is orthogonal to the simulator's gradients, for each theta "
            f"anew, so {CLOSEST}; draws where that distance is stationary but not least are left out."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "bias": self._prior().describe(), "kernel": self.kernel.describe()}

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)


class _Constraint:
    """A'b = 0 at the nodes, where A depends on theta."""

    def __init__(self, problem: Problem, bias: OutcomesBias) -> None:
        self._problem, self._bias = problem, bias
        n, m, q = problem.data.n, len(problem.rule.nodes), problem.data.q
        self._given(None)
        self._root = bias.prior_root()[n:].reshape(m * q, -1)
        self._weighted = problem.rule.weights[:, None, None] * problem.metric
        self._known: dict[bytes, Array] = {}
        # about a posterior sd: the reach of second differences
        self._reach = np.sqrt(np.diag(np.linalg.inv(n * problem.sensitivity.gram)))
        self._linear = not self._second_differences(problem.theta_tilde).any()

    def _given(self, precision: Array | None) -> None:
        """At the nodes, node by node: F of Cov(b | y) = F F', and the gain of E(b | y)."""
        self.joint = self._bias.joint(None, precision)
        cells, n = self._problem.rule.nodes.shape[0] * self._problem.data.q, self._problem.data.n
        self._factor = self._bias.in_order(self.joint.factors_at_points())[n:].reshape(cells, -1)
        self._gain = self._bias.in_order(self.joint.gains_at_points())[n:].reshape(cells, -1)

    def at(self, precision: Array | None) -> _Constraint:
        """The same with another precision of the rows' noise, (n, q, q)."""
        if precision is None:
            return self
        other = copy(self)
        other._given(precision)
        return other

    def marginal(self) -> Marginal:
        """Theta's marginal posterior."""
        return Marginal(self.joint.evidence_precision(), self.draw_bias, self.log_density, self.proposal_rows)

    def columns(self, theta: Array) -> Array:
        """A at theta (c, p), (c, m q, p), scaled to gradients of length one: their length does not matter."""
        gradient = np.stack([self._gradient(one) for one in theta])
        A = np.einsum("mkl,cmlp->cmkp", self._weighted, gradient)
        lengths = np.sqrt(np.einsum("cmkp,cmkp->cp", gradient, A))[:, None]
        return np.asarray(A.reshape(len(theta), -1, A.shape[3]) / np.where(lengths > 0, lengths, 1.0))

    def _gradient(self, theta: Array) -> Array:
        """T df/dtheta at the nodes; a theta is asked for again when its bias is drawn."""
        key = theta.tobytes()
        if key not in self._known:
            if len(self._known) > REMEMBERED:
                self._known.clear()
            self._known[key] = self._problem.whitened_gradient(self._problem.rule.nodes, theta)
        return self._known[key]

    def _has_gradient(self, theta: Array) -> bool:
        """A theta beside which the simulator fails on all sides is as impossible as one where it fails."""
        try:
            self._gradient(theta)
        except NonFiniteError:
            return False
        return True

    def log_density(self, theta: Array, residual: Array) -> Array:
        """log p(A'b = 0 | y) - log p(A'b = 0) for theta (c, p) and the residual (c, n, q), (c,)."""
        density = np.full(len(theta), -np.inf)
        works: BoolArray = np.asarray(np.isfinite(residual).all(axis=(1, 2)))
        works[works] = [self._has_gradient(one) for one in theta[works]]
        if works.any():
            A = self.columns(theta[works])
            prior, posterior = (_triangles(root, A) for root in (self._root, self._factor))
            # E(A'b | y), and in units of its spread
            mean = np.einsum("cmp,cm->cp", A, residual[works].reshape(len(A), -1) @ self._gain.T)
            scaled = np.linalg.solve(np.swapaxes(posterior, 1, 2), mean[..., None])[..., 0]
            with np.errstate(divide="ignore"):
                sizes = [np.log(np.abs(np.einsum("cpp->cp", triangle))) for triangle in (prior, posterior)]
            density[works] = np.sum(sizes[0] - sizes[1], axis=1) - 0.5 * np.sum(scaled**2, axis=1)
        return density

    def proposal_rows(self, pivot: Array) -> Array:
        """C with |C r|^2 the quadratic part of the density at the pivot, (p, n q)."""
        A = self.columns(pivot[None])
        return np.asarray(np.linalg.solve(_triangles(self._factor, A)[0].T, A[0].T @ self._gain))

    def draw_bias(self, rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
        """b given y and A'b = 0: a free draw, less its regression on A'b."""
        free = self.joint.draw(rngs, residual)
        n = residual.shape[1]
        _, values = self._bias.gathered(free)
        A = self.columns(theta)
        spread, triangle = np.linalg.qr(self._factor.T @ A)
        inner = np.einsum("cmp,cm->cp", A, values[:, n:].reshape(len(theta), -1))
        share = np.linalg.solve(np.swapaxes(triangle, 1, 2), inner[..., None])
        taken = (spread @ share)[..., 0]
        states = [state - taken @ factor.T for (state, _), factor in zip(free, self.joint.factors, strict=True)]
        own, values = self._bias.gathered(self.joint.at_points(states))
        cells = values[:, n:]
        inner = np.einsum("cmp,cm->cp", A, cells.reshape(len(theta), -1))
        size = np.sqrt(np.einsum("cmk,mkl,cml->c", cells, self._weighted, cells))
        error = np.abs(inner).max(axis=1) / np.where(size > 0, size, 1.0)
        stats = {"orthogonality_error": error}
        if not self._linear:
            stats["curvature"] = self._curvature(theta, cells)
        return DrawnBias(values[:, :n], self._bias.records(own), stats)

    def _curvature(self, theta: Array, bias: Array) -> Array:
        """Smallest eigenvalue of the loss's Hessian in theta, in units of the gradients' lengths, (c,); not above 0 at
        a stationary point that is no minimum."""
        lowest = np.empty(len(theta))
        for c, (one, own) in enumerate(zip(theta, bias, strict=True)):
            gradient = self._gradient(one) * self._reach
            weighted = np.einsum("mkl,ml->mk", self._weighted, own)
            gram = np.einsum("mki,mkl,mlj->ij", gradient, self._weighted, gradient)
            hessian = gram - np.einsum("mk,mkij->ij", weighted, self._second_differences(one))
            lengths = np.sqrt(np.diag(gram))
            lengths = np.where(lengths > 0, lengths, 1.0)
            lowest[c] = np.linalg.eigvalsh(hessian / np.outer(lengths, lengths))[0]
        return lowest

    def _second_differences(self, theta: Array) -> Array:
        """Those of T f at the nodes for steps of the reach, (m, q, p, p); zeros where the simulator fails."""
        p, problem = len(theta), self._problem
        # inside of the support, all the way
        room = np.minimum(theta - problem.parameters.lower, problem.parameters.upper - theta)
        steps = np.maximum(np.minimum(self._reach, 0.5 * room), 1e-9 * self._reach)
        pairs = list(combinations(range(p), 2))
        nodes = problem.rule.nodes
        middle, straight, mixed = second_differences(
            lambda values: problem.whiten(problem.simulator.batch(nodes, values)), theta, np.diag(steps), pairs
        )
        found = np.zeros((*middle.shape, p, p))
        for (i, j), change in zip([(j, j) for j in range(p)] + pairs, straight + mixed, strict=True):
            found[..., i, j] = found[..., j, i] = change
        # in steps of the full reach; what is left of a linear simulator is rounding
        found *= np.outer(self._reach / steps, self._reach / steps)
        small = 1e-9 * np.abs(middle).max()
        return np.where(np.isfinite(found) & (np.abs(found) > small), found, 0.0)


def only_minima(draws: Draws, rngs: list[np.random.Generator]) -> Draws:
    """The draws at which the loss is least around them: the others are replaced by these, chain by chain.

    Orthogonality is stationarity: nothing in the prior keeps theta from where the loss is largest.
    """
    if "curvature" not in draws.stats:
        return draws
    least = draws.stats["curvature"] > 0
    share = 1 - float(least.mean())
    if share > MOST_MAXIMA:
        raise InputError(
            f"the orthogonal Gaussian process has {share:.0%} of its draws where the distance to the real process is "
            'stationary but not least: take the joint projection, method="gp"'
        )
    rows = np.tile(np.arange(least.shape[1]), (len(rngs), 1))
    for c, rng in enumerate(rngs):
        # a chain without any has lost its way, and R-hat will show it
        if least[c].any():
            rows[c, ~least[c]] = rng.choice(np.flatnonzero(least[c]), int((~least[c]).sum()))
    return replace(draws.taken(rows), notes=replace(draws.notes, maxima=share))


def _triangles(root: Array, A: Array) -> Array:
    """R with R'R = A' root root' A, (c, p, p)."""
    return np.linalg.qr(root.T @ A).R

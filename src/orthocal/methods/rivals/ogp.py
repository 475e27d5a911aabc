"""The orthogonal Gaussian process (Plumlee 2017): orthogonality built into the prior, for every theta anew."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ...advice import JOINT
from ...arrays import Array
from ...bias import GP
from ...bias.outcomes import OutcomesBias
from ...errors import InputError, NonFiniteError
from ...kernels import Kernel, Laplace
from ...kernels.base import require_kernel
from ...problem.preflight.cost import CallsEach, RunCost
from ...problem.problem import Problem
from ..base import CLOSEST, Draws, ListedMethod, Plan, listed
from ..joint.expansion import second_differences
from .delayed import AtNodes, Delayed
from .marginal import DrawnBias, Gradients, Marginal, gaussian_bias, sample

#: with a larger share of draws at other stationary points there is no posterior to speak of
MOST_MAXIMA = 0.9
#: a smallest eigenvalue of the Hessian is sure where it is so many times its error from zero, and this more
SURE, MARGIN = 4.0, 0.02


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

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> posterior = oc.calibrate(problem, oc.methods.OGP(nu=2.5), draws=50, chains=2, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    kind: ClassVar[str] = "ogp"
    cost: ClassVar[RunCost | None] = RunCost(CallsEach((1.0, 2.0), (1.0, 1.0)), CallsEach((1.0, 2.0), (1.0, 1.0)))

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
        constraint = _Constraint(problem, bias, len(plan.rngs))
        delayed = self.kernel == Laplace()
        drawn = sample(
            problem, plan, lambda rows: constraint.at(rows).marginal(delayed), bias, self.kernel, nodes_drawn=True
        )
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

    def __init__(self, problem: Problem, bias: OutcomesBias, chains: int) -> None:
        self._problem, self._bias = problem, bias
        n, m, q = problem.data.n, len(problem.rule.nodes), problem.data.q
        self._given(None)
        self._root = bias.prior_root()[n:].reshape(m * q, -1)
        self._weighted = problem.rule.weights[:, None, None] * problem.metric
        self._gradients = Gradients(problem, chains)
        # about a posterior sd: the reach of second differences
        self._reach = np.sqrt(np.diag(np.linalg.inv(problem.unmerged.data.n * problem.sensitivity.gram)))
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

    def marginal(self, delayed: bool) -> Marginal:
        """Theta's marginal posterior, with a theta step of its own where acceptance may be delayed."""
        evidence = self.joint.evidence_precision()
        kernel = self.kernel if delayed else None
        return Marginal(evidence, self.draw_bias, self.log_density, self.proposal_rows, kernel, self._gradients)

    def kernel(self, root: Array) -> Delayed:
        """The theta step, for outcomes ``root`` f with f at their end."""
        problem, (n, q) = self._problem, self._problem.data.y.shape
        y = problem.whiten(problem.complete_y)

        def gradient(theta: Array) -> Array:
            return self._gradients.at(theta).reshape(-1, len(theta))

        def rows(gradient: Array) -> tuple[Array, Array]:
            A = self._columns(gradient.reshape(1, -1, q, gradient.shape[1]))
            C = np.linalg.solve(_triangles(self._factor, A)[0].T, A[0].T @ self._gain)
            return np.hstack([np.zeros((len(C), len(root))), C]), C @ y.ravel()

        nodes = AtNodes(
            lambda theta: self._at_nodes(theta).reshape(len(theta), -1),
            gradient,
            lambda basis: self._expanded_density(basis, y.ravel()),
            rows,
        )
        offset = np.concatenate([root @ y.ravel(), np.zeros(n * q)])[:, None]
        return Delayed(nodes, offset, self._reach)

    def _at_nodes(self, theta: Array) -> Array:
        """T f at the nodes for theta (c, p), (c, m, q)."""
        return self._problem.whiten(self._problem.simulator.batch(self._problem.rule.nodes, theta))

    def _columns(self, gradient: Array) -> Array:
        """A, (c, m q, p), from gradients (c, m, q, p), scaled to length one: their length does not matter."""
        A = np.einsum("mkl,cmlp->cmkp", self._weighted, gradient)
        lengths = np.sqrt(np.einsum("cmkp,cmkp->cp", gradient, A))[:, None]
        return np.asarray(A.reshape(len(gradient), -1, A.shape[3]) / np.where(lengths > 0, lengths, 1.0))

    def log_density(self, theta: Array, residual: Array) -> Array:
        """log p(A'b = 0 | y) - log p(A'b = 0) for theta (c, p) and the residual (c, n, q), (c,); -inf where f fails."""
        density = np.full(len(theta), -np.inf)
        called = np.flatnonzero(np.isfinite(residual).all(axis=(1, 2)))
        self._gradients.ahead(theta[called])
        known = {c: self._gradients.at(theta[c]) for c in called}
        works = [c for c, gradient in known.items() if np.isfinite(gradient).all()]
        if works:
            density[works] = self._density(np.stack([known[c] for c in works]), residual[works])
        return density

    def _density(self, gradient: Array, residual: Array) -> Array:
        """The same from gradients (c, m, q, p)."""
        A = self._columns(gradient)
        prior, posterior = (_triangles(root, A) for root in (self._root, self._factor))
        # E(A'b | y), and in units of its spread
        mean = np.einsum("cmp,cm->cp", A, residual.reshape(len(A), -1) @ self._gain.T)
        scaled = np.linalg.solve(np.swapaxes(posterior, 1, 2), mean[..., None])[..., 0]
        with np.errstate(divide="ignore"):
            sizes = [np.log(np.abs(np.einsum("cpp->cp", triangle))) for triangle in (prior, posterior)]
        return np.asarray(np.sum(sizes[0] - sizes[1], axis=1) - 0.5 * np.sum(scaled**2, axis=1))

    def _expanded_density(self, basis: Array, y: Array) -> Callable[[Array, Array], Array]:
        """The same where the gradients are ``basis`` (m q, r) J, as a function of J (c, r, p) and outcomes that end
        with f: matrices of size r are enough."""
        m, q = len(self._weighted), self._weighted.shape[1]
        weighted = np.einsum("mkl,mlr->mkr", self._weighted, basis.reshape(m, q, -1)).reshape(m * q, -1)
        prior, posterior = (half.T @ half for half in (self._root.T @ weighted, self._factor.T @ weighted))
        gain = weighted.T @ self._gain

        def density(J: Array, outcomes: Array) -> Array:
            across = np.swapaxes(J, 1, 2)
            mean = across @ ((y - outcomes[:, -len(y) :, 0]) @ gain.T)[..., None]
            free, known = across @ prior @ J, across @ posterior @ J
            squares = np.swapaxes(mean, 1, 2) @ np.linalg.solve(known, mean)
            return np.asarray(0.5 * (np.linalg.slogdet(free)[1] - np.linalg.slogdet(known)[1] - squares[:, 0, 0]))

        return density

    def proposal_rows(self, pivot: Array) -> Array:
        """C with |C r|^2 the quadratic part of the density at the pivot, (p, n q)."""
        gradient = self._gradients.at(pivot)
        if not np.isfinite(gradient).all():
            raise NonFiniteError("the simulator fails at some node, or beside it")
        A = self._columns(gradient[None])
        return np.asarray(np.linalg.solve(_triangles(self._factor, A)[0].T, A[0].T @ self._gain))

    def draw_bias(self, rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
        """b given y and A'b = 0: a free draw, less its regression on A'b."""
        free = self.joint.draw(rngs, residual)
        n = residual.shape[1]
        _, values = self._bias.gathered(free)
        A = self._columns(np.stack([self._gradients.at(one) for one in theta]))
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
        """Smallest eigenvalue of the loss's Hessian in theta, in units of what it is without a bias, (c,); not above 0
        at a stationary point that is no minimum."""
        lowest = np.empty(len(theta))
        for c, (one, own) in enumerate(zip(theta, bias, strict=True)):
            gradient = self._gradients.at(one) * self._reach
            along = np.einsum("mkl,ml->mk", self._weighted, own)
            gram = np.einsum("mki,mkl,mlj->ij", gradient, self._weighted, gradient)
            tiny = 1e-12 * np.trace(gram) * np.eye(len(one))
            root = np.linalg.inv(np.linalg.cholesky(gram + tiny)).T
            # what the gradients nearby say costs no call
            known = self._gradients.second_derivative(one, along, self._reach[:, None] * root)
            if known is not None:
                lowest[c] = 1 - np.linalg.eigvalsh(known[0])[-1]
                if abs(lowest[c]) > SURE * known[1] + MARGIN:
                    continue
            second = np.einsum("mk,mkij->ij", along, self._second_differences(one))
            lowest[c] = 1 - np.linalg.eigvalsh(root.T @ second @ root)[-1]
        return lowest

    def _second_differences(self, theta: Array) -> Array:
        """Those of T f at the nodes for steps of the reach, (m, q, p, p); zeros where the simulator fails."""
        p, problem = len(theta), self._problem
        # inside of the support, all the way
        room = np.minimum(theta - problem.parameters.lower, problem.parameters.upper - theta)
        steps = np.maximum(np.minimum(self._reach, 0.5 * room), 1e-9 * self._reach)
        pairs = list(combinations(range(p), 2))
        middle, straight, mixed = second_differences(self._at_nodes, theta, np.diag(steps), pairs)
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
            "stationary but not least: take " + JOINT
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

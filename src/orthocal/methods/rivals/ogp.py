"""The orthogonal Gaussian process (Plumlee 2017): orthogonality built into the prior, for every theta anew."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from ...advice import JOINT
from ...arrays import Array, BoolArray
from ...bias import GP
from ...errors import InputError
from ...kernels import Kernel, Laplace
from ...kernels.base import Conditional, require_kernel
from ...problem.preflight.cost import CallsEach, RunCost
from ...problem.problem import Problem
from ..base import CLOSEST, Draws, ListedMethod, Plan, listed
from ..joint.expansion import Expansion, second_differences
from ..joint.gaussian_model import GaussianModel
from .delayed import Delayed, jacobian
from .gradients import Gradients
from .marginal import Law, MarginalRun, WithBias

#: with a larger share of draws at other stationary points there is no posterior to speak of
MOST_MAXIMA = 0.9
#: of a law, values at so many theta are remembered
MOST_KNOWN = 20
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
        Of the bias before the constraint, as for ``oc.bias.GP``; an sd and length-scales that are not given are
        integrated over, and their draws are in ``posterior.data["sample_stats"]``.
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
        constraint = _Constraint(problem, len(plan.rngs))
        beside = WithBias(
            problem,
            plan,
            self._prior(),
            problem.rule.nodes,
            lambda *given: OrthogonalLaw(constraint, *given),
            extra=constraint.extra,
            gradients=constraint.gradients,
        )
        kernel = self.kernel if self.kernel != Laplace() else constraint.kernel(beside.typical)
        return only_minima(MarginalRun(problem, plan, kernel, beside).draws(nodes_drawn=True), plan.rngs)

    def words(self) -> str:
        return (
            "The bias is a Gaussian process whose prior is orthogonal to the simulator's gradients, for each theta "
            f"anew, so {CLOSEST}; draws where that distance is stationary but not least are left out."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "bias": self._prior().describe(), "kernel": self.kernel.describe()}

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)


class OrthogonalLaw(Law):
    """What a point says where b is orthogonal to the gradients: A'b = 0 at the nodes, A of theta.

    With b = L w and w ~ N(0, I), let B = L_nodes' A. Given y, w ~ N(m, H^-1), and A'b = B'w, so

        log p(A'b = 0 | y) - log p(A'b = 0) = log|B'B| / 2 - log|B'H^-1 B| / 2 - |(B'H^-1 B)^-1/2 B'm|^2 / 2.

    The Gaussian has that of theta_tilde in it; ``extra`` is what comes to it at another theta.
    """

    def __init__(self, constraint: _Constraint, model: GaussianModel, v: Array, cells: BoolArray) -> None:
        super().__init__(model, v, cells)
        self._constraint, given = constraint, self._given
        self._at_nodes = model.node_roots(given).reshape(-1, len(given.gain))
        self._gain = np.zeros((len(given.gain), len(cells)))
        self._gain[:, cells] = given.gain
        self._expanded: tuple[Expansion, tuple[Array, Array, Array]] | None = None
        at_tilde = constraint.columns(constraint.problem.gradient_at_nodes)
        triangles, B = self._triangles(at_tilde)
        self.square = np.linalg.solve(triangles[1].T, B.T @ self._gain)
        self.precision += self.square.T @ self.square
        self.size = _log_size(triangles)
        self.log_size -= self.size
        # asked for more than once for the thetas of the chains
        self._known: dict[bytes, float] = {}

    def _triangles(self, A: Array) -> tuple[Array, Array]:
        """R with R'R = B'B and R'R = B'H^-1 B, (2, p, p), and B."""
        B = self._at_nodes.T @ A
        return np.linalg.qr(np.stack([B, self._given.spread @ B])).R, B

    def extra(self, theta: Array, left: Array) -> float:
        key = theta.tobytes()
        if key not in self._known:
            triangles, B = self._triangles(self._constraint.columns(self._constraint.gradients.at(theta)))
            # E(A'b | y) in units of its spread
            scaled, before = np.linalg.solve(triangles[1].T, B.T @ (self._gain @ left)), self.square @ left
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            own = _log_size(triangles) - self.size - 0.5 * (scaled @ scaled - before @ before)
            self._known[key] = float(own)
        return self._known[key]

    def expanded(self, nodes: Expansion) -> tuple[Array, Array, Array]:
        """B'B, B'H^-1 B and B'm, as matrices of what is left of y, for gradients that are the expansion's basis."""
        if self._expanded is None or self._expanded[0] is not nodes:
            B = self._at_nodes.T @ self._constraint.weighed(nodes.basis)
            after = self._given.spread @ B
            self._expanded = nodes, (B.T @ B, after.T @ after, B.T @ self._gain)
        return self._expanded[1]

    def drawn_bias(self, rng: np.random.Generator, theta: Array, left: Array) -> tuple[Array, dict[str, float]]:
        """b given y and A'b = 0: a free draw, less its regression on A'b."""
        constraint = self._constraint
        white = self._model.drawn_white(rng, self._given, left[self._cells])
        A = constraint.columns(constraint.gradients.at(theta))
        B = self._at_nodes.T @ A
        spread, triangle = np.linalg.qr(self._given.spread @ B)
        white -= self._given.spread.T @ (spread @ np.linalg.solve(triangle.T, B.T @ white))
        values = self._model.values(self._given, white)
        return values, constraint.statistics(theta, A, values[-len(constraint.problem.rule.nodes) :])


def _log_size(triangles: Array) -> float:
    """(log|B'B| - log|B'H^-1 B|) / 2."""
    with np.errstate(divide="ignore"):
        sizes = np.log(np.abs(np.einsum("ipp->ip", triangles))).sum(axis=1)
    return float(sizes[0] - sizes[1])


class _Extra:
    """What the constraint adds to the density of each chain."""

    def __init__(self, constraint: _Constraint, laws: list[OrthogonalLaw], y: Array) -> None:
        self._constraint, self._laws, self._y = constraint, laws, y

    def __call__(self, theta: Array, model: Array) -> Array:
        left, gradients = self._y - model[:, 0], self._constraint.gradients
        density = np.full(len(theta), -np.inf)
        called = np.flatnonzero(np.isfinite(left).all(axis=1))
        gradients.ahead(theta[called])
        for c in called:
            if np.isfinite(gradients.at(theta[c])).all():
                density[c] = self._laws[c].extra(theta[c], left[c])
        return density

    def part(self, chains: slice | list[int]) -> _Extra:
        return _Extra(self._constraint, [self._laws[c] for c in np.arange(len(self._laws))[chains]], self._y)

    def expanded(self, nodes: Expansion) -> _Expanded:
        each = [law.expanded(nodes) for law in self._laws]
        matrices = tuple(np.stack(parts) for parts in zip(*each, strict=True))
        return _Expanded(nodes, (*matrices, np.stack([law.square for law in self._laws])), self._y)


class _Expanded(NamedTuple):
    """The same for the simulator's expansion: matrices as large as its basis are enough."""

    nodes: Expansion
    matrices: tuple[Array, ...]
    y: Array

    def __call__(self, theta: Array, model: Array) -> Array:
        free, known, gain, square = self.matrices
        J, left = jacobian(self.nodes, theta), (self.y - model[:, 0])[..., None]
        across = np.swapaxes(J, 1, 2)
        mean, before = across @ (gain @ left), square @ left
        free, known = across @ free @ J, across @ known @ J
        squares = np.swapaxes(mean, 1, 2) @ np.linalg.solve(known, mean)
        sizes = np.linalg.slogdet(free)[1] - np.linalg.slogdet(known)[1]
        return np.asarray(0.5 * (sizes - squares[:, 0, 0] + np.sum(before**2, axis=(1, 2))))

    def part(self, chains: slice | list[int]) -> _Expanded:
        return self._replace(matrices=tuple(matrix[chains] for matrix in self.matrices))


class _Constraint:
    """A'b = <b, df/dtheta> at the nodes."""

    def __init__(self, problem: Problem, chains: int) -> None:
        self.problem, self.gradients = problem, Gradients(problem, chains)
        self._weighted = problem.rule.weights[:, None, None] * problem.metric
        # about a posterior sd: the reach of second differences
        self._reach = np.sqrt(np.diag(np.linalg.inv(problem.unmerged.data.n * problem.sensitivity.gram)))
        self._linear = not self._second_differences(problem.theta_tilde).any()

    def extra(self, laws: list[Law], y: Array) -> _Extra:
        return _Extra(self, cast(list[OrthogonalLaw], laws), y)

    def kernel(self, typical: Conditional) -> Delayed:
        """The theta step that knows the constraint."""
        return Delayed(
            lambda theta: self._at_nodes(theta).reshape(len(theta), -1),
            lambda theta: self.gradients.at(theta).reshape(-1, len(theta)),
            typical,
            self._reach,
        )

    def _at_nodes(self, theta: Array) -> Array:
        """T f at the nodes for theta (c, p), (c, m, q)."""
        return self.problem.whiten(self.problem.simulator.batch(self.problem.rule.nodes, theta))

    def weighed(self, basis: Array) -> Array:
        """The columns of A from vectors at the nodes, (m q, r)."""
        m, q = len(self._weighted), self._weighted.shape[1]
        weighted = np.einsum("mkl,mlr->mkr", self._weighted, basis.reshape(m, q, -1))
        return np.asarray(weighted.reshape(m * q, -1))

    def columns(self, gradient: Array) -> Array:
        """A, (m q, p), from the gradient (m, q, p), scaled to length one: their length does not matter."""
        A = self.weighed(gradient)
        lengths = np.sqrt(np.sum(gradient.reshape(A.shape) * A, axis=0))
        return np.asarray(A / np.where(lengths > 0, lengths, 1.0))

    def statistics(self, theta: Array, A: Array, bias: Array) -> dict[str, float]:
        """How orthogonal the bias at the nodes (m, q) is, and whether the loss is least at theta."""
        size = np.sqrt(np.einsum("mk,mkl,ml", bias, self._weighted, bias))
        error = float(np.abs(A.T @ bias.ravel()).max() / (size if size > 0 else 1.0))
        found = {"orthogonality_error": error}
        return found if self._linear else {**found, "curvature": self._curvature(theta, bias)}

    def _curvature(self, theta: Array, bias: Array) -> float:
        """Smallest eigenvalue of the loss's Hessian in theta, in units of what it is without a bias; not above 0 at a
        stationary point that is no minimum."""
        gradient = self.gradients.at(theta) * self._reach
        along = np.einsum("mkl,ml->mk", self._weighted, bias)
        gram = np.einsum("mki,mkl,mlj->ij", gradient, self._weighted, gradient)
        tiny = 1e-12 * np.trace(gram) * np.eye(len(theta))
        root = np.linalg.inv(np.linalg.cholesky(gram + tiny)).T
        # what the gradients nearby say costs no call
        known = self.gradients.second_derivative(theta, along, self._reach[:, None] * root)
        if known is not None:
            lowest = 1 - float(np.linalg.eigvalsh(known[0])[-1])
            if abs(lowest) > SURE * known[1] + MARGIN:
                return lowest
        second = np.einsum("mk,mkij->ij", along, self._second_differences(theta))
        return 1 - float(np.linalg.eigvalsh(root.T @ second @ root)[-1])

    def _second_differences(self, theta: Array) -> Array:
        """Those of T f at the nodes for steps of the reach, (m, q, p, p); zeros where the simulator fails."""
        p, problem = len(theta), self.problem
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

"""The theta step: draws from Pi(theta | b*, y) for all chains at a time, behind one Protocol.

After the bias has moved, a log density kept from the step before would be stale. So the state holds the
simulator's outcomes at theta, which stay true, and the log density is computed from them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..arrays import Array, BoolArray
from ..errors import InputError, NonFiniteError
from ..problem.prior.parameters import Parameters

Rngs = list[np.random.Generator]
Tuned = TypeVar("Tuned")
#: draws that are tried for a place around which the simulator works
MOST_PIVOTS = 20


class ThetaState(NamedTuple):
    """theta (c, p), the simulator there (c, n, q), whitened, and log pi(theta) (c,)."""

    theta: Array
    model: Array
    log_prior: Array


class StepInfo(NamedTuple):
    """Share of accepted proposals (c,) and log Pi(theta | b*, y) up to a constant (c,).

    ``proposals`` is the share of those that are tuned, where other moves follow that are never refused.
    """

    acceptance: Array
    log_density: Array
    proposals: Array | None = None

    @property
    def tuned(self) -> Array:
        """What ``Kernel.adapt`` wants to know, (c,)."""
        return self.acceptance if self.proposals is None else self.proposals


class ThetaModel(NamedTuple):
    """Prior and likelihood of theta, before the bias is known.

    ``simulate`` maps theta (c, p) to (c, n, q) and ``gradient`` one theta (p,) to (n, q, p), both whitened;
    ``precision`` is that of the rows' noise, (n, q) where it is diagonal, else (n, q, q).
    """

    parameters: Parameters
    simulate: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    precision: Array

    def state(self, theta: Array) -> ThetaState:
        """The state at theta (c, p); the simulator is not called outside the support."""
        inside = self.parameters.inside(theta)
        if inside.all():
            model = self.simulate(theta)
            return ThetaState(theta, model, self.parameters.log_prior(theta))
        model = np.full((len(theta), *self.precision.shape[:2]), np.nan)
        log_prior = np.full(len(theta), -np.inf)
        if inside.any():
            model[inside] = self.simulate(theta[inside])
            log_prior[inside] = self.parameters.log_prior(theta[inside])
        return ThetaState(theta, model, log_prior)


class Extra(Protocol):
    """What comes to the log density of each chain beside prior and likelihood."""

    def __call__(self, theta: Array, model: Array) -> Array:
        """(c,), from theta (c, p) and the simulator there, (c, n, q)."""

    def part(self, chains: slice | list[int]) -> Extra:
        """The same for some of the chains."""


class Conditional(NamedTuple):
    """Pi(theta | b*, y) for each chain: y - b* = ``offset`` (c, n, q) ~ N(f(theta), noise), whitened.

    Where the noise is sampled, ``noise_precision`` (c, n, q, q), or (c, 1, q, q) for all rows of a chain, takes the
    place of the base's.
    """

    base: ThetaModel
    offset: Array
    noise_precision: Array | None = None
    extra: Extra | None = None

    def part(self, chains: slice | list[int]) -> Conditional:
        """The same for some of the chains."""
        own = None if self.noise_precision is None else self.noise_precision[chains]
        return Conditional(self.base, self.offset[chains], own, None if self.extra is None else self.extra.part(chains))

    def log_density(self, state: ThetaState) -> Array:
        """log Pi(theta | b*, y) up to a constant, (c,); -inf where the simulator fails."""
        misfit = self.offset - state.model
        log_likelihood = -0.5 * np.einsum("cnq,cnq->c", misfit, self._weighted(misfit))
        total = state.log_prior + log_likelihood
        if self.extra is not None:
            total = total + self.extra(state.theta, state.model)
        return np.where(np.isnan(total), -np.inf, total)

    def score(self, state: ThetaState, gradient: Array) -> Array:
        """d log Pi / d theta, (c, p), from the simulator's gradient (c, n, q, p)."""
        slope = np.einsum("cnq,cnqp->cp", self._weighted(self.offset - state.model), gradient)
        return np.asarray(slope + self.base.parameters.log_prior_gradient(state.theta))

    def precision(self, theta: Array, gradient: Array) -> Array:
        """Gauss–Newton precision of each chain, (c, p, p), at theta (c, p) from the gradient (c, n, q, p) there."""
        columns = np.moveaxis(gradient, -1, 1)
        fisher = np.einsum("cinq,cjnq->cij", columns, self._weighted(columns))
        return np.stack([with_prior(self.base.parameters, *one) for one in zip(fisher, theta, strict=True)])

    def _weighted(self, values: Array) -> Array:
        """The rows' precision times values (c, ..., n, q)."""
        if self.noise_precision is None:
            return weighted(self.base.precision, values)
        if self.noise_precision.shape[1] == 1:
            between = (1,) * (values.ndim - 3)
            c, _, q, _ = self.noise_precision.shape
            return np.asarray(values @ self.noise_precision.reshape(c, *between, q, q))
        return np.asarray(np.einsum("cnqr,c...nr->c...nq", self.noise_precision, values))


def weighted(precision: Array, values: Array) -> Array:
    """The rows' precision, (n, q) or (n, q, q), times values (..., n, q)."""
    if precision.ndim == 2:
        return np.asarray(precision * values)
    return np.asarray(np.einsum("nqr,...nr->...nq", precision, values))


@runtime_checkable
class Kernel(Protocol):
    """A Markov kernel that leaves Pi(theta | b*, y) invariant; its tuning is kept apart from its state.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> [isinstance(one(), oc.kernels.Kernel) for one in (oc.kernels.Laplace, oc.kernels.Slice, oc.kernels.HMC)]
    [True, True, True]
    >>> method = oc.methods.Projected(kernel=oc.kernels.Slice(sweeps=2))
    >>> oc.calibrate(problem, method, draws=20, chains=2, warmup=50, seed=1, progress=False).theta.shape
    (2, 20, 1)
    """

    def tune(self, model: ThetaModel, pivot: Array) -> Any:
        """The tuning before any draw, around ``pivot`` (p,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from orthocal.kernels.base import ThetaModel
        >>> from orthocal.problem.prior.parameters import Parameters
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)[:, None]
        >>> model = ThetaModel(
        ...     Parameters({"slope": stats.norm(0, 100)}),
        ...     simulate=lambda theta: theta[:, None, :] * x,
        ...     gradient=lambda theta: x[:, None],
        ...     precision=np.ones((30, 1)),
        ... )
        >>> tuning = oc.kernels.AdaptiveMetropolis().tune(model, np.array([1.0]))
        >>> np.allclose(tuning.root, np.sum(x**2) ** -0.5, rtol=1e-3)
        True
        """

    def adapt(self, tuning: Any, model: ThetaModel, thetas: Array, acceptance: Array) -> Any:
        """Better tuning from a window of warm-up draws, thetas (w, c, p) and acceptance (w, c).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from orthocal.kernels.base import ThetaModel
        >>> from orthocal.problem.prior.parameters import Parameters
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)[:, None]
        >>> model = ThetaModel(
        ...     Parameters({"slope": stats.norm(0, 100)}),
        ...     simulate=lambda theta: theta[:, None, :] * x,
        ...     gradient=lambda theta: x[:, None],
        ...     precision=np.ones((30, 1)),
        ... )
        >>> kernel = oc.kernels.AdaptiveMetropolis()
        >>> tuning = kernel.tune(model, np.array([1.0]))
        >>> draws = np.random.default_rng(1).normal(1.0, 0.3, (25, 4, 1))
        >>> bolder = kernel.adapt(tuning, model, draws, acceptance=np.full((25, 4), 0.9))
        >>> bool(bolder.scale > tuning.scale)
        True
        """

    def step(self, rngs: Rngs, tuning: Any, state: ThetaState, target: Conditional) -> tuple[ThetaState, StepInfo]:
        """Enough inner steps to make the new theta a draw from Pi(theta | b*, y).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from orthocal.kernels.base import Conditional, ThetaModel
        >>> from orthocal.problem.prior.parameters import Parameters
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)[:, None]
        >>> model = ThetaModel(
        ...     Parameters({"slope": stats.norm(0, 100)}),
        ...     simulate=lambda theta: theta[:, None, :] * x,
        ...     gradient=lambda theta: x[:, None],
        ...     precision=np.ones((30, 1)),
        ... )
        >>> kernel, rngs = oc.kernels.Laplace(), [np.random.default_rng(c) for c in range(2)]
        >>> tuning = kernel.tune(model, np.array([1.0]))
        >>> target = Conditional(model, offset=np.tile(3 * x, (2, 1, 1)))
        >>> state, info = kernel.step(rngs, tuning, model.state(np.ones((2, 1))), target)
        >>> state.theta.shape, info.acceptance.shape
        ((2, 1), (2,))
        """

    def describe(self) -> dict[str, Any]:
        """The user's choices, as what JSON can store.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.kernels.HMC(leapfrogs=3).describe()
        {'kind': 'hmc', 'trajectories': 4, 'leapfrogs': 3}
        """


def require_kernel(kernel: object) -> None:
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel={kernel!r}: give a theta kernel, for instance oc.kernels.Laplace()")


#: name -> kernel, in the order of ``kernels/__init__.py``
KERNELS: dict[str, Callable[[], Kernel]] = {}

Listed = TypeVar("Listed", bound=type[Any])


def listed(kernel: Listed) -> Listed:
    """Of a class: a kernel that files know by its ``name``."""
    KERNELS[kernel.name] = kernel
    return kernel


def normals(rngs: Rngs, p: int) -> Array:
    """Standard normal draws, (c, p), each chain from its own generator."""
    return np.array([rng.standard_normal(p) for rng in rngs])


def accept(
    rngs: Rngs, state: ThetaState, density: Array, proposal: ThetaState, proposed: Array, log_ratio: Array
) -> tuple[ThetaState, Array, BoolArray]:
    """Metropolis' choice for each chain: the new state, its log density, and who moved."""
    uniform = np.array([rng.random() for rng in rngs])
    # a NaN ratio (both densities zero) compares as false: no move
    moved = np.isfinite(proposed) & (np.log1p(-uniform) < log_ratio)
    if moved.all():
        return proposal, proposed, moved
    state = ThetaState(
        np.where(moved[:, None], proposal.theta, state.theta),
        np.where(moved[:, None, None], proposal.model, state.model),
        np.where(moved, proposal.log_prior, state.log_prior),
    )
    return state, np.where(moved, proposed, density), moved


def laplace_precision(model: ThetaModel, theta: Array, gradient: Array) -> Array:
    """Gauss–Newton precision of Pi(theta | b*, y): G' P G + the prior's curvature, (p, p)."""
    columns = np.moveaxis(gradient, -1, 0)
    fisher = np.einsum("inq,jnq->ij", columns, weighted(model.precision, columns))
    return with_prior(model.parameters, fisher, theta)


def with_prior(parameters: Parameters, fisher: Array, theta: Array) -> Array:
    """The precision G' P G of the data plus the prior's curvature at theta, (p, p).

    A prior without curvature counts as one ten times as wide as its spread: the precision stays regular where the
    data say nothing.
    """
    curvature = parameters.log_prior_curvature(theta)
    diagonal = np.maximum(np.diag(curvature), 0.01 / parameters.spread**2)
    np.fill_diagonal(curvature, diagonal)
    return np.asarray(fisher + curvature)


def at_middle(made: Callable[[Array], Tuned], parameters: Parameters, thetas: Array) -> Tuned:
    """What ``made`` makes of the mean of draws (..., p), or of the draw nearest to it where the simulator fails there.

    The mean of draws on both sides of what is impossible may be impossible itself.
    """
    draws = thetas.reshape(-1, thetas.shape[-1])
    mean = draws.mean(axis=0)
    try:
        return made(mean)
    except NonFiniteError as error:
        failure = error
    order = np.argsort(np.sum(((draws - mean) / parameters.spread) ** 2, axis=1))
    for theta in draws[order[:: max(1, len(order) // MOST_PIVOTS)]]:
        try:
            return made(theta)
        except NonFiniteError:
            continue
    raise failure


def dispersed_starts(model: ThetaModel, tilde: Array, rngs: Rngs, root: Array | None = None) -> Array:
    """A start for each chain, (c, p): theta_tilde plus twice the spread of ``root``, inside the support.

    ``root`` (p, p) is that of the Laplace approximation where it is not given.
    """
    parameters = model.parameters
    spread = laplace_root(model, tilde) if root is None else root
    starts = np.tile(tilde, (len(rngs), 1))
    for c, rng in enumerate(rngs):
        for shrink in 0.5 ** np.arange(20):
            theta = tilde + 2 * shrink * spread @ rng.standard_normal(parameters.p)
            if parameters.inside(theta) and np.isfinite(model.simulate(theta[None])).all():
                starts[c] = theta
                break
    # theta_tilde itself may lie on a bound
    return parameters.clipped(starts, 1e-9)


def laplace_root(model: ThetaModel, theta: Array) -> Array:
    """R with R R' the covariance of the Laplace approximation around theta, (p, p)."""
    lower = np.linalg.cholesky(laplace_precision(model, theta, model.gradient(theta)))
    return np.asarray(np.linalg.inv(lower).T)

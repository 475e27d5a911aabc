"""Orthogonal calibration via posterior projections: any bias prior, projected draw by draw.

Each iteration: (1) b ~ Pi(b | theta, y); (2) b* = the projection of b; (3) theta ~ Pi(theta | b*, y).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..arrays import Array
from ..bias import GP, BiasPrior
from ..bias.base import ListedPrior
from ..bias.outcomes import OutcomesBias, OutcomesState
from ..errors import InputError
from ..kernels import Kernel, Laplace
from ..kernels.base import Conditional, ThetaModel, ThetaState, at_middle, dispersed_starts, require_kernel
from ..kernels.laplace import LaplaceTuning, linear_centre, linearised
from ..kernels.warmup import Stepper, run_chains
from ..problem.noise.noise import NoiseSource
from ..problem.preflight.cost import RunCost
from ..problem.problem import Problem
from ..projection import Projection, ProjectionKind, finite_projection, functional_projection
from .base import CHAIN_COST, CLOSEST, Draws, ListedMethod, Plan, RunNotes, listed_with_priors
from .bias_samplers import fitted_bias, with_integrals
from .chain_noise import ChainNoise, NoiseState
from .fine_nodes import Integrals
from .sampled_noise import LatentNoise
from .stored_draws import BiasCovariance, KeptDraw, bias_covariance, finished

# Does the theta step forget where it started? The diagnostic of an inexact theta step.
#
# An exact draw from Pi(theta | b*, y) depends on the bias alone, not on the theta before it. So what is left of both
# thetas after a regression on the bias must be uncorrelated. The bias enters by the centre of the linearised
# conditional and its squares and products.


class Centre(NamedTuple):
    """The centre of Pi(theta | b*, y) for a linearised simulator: a function of bias and noise."""

    tuning: LaplaceTuning

    @staticmethod
    def at(model: ThetaModel, pivot: Array) -> Centre:
        """For the simulator linearised at ``pivot`` (p,)."""
        return Centre(linearised(model, pivot))

    def __call__(self, target: Conditional) -> Array:
        """(c, p)."""
        return linear_centre(self.tuning, target)


def memory(before: Array, after: Array, centre: Array) -> float | None:
    """The largest partial correlation of a parameter before and after the theta step given the bias.

    All arrays are (draws, p). None where they are fewer than four a coefficient of the regression.
    """
    spread = centre.std(axis=0)
    scaled = (centre - centre.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    p = scaled.shape[1]
    products = [scaled[:, i] * scaled[:, j] for i in range(p) for j in range(i, p)]
    features = np.column_stack([np.ones(len(scaled)), scaled, *products])
    if len(features) < 4 * features.shape[1]:
        return None
    left = []
    for theta in (before, after):
        fitted = features @ np.linalg.lstsq(features, theta, rcond=None)[0]
        left.append(theta - fitted)
    sizes = np.sqrt(np.sum(left[0] ** 2, axis=0) * np.sum(left[1] ** 2, axis=0))
    shared = np.abs(np.sum(left[0] * left[1], axis=0))
    return float(np.max(np.divide(shared, sizes, out=np.zeros_like(sizes), where=sizes > 0)))


@listed_with_priors("p")
@dataclass(frozen=True)
class Projected(ListedMethod):
    """y = f(., theta) + b* + e with b* = b - D (C'b) orthogonal to df/dtheta: the paper's Algorithm 1.

    Parameters
    ----------
    bias
        A prior on the bias, for instance ``oc.bias.GP(nu=1.5)``.
    projection
        ``"functional"`` (over the domain) or ``"finite"`` (on the data points, weighted by the volumes of their
        cells).
    feedback
        Whether the bias is drawn given the current theta (True) or always given theta_tilde (False, "cut").
    kernel
        How theta is drawn, see ``orthocal.kernels``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> method = oc.methods.Projected(bias=oc.bias.GP(nu=1.5), projection="finite")
    >>> posterior = oc.calibrate(problem, method, draws=50, chains=2, seed=1, progress=False)
    >>> bool(posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-6)
    True
    """

    kind: ClassVar[str] = "projected"
    cost: ClassVar[RunCost | None] = CHAIN_COST
    joint_density: ClassVar[bool] = False

    bias: BiasPrior = field(default_factory=GP)
    projection: Literal["functional", "finite"] = "functional"
    feedback: bool = True
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        if not isinstance(self.bias, BiasPrior):
            raise InputError(f"bias={self.bias!r}: give a prior on the bias, for instance oc.bias.GP(nu=1.5)")
        if self.projection not in ("functional", "finite"):
            raise InputError(f'projection={self.projection!r}: give "functional" or "finite"')
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # an error about the parameters comes before any long work
        _ = problem.sensitivity if self.projection == "functional" else problem.sensitivity_at_data
        functional = self.projection == "functional"
        bias = fitted_bias(self.bias, problem, problem.rule.nodes if functional else np.empty((0, problem.data.d)))
        if functional:
            bias, integrals = with_integrals(self.bias, problem, bias)
            return _ProjectedRun(self, problem, plan, bias, _functional(problem), integrals=integrals).draws()
        residual = problem.whiten(problem.complete_y - problem.fit)
        covariance = bias_covariance(bias, residual, plan.rngs)
        projection = finite_projection(problem.gradient_at_data, problem.volumes, problem.metric, covariance.factor)
        return _ProjectedRun(self, problem, plan, bias, projection, covariance).draws()

    @property
    def merges(self) -> bool:
        # a prior of the user's may count the data points, or take their noise for the same everywhere
        return isinstance(self.bias, ListedPrior)

    def words(self) -> str:
        prior = self.bias
        own = (
            prior.words if isinstance(prior, ListedPrior) else f"The bias has the prior {prior.describe().get('kind')}"
        )
        where = "at the data points" if self.projection == "finite" else "over the domain"
        return (
            f"{own}, and every draw of it is projected: what a change of theta could explain is taken away {where}, "
            f"so {CLOSEST}."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bias": self.bias.describe(),
            "projection": self.projection,
            "feedback": self.feedback,
            "kernel": self.kernel.describe(),
        }


def _functional(problem: Problem) -> Projection:
    return functional_projection(
        problem.gradient_at_data,
        problem.gradient_at_nodes,
        problem.rule.weights,
        problem.metric,
        problem.sensitivity,
    )


def _theta_model(problem: Problem) -> ThetaModel:
    """Prior and likelihood of theta; where the noise is correlated between rows, all cells are one row."""
    noise, x = problem.noise, problem.data.x
    if noise.rows is None:
        return ThetaModel(
            parameters=problem.parameters,
            simulate=lambda theta: problem.whiten(problem.simulator.batch(x, theta)),
            gradient=lambda theta: problem.whitened_gradient(x, theta),
            precision=noise.precision if noise.coupled else np.einsum("nii->ni", noise.precision),
        )
    cells = problem.data.y.size
    return ThetaModel(
        parameters=problem.parameters,
        simulate=lambda theta: problem.whiten(problem.simulator.batch(x, theta)).reshape(-1, 1, cells),
        gradient=lambda theta: problem.whitened_gradient(x, theta).reshape(1, cells, -1),
        precision=noise.joint_precision.reshape(1, cells, cells),
    )


class _Kept(NamedTuple):
    """A draw, and of its theta step where it started and where it aimed at, (c, p)."""

    draw: KeptDraw
    before: Array
    centre: Array


class _ProjectedRun(Stepper[_Kept]):
    """One run of the sampler, all chains at a time."""

    changing = ("_bias_state", "_noise_state", "_correlated", "_tuning", "_state", "_centre", "_bias.traces")

    def __init__(
        self,
        method: Projected,
        problem: Problem,
        plan: Plan,
        bias: OutcomesBias,
        projection: Projection,
        covariance: BiasCovariance | None = None,
        integrals: Integrals | None = None,
    ) -> None:
        self._method, self._problem, self._plan, self._integrals = method, problem, plan, integrals
        self._bias, self._projection, self._covariance = bias, projection, covariance
        noise = problem.noise
        self._y = problem.whiten(problem.complete_y)
        self._model = _theta_model(problem)
        # errors that are correlated between rows make all cells one row to the theta step
        self._row = self._y.shape if noise.rows is None else (1, self._y.size)
        self._latent = None if noise.rows is None or bias.gaussian else LatentNoise(noise)
        self._correlated = None if self._latent is None else self._latent.start(len(plan.rngs))
        self._tilde = problem.whiten(problem.fit)
        self._bias_state: OutcomesState | None = None
        if noise.groups is not None:
            raise InputError(
                "GroupNoise(sample=True): this method cannot draw the noise of groups; take gp or bart, or GroupNoise "
                "without sample"
            )
        self._noise = ChainNoise(problem) if noise.source is NoiseSource.UNKNOWN else None
        self._noise_state: NoiseState | None = None if self._noise is None else self._noise.start(len(plan.rngs))
        tilde = problem.theta_tilde
        self._tuning = method.kernel.tune(self._model, tilde)
        self._state = self._model.state(dispersed_starts(self._model, tilde, plan.rngs))
        self._centre = Centre.at(self._model, tilde)

    def draws(self) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        steps = [(one.before, one.draw.theta, one.centre) for one in kept]
        tuning = self._tuning if isinstance(self._tuning, LaplaceTuning) else None
        notes = RunNotes(
            None if tuning is None else tuning.steps,
            None if tuning is None else tuning.refinements,
            remembers=True,
            theta_memory=memory(*(np.concatenate(parts) for parts in zip(*steps, strict=True))),
            bias=tuple(sampler.findings() for sampler in self._bias.samplers),
        )
        draws, samplers = [one.draw for one in kept], self._bias.samplers
        return finished(self._problem, draws, samplers=samplers, notes=notes, **self._projection_fields())

    def step(self) -> tuple[Array, Array]:
        self._projected = self._projection.apply(self._integrated(self._draw_bias(self._state)))
        self._target = self._conditional(self._projected.bias)
        self._before = self._state.theta
        kernel = self._method.kernel
        self._state, self._info = kernel.step(self._plan.rngs, self._tuning, self._state, self._target)
        return self._state.theta, self._info.tuned

    def adapt(self, *window: Array) -> None:
        thetas, acceptance = window
        self._tuning = self._method.kernel.adapt(self._tuning, self._model, thetas, acceptance)
        self._centre = at_middle(lambda pivot: Centre.at(self._model, pivot), self._problem.parameters, thetas)

    def kept(self) -> _Kept:
        state, projected = self._state, self._projected
        stats = {
            "lp": self._info.log_density,
            "acceptance_rate": self._info.acceptance,
            "orthogonality_error": projected.error,
        }
        others = {"coefficient": projected.coefficient}
        if self._noise_state is not None:
            back = self._problem.noise.unwhitener
            others["noise_cov"] = back @ self._noise_state.cov @ back.T
        assert self._bias_state is not None
        records = self._bias.records(self._bias_state)
        draw = KeptDraw.of(state.theta, self._at_rows(state), projected.bias, stats, records, others)
        return _Kept(draw, self._before, self._centre(self._target))

    def _projection_fields(self) -> dict[str, Any]:
        """What ``predict`` needs to know of the projection."""
        if self._covariance is None:
            return {"projection": ProjectionKind.FUNCTIONAL, "nodes_drawn": True}
        n, q = self._y.shape
        reference = {}
        if self._covariance.records:
            constraint = self._covariance.factor.T @ self._projection.constraint
            reference = {**self._covariance.records, "constraint": constraint}
        directions = self._projection.directions.reshape(n, q, -1)
        return {"projection": ProjectionKind.FINITE, "directions": directions, "reference_state": reference}

    def _draw_bias(self, state: ThetaState) -> Array:
        """b at the data and nodes for each chain, (c, n + m, q); with it the noise, where that is sampled."""
        at_rows = self._at_rows(state)
        model = at_rows if self._method.feedback else np.broadcast_to(self._tilde, at_rows.shape)
        residual: Array = self._y - model
        rngs = self._plan.rngs
        if self._noise is None or self._noise_state is None:
            left = residual if self._correlated is None else residual - self._correlated
            self._bias_state, bias = self._bias.draw(rngs, self._bias_state, left)
            if self._latent is not None:
                self._correlated = self._latent.draw(rngs, residual - self._bias_state.bias)
            return bias
        before = 0.0 if self._bias_state is None else self._bias_state.bias
        residual = before + self._noise.completed(rngs, residual - before, self._noise_state)
        rows = self._noise.of_rows(self._noise_state)
        self._bias_state, bias = self._bias.draw(rngs, self._bias_state, residual, rows)
        self._noise_state, self._bias_state = self._noise.drawn(
            rngs, self._noise_state, self._bias, self._bias_state, residual
        )
        return bias if not self._bias.in_noise_units else bias * (self._noise_state.sd / rows.sd)[:, None]

    def _at_rows(self, state: ThetaState) -> Array:
        """The simulator at the data, (c, n, q)."""
        return state.model.reshape(-1, *self._y.shape)

    def _integrated(self, bias: Array) -> Array:
        """b at the data and the problem's nodes, where it was drawn at others."""
        if self._integrals is None or self._bias_state is None:
            return bias
        at_data, drawn = np.split(bias, [len(self._y)], axis=1)
        at_nodes, _ = self._integrals.at_nodes(drawn, self._bias.records(self._bias_state))
        return np.concatenate([at_data, at_nodes], axis=1)

    def _conditional(self, bias: Array) -> Conditional:
        """Pi(theta | b*, y)."""
        if self._noise is None or self._noise_state is None:
            return Conditional(self._model, (self._y - bias).reshape(-1, *self._row))
        return Conditional(self._model, self._y - bias, self._noise.of_observed(self._noise_state))

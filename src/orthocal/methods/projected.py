"""Orthogonal calibration via posterior projections: any bias prior, projected draw by draw.

Each iteration: (1) b ~ Pi(b | theta, y); (2) b* = the projection of b; (3) theta ~ Pi(theta | b*, y).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..arrays import Array
from ..bias import GP, BiasPrior
from ..bias.outcomes import OutcomesBias, OutcomesState, stand_ins
from ..errors import InputError
from ..kernels import Kernel, Laplace
from ..kernels.base import Conditional, StepInfo, ThetaModel, ThetaState, dispersed_starts
from ..kernels.memory import Centre, Trace
from ..problem.problem import Problem
from ..progress import progress_bar
from ..projection import ProjectedBias, Projection, finite_projection, functional_projection
from .base import Draws, Plan
from .covariance import BiasCovariance, bias_covariance
from .kept import Kept
from .noise_sample import NoiseSampler

#: the theta kernel is tuned after every so many warm-up iterations
WINDOW = 25


@dataclass(frozen=True)
class Projected:
    """Calibration with a projected bias.

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
    """

    bias: BiasPrior = field(default_factory=GP)
    projection: Literal["functional", "finite"] = "functional"
    feedback: bool = True
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        if not hasattr(self.bias, "prepare"):
            raise InputError(f"bias={self.bias!r}: give a prior on the bias, for instance oc.bias.GP(nu=1.5)")
        if self.projection not in ("functional", "finite"):
            raise InputError(f'projection={self.projection!r}: give "functional" or "finite"')
        if not hasattr(self.kernel, "step"):
            raise InputError(f"kernel={self.kernel!r}: give a theta kernel, for instance oc.kernels.Laplace()")

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # an error about the parameters comes before any long work
        _ = problem.sensitivity if self.projection == "functional" else problem.sensitivity_at_data
        bias = self._bias(problem)
        if self.projection == "functional":
            return _Run(self, problem, plan, bias, _functional(problem)).draws()
        residual = problem.whiten(problem.complete_y - problem.fit)
        covariance = bias_covariance(bias, residual, plan.rngs)
        projection = finite_projection(problem.gradient_at_data, problem.volumes, problem.metric, covariance.factor)
        return _Run(self, problem, plan, bias, projection, covariance).draws()

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "projected",
            "bias": self.bias.describe(),
            "projection": self.projection,
            "feedback": self.feedback,
            "kernel": self.kernel.describe(),
        }

    def _bias(self, problem: Problem) -> OutcomesBias:
        """The samplers of the bias, fitted to the residual at theta_tilde."""
        data = problem.data
        residual = problem.complete_y - problem.fit
        return OutcomesBias(
            self.bias,
            data.x,
            problem.rule.nodes if self.projection == "functional" else np.empty((0, data.d)),
            problem.span,
            problem.noise,
            problem.whiten(stand_ins(data.x, problem.span, residual, data.observed)),
            problem.gradient_at_data,
        )


def _functional(problem: Problem) -> Projection:
    return functional_projection(
        problem.gradient_at_data,
        problem.gradient_at_nodes,
        problem.rule.weights,
        problem.metric,
        problem.sensitivity,
    )


class _Run:
    """One run of the sampler, all chains at a time."""

    def __init__(
        self,
        method: Projected,
        problem: Problem,
        plan: Plan,
        bias: OutcomesBias,
        projection: Projection,
        covariance: BiasCovariance | None = None,
    ) -> None:
        self._method, self._problem, self._plan = method, problem, plan
        self._bias, self._projection, self._covariance = bias, projection, covariance
        noise = problem.noise
        self._y = problem.whiten(problem.complete_y)
        self._model = ThetaModel(
            parameters=problem.parameters,
            simulate=lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)),
            gradient=lambda theta: problem.whitened_gradient(problem.data.x, theta),
            precision=noise.precision if noise.coupled else np.einsum("nii->ni", noise.precision),
        )
        self._tilde = problem.whiten(problem.fit)
        self._state: OutcomesState | None = None
        self._noise = NoiseSampler(noise) if noise.source == "sampled" else None
        self._noise_precision = None if self._noise is None else self._noise.start(len(plan.rngs))

    def draws(self) -> Draws:
        plan, kernel = self._plan, self._method.kernel
        tuning = kernel.tune(self._model, self._problem.theta_tilde)
        starts = dispersed_starts(self._model, self._problem.theta_tilde, plan.rngs)
        state = self._model.state(starts)
        kept, trace = Kept(plan, self._problem), Trace()
        window: list[tuple[Array, Array]] = []
        centre = Centre(self._model, self._problem.theta_tilde)
        for iteration in progress_bar(range(plan.warmup + plan.draws), "sampling"):
            projected = self._projection.apply(self._draw_bias(state))
            target = self._conditional(projected.bias)
            before = state.theta
            state, info = kernel.step(plan.rngs, tuning, state, target)
            if iteration >= plan.warmup:
                self._keep(kept, iteration - plan.warmup, state, projected, info)
                trace.add(before, state.theta, centre(target))
                continue
            window.append((state.theta, info.acceptance))
            if len(window) == WINDOW:
                thetas, acceptance = (np.stack(parts) for parts in zip(*window, strict=True))
                tuning = kernel.adapt(tuning, self._model, thetas, acceptance)
                centre = Centre(self._model, thetas.mean(axis=(0, 1)))
                window = []
        notes = {
            "inner_steps": getattr(tuning, "steps", None),
            "refinements": getattr(tuning, "refinements", None),
            "theta_memory": trace.memory(),
            "bias": [sampler.findings() for sampler in self._bias.samplers],
        }
        return kept.finish(samplers=self._bias.samplers, notes=notes, **self._projection_fields())

    def _keep(self, kept: Kept, s: int, state: ThetaState, projected: ProjectedBias, info: StepInfo) -> None:
        kept.add(
            s,
            state.theta,
            state.model,
            projected.bias,
            lp=info.log_density,
            acceptance_rate=info.acceptance,
            orthogonality_error=projected.error,
        )
        kept.add_other(coefficient=projected.coefficient)
        assert self._state is not None
        kept.add_record(self._bias.records(self._state))
        if self._noise is not None and self._noise_precision is not None:
            kept.add_other(noise_cov=self._noise.covariance(self._noise_precision))

    def _projection_fields(self) -> dict[str, Any]:
        """What ``predict`` needs to know of the projection."""
        if self._covariance is None:
            return {"projection": "functional", "nodes_drawn": True}
        n, q = self._y.shape
        reference = {}
        if self._covariance.records:
            constraint = self._covariance.factor.T @ self._projection.constraint
            reference = {**self._covariance.records, "constraint": constraint}
        directions = self._projection.directions.reshape(n, q, -1)
        return {"projection": "finite", "directions": directions, "reference_state": reference}

    def _draw_bias(self, state: ThetaState) -> Array:
        """b at the data and nodes for each chain, (c, n + m, q); with it the noise, where that is sampled."""
        model = state.model if self._method.feedback else np.broadcast_to(self._tilde, state.model.shape)
        residual: Array = self._y - model
        rngs = self._plan.rngs
        if self._noise is None or self._noise_precision is None:
            self._state, bias = self._bias.draw(rngs, self._state, residual)
            return bias
        before = 0.0 if self._state is None else self._state.bias
        residual = before + self._noise.completed(rngs, residual - before, self._noise_precision)
        self._state, bias = self._bias.draw(rngs, self._state, residual, self._noise_precision)
        self._noise_precision = self._noise.draw(rngs, residual - self._state.bias)
        return bias

    def _conditional(self, bias: Array) -> Conditional:
        """Pi(theta | b*, y)."""
        if self._noise is None or self._noise_precision is None:
            return Conditional(self._model, self._y - bias)
        return Conditional(self._model, self._y - bias, self._noise.row_precision(self._noise_precision))

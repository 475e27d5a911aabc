"""Orthogonal calibration via posterior projections: any bias prior, projected draw by draw.

Each iteration: (1) b ~ Pi(b | theta, y); (2) b* = the projection of b; (3) theta ~ Pi(theta | b*, y).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.linalg import block_diag

from ..arrays import Array
from ..bias import GP, BiasPrior, BiasSampler, Setting
from ..errors import InputError
from ..kernels import Kernel, Laplace
from ..kernels.base import Conditional, ThetaModel, ThetaState, laplace_root
from ..kernels.memory import Centre, memory
from ..problem import Problem
from ..progress import progress_bar
from ..projection import Projection, finite_projection, functional_projection
from .base import Draws, Plan

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
        samplers = self._samplers(problem)
        return _Run(self, problem, plan, samplers, self._projection(problem, samplers)).draws()

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "projected",
            "bias": self.bias.describe(),
            "projection": self.projection,
            "feedback": self.feedback,
            "kernel": self.kernel.describe(),
        }

    def _samplers(self, problem: Problem) -> list[BiasSampler]:
        """One sampler for each whitened outcome."""
        functional = self.projection == "functional"
        nodes = problem.rule.nodes if functional else np.empty((0, problem.data.d))
        # an error about the parameters comes before any long work
        _ = problem.sensitivity if functional else problem.sensitivity_at_data
        model = problem.simulator.required(problem.data.x, problem.theta_tilde)
        residual = problem.whiten(problem.data.y - model)
        sd = np.sqrt(np.diag(problem.noise.cov))
        return [
            self.bias.prepare(
                Setting(
                    x=problem.data.x,
                    nodes=nodes,
                    span=problem.span,
                    noise_var=problem.noise.relative_var[:, k],
                    residual=residual[:, k],
                    gradient=problem.gradient_at_data[:, k],
                    unit=float(1 / sd[k]),
                )
            )
            for k in range(problem.data.q)
        ]

    def _projection(self, problem: Problem, samplers: list[BiasSampler]) -> Projection:
        if self.projection == "functional":
            return functional_projection(
                problem.gradient_at_data,
                problem.gradient_at_nodes,
                problem.rule.weights,
                problem.metric,
                problem.sensitivity,
            )
        n, q = problem.data.y.shape
        blocks = block_diag(*(sampler.covariance_factor() for sampler in samplers))
        # block_diag stacks by outcome, the projection by point
        factor = blocks.reshape(q, n, -1).swapaxes(0, 1).reshape(n * q, -1)
        return finite_projection(problem.gradient_at_data, problem.volumes, problem.metric, factor)


class _Run:
    """One run of the sampler, all chains at a time."""

    def __init__(
        self,
        method: Projected,
        problem: Problem,
        plan: Plan,
        samplers: list[BiasSampler],
        projection: Projection,
    ) -> None:
        self._method, self._problem, self._plan = method, problem, plan
        self._samplers, self._projection = samplers, projection
        self._y = problem.whiten(problem.data.y)
        self._model = ThetaModel(
            parameters=problem.parameters,
            simulate=lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)),
            gradient=lambda theta: problem.whitened_gradient(problem.data.x, theta),
            precision=1 / problem.noise.relative_var,
        )
        self._bias_states: list[Any] = [None] * problem.data.q
        self._tilde = problem.whiten(problem.simulator.required(problem.data.x, problem.theta_tilde))

    def draws(self) -> Draws:
        method, plan = self._method, self._plan
        kernel = method.kernel
        tuning = kernel.tune(self._model, self._problem.theta_tilde)
        state = self._start()
        kept = _Kept(plan, self._problem)
        window: list[tuple[Array, Array]] = []
        centre = Centre(self._model, self._problem.theta_tilde)
        for iteration in progress_bar(range(plan.warmup + plan.draws), "sampling"):
            projected = self._projection.apply(self._draw_bias(state))
            target = Conditional(self._model, self._y - projected.bias)
            before = state.theta
            state, info = kernel.step(plan.rngs, tuning, state, target)
            if iteration >= plan.warmup:
                kept.add(iteration - plan.warmup, state, projected, info, self._records())
                kept.add_step(iteration - plan.warmup, before, centre(target))
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
            "theta_memory": kept.memory(),
            "bias": [sampler.findings() for sampler in self._samplers],
        }
        return kept.finish(method.projection, self._samplers, notes)

    def _draw_bias(self, state: ThetaState) -> Array:
        """b at the data and nodes for each chain, (c, n + m, q)."""
        model = state.model if self._method.feedback else np.broadcast_to(self._tilde, state.model.shape)
        residual = self._y - model
        values = []
        for k, sampler in enumerate(self._samplers):
            self._bias_states[k], bias = sampler.draw(self._plan.rngs, self._bias_states[k], residual[:, :, k])
            values.append(bias)
        return np.stack(values, axis=-1)

    def _records(self) -> dict[str, Array]:
        return {
            f"{name}_{k}": value
            for k, (sampler, state) in enumerate(zip(self._samplers, self._bias_states, strict=True))
            for name, value in sampler.record(state).items()
        }

    def _start(self) -> ThetaState:
        """Dispersed starts: theta_tilde plus twice the spread of the Laplace approximation, inside the support."""
        tilde, parameters = self._problem.theta_tilde, self._problem.parameters
        root = 2 * laplace_root(self._model, tilde)
        starts = np.tile(tilde, (len(self._plan.rngs), 1))
        for c, rng in enumerate(self._plan.rngs):
            for shrink in 0.5 ** np.arange(20):
                theta = tilde + shrink * root @ rng.standard_normal(parameters.p)
                if parameters.inside(theta) and np.isfinite(self._model.simulate(theta[None])).all():
                    starts[c] = theta
                    break
        # theta_tilde itself may lie on a bound
        return self._model.state(parameters.clipped(starts, 1e-9))


class _Kept:
    """The draws that are kept, in the outcomes' units."""

    def __init__(self, plan: Plan, problem: Problem) -> None:
        c, s = len(plan.rngs), plan.draws
        (n, q), p = problem.data.y.shape, problem.parameters.p
        self._problem = problem
        self._theta, self._coefficient = np.empty((c, s, p)), np.empty((c, s, p))
        self._before, self._centre = np.empty((c, s, p)), np.empty((c, s, p))
        self._model, self._bias = np.empty((c, s, n, q)), np.empty((c, s, n, q))
        self._stats: dict[str, Array] = {
            name: np.empty((c, s)) for name in ("lp", "acceptance_rate", "orthogonality_error")
        }
        self._records: dict[str, list[Array]] = {}

    def add(self, s: int, state: ThetaState, projected: Any, info: Any, records: dict[str, Array]) -> None:
        self._theta[:, s], self._coefficient[:, s] = state.theta, projected.coefficient
        self._model[:, s], self._bias[:, s] = state.model, projected.bias
        self._stats["lp"][:, s] = info.log_density
        self._stats["acceptance_rate"][:, s] = info.acceptance
        self._stats["orthogonality_error"][:, s] = projected.error
        for name, value in records.items():
            self._records.setdefault(name, []).append(value)

    def add_step(self, s: int, before: Array, centre: Array) -> None:
        """Where the theta step started and where it aimed at, (c, p)."""
        self._before[:, s], self._centre[:, s] = before, centre

    def memory(self) -> float:
        """How much of its start the theta step remembers."""
        return memory(*(part.reshape(-1, part.shape[-1]) for part in (self._before, self._theta, self._centre)))

    def finish(self, projection: str, samplers: list[BiasSampler], notes: dict[str, Any]) -> Draws:
        return Draws(
            theta=self._theta,
            model=self._problem.unwhiten(self._model),
            bias=self._problem.unwhiten(self._bias),
            stats=self._stats,
            projection=projection,
            coefficient=self._coefficient,
            bias_state={name: _stacked(values) for name, values in self._records.items()},
            samplers=samplers,
            notes=notes,
        )


def _stacked(records: list[Array]) -> Array:
    """Records (c, l, ...) of all draws as one array (c, s, l, ...); shorter ones are filled up at their end."""
    longest = max(record.shape[1] for record in records)
    first = records[0]
    stacked = np.zeros((len(first), len(records), longest, *first.shape[2:]), first.dtype)
    for s, record in enumerate(records):
        stacked[:, s, : record.shape[1]] = record
    return stacked

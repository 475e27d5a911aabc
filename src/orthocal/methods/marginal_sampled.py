"""Theta from its marginal posterior while the noise covariance is an unknown too.

Each iteration, chain by chain: (1) theta ~ Pi(theta | noise, y), with the bias integrated out; (2) b ~ Pi(b | theta,
noise, y); (3) noise ~ Pi(noise | theta, b, y), its full conditional. Steps (1) and (2) together are one draw of theta
and the bias, so only the noise remembers the last iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..bias.outcomes import OutcomesBias
from ..errors import NonFiniteError
from ..kernels import Kernel
from ..kernels.base import Conditional, StepInfo, ThetaModel, ThetaState, dispersed_starts
from ..kernels.laplace import LaplaceTuning, inner_steps, with_precision
from ..kernels.warmup import Changing, run_chains
from ..problem.noise.noise import NoiseSource
from ..problem.problem import Problem
from .base import Draws, Plan, RunNotes
from .group_noise import noise_sampler
from .kept import KeptDraw, finished
from .marginal import DrawnBias, FixedNoiseRun, Marginal, MarginalAt


def sample(
    problem: Problem, plan: Plan, at: MarginalAt, bias: OutcomesBias | None, kernel: Kernel, **fields: Any
) -> Draws:
    """Draw theta from its marginal posterior and the bias given theta; ``fields`` are further ones of ``Draws``."""
    if problem.noise.source is NoiseSource.SAMPLED:
        return _Run(problem, plan, at, bias, kernel).draws(fields)
    return FixedNoiseRun(problem, plan, at(None), bias, kernel).draws(fields)


class _Run(Changing):
    """One run of the sampler; each chain has its own noise, and with it its own marginal posterior of theta."""

    changing = ("_precision", "_tuning", "_states", "_gradients.known")

    def __init__(self, problem: Problem, plan: Plan, at: MarginalAt, bias: OutcomesBias | None, kernel: Kernel) -> None:
        self._problem, self._plan, self._at, self._bias, self._kernel = problem, plan, at, bias, kernel
        self._y = problem.whiten(problem.complete_y)
        self._noise = noise_sampler(problem.noise)
        self._precision = self._noise.start(len(plan.rngs))
        tilde = problem.theta_tilde
        rows = self._rows(self._precision[0])
        marginal = at(rows)
        self._gradients, typical = marginal.gradients, self._model(marginal, rows)
        self._tuning = kernel.tune(typical, tilde)
        self._states = [typical.state(one[None]) for one in dispersed_starts(typical, tilde, plan.rngs)]

    def draws(self, fields: dict[str, Any]) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        samplers = [] if self._bias is None else self._bias.samplers
        notes = RunNotes(inner_steps(self._tuning), bias=tuple(sampler.findings() for sampler in samplers))
        return finished(self._problem, kept, samplers=samplers, notes=notes, **fields)

    def step(self) -> tuple[Array, Array, Array]:
        each = [self._drawn(c) for c in range(len(self._states))]
        self._bias_drawn = [drawn for drawn, _ in each]
        infos = [info for _, info in each]
        self._acceptance = np.concatenate([info.acceptance for info in infos])
        self._density = np.concatenate([info.log_density for info in infos])
        errors = self._residual() - np.concatenate([drawn.bias for drawn in self._bias_drawn])
        errors = self._noise.completed(self._plan.rngs, errors, self._precision)
        self._precision = self._noise.draw(self._plan.rngs, errors)
        return self._theta(), np.concatenate([info.tuned for info in infos]), self._precision

    def adapt(self, *window: Array) -> None:
        thetas, acceptance, precision = window
        rows = self._rows(precision.mean(axis=(0, 1)))
        self._tuning = self._kernel.adapt(self._tuning, self._model(self._at(rows), rows), thetas, acceptance)

    def kept(self) -> KeptDraw:
        stats = {
            "lp": self._density,
            "acceptance_rate": self._acceptance,
            **_joined([d.stats for d in self._bias_drawn]),
        }
        bias = np.concatenate([drawn.bias for drawn in self._bias_drawn])
        records, others = _joined([drawn.records for drawn in self._bias_drawn]), self._noise.fields(self._precision)
        return KeptDraw.of(self._theta(), self._y - self._residual(), bias, stats, records, others)

    def _drawn(self, c: int) -> tuple[DrawnBias, StepInfo]:
        """Steps (1) and (2) of one chain: its bias, and how theta moved."""
        rows = self._rows(self._precision[c])
        marginal, rng = self._at(rows), self._plan.rngs[c]
        model = self._model(marginal, rows)
        # what was kept of the density is that of another noise
        state = self._states[c]._replace(log_prior=model.log_prior(self._states[c].theta, self._states[c].model))
        target = Conditional(model, self._y.reshape(1, *state.model.shape[1:]))
        self._states[c], info = self._kernel.step([rng], self._own_tuning(marginal, model), state, target)
        state = self._states[c]
        drawn = marginal.draw_bias([rng], state.theta, self._left(state))
        return drawn, info

    def _own_tuning(self, marginal: Marginal, model: ThetaModel) -> Any:
        """The tuning with a chain's own noise; where ``extra`` can be described by rows, with these."""
        tuning = self._tuning
        if not isinstance(tuning, LaplaceTuning):
            return tuning
        if marginal.proposal_rows is None:
            return with_precision(tuning, model)
        try:
            rows = marginal.proposal_rows(tuning.pivot)
        except NonFiniteError:
            # a simulator that fails at some node
            return with_precision(tuning, model)._replace(refinements=0)
        known = model._replace(precision=model.precision + rows.T @ rows)
        return with_precision(tuning, known)._replace(refinements=0)

    def _model(self, marginal: Marginal, rows: Array) -> ThetaModel:
        """Prior and likelihood of theta given the noise; with a bias, all cells are one row that S^-1 correlates."""
        problem = self._problem
        shape = self._y.shape if marginal.evidence is None else (1, self._y.size)
        model = ThetaModel(
            problem.parameters,
            lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)).reshape(-1, *shape),
            lambda theta: problem.whitened_gradient(problem.data.x, theta).reshape(*shape, -1),
            rows if marginal.evidence is None else marginal.evidence[None],
        )
        extra = marginal.extra
        if extra is None:
            return model
        return model._replace(extra=lambda theta, values: extra(theta, self._y - values.reshape(-1, *self._y.shape)))

    def _rows(self, precision: Array) -> Array:
        """What the observed cells of each row say for the precision of the noise, as its sampler has it, (n, q, q)."""
        n, q = self._y.shape
        return np.array(np.broadcast_to(self._noise.row_precision(precision[None])[0], (n, q, q)))

    def _theta(self) -> Array:
        return np.concatenate([state.theta for state in self._states])

    def _left(self, state: ThetaState) -> Array:
        """y - f of one chain, (1, n, q)."""
        return np.asarray(self._y - state.model.reshape(1, *self._y.shape))

    def _residual(self) -> Array:
        return np.concatenate([self._left(state) for state in self._states])


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Values of single chains, name -> (1, ...), as those of all."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

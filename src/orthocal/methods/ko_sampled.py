"""Kennedy and O'Hagan's method with the hyperparameters of the bias sampled together with theta.

In whitened coordinates, for each outcome k, y_k - f_k(theta) ~ N(0, S_k), S_k = sd_k^2 R(lengthscale_k) + noise. Each
iteration: (1) theta ~ Pi(theta | S, y); (2) some Metropolis steps on the hyperparameters of each outcome given theta;
and for a kept draw (3) b ~ Pi(b | theta, S, y).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve

from ..arrays import Array
from ..bias import GP
from ..kernels import Kernel
from ..kernels.base import Conditional, ThetaModel, dispersed_starts
from ..kernels.laplace import inner_steps
from ..kernels.warmup import Changing, run_chains
from ..problem.problem import Problem
from .base import Draws, Plan, RunNotes
from .hyperparameters import HyperState, Walks, hyper_outcomes, require_separate_outcomes
from .kept import KeptDraw, finished
from .noise_sample import NoiseSampler


def sample_with_hyperparameters(problem: Problem, plan: Plan, prior: GP, kernel: Kernel) -> Draws:
    """Draws of theta, of the hyperparameters that ``prior`` does not give, and of the bias."""
    require_separate_outcomes(problem)
    return _Run(problem, plan, prior, kernel).draws()


class _Run(Changing):
    """One run of the sampler. The theta step sees an outcome as a row, whose cells are correlated by S_k."""

    changing = ("_precision", "_tuning", "_state", "_walks.places", "_typical")

    def __init__(self, problem: Problem, plan: Plan, prior: GP, kernel: Kernel) -> None:
        self._problem, self._plan = problem, plan
        self._y = problem.whiten(problem.complete_y).T
        self._outcomes = hyper_outcomes(problem, prior, problem.data.x[:0])
        self._walks = Walks(self._outcomes, plan.rngs)
        self._precision = np.stack([self._precision_of(states) for states in self._walks.states])
        self._model = ThetaModel(
            problem.parameters,
            lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)).swapaxes(1, 2),
            lambda theta: problem.whitened_gradient(problem.data.x, theta).swapaxes(0, 1),
            self._precision_of([walk.state(walk.prior.mean) for walk in self._walks.each]),
        )
        tilde = problem.theta_tilde
        self._kernel = kernel
        self._tuning = self._kernel.tune(self._model, tilde)
        self._state = self._model.state(dispersed_starts(self._model, tilde, plan.rngs))

    def draws(self) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        drawn = np.stack([log_values for _, log_values in kept], axis=1)
        for k, outcome in enumerate(self._outcomes):
            outcome.sampler.summarise(drawn[:, :, k], outcome.prior.free)
        samplers = [outcome.sampler for outcome in self._outcomes]
        notes = RunNotes(inner_steps(self._tuning), bias=tuple(sampler.findings() for sampler in samplers))
        return finished(self._problem, [draw for draw, _ in kept], samplers=samplers, notes=notes)

    def step(self) -> tuple[Array, Array, Array, Array]:
        y = np.broadcast_to(self._y, self._state.model.shape)
        target = Conditional(self._model, y, self._precision)
        self._state, self._info = self._kernel.step(self._plan.rngs, self._tuning, self._state, target)
        self._accepted = self._move(self._y - self._state.model)
        return self._state.theta, self._info.tuned, self._walks.log_values(), self._accepted

    def adapt(self, *window: Array) -> None:
        thetas, acceptance, log_values, accepted = window
        self._walks.adapt(log_values, accepted)
        means = log_values.mean(axis=(0, 1))
        typical = [walk.state(mean) for walk, mean in zip(self._walks.each, means, strict=True)]
        self._model = self._model._replace(precision=self._precision_of(typical))
        self._tuning = self._kernel.adapt(self._tuning, self._model, thetas, acceptance)

    def _move(self, residual: Array) -> Array:
        """Metropolis steps on all hyperparameters given the residual (c, q, n); the shares accepted, (c, q)."""
        accepted = self._walks.move(residual)
        for c in np.flatnonzero(accepted.any(axis=1)):
            self._precision[c] = self._precision_of(self._walks.states[c])
        return accepted

    def _precision_of(self, states: list[HyperState]) -> Array:
        """S^-1 of each outcome, (q, n, n), with zeros where a cell is missing."""
        n = self._problem.data.n
        whole = np.zeros((len(states), n, n))
        for k, (state, outcome) in enumerate(zip(states, self._outcomes, strict=True)):
            rows = np.flatnonzero(outcome.points.informed)
            whole[k][np.ix_(rows, rows)] = cho_solve((state.lower, True), np.eye(len(rows)))
        return whole

    @property
    def _typical(self) -> Array:
        """What of the model is tuned."""
        return self._model.precision

    @_typical.setter
    def _typical(self, precision: Array) -> None:
        self._model = self._model._replace(precision=precision)

    def kept(self) -> tuple[KeptDraw, Array]:
        state, records = self._state, dict[str, Array]()
        residual, log_values = self._y - state.model, self._walks.log_values()
        bias = np.empty_like(residual)
        # the state's own log_prior is that of theta: there is no other part of the density in it
        lp = state.log_prior.copy()
        stats = {
            "acceptance_rate": self._info.acceptance,
            "hyperparameter_acceptance_rate": self._accepted.mean(axis=1),
        }
        for k, outcome in enumerate(self._outcomes):
            for c, states in enumerate(self._walks.states):
                lp[c] += self._walks.each[k].log_density(states[k], residual[c, k, outcome.points.informed])
            record, bias[:, k] = self._walks.draw_bias(k, residual[:, k])
            records |= {f"{name}_{k}": value for name, value in record.items()}
            stats |= outcome.named(k, log_values[:, k])
        precision = self._walks.noise_precision()
        noise = {} if precision is None else {"noise_cov": NoiseSampler(self._problem.noise).covariance(precision)}
        model, bias = state.model.swapaxes(1, 2), bias.swapaxes(1, 2)
        return KeptDraw.of(state.theta, model, bias, {"lp": lp, **stats}, records, noise), log_values

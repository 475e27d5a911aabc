"""Kennedy and O'Hagan's method with the hyperparameters of the bias sampled together with theta.

In whitened coordinates, for each outcome k, y_k - f_k(theta) ~ N(0, S_k), S_k = sd_k^2 R(lengthscale_k) + noise. Each
iteration: (1) theta ~ Pi(theta | S, y); (2) some Metropolis steps on the hyperparameters of each outcome given theta;
and for a kept draw (3) b ~ Pi(b | theta, S, y).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from ..arrays import Array, BoolArray, as_floats
from ..bias import GP
from ..bias.outcomes import SplitPoints, split_points
from ..bias.sampled_gp import SampledGPSampler, log_evidence
from ..errors import InputError
from ..kernels import Laplace
from ..kernels.base import Conditional, ThetaModel, dispersed_starts
from ..kernels.warmup import run_chains
from ..problem.problem import Problem
from .base import Draws, Plan, RunNotes
from .kept import Kept
from .marginal import require_fixed_noise

#: every Metropolis step factorises a matrix of this size, for each outcome and chain
MOST_ROWS = 1_000
#: standard deviations of the priors of log sd and log lengthscale
LOG_SD_SPREAD, LOG_LENGTH_SPREAD = 1.5, 1.0
#: centre of the length-scale's prior, as a share of the domain's width: where the search for it starts elsewhere
TYPICAL_LENGTH = 0.3
#: Metropolis steps on an outcome's hyperparameters in each iteration, beside one for each of them: measured on Model 1,
#: five in all give 1500 effective draws of 4000, two give 600
STEPS = 3
#: the share of accepted ones aimed at
TARGET_ACCEPTANCE = 0.3


def sample_with_hyperparameters(problem: Problem, plan: Plan, prior: GP) -> Draws:
    """Draws of theta, of the hyperparameters that ``prior`` does not give, and of the bias."""
    require_fixed_noise(problem)
    if problem.noise.coupled:
        raise InputError(
            'hyperparameters="sample" needs outcomes that can be told apart, but missing cells or errors of their own '
            'couple correlated ones here: take hyperparameters="marginal-likelihood", or complete rows'
        )
    if problem.data.n > MOST_ROWS:
        raise InputError(
            f'y has {problem.data.n} rows, and hyperparameters="sample" costs their number cubed in every step: it '
            f'takes at most {MOST_ROWS}; take hyperparameters="marginal-likelihood", or thin the data'
        )
    return _Run(problem, plan, prior).draws()


class HyperPrior(NamedTuple):
    """Independent normal priors of the log hyperparameters of one outcome, (1 + d,); those not ``free`` are fixed."""

    mean: Array
    sd: Array
    free: BoolArray

    def log_density(self, log_values: Array) -> float:
        scaled = ((log_values - self.mean) / self.sd)[self.free]
        return float(-0.5 * scaled @ scaled)


def hyper_prior(prior: GP, residual: Array, span: Array, unit: float) -> HyperPrior:
    """The priors, from the residual (n,) at theta_tilde; what ``prior`` gives is fixed."""
    d = len(span)
    # a simulator that fits exactly leaves the noise, which is one, as the only scale
    size = float(np.sqrt(np.mean(residual**2))) if residual.any() else 1.0
    mean = np.log(np.concatenate([[size], TYPICAL_LENGTH * span]))
    free = np.ones(1 + d, dtype=bool)
    if prior.sd is not None:
        mean[0], free[0] = np.log(prior.sd * unit), False
    if prior.lengthscale is not None:
        length = np.atleast_1d(as_floats(prior.lengthscale, "lengthscale"))
        if length.size not in (1, d):
            raise InputError(f"lengthscale has {length.size} values but x has {d} inputs: give one, or one an input")
        mean[1:], free[1:] = np.log(length), False
    return HyperPrior(mean, np.array([LOG_SD_SPREAD, *[LOG_LENGTH_SPREAD] * d]), free)


class HyperState(NamedTuple):
    """One chain's log hyperparameters of one outcome, (1 + d,), and the root of the evidence there, (n, n)."""

    log_values: Array
    lower: Array


@dataclass(frozen=True)
class Walk:
    """Random-walk Metropolis on the free hyperparameters of one outcome: proposals are v + scale * root z."""

    sampler: SampledGPSampler
    prior: HyperPrior
    root: Array
    scale: float

    def start(self, rng: np.random.Generator) -> HyperState:
        """A draw with half the prior's spread: the chains start apart, but not in the tails."""
        normal = 0.5 * self.prior.sd * rng.standard_normal(len(self.prior.mean))
        return self.state(self.prior.mean + np.where(self.prior.free, normal, 0.0))

    def state(self, log_values: Array) -> HyperState:
        return HyperState(log_values, self.sampler.evidence_root(log_values))

    def log_density(self, state: HyperState, residual: Array) -> float:
        """log p(residual, hyperparameters) up to a constant."""
        return log_evidence(state.lower, residual) + self.prior.log_density(state.log_values)

    def step(self, rng: np.random.Generator, state: HyperState, residual: Array) -> tuple[HyperState, float]:
        """The next state given the residual (n,), and the share of accepted proposals."""
        density = self.log_density(state, residual)
        accepted, steps = 0, STEPS + len(self.root)
        for _ in range(steps):
            log_values = state.log_values.copy()
            log_values[self.prior.free] += self.scale * self.root @ rng.standard_normal(len(self.root))
            proposal = self.state(log_values)
            proposed = self.log_density(proposal, residual)
            if np.log1p(-rng.random()) < proposed - density:
                state, density = proposal, proposed
                accepted += 1
        return state, accepted / steps

    def adapted(self, log_values: Array, acceptance: float) -> Walk:
        """Better tuning from a window of warm-up draws, (w, 1 + d)."""
        free = log_values[:, self.prior.free]
        found = np.cov(free, rowvar=False).reshape(self.root.shape)
        # half old, half new keeps the covariance regular when a window has hardly moved
        root = np.linalg.cholesky(0.5 * self.root @ self.root.T + 0.5 * found)
        return Walk(self.sampler, self.prior, root, float(self.scale * np.exp(acceptance - TARGET_ACCEPTANCE)))


def first_walk(sampler: SampledGPSampler, prior: HyperPrior) -> Walk:
    """The tuning before any draw: steps of half the prior's spread."""
    root = np.diag(0.5 * prior.sd[prior.free])
    return Walk(sampler, prior, root, 2.4 / np.sqrt(len(root)))


class _Outcome(NamedTuple):
    """One whitened outcome: where it is known, the process of its bias, and the priors of its hyperparameters."""

    points: SplitPoints
    sampler: SampledGPSampler
    prior: HyperPrior


class _Run:
    """One run of the sampler. The theta step sees an outcome as a row, whose cells are correlated by S_k."""

    def __init__(self, problem: Problem, plan: Plan, prior: GP) -> None:
        self._problem, self._plan = problem, plan
        self._y = problem.whiten(problem.complete_y).T
        self._outcomes = _outcomes(problem, prior)
        self._walks = [first_walk(outcome.sampler, outcome.prior) for outcome in self._outcomes]
        self._states = [[walk.start(rng) for walk in self._walks] for rng in plan.rngs]
        self._precision = np.stack([self._precision_of(states) for states in self._states])
        self._drawn: list[Array] = []
        self._model = ThetaModel(
            problem.parameters,
            lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)).swapaxes(1, 2),
            lambda theta: problem.whitened_gradient(problem.data.x, theta).swapaxes(0, 1),
            self._precision_of([walk.state(walk.prior.mean) for walk in self._walks]),
        )
        tilde = problem.theta_tilde
        self._kernel, self._kept = Laplace(), Kept(plan, problem)
        self._tuning = self._kernel.tune(self._model, tilde)
        self._state = self._model.state(dispersed_starts(self._model, tilde, plan.rngs))

    def draws(self) -> Draws:
        run_chains(self, self._plan.warmup, self._plan.draws)
        drawn = np.stack(self._drawn, axis=1)
        for k, outcome in enumerate(self._outcomes):
            outcome.sampler.summarise(drawn[:, :, k], outcome.prior.free)
        samplers = [outcome.sampler for outcome in self._outcomes]
        notes = RunNotes(self._tuning.steps, bias=tuple(sampler.findings() for sampler in samplers))
        return self._kept.finish(samplers=samplers, notes=notes)

    def step(self) -> tuple[Array, Array, Array, Array]:
        y = np.broadcast_to(self._y, self._state.model.shape)
        target = Conditional(self._model, y, self._precision)
        self._state, self._info = self._kernel.step(self._plan.rngs, self._tuning, self._state, target)
        self._accepted = self._move(self._y - self._state.model)
        return self._state.theta, self._info.acceptance, self._log_values(), self._accepted

    def adapt(self, *window: Array) -> None:
        thetas, acceptance, log_values, accepted = window
        for k, walk in enumerate(self._walks):
            own = log_values[:, :, k].reshape(-1, log_values.shape[-1])
            self._walks[k] = walk.adapted(own, float(accepted[:, :, k].mean()))
        means = log_values.mean(axis=(0, 1))
        typical = [walk.state(mean) for walk, mean in zip(self._walks, means, strict=True)]
        self._model = self._model._replace(precision=self._precision_of(typical))
        self._tuning = self._kernel.adapt(self._tuning, self._model, thetas, acceptance)

    def _move(self, residual: Array) -> Array:
        """Metropolis steps on all hyperparameters given the residual (c, q, n); the shares accepted, (c, q)."""
        accepted = np.zeros(residual.shape[:2])
        for c, rng in enumerate(self._plan.rngs):
            for k, (walk, outcome) in enumerate(zip(self._walks, self._outcomes, strict=True)):
                own = residual[c, k, outcome.points.informed]
                self._states[c][k], accepted[c, k] = walk.step(rng, self._states[c][k], own)
            if accepted[c].any():
                self._precision[c] = self._precision_of(self._states[c])
        return accepted

    def _precision_of(self, states: list[HyperState]) -> Array:
        """S^-1 of each outcome, (q, n, n), with zeros where a cell is missing."""
        n = self._problem.data.n
        whole = np.zeros((len(states), n, n))
        for k, (state, outcome) in enumerate(zip(states, self._outcomes, strict=True)):
            rows = np.flatnonzero(outcome.points.informed)
            whole[k][np.ix_(rows, rows)] = cho_solve((state.lower, True), np.eye(len(rows)))
        return whole

    def _log_values(self) -> Array:
        return np.array([[state.log_values for state in states] for states in self._states])

    def keep(self, s: int) -> None:
        state, kept = self._state, self._kept
        residual, log_values = self._y - state.model, self._log_values()
        self._drawn.append(log_values)
        bias = np.empty_like(residual)
        # the state's own log_prior is that of theta: there is no other part of the density in it
        lp = state.log_prior.copy()
        stats = {
            "acceptance_rate": self._info.acceptance,
            "hyperparameter_acceptance_rate": self._accepted.mean(axis=1),
        }
        for k, (points, sampler, prior) in enumerate(self._outcomes):
            values = []
            for c, rng in enumerate(self._plan.rngs):
                own, known = self._states[c][k], residual[c, k, points.informed]
                lp[c] += self._walks[k].log_density(own, known)
                drawn, at_rows = sampler.bias(rng, own.log_values, own.lower, known)
                values.append(drawn)
                bias[c, k] = at_rows[points.order]
            record = sampler.record((log_values[:, k], np.stack(values)))
            kept.add_record({f"{name}_{k}": value for name, value in record.items()})
            native = sampler.native(log_values[:, k])
            names = [f"sd_{k}", *(f"lengthscale_{k}_{j}" for j in range(native.shape[1] - 1))]
            stats |= {name: native[:, j] for j, name in enumerate(names) if prior.free[j]}
        kept.add(s, state.theta, state.model.swapaxes(1, 2), bias.swapaxes(1, 2), lp=lp, **stats)


def _outcomes(problem: Problem, prior: GP) -> list[_Outcome]:
    """The whitened outcomes with the priors of their hyperparameters, from the residual at theta_tilde."""
    data, noise = problem.data, problem.noise
    residual = problem.whiten(problem.complete_y - problem.fit)
    outcomes = []
    for k, unit in enumerate(1 / np.sqrt(np.diag(noise.cov))):
        points = split_points(data.x, data.x[:0], noise.variances[:, k])
        sampler = SampledGPSampler(prior.nu, points.x, points.nodes, points.noise_var, float(unit))
        own = hyper_prior(prior, residual[points.informed, k], problem.span, float(unit))
        outcomes.append(_Outcome(points, sampler, own))
    return outcomes

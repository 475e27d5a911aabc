"""Hyperparameters of a Gaussian-process bias as unknowns: their priors, and a random walk on them.

In whitened coordinates the residual of outcome k, without its bias known, is N(0, S_k), S_k = sd_k^2 R(lengthscale_k) +
noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..advice import ESTIMATED_NOISE
from ..arrays import Array, BoolArray
from ..bias import GP
from ..bias.outcomes import SplitPoints, split_points
from ..bias.sampled_gp import SampledGPSampler, log_evidence
from ..errors import InputError
from ..problem.noise.noise import NoiseSource
from ..problem.problem import Problem
from ..regression.gaussian_process import Labelled
from ..regression.random_walk import WalkTuning
from .sampled_noise import freedom

#: every Metropolis step factorises a matrix of this size, for each outcome and chain
MOST_ROWS = 1_000
#: standard deviations of the priors of log sd and log lengthscale
LOG_SD_SPREAD, LOG_LENGTH_SPREAD = 1.5, 1.0
#: that of the log odds of the correlation between labels: as wide as the logistic density, whose correlation is uniform
LOG_ODDS_SPREAD = 1.8
#: centre of the length-scale's prior, as a share of the domain's width: where the search for it starts elsewhere
TYPICAL_LENGTH = 0.3
#: the same of the log of the noise's standard deviation, about
LOG_NOISE_SPREAD = 0.5
#: Metropolis steps on an outcome's hyperparameters in each iteration, beside one for each of them: measured on Model 1,
#: five in all give 1500 effective draws of 4000, two give 600
STEPS = 3


def require_separate_outcomes(problem: Problem) -> None:
    """An error where the hyperparameters cannot be sampled, one outcome beside the other, in reasonable time."""
    if problem.noise.source is NoiseSource.SAMPLED and problem.data.q > 1:
        raise InputError(
            f"y has {problem.data.q} outcomes, and a sampled noise covariance couples them, but "
            'hyperparameters="sample" needs outcomes that can be told apart: take '
            'hyperparameters="marginal-likelihood", or ' + ESTIMATED_NOISE
        )
    if problem.noise.groups is not None:
        raise InputError(
            'hyperparameters="sample" goes with one sampled variance, not with GroupNoise(sample=True): take '
            'hyperparameters="marginal-likelihood", or GroupNoise without sample'
        )
    if problem.noise.rows is not None:
        raise InputError(
            'hyperparameters="sample" needs noise that is independent from row to row: with correlated noise take '
            'hyperparameters="marginal-likelihood"'
        )
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


class HyperPrior(NamedTuple):
    """Independent normal priors of the log hyperparameters of one outcome, (1 + d,); those not ``free`` are fixed.

    Where ``noise`` is true, one more is the noise's: its variance is inverse gamma, as in ``NoiseSampler``.
    """

    mean: Array
    sd: Array
    free: BoolArray
    noise: bool = False

    def log_density(self, log_values: Array) -> float:
        if self.noise:
            return self.without_noise().log_density(log_values[:-1]) + self._of_noise(float(log_values[-1]))
        scaled = ((log_values - self.mean) / self.sd)[self.free]
        return float(-0.5 * scaled @ scaled)

    def with_noise(self) -> HyperPrior:
        """With the noise as one more, of which mean and sd are rough."""
        mean, sd = np.append(self.mean, 0.0), np.append(self.sd, LOG_NOISE_SPREAD)
        return HyperPrior(mean, sd, np.append(self.free, True), noise=True)

    def without_noise(self) -> HyperPrior:
        return HyperPrior(self.mean[:-1], self.sd[:-1], self.free[:-1])

    @staticmethod
    def _of_noise(log_sd: float) -> float:
        """log density of the log sd, up to a constant, where the variance is inverse Wishart of one dimension."""
        return float(-freedom(1) * log_sd - 0.5 * np.exp(-2 * log_sd))


def hyper_prior(prior: GP, residual: Array, span: Array, unit: float, labelled: Labelled = ()) -> HyperPrior:
    """The priors, from the residual (n,) at theta_tilde; what ``prior`` gives is fixed.

    The correlation of ``labelled`` inputs' labels is about uniform: its log odds are normal.
    """
    d, columns = len(span), [1 + j for j in labelled]
    # a simulator that fits exactly leaves the noise, which is one, as the only scale
    size = float(np.sqrt(np.mean(residual**2))) if residual.any() else 1.0
    mean = np.log(np.concatenate([[size], TYPICAL_LENGTH * span]))
    sd = np.array([LOG_SD_SPREAD, *[LOG_LENGTH_SPREAD] * d])
    mean[columns], sd[columns] = 0.0, LOG_ODDS_SPREAD
    free = np.ones(1 + d, dtype=bool)
    if prior.sd is not None:
        mean[0], free[0] = np.log(prior.sd * unit), False
    given = prior.given_scales(d, labelled)
    fixed = 1 + np.flatnonzero(~np.isnan(given))
    mean[fixed], free[fixed] = np.log(given[fixed - 1]), False
    return HyperPrior(mean, sd, free)


class HyperState(NamedTuple):
    """One chain's log hyperparameters of one outcome, (1 + d,), and the root of the evidence there, (n, n)."""

    log_values: Array
    lower: Array


@dataclass(frozen=True)
class Walk:
    """Random-walk Metropolis on the free hyperparameters of one outcome."""

    sampler: SampledGPSampler
    prior: HyperPrior
    tuning: WalkTuning

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
        root, scale = self.tuning
        accepted, steps = 0, STEPS + len(root)
        for _ in range(steps):
            log_values = state.log_values.copy()
            log_values[self.prior.free] += scale * root @ rng.standard_normal(len(root))
            proposal = self.state(log_values)
            proposed = self.log_density(proposal, residual)
            if np.log1p(-rng.random()) < proposed - density:
                state, density = proposal, proposed
                accepted += 1
        return state, accepted / steps

    def adapted(self, log_values: Array, acceptance: float) -> Walk:
        """Better tuning from a window of warm-up draws, (w, 1 + d)."""
        return replace(self, tuning=self.tuning.adapted(log_values[:, self.prior.free], acceptance))


def first_walk(sampler: SampledGPSampler, prior: HyperPrior) -> Walk:
    """The tuning before any draw: steps of half the prior's spread."""
    return Walk(sampler, prior, WalkTuning.first(np.diag(0.5 * prior.sd[prior.free])))


class HyperOutcome(NamedTuple):
    """One whitened outcome: where it is known, the process of its bias, and the priors of its hyperparameters."""

    points: SplitPoints
    sampler: SampledGPSampler
    prior: HyperPrior

    def named(self, k: int, log_values: Array) -> dict[str, Array]:
        """The sampled hyperparameters, (..., 1 + d), in native units, under the names of outcome k."""
        native = self.sampler.native(log_values)
        each = [
            "label_correlation" if j in self.sampler.labelled else "lengthscale" for j in range(native.shape[-1] - 1)
        ]
        names = [f"sd_{k}", *(f"{name}_{k}_{j}" for j, name in enumerate(each))]
        return {name: native[..., j] for j, name in enumerate(names) if self.prior.free[j]}


class Walks:
    """Random walks on the hyperparameters of all outcomes, all chains at a time."""

    def __init__(self, outcomes: list[HyperOutcome], rngs: list[np.random.Generator]) -> None:
        self.outcomes, self._rngs = outcomes, rngs
        self.each = [first_walk(outcome.sampler, outcome.prior) for outcome in outcomes]
        self.states = [[walk.start(rng) for walk in self.each] for rng in rngs]

    @property
    def places(self) -> tuple[list[list[HyperState]], list[WalkTuning]]:
        """Where the walks are, and how each is tuned."""
        return self.states, [walk.tuning for walk in self.each]

    @places.setter
    def places(self, places: tuple[list[list[HyperState]], list[WalkTuning]]) -> None:
        self.states, tunings = places
        self.each = [replace(walk, tuning=own) for walk, own in zip(self.each, tunings, strict=True)]

    def move(self, residual: Array) -> Array:
        """Steps given the residual (c, q, n); the shares accepted, (c, q)."""
        accepted = np.zeros(residual.shape[:2])
        for c, rng in enumerate(self._rngs):
            for k, (walk, outcome) in enumerate(zip(self.each, self.outcomes, strict=True)):
                own = residual[c, k, outcome.points.informed]
                self.states[c][k], accepted[c, k] = walk.step(rng, self.states[c][k], own)
        return accepted

    def adapt(self, log_values: Array, accepted: Array) -> None:
        """Better tuning from a window of draws (w, c, q, 1 + d) and the shares accepted, (w, c, q)."""
        for k, walk in enumerate(self.each):
            own = log_values[:, :, k].reshape(-1, log_values.shape[-1])
            self.each[k] = walk.adapted(own, float(accepted[:, :, k].mean()))

    def log_values(self) -> Array:
        """Where the walks are, (c, q, 1 + d)."""
        return np.array([[state.log_values for state in states] for states in self.states])

    def noise_precision(self) -> Array | None:
        """Of the whitened noise, (c, 1, 1), where it is sampled."""
        if not self.outcomes[0].prior.noise:
            return None
        return 1 / np.asarray(self.outcomes[0].sampler.noise_scale(self.log_values()))[..., None]

    def draw_bias(self, k: int, residual: Array) -> tuple[dict[str, Array], Array]:
        """b of outcome k given the residual (c, n): what predictions need, and b at data and nodes (c, n + m)."""
        points, sampler, _ = self.outcomes[k]
        values, at_points = [], []
        for rng, states, own in zip(self._rngs, self.states, residual, strict=True):
            drawn, there = sampler.bias(rng, states[k].log_values, states[k].lower, own[points.informed])
            values.append(drawn)
            at_points.append(there[points.order])
        return sampler.record((self.log_values()[:, k], np.stack(values))), np.stack(at_points)


def hyper_outcomes(problem: Problem, prior: GP, nodes: Array) -> list[HyperOutcome]:
    """The whitened outcomes with the priors of their hyperparameters, from the residual at theta_tilde."""
    data, noise, every = problem.data, problem.noise, problem.unmerged
    residual = every.whiten(every.complete_y - every.fit)
    sampled = noise.source is NoiseSource.SAMPLED
    variances = np.where(data.observed, 1.0, np.inf) if sampled else noise.variances
    outcomes = []
    for k, unit in enumerate(1 / np.sqrt(np.diag(noise.cov))):
        points = split_points(data.x, nodes, variances[:, k])
        labelled = data.labels.columns
        sampler = SampledGPSampler(prior.nu, points.x, points.nodes, points.noise_var, float(unit), labelled)
        # the prior's scale is that of all rows
        informed = points.informed if every is problem else np.isfinite(every.noise.variances[:, k])
        own = hyper_prior(prior, residual[informed, k], problem.span, float(unit), labelled)
        outcomes.append(HyperOutcome(points, sampler, own.with_noise() if sampled else own))
    return outcomes

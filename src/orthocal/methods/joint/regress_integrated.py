"""Draws of the real process for a Gaussian-process bias whose size, length-scales and noise are integrated over.

What the data say about these is a set of weighted points. A draw takes one of them, and given it everything is
Gaussian, so draws are independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...advice import NOISE_COV
from ...arrays import Array, BoolArray, IntArray
from ...bias import GP
from ...bias.base import BiasSampler
from ...bias.outcomes import split_points
from ...bias.sampled_gp import SampledGPSampler
from ...errors import InputError
from ...problem.problem import Problem
from ...regression.weighted_points import WeightedPoints, weighted_points
from ..base import Plan
from ..sampled_noise import NoiseDraws
from .gaussian_model import GaussianModel
from .regress import Linear, Regressed, by_chain, in_memory
from .unknowns import Unknowns

#: effective points for up to so many cells of y, and the power of the cells with which they become fewer, as many data
#: leave little to choose between, and cost more
MOST_POINTS, FEW, SOONER, LEAST_POINTS = 1_000.0, 16.0, 1.4, 8.0
#: with twice as many cells, these say roughly where the hyperparameters are, before more are asked; and at most so many
FEW_CELLS, MOST_CELLS = (150, 400), 700
#: unknowns of noise and bias that are integrated over; with more, the bias has the likeliest ones
MOST_UNKNOWNS = 18
#: effective points of the rough search; and below how many the points stand for nothing
ROUGH, WORTHLESS = 100.0, 8.0


def integrable(prior: GP, problem: Problem) -> bool:
    """Whether noise and bias have so few unknowns that weighted points can stand for them."""
    return not problem.data.without_inputs and int(Unknowns.of(problem, prior).free.sum()) <= MOST_UNKNOWNS


def integrated_draws(problem: Problem, plan: Plan, prior: GP, linear: Linear, fit: Array | None = None) -> Regressed:
    """Of all chains, one after the other; ``fit`` (n, q) takes the place of the best fit."""
    unknowns, nodes = Unknowns.of(problem, prior), problem.rule.nodes
    asked = Asked(problem, prior, linear, unknowns, nodes, fit)
    points, model = hyperparameter_points(asked), asked.model()
    chosen = in_turn(plan, len(points))
    total, (n, q, p), m = chosen.size, linear.at_data.shape, len(nodes)
    moved, real, bias = np.empty((total, p)), np.empty((total, n + m, q)), np.empty((total, n + m, q))
    for number in np.unique(chosen):
        rows, counts = np.flatnonzero(chosen.ravel() == number), np.sum(chosen == number, axis=1)
        moved[rows], real[rows], bias[rows] = model.draw(plan.rngs, counts, points[number])
    kept = kept_hyperparameters(problem, prior, unknowns, points, chosen, bias)
    return Regressed(
        in_memory(real[:, :n]),
        real[:, n:],
        moved - bias[:, n:].reshape(total, -1) @ linear.coefficients.T,
        moved,
        kept.records,
        kept.samplers,
        linear.log_prior(moved),
        kept.stats,
        noise_precision=kept.noise_precision,
        plugged_in_var=model.theta_var(points.mean(axis=0)) if p and len(points) > 1 and linear.basis is None else None,
    )


def in_turn(plan: Plan, count: int) -> IntArray:
    """A number below ``count`` for every draw, (c, s): each as often as the others, to one."""
    rounds = -(-plan.draws // count)
    each = [[rng.permutation(count) for _ in range(rounds)] for rng in plan.rngs]
    return np.reshape(each, (len(each), -1))[:, : plan.draws]


class KeptHyperparameters(NamedTuple):
    """Of every draw, as ``Regressed`` has it: what predictions need, what predicts, values by name, and the noise."""

    records: dict[str, Array]
    samplers: list[BiasSampler]
    stats: dict[str, Array]
    noise_precision: Array | None


def kept_hyperparameters(
    problem: Problem, prior: GP, unknowns: Unknowns, points: Array, chosen: IntArray, bias: Array
) -> KeptHyperparameters:
    """From vectors (m, k), which of them each draw has, (c, s), and b at data and nodes, (c s, n + m, q)."""
    samplers = hyperparameter_samplers(problem, prior, problem.rule.nodes)
    log_values = np.stack([unknowns.log_sd_and_lengths(v) for v in points])[chosen]
    stats = hyperparameter_stats(samplers, unknowns, log_values)
    noise = np.stack([unknowns.noise_cov(v) for v in points])[chosen.ravel()] if unknowns.noise else None
    return KeptHyperparameters(
        hyperparameter_records(samplers, by_chain(log_values), bias),
        [sampler for sampler, _ in samplers],
        {name: by_chain(values) for name, values in stats.items()},
        None if noise is None else NoiseDraws(problem.noise).precision(noise),
    )


class Asked(NamedTuple):
    """What is asked about the hyperparameters that are unknown; ``fit`` and ``pull`` are those of ``GaussianModel``."""

    problem: Problem
    prior: GP
    linear: Linear
    unknowns: Unknowns
    nodes: Array
    fit: Array | None = None
    pull: float | None = None

    def model(self, part: BoolArray | None = None) -> GaussianModel:
        """Of all cells, or of a part (n, q)."""
        return GaussianModel(
            self.problem, self.linear, self.prior, self.unknowns, self.nodes, part, self.fit, self.pull
        )

    def points(self, most: int, enough: float, near: WeightedPoints | None) -> WeightedPoints:
        """What about ``most`` cells say, ``near`` points that say roughly where that is, if there are some."""
        unknowns, model = self.unknowns, self.model(some_cells(self.problem.data.observed, most))

        def log_density(free: Array) -> Array:
            vectors = unknowns.whole(free)
            return model.evidence(vectors) + [unknowns.log_prior(v) for v in vectors]

        if near is None:
            return weighted_points(log_density, unknowns.values[unknowns.free], np.diag(unknowns.spread()), enough)
        mean, covariance = near.moments()
        return weighted_points(log_density, mean, np.linalg.cholesky(covariance), enough, near=True)


def hyperparameter_points(asked: Asked, rough: WeightedPoints | None = None, most: int = MOST_CELLS) -> Array:
    """What the data say about the hyperparameters, as vectors v (m, k), each as good as the others.

    ``rough`` are points that say roughly where they are, and ``most`` is how many cells are asked.
    """
    cells, unknowns = int(asked.problem.data.observed.sum()), asked.unknowns
    enough = float(np.clip(MOST_POINTS * (FEW / cells) ** SOONER, LEAST_POINTS, MOST_POINTS))
    found = asked.points(most, enough, rough_points(asked) if rough is None else rough)
    if unknowns.free.any() and found.effective < WORTHLESS:
        what = f"noise and bias have {int(unknowns.free.sum())} unknowns, too many for these data: give "
        raise InputError(what + NOISE_COV + ", sd and lengthscale")
    return unknowns.whole(found.alike(int(np.ceil(min(enough, found.effective)))))


def rough_points(asked: Asked, always: bool = False) -> WeightedPoints | None:
    """What some of many data say about the hyperparameters that are unknown; of few ``always``, or None."""
    cells, found = int(asked.problem.data.observed.sum()), None
    for few in FEW_CELLS:
        if cells > 2 * few or (always and found is None):
            found = asked.points(few, ROUGH, found)
    return found


def some_cells(observed: BoolArray, most: int) -> BoolArray | None:
    """About ``most`` cells, all of their rows, always the same ones; None where all are."""
    if observed.sum() <= most:
        return None
    rows = np.random.default_rng(0).permutation(len(observed)) < most * len(observed) / observed.sum()
    return np.asarray(observed & rows[:, None])


#: what predicts the bias of an outcome, and the order of its points
OrderedSampler = tuple[SampledGPSampler, IntArray]


def hyperparameter_samplers(problem: Problem, prior: GP, nodes: Array) -> list[OrderedSampler]:
    """Of each outcome."""
    samplers, labelled = [], tuple(problem.data.labels.columns)
    for noise_var, own in zip(np.diag(problem.noise.cov), problem.noise.variances.T, strict=True):
        points = split_points(problem.data.x, nodes, own)
        unit = 1 / float(np.sqrt(noise_var))
        sampler = SampledGPSampler(prior.nu, points.x, points.nodes, points.noise_var, unit, labelled)
        samplers.append((sampler, np.argsort(points.order)))
    return samplers


def hyperparameter_stats(
    samplers: list[OrderedSampler], unknowns: Unknowns, log_values: Array, chain: bool = False
) -> dict[str, Array]:
    """Hyperparameters by name, (c, s), from (c, s, q, 1 + d); the samplers keep what they find about them."""
    stats: dict[str, Array] = {}
    for k, (sampler, _) in enumerate(samplers):
        sampler.summarise(log_values[:, :, k], unknowns.free_of(k), chain)
        stats |= sampler.named(log_values[:, :, k], k, unknowns.free_of(k))
    return stats


def hyperparameter_records(samplers: list[OrderedSampler], log_values: Array, bias: Array) -> dict[str, Array]:
    """What predictions need of hyperparameters (s, q, 1 + d) and b at data and nodes, (s, n + m, q)."""
    return {
        f"{name}_{k}": value
        for k, (sampler, order) in enumerate(samplers)
        for name, value in sampler.record((log_values[:, k], sampler.at_distinct(bias[:, order, k]))).items()
    }

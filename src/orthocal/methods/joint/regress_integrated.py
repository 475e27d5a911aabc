"""Draws of the real process for a Gaussian-process bias whose size, length-scales and noise are integrated over.

What the data say about these is a set of weighted points. A draw takes one of them, and given it everything is
Gaussian, so draws are independent.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...advice import NOISE_COV
from ...arrays import Array, BoolArray, IntArray
from ...bias import GP
from ...bias.outcomes import split_points
from ...bias.sampled_gp import SampledGPSampler
from ...errors import InputError
from ...problem.problem import Problem
from ...regression.weighted_points import weighted_points
from ..base import Plan
from ..sampled_noise import NoiseDraws
from .gaussian_model import GaussianModel
from .regress import Linear, Regressed, by_chain, in_memory
from .unknowns import Unknowns

#: effective points for so many cells of y are WORTH / cells: many data leave little to choose between, and cost more
WORTH, MOST_POINTS, LEAST_POINTS = 6_000.0, 1_000.0, 8.0
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
    points = hyperparameter_points(problem, prior, linear, unknowns, nodes, fit)
    model = GaussianModel(problem, linear, prior, unknowns, nodes, fit=fit)
    rounds = -(-plan.draws // len(points))
    each = [[rng.permutation(len(points)) for _ in range(rounds)] for rng in plan.rngs]
    chosen = np.reshape(each, (len(each), -1))[:, : plan.draws]
    total, (n, q, p), m = chosen.size, linear.at_data.shape, len(nodes)
    moved, log_values = np.empty((total, p)), np.empty((total, q, 1 + problem.data.d))
    real, bias = np.empty((total, n + m, q)), np.empty((total, n + m, q))
    noise = np.empty((total, *unknowns.noise_cov(unknowns.values).shape))
    for number in np.unique(chosen):
        v = points[number]
        rows, counts = np.flatnonzero(chosen.ravel() == number), np.sum(chosen == number, axis=1)
        moved[rows], real[rows], bias[rows] = model.draw(plan.rngs, counts, v)
        log_values[rows], noise[rows] = unknowns.log_sd_and_lengths(v), unknowns.noise_cov(v)
    samplers = hyperparameter_samplers(problem, prior, nodes)
    stats = hyperparameter_stats(samplers, unknowns, log_values.reshape(*chosen.shape, q, -1))
    return Regressed(
        in_memory(real[:, :n]),
        real[:, n:],
        moved - bias[:, n:].reshape(total, -1) @ linear.coefficients.T,
        moved,
        hyperparameter_records(samplers, log_values, bias),
        [sampler for sampler, _ in samplers],
        linear.log_prior(moved),
        {name: by_chain(values) for name, values in stats.items()},
        noise_precision=NoiseDraws(problem.noise).precision(noise) if unknowns.noise else None,
        noise_relative=unknowns.relative(problem.noise, points),
        plugged_in_var=model.theta_var(points.mean(axis=0)) if len(points) > 1 and linear.basis is None else None,
    )


def hyperparameter_points(
    problem: Problem,
    prior: GP,
    linear: Linear,
    unknowns: Unknowns,
    nodes: Array,
    fit: Array | None = None,
    pull: float | None = None,
) -> Array:
    """What the data say about the hyperparameters, as vectors v (m, k), each as good as the others."""

    def log_density(most: int) -> Callable[[Array], Array]:
        part = _some_cells(problem.data.observed, most)
        model = GaussianModel(problem, linear, prior, unknowns, nodes, part, fit, pull)

        def of(free: Array) -> Array:
            vectors = unknowns.whole(free)
            return model.evidence(vectors) + [unknowns.log_prior(v) for v in vectors]

        return of

    cells = int(problem.data.observed.sum())
    mean, root, rough = unknowns.values[unknowns.free], np.diag(unknowns.spread()), False
    for few in FEW_CELLS:
        if cells > 2 * few:
            mean, covariance = weighted_points(log_density(few), mean, root, ROUGH, rough).moments()
            root, rough = np.linalg.cholesky(covariance), True
    enough = float(np.clip(WORTH / cells, LEAST_POINTS, MOST_POINTS))
    found = weighted_points(log_density(MOST_CELLS), mean, root, enough, rough)
    if len(mean) and found.effective < WORTHLESS:
        what = f"noise and bias have {len(mean)} unknowns, too many for these data: give "
        raise InputError(what + NOISE_COV + ", sd and lengthscale")
    return unknowns.whole(found.alike(int(np.ceil(min(enough, found.effective)))))


def _some_cells(observed: BoolArray, most: int) -> BoolArray | None:
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


def hyperparameter_stats(samplers: list[OrderedSampler], unknowns: Unknowns, log_values: Array) -> dict[str, Array]:
    """Hyperparameters by name, (c, s), from (c, s, q, 1 + d); the samplers keep what they find about them."""
    stats: dict[str, Array] = {}
    for k, (sampler, _) in enumerate(samplers):
        sampler.summarise(log_values[:, :, k], unknowns.free_of(k))
        stats |= sampler.named(log_values[:, :, k], k, unknowns.free_of(k))
    return stats


def hyperparameter_records(samplers: list[OrderedSampler], log_values: Array, bias: Array) -> dict[str, Array]:
    """What predictions need of hyperparameters (s, q, 1 + d) and b at data and nodes, (s, n + m, q)."""
    return {
        f"{name}_{k}": value
        for k, (sampler, order) in enumerate(samplers)
        for name, value in sampler.record((log_values[:, k], sampler.at_distinct(bias[:, order, k]))).items()
    }

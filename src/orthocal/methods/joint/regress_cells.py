"""Draws of the real process with many data, for a bias that is constant in the cells of a grid: a sum of trees.

All data of a cell are one observation for b, with the weight w = sum_i P_i and the value of z - G beta, both the
weighted means over the cell. And beta given b needs no more:

    beta | b ~ N(B^-1 h, B^-1),   B = sum_i P_i G_i' G_i,   h = sum_i P_i G_i' z_i - sum_cells w G' b

So after one pass over the data nothing depends on their number, and the law of the draws is that for all of them: there
are at most 101 cells in one input and 10201 in two. In more, where data seldom share a cell, it costs no more than all
data did.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array, IntArray, summed
from ...bias.outcomes import OutcomesBias, OutcomesState
from ...kernels.warmup import Stepper, run_chains
from ...problem.noise.noise import NoiseSource
from ...problem.problem import Problem
from ...regression.compiled import Gridded
from ..base import Plan
from ..chain_noise import ChainNoise
from ..fine_nodes import LARGE, Integrals, of_outcome
from ..stored_draws import stacked_records
from .gibbs import check_identifiable, size_stats
from .regress import Linear, Regressed, by_chain, with_prior


class CellData(NamedTuple):
    """The data of one whitened outcome, cell by cell.

    Attributes
    ----------
    sampler
        That of the bias, with the cells as its data points.
    weight, response, gradient
        Sum of the weights, (k,), and weighted means of z and G, (k,) and (k, p); zeros in cells without data.
    place
        The cell of each row of the data, (n,).
    """

    sampler: Any
    weight: Array
    response: Array
    gradient: Array
    place: IntArray

    @classmethod
    def of(cls, problem: Problem, linear: Linear, sampler: Gridded, k: int, nodes: Array) -> CellData:
        weight = np.where(problem.noise.observed[:, k], 1 / problem.noise.variances[:, k], 0.0)
        residual = problem.whiten(problem.complete_y - problem.fit)[:, k]
        cells, place = (part.astype(np.intp) for part in np.unique(sampler.cells(problem.data.x), return_inverse=True))
        total = summed(place, weight, len(cells))

        def mean(values: Array) -> Array:
            return summed(place, weight * values, len(cells)) / np.where(total > 0, total, 1.0)

        gradient = np.stack([mean(column) for column in linear.at_data[:, k].T], axis=1)
        on_cells = sampler.on_cells(cells, place[weight > 0], nodes)
        return cls(on_cells, total, mean(residual), gradient, place)


def cells_draws(
    problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear, integrals: Integrals | None
) -> Regressed | None:
    """A Markov chain on cells; None where the data are few, or their noise or the prior does not allow it."""
    noise, nodes = problem.noise, problem.rule.nodes if integrals is None else integrals.nodes
    samplers = [sampler for sampler in bias.samplers if isinstance(sampler, Gridded)]
    unknown = noise.source is NoiseSource.UNKNOWN
    coupled = problem.data.q > 1 or noise.groups is not None if unknown else noise.coupled
    if problem.unmerged.data.n < LARGE or coupled or noise.rows is not None:
        return None
    # the number of a cell must fit into an integer
    small = all(np.sum(np.log2([len(points) + 1 for points in own.cut_points])) < 60 for own in samplers)
    if not small or len(samplers) < len(bias.samplers):
        return None
    check_identifiable(problem, linear)
    outcomes = [CellData.of(problem, linear, sampler, k, nodes) for k, sampler in enumerate(samplers)]
    run = _CellsGibbs(problem, plan, outcomes, bias, linear, integrals)
    return run.finished(run_chains(run, plan.warmup, plan.draws, plan.rngs))


class _CellsDraw(NamedTuple):
    """b at the nodes (c, m, q), what its square misses there (c, q), beta (c, p), and what predictions need.

    ``square`` (c,) is that of what is left of the data, in units of the noise; ``noise`` (c, 1, 1) its variance, and
    ``sizes`` (c, q) those of the bias, where these are drawn.
    """

    at_nodes: Array
    missed: Array
    beta: Array
    square: Array
    records: dict[str, Array]
    noise: Array | None
    sizes: Array | None


class _CellsGibbs(Stepper[_CellsDraw]):
    changing = ("_beta", "_states", "_noise_cov")

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        outcomes: list[CellData],
        bias: OutcomesBias,
        linear: Linear,
        integrals: Integrals | None,
    ) -> None:
        self._plan, self._outcomes, self._bias, self._linear = plan, outcomes, bias, linear
        self._integrals = integrals
        self._beta: Array = np.zeros((len(plan.rngs), linear.at_data.shape[2]))
        self._states: list[Any] = [None] * len(outcomes)
        self._problem, noise = problem, problem.noise
        self._noise = ChainNoise(problem) if noise.source is NoiseSource.UNKNOWN else None
        self._noise_cov: Array = np.ones((len(plan.rngs), 1, 1))
        if self._noise is not None:
            self._noise_cov = self._noise.start(len(plan.rngs)).cov
        G, diagonal = linear.at_data, np.where(noise.observed, 1 / noise.variances, 0.0)
        residual = problem.whiten(problem.complete_y - problem.fit)
        self._lower = np.linalg.cholesky(np.einsum("nkp,nk,nkr->pr", G, diagonal, G, optimize=True))
        self._pull = np.einsum("nkp,nk->p", G, diagonal * residual, optimize=True)
        self._size = float(np.sum(diagonal * residual**2))

    def step(self) -> tuple[Array, ...]:
        rngs, pull, drawn, seen = self._plan.rngs, self._pull, [], []
        var: Array = self._noise_cov[:, 0, 0]
        scales = {} if self._noise is None else {"noise_scale": var}
        if self._noise is not None and self._bias.sized:
            scales["noise_sd"] = np.sqrt(var)
        for k, own in enumerate(self._outcomes):
            response = own.response - self._beta @ own.gradient.T
            self._states[k], values = own.sampler.draw(rngs, self._states[k], response, **scales)
            count = len(own.weight)
            pull = pull - (values[:, :count] * own.weight) @ own.gradient
            drawn.append(values[:, count:])
            seen.append(values[:, :count])
        self._drawn = np.stack(drawn, axis=-1)
        normal = np.stack([rng.standard_normal(len(self._lower)) for rng in rngs]) * np.sqrt(var)[:, None]
        self._beta = np.linalg.solve(self._lower.T, np.linalg.solve(self._lower, pull.T) + normal.T).T
        self._square = self._left(seen)
        if self._noise is not None:
            squares, count = self._square[:, None, None], int(self._problem.noise.observed.sum())
            scales_of_bias = self._bias.scales(OutcomesState(self._states, self._drawn))
            self._noise_cov = self._noise.given_squares(rngs, self._noise_cov, squares, count, scales_of_bias)
        return ()

    def _left(self, seen: list[Array]) -> Array:
        """sum_i P_i (z_i - G_i beta - b_i)^2, (c,), from b in the cells, (c, k) for each outcome."""
        square = self._size - 2 * self._beta @ self._pull + np.sum((self._beta @ self._lower) ** 2, axis=1)
        for own, values in zip(self._outcomes, seen, strict=True):
            response = own.response - self._beta @ own.gradient.T
            square = square + (values * (values - 2 * response)) @ own.weight
        return np.asarray(square)

    def adapt(self, *window: Array) -> None:
        """There is nothing to tune: the samplers of the bias tune themselves."""

    def kept(self) -> _CellsDraw:
        records = {
            f"{name}_{k}": value
            for k, (own, state) in enumerate(zip(self._outcomes, self._states, strict=True))
            for name, value in own.sampler.record(state).items()
        }
        at_nodes: Array = self._drawn
        missed: Array = np.zeros(at_nodes.shape[::2])
        if self._integrals is not None:
            at_nodes, missed = self._integrals.at_nodes(self._drawn, records)
        noise = None if self._noise is None else self._noise_cov
        sizes = self._bias.sizes(OutcomesState(self._states, self._drawn)) if self._bias.sized else None
        square = self._square / self._noise_cov[:, 0, 0]
        return _CellsDraw(at_nodes, missed, self._beta, square, records, noise, sizes)

    def finished(self, kept: list[_CellsDraw]) -> Regressed:
        names = ("at_nodes", "missed", "beta", "square")
        at_nodes, missed, beta, square = (
            by_chain(np.stack([getattr(one, name) for one in kept], axis=1)) for name in names
        )
        sizes = [one.sizes for one in kept if one.sizes is not None]
        drawn = size_stats(self._bias.samplers, np.stack(sizes, axis=1)) if sizes else {}
        stats = {name: by_chain(values) for name, values in drawn.items()}
        noise = [one.noise for one in kept if one.noise is not None]
        precision = by_chain(np.linalg.inv(np.stack(noise, axis=1))) if noise else None
        each = stacked_records([one.records for one in kept])
        records = {name: by_chain(np.stack(part, axis=1)) for name, part in each.items()}

        def at_data(rows: IntArray) -> Array:
            return self._at_data({name: values[rows] for name, values in records.items()}, beta[rows])

        free = Regressed(
            at_data,
            at_nodes + np.einsum("mkp,sp->smk", self._linear.at_nodes, beta),
            beta,
            beta + at_nodes.reshape(len(beta), -1) @ self._linear.coefficients.T,
            records,
            self._bias.samplers,
            np.zeros(len(beta)),
            stats,
            noise_precision=precision,
            square=square,
            missed_square=missed,
        )
        return with_prior(self._linear, free, self._plan.rngs)

    def _at_data(self, records: dict[str, Array], beta: Array) -> Array:
        """G beta + b at the data for recorded draws, (s, n, q)."""
        real = np.einsum("nkp,sp->snk", self._linear.at_data, beta)
        for k, own in enumerate(self._outcomes):
            real[:, :, k] += own.sampler.at_cells(of_outcome(records, k))[:, own.place]
        return np.asarray(real)

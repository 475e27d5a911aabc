"""Draws of the real process with many data, for a bias that is constant in the cells of a grid: a sum of trees.

All data of a cell are one observation for b, with the weight w = sum_i P_i and the value of z - G beta, both the
weighted means over the cell. And beta given b needs no more:

    beta | b ~ N(B^-1 h, B^-1),   B = sum_i P_i G_i' G_i,   h = sum_i P_i G_i' z_i - sum_cells w G' b

So after one pass over the data nothing depends on their number, and the law of the draws is that for all of them. Where
the domain is a box of one or two inputs, its integrals of b are exact, too: see ``problem.fine_rule``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, IntArray, summed
from ..bias.base import BiasSampler, Gridded
from ..bias.outcomes import OutcomesBias
from ..kernels.warmup import Changing, run_chains
from ..problem.fine_rule import FineRule
from ..problem.noise import NoiseSource
from ..problem.problem import Problem
from .base import Plan
from .fine_nodes import LARGE, Fine, fine_nodes, own_box
from .regress import Linear, Regressed, check_determined, stacked_records, with_prior

#: cells of a grid that integrals are taken over, at most; trees with the usual 100 cuts have 10201 in two inputs
MOST_CELLS = 2**16


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
    fine
        Where the cells are all those of the domain: integrals over them.
    """

    sampler: Any
    weight: Array
    response: Array
    gradient: Array
    place: IntArray
    fine: FineRule | None

    @classmethod
    def of(cls, problem: Problem, linear: Linear, sampler: Gridded, k: int, nodes: Array) -> CellData | None:
        """None where cells would save less than half of the points."""
        x, weight = problem.data.x, 1 / problem.noise.variances[:, k]
        grid = np.array([len(points) + 1 for points in sampler.cut_points])
        if np.sum(np.log2(grid)) > 60:  # their numbers would not fit into an integer
            return None
        box, every = own_box(problem), int(np.prod(grid))
        own = box is not None and problem.data.d <= 2 and every <= MOST_CELLS
        number = sampler.cells(x)
        if own:
            cells, place = np.arange(every, dtype=np.intp), number
        else:
            cells, place = (part.astype(np.intp) for part in np.unique(number, return_inverse=True))
            if 2 * len(cells) > len(x):
                return None
        informed = weight > 0
        on_cells = sampler.on_cells(cells, place[informed], nodes[:0] if own else nodes)
        total = summed(place, weight, len(cells))
        residual = problem.whiten(problem.complete_y - problem.fit)[:, k]

        def mean(values: Array) -> Array:
            return summed(place, weight * values, len(cells)) / np.where(total > 0, total, 1.0)

        gradient = np.stack([mean(column) for column in linear.at_data[:, k].T], axis=1)
        fine = FineRule.of_cells(box, sampler.cut_points) if own and box is not None else None
        return cls(on_cells, total, mean(residual), gradient, place, fine)

    def at_nodes(self, values: Array) -> tuple[Array, Array]:
        """b at the nodes (c, m, 1), and the square that it misses (c, 1), from b at the sampler's points (c, k + m)."""
        if self.fine is None:
            return values[:, len(self.weight) :, None], np.zeros((len(values), 1))
        own = values[:, :, None]
        return self.fine.down(own), self.fine.missed_square(own)


def cells_draws(problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear) -> Regressed | None:
    """A Markov chain on cells; None where the data are few, or their noise does not allow it, or cells save nothing."""
    noise = problem.noise
    if problem.unmerged.data.n < LARGE or noise.coupled or noise.source is NoiseSource.SAMPLED:
        return None
    samplers = [sampler for sampler in bias.samplers if isinstance(sampler, Gridded)]
    if len(samplers) < len(bias.samplers):
        return None
    fine = None if problem.data.d <= 2 else fine_nodes(problem)
    nodes = problem.rule.nodes if fine is None else fine.nodes
    outcomes = [CellData.of(problem, linear, sampler, k, nodes) for k, sampler in enumerate(samplers)]
    if any(one is None for one in outcomes):
        return None
    check_determined(problem, linear)
    run = _CellsGibbs(problem, plan, [one for one in outcomes if one is not None], bias.samplers, linear, fine)
    return run.finished(run_chains(run, plan.warmup, plan.draws, plan.rngs))


class _CellsDraw(NamedTuple):
    """b at the nodes (c, m, q), the square that is missed there (c, q), beta (c, p), and what predictions need."""

    at_nodes: Array
    missed: Array
    beta: Array
    records: dict[str, Array]


class _CellsGibbs(Changing):
    changing = ("_beta", "_states")

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        outcomes: list[CellData],
        samplers: list[BiasSampler],
        linear: Linear,
        fine: Fine | None,
    ) -> None:
        self._plan, self._outcomes, self._samplers, self._linear, self._fine = plan, outcomes, samplers, linear, fine
        self._beta: Array = np.zeros((len(plan.rngs), problem.parameters.p))
        self._states: list[Any] = [None] * len(outcomes)
        G, diagonal = linear.at_data, np.einsum("nkk->nk", problem.noise.precision)
        residual = problem.whiten(problem.complete_y - problem.fit)
        self._lower = np.linalg.cholesky(np.einsum("nkp,nk,nkr->pr", G, diagonal, G, optimize=True))
        self._pull = np.einsum("nkp,nk->p", G, diagonal * residual, optimize=True)

    def step(self) -> tuple[Array, ...]:
        rngs, pull, columns = self._plan.rngs, self._pull, []
        for k, own in enumerate(self._outcomes):
            self._states[k], values = own.sampler.draw(
                rngs, self._states[k], own.response - self._beta @ own.gradient.T
            )
            pull = pull - (values[:, : len(own.weight)] * own.weight) @ own.gradient
            columns.append(own.at_nodes(values))
        at_nodes, missed = (np.concatenate(parts, axis=-1) for parts in zip(*columns, strict=True))
        if self._fine is not None:
            at_nodes, missed = self._fine.down(at_nodes), self._fine.missed_square(at_nodes)
        self._at_nodes, self._missed = at_nodes, missed
        normal = np.array([rng.standard_normal(len(self._lower)) for rng in rngs])
        self._beta = np.linalg.solve(self._lower.T, np.linalg.solve(self._lower, pull.T) + normal.T).T
        return ()

    def adapt(self, *window: Array) -> None:
        """There is nothing to tune: the samplers of the bias tune themselves."""

    def kept(self) -> _CellsDraw:
        records = {
            f"{name}_{k}": value
            for k, (own, state) in enumerate(zip(self._outcomes, self._states, strict=True))
            for name, value in own.sampler.record(state).items()
        }
        return _CellsDraw(self._at_nodes, self._missed, self._beta, records)

    def finished(self, kept: list[_CellsDraw]) -> Regressed:
        at_nodes, missed, beta = (
            _by_chain(np.stack([getattr(one, name) for one in kept], axis=1)) for name in ("at_nodes", "missed", "beta")
        )
        records = {
            name: _by_chain(np.stack(part, axis=1))
            for name, part in stacked_records([one.records for one in kept]).items()
        }
        free = Regressed(
            self._at_data(records, beta),
            at_nodes + np.einsum("mkp,sp->smk", self._linear.at_nodes, beta),
            beta,
            beta + at_nodes.reshape(len(beta), -1) @ self._linear.coefficients.T,
            records,
            self._samplers,
            np.zeros(len(beta)),
            {},
            missed_square=missed,
        )
        return with_prior(self._linear, free, self._plan.rngs)

    def _at_data(self, records: dict[str, Array], beta: Array) -> Array:
        """G beta + b at the data for recorded draws, (s, n, q)."""
        real = np.einsum("nkp,sp->snk", self._linear.at_data, beta)
        for k, own in enumerate(self._outcomes):
            ending = f"_{k}"
            state = {name.removesuffix(ending): value for name, value in records.items() if name.endswith(ending)}
            real[:, :, k] += own.sampler.at_cells(state)[:, own.place]
        return np.asarray(real)


def _by_chain(values: Array) -> Array:
    """(c, s, ...) as (c s, ...), chain after chain."""
    return np.asarray(values.reshape(-1, *values.shape[2:]))

"""All experiments as one problem of one outcome: a row for every cell, in units of its experiment's noise.

Cells of the data and of the nodes are A_e f_e, A_e'A_e = W_e / (noise of the loss), so that squares of differences are
losses, and each has the share w_e of its experiment. What is known about one problem (its best fit, other minima,
collinear parameters, where each draw is closest) is then known about all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray, matrix_root
from ..machine.threads import one_blas_thread
from ..problem.domain.domain import Rule
from ..problem.noise.noise import observed_precision
from ..problem.prior.parameters import Parameters
from ..problem.problem import Problem
from ..problem.search.best_fit import EMPTY_SHARES
from ..problem.search.minima import Minimum, rough_minimum
from ..problem.simulator.simulator_function import Simulator

#: what a problem knows that does not depend on its best fit
LASTING = ("_own_noise", "weight", "span", "rule", "volumes")
#: places of the search that fill the priors, and experiments whose own best fits are others
STARTS, MOST_OWN = 16, 8
#: places from which the best fit of an experiment by itself is looked for, roughly: it is a place to start from only,
#: and what one experiment leaves open would take long to find
OWN_STARTS = 4


class ExperimentCells(NamedTuple):
    """The cells of one experiment.

    Attributes
    ----------
    problem, columns
        The experiment, and which of theta are its parameters.
    at_data, at_nodes
        A_i, what takes outcomes to cells, (n, q, q) and (q, q): zero at missing ones.
    first
        The number of its first cell: those of the data come first, row by row, then those of the nodes.
    share
        w_e over the sum of w_e q_e.
    """

    problem: Problem
    columns: IntArray
    at_data: Array
    at_nodes: Array
    first: int
    share: float

    @property
    def points(self) -> Array:
        """x of its rows and nodes, (n + m, d)."""
        return np.concatenate([self.problem.data.x, self.problem.rule.nodes])

    @property
    def size(self) -> int:
        return len(self.points) * self.problem.data.q

    @property
    def roots(self) -> Array:
        """A of every row and node, (n + m, q, q)."""
        nodes = np.broadcast_to(self.at_nodes, (len(self.problem.rule.nodes), *self.at_nodes.shape))
        return np.concatenate([self.at_data, nodes])

    @property
    def of_data(self) -> slice:
        return slice(self.first, self.first + self.problem.data.y.size)

    @property
    def of_nodes(self) -> slice:
        return slice(self.of_data.stop, self.first + self.size)

    @property
    def volumes(self) -> Array:
        """The share of the domain nearest to each row, (n,); the same for all where too many would have none."""
        own = self.problem.volumes
        return own if np.mean(own == 0) <= EMPTY_SHARES else np.full(len(own), 1 / len(own))


class Wanted(NamedTuple):
    """Some cells of one experiment: where they stand in what is asked for, their points, and their places there."""

    cells: ExperimentCells
    places: IntArray
    x: Array
    row: IntArray
    roots: Array

    def of(self, values: Array) -> Array:
        """Cells of values at the points, (..., m, q) -> (..., k)."""
        return np.asarray(np.einsum("kq,...kq->...k", self.roots, values[..., self.row, :]))


class StackedSimulator:
    """The cells with given numbers as functions of theta (P,)."""

    def __init__(self, parts: list[ExperimentCells], p: int) -> None:
        self._parts, self._p = parts, p
        self._known: dict[bytes, list[Wanted]] = {}

    def __call__(self, numbers: Array, theta: Array) -> Array:
        found = np.empty(len(numbers))
        for one in self._wanted(numbers):
            found[one.places] = one.of(one.cells.problem.simulator.evaluate(one.x, theta[one.cells.columns]))
        return found

    def batch(self, numbers: Array, theta: Array) -> Array:
        """The same for theta (c, P), (c, k): each experiment's simulator shares them out as it does."""
        found = np.empty((len(theta), len(numbers)))
        for one in self._wanted(numbers):
            found[:, one.places] = one.of(one.cells.problem.simulator.batch(one.x, theta[:, one.cells.columns]))
        return found

    def gradient(self, numbers: Array, theta: Array) -> Array:
        found = np.zeros((len(numbers), self._p))
        for one in self._wanted(numbers):
            slope = one.cells.problem.simulator.gradient(one.x, theta[one.cells.columns])
            found[np.ix_(one.places, one.cells.columns)] = one.of(slope.transpose(2, 0, 1)).T
        return found

    def _wanted(self, numbers: Array) -> list[Wanted]:
        key = np.ascontiguousarray(numbers).tobytes()
        if key not in self._known:
            if len(self._known) > 8:
                self._known.clear()
            self._known[key] = list(self._found(np.asarray(numbers).ravel().round().astype(np.intp)))
        return self._known[key]

    def _found(self, numbers: IntArray) -> Iterator[Wanted]:
        for cells in self._parts:
            places = np.flatnonzero((numbers >= cells.first) & (numbers < cells.first + cells.size))
            if not len(places):
                continue
            point, outcome = np.divmod(numbers[places] - cells.first, cells.problem.data.q)
            rows, row = np.unique(point, return_inverse=True)
            yield Wanted(cells, places, cells.points[rows], row, cells.roots[point, outcome])


class StackedNodes:
    """The nodes of all experiments, and how much each cell counts."""

    def __init__(self, parts: list[ExperimentCells]) -> None:
        self._parts = parts

    def __repr__(self) -> str:
        return "the domains of all experiments"

    def check(self, x: Array) -> None:
        """Every cell is known."""

    def bounds(self, d: int) -> tuple[Array, Array]:
        end = self._parts[-1].first + self._parts[-1].size
        return np.zeros(d), np.full(d, float(end))

    def rules(self, d: int) -> tuple[Rule, Rule | None]:
        return self._rule, None

    @cached_property
    def _rule(self) -> Rule:
        numbers = [np.arange(one.of_nodes.start, one.of_nodes.stop) for one in self._parts]
        weights = [np.repeat(one.share * one.problem.rule.weights, one.problem.data.q) for one in self._parts]
        return Rule(np.concatenate(numbers)[:, None].astype(float), np.concatenate(weights))

    def volumes(self, x: Array) -> Array:
        shares = np.zeros(self._parts[-1].first + self._parts[-1].size)
        for one in self._parts:
            shares[one.of_data] = np.repeat(one.share * one.volumes, one.problem.data.q)
        return np.asarray(shares[x[:, 0].round().astype(np.intp)])


class Stacked(NamedTuple):
    """The problem of all cells, and the cells of each experiment."""

    problem: Problem
    parts: dict[str, ExperimentCells]


def stacked_problem(
    problems: Mapping[str, Problem], columns: Mapping[str, IntArray], parameters: Parameters, weights: Array
) -> Stacked:
    """The experiments as one problem; ``weights`` (e,) say how much each counts."""
    total = float(sum(weight * one.data.q for weight, one in zip(weights, problems.values(), strict=True)))
    parts: dict[str, ExperimentCells] = {}
    first = 0
    for (name, problem), weight in zip(problems.items(), weights, strict=True):
        each = observed_precision(np.linalg.inv(problem.weight), problem.data.observed)
        unit = np.sqrt(problem._loss_noise(problem._own_noise))
        rows, nodes = matrix_root(each) / unit, matrix_root(problem.weight) / unit
        parts[name] = ExperimentCells(problem, columns[name], rows, nodes, first, weight / total)
        first += parts[name].size
    own = list(parts.values())
    complete = [np.where(one.problem.data.observed, one.problem.data.y, 0.0) for one in own]
    y = [np.einsum("nkl,nl->nk", one.at_data, values).ravel() for one, values in zip(own, complete, strict=True)]
    numbers = [np.arange(one.of_data.start, one.of_data.stop) for one in own]
    function = StackedSimulator(own, parameters.p)
    many = any(one.problem.simulator.many_at_a_time for one in own)
    problem = Problem(
        np.concatenate(numbers).astype(float),
        np.concatenate(y),
        Simulator(function.batch if many else function, gradient=function.gradient, batched=many),
        parameters.given,
        StackedNodes(own),
        noise_cov=1.0,
        starts=_starts(problems, columns, parameters),
        constraint=parameters.given_constraint,
    )
    for one in own:
        names = zip(one.columns, one.problem.parameters.names, strict=True)
        problem.units |= {
            parameters.names[j]: one.problem.units[name] for j, name in names if name in one.problem.units
        }
    return Stacked(problem, parts)


def _starts(problems: Mapping[str, Problem], columns: Mapping[str, IntArray], parameters: Parameters) -> Array:
    """Points that fill the priors, and best fits of single experiments, each with the others' private values."""
    # as many as the problems themselves have, at most
    asked = max(len(one._starts) for one in problems.values())
    places = [*parameters.starts(min(STARTS, max(2, asked // 2)))]
    best = {name: _own_best(one) for name, one in problems.items()}
    for name in list(problems)[:MOST_OWN]:
        place = parameters.median.copy()
        for other in (*problems, name):
            place[columns[other]] = best[other]
        places.append(parameters.clipped(place, 1e-6))
    found = np.array(places)
    return found[parameters.inside(found)]


def _own_best(problem: Problem) -> Array:
    """About where an experiment by itself has its best fit, (p,)."""
    if problem.searched:
        return problem.theta_tilde
    with one_blas_thread(), problem.simulator.searching():
        return rough_minimum(problem._criterion, problem._starts[:OWN_STARTS])


def linearised_at(problem: Problem, theta: Array) -> Problem:
    """The same problem with ``theta`` (p,) in place of its best fit."""
    best = (Minimum(theta, problem._criterion.loss(theta), True),)
    return problem._of_parts(LASTING, minima=best, loss_minima=best, others_know=True)

"""Bayesian additive regression trees (Chipman, George, McCulloch 2010): a forest that is warm-started at every draw."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, IntArray, summed
from .bart_kernels import sweep, weigh_leaves
from .compiled import CompiledSampler, Gridded, Record
from .settings import BARTSettings
from .tree_kernels import CHILD, FREE, LEAF, PARENT, SLOTS, add_boxes, evaluate, pack

#: a forest is evaluated in all cells of its grid if they are at most so many times the points: a tenth of the time
SMALL_GRID = 10


class ForestState(NamedTuple):
    """The trees of one chain, changed in place by a sweep; see ``tree_kernels`` for the layout."""

    nodes: NDArray[np.int16]
    mu: Array
    leaf: NDArray[np.uint8]
    sums: Array
    fit: Array
    counts: IntArray


class BARTSampler(CompiledSampler, Gridded):
    """One warm-started backfitting sweep a draw: the forest persists, only the response changes.

    The kept draws hold their whole forest, packed: about 4 nodes a tree of 12 bytes each, 10 kB for 200 trees.
    """

    kind = "bart"
    title = "BART"

    def __init__(
        self,
        prior: BARTSettings,
        leaf_sd: float,
        cut_points: list[Array],
        x: Array,
        nodes: Array,
        noise_var: Array,
        unit: float = 1.0,
        counts: Array | None = None,
        shares: Array | None = None,
    ) -> None:
        """``counts`` (n,) are the observations behind each data point, one if not given.

        ``shares`` (d,) say how often each input is split by, all alike if not given.
        """
        self.prior, self.leaf_sd, self.unit = prior, leaf_sd, unit
        self._cut_points = cut_points
        self._cuts = np.array([len(points) for points in cut_points], dtype=np.int64)
        self._shares = np.ones(len(cut_points)) if shares is None else shares
        self._bins = self._binned(np.vstack([x, nodes]))
        self._weight: Array = np.ascontiguousarray(1 / noise_var)
        self._counts = np.ones(len(x), dtype=np.int64) if counts is None else counts.astype(np.int64)

    def predict(self, rng: np.random.Generator, records: Record, x_new: Array) -> Array:
        return self._evaluated(records, self._binned(x_new))

    @property
    def cut_points(self) -> list[Array]:
        """Of each input, ascending: between them the function is constant."""
        return self._cut_points

    def cells(self, x: Array) -> IntArray:
        """The cell between the cut points that each of x (m, d) lies in, (m,); the last input runs fastest."""
        return np.asarray(np.ravel_multi_index(tuple(self._binned(x)), self._grid), dtype=np.intp)

    def on_cells(self, cells: IntArray, place: IntArray, nodes: Array) -> Self:
        """The same posterior with ``cells`` (k,) as data points, of which data point i is in that numbered place[i].

        All data of a cell are in the same leaf of every tree: they are one observation, with the sum of their weights.
        """
        part = copy(self)
        bins = np.stack(np.unravel_index(cells, self._grid)).astype(np.uint8)
        part._bins = np.ascontiguousarray(np.hstack([bins, self._binned(nodes)]))
        part._weight = summed(place, self._weight, len(cells))
        part._counts = summed(place, self._counts, len(cells)).astype(np.int64)
        return part

    def in_cells(self, records: Record) -> Array:
        """The recorded functions, s of them, in all cells of the grid, (s, cells)."""
        grid = np.array(self._grid)
        steps = np.zeros((len(records["value"]), *(grid + 1)))
        for kind, value, own in zip(records["kind"], records["value"], steps, strict=True):
            add_boxes(kind, value, self.prior.trees, grid, own.reshape(-1))
        for axis in range(1, steps.ndim):
            np.cumsum(steps, axis=axis, out=steps)
        inside = (slice(None), *(slice(count) for count in self._grid))
        return np.asarray(steps[inside].reshape(len(steps), -1))

    def at_cells(self, records: Record) -> Array:
        """The recorded functions, s of them, at the sampler's own data points, (s, k)."""
        bins = np.ascontiguousarray(self._bins[:, : len(self._weight)])
        if np.prod(self._grid, dtype=float) > SMALL_GRID * bins.shape[1]:
            return self._evaluated(records, bins)
        return self.in_cells(records)[:, np.ravel_multi_index(tuple(bins), self._grid)]

    def _evaluated(self, records: Record, bins: NDArray[np.uint8]) -> Array:
        fits = np.zeros((len(records["value"]), bins.shape[1]))
        for kind, value, fit in zip(records["kind"], records["value"], fits, strict=True):
            evaluate(kind, value, bins, self.prior.trees, fit)
        return fits

    @property
    def _grid(self) -> tuple[int, ...]:
        """Cells in each input."""
        return tuple(int(count) + 1 for count in self._cuts)

    def findings(self) -> dict[str, Any]:
        return {"leaf_sd": self.leaf_sd / self.unit, "cuts": self._cuts.tolist()}

    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.prior.describe(),
            "leaf_sd": self.leaf_sd,
            "unit": self.unit,
            "cut_points": [points.tolist() for points in self._cut_points],
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BARTSampler:
        """The sampler of a stored posterior."""
        points: list[Array] = [np.asarray(column, dtype=np.float64) for column in settings["cut_points"]]
        prior = BARTSettings.stored(settings)
        return cls(prior, float(settings["leaf_sd"]), points, x, nodes, noise_var, float(settings["unit"]))

    @property
    def function_sd(self) -> float:
        return self.leaf_sd * float(np.sqrt(self.prior.trees))

    @property
    def updates(self) -> int:
        return self.prior.sweeps

    @property
    def cost(self) -> int:
        return int(self._bins.shape[1]) * self.prior.trees

    def update(
        self, rng: np.random.Generator, state: ForestState, response: Array, starting: bool, noise_scale: float | Array
    ) -> None:
        prior, chain, single = self.prior, ForestState(*state), np.ndim(noise_scale) == 0
        if not single:
            weigh_leaves(self._weight / noise_scale, chain.leaf, chain.sums)
        elif noise_scale != 1.0:
            # the sums of the weights persist, for a scale of one
            chain.sums[:, :, 1] /= noise_scale
        sweep(
            rng,
            response,
            self._weight / noise_scale,
            self._counts,
            self._bins,
            self._cuts,
            self._shares,
            *chain,
            prior.alpha,
            prior.beta,
            self.leaf_sd**2,
            prior.least,
        )
        if single and noise_scale != 1.0:
            chain.sums[:, :, 1] *= noise_scale

    def normal(self, state: ForestState) -> Array:
        leaves = (state.nodes[:, :, PARENT] != FREE) & (state.nodes[:, :, CHILD] == LEAF)
        return np.asarray(state.mu[leaves] / self.leaf_sd)

    def empty(self) -> ForestState:
        trees, points = self.prior.trees, self._bins.shape[1]
        nodes = np.zeros((trees, SLOTS, 5), dtype=np.int16)
        nodes[:, :, 0], nodes[:, :, PARENT] = LEAF, FREE
        nodes[:, 0, PARENT] = -1
        leaf = np.zeros((trees, points), dtype=np.uint8)
        sums = np.zeros((trees, SLOTS, 3))
        sums[:, 0, 0], sums[:, 0, 1] = self._counts.sum(), self._weight.sum()
        counts = np.zeros((4, 2), dtype=np.int64)
        return ForestState(nodes, np.zeros((trees, SLOTS)), leaf, sums, np.zeros(points), counts)

    def one_record(self, state: ForestState) -> Record:
        """The forest in pre-order; what is filled up with zeros at its end is never reached."""
        kind = np.empty((len(state.nodes) * SLOTS, 2), dtype=np.int16)
        value = np.empty(len(kind))
        length = pack(state.nodes, state.mu, kind, value)
        return {"kind": kind[:length], "value": value[:length]}

    def _binned(self, x: Array) -> NDArray[np.uint8]:
        """The bin of each point in each input, (d, m): how many cut points lie below it."""
        columns = [np.searchsorted(points, column) for points, column in zip(self._cut_points, x.T, strict=True)]
        return np.ascontiguousarray(np.stack(columns).astype(np.uint8))


def spread_cut_points(column: Array, most: int, grid: str) -> Array:
    """Cut points of one input at quantiles or evenly over its range: none if it is constant."""
    values = np.unique(column)
    if len(values) < 2:
        return np.empty(0)
    if grid == "uniform":
        return np.linspace(values[0], values[-1], most + 2)[1:-1]
    middles = (values[1:] + values[:-1]) / 2
    if len(middles) <= most:
        return middles
    return np.asarray(middles[np.linspace(0, len(middles) - 1, most).round().astype(int)])

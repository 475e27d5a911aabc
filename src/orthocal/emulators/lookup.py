"""The posterior mean of a sum of trees at fixed points, as an exact table over the cells of theta.

At fixed points a tree's leaf is a rectangle of theta in which it adds its value. A rectangle in two parameters is four
corners in an array of differences, which becomes the table by cumulative sums: all leaves of all draws together cost
one table for each pair of parameters. Leaves that depend on more parameters, and those of pairs for which there is no
memory, stay a list of boxes; the same box of several draws is one.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, IntArray
from .tree_kernels import add_leaves, count_leaves, look_up, walk_softly

Bytes: TypeAlias = NDArray[np.uint8]

#: memory for the tables of one set of points
MOST_BYTES = 512 * 2**20


class Packed(NamedTuple):
    """The trees of all draws of one target, one after the other: see ``regression.tree_kernels.pack``."""

    kind: NDArray[np.int16]
    value: Array


class LookupTables(NamedTuple):
    """Where the tables lie; see ``lookup_kernels``."""

    choice: IntArray
    first: IntArray
    axes: IntArray
    strides: IntArray
    cells: int


class Boxes(NamedTuple):
    """Boxes of theta, sorted into groups of one target and the same rows of points; see ``look_up``."""

    low: Bytes
    extent: Bytes
    value: Array
    group_ends: IntArray
    group_target: IntArray
    row_ends: IntArray
    group_rows: IntArray


class Lookup:
    """The function theta (p,) -> (m, r): offset + sum of the trees of all draws / number of draws, at fixed points.

    Parameters
    ----------
    forests
        The packed trees of each of r targets.
    draws
        How many draws they are.
    offset
        (r,), what is added.
    cut_points
        Of each variable, the d of the points first, then the p of theta.
    points
        (m, d).
    most_bytes
        Memory for the tables.
    """

    def __init__(
        self,
        forests: list[Packed],
        draws: int,
        offset: Array,
        cut_points: list[Array],
        points: Array,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        d = points.shape[1]
        bins = np.array([len(cuts) + 1 for cuts in cut_points], dtype=np.int64)
        point_bins, self._row_of_point = unique_rows(points, cut_points[:d])
        shape = (len(forests), point_bins.shape[1])
        counts = np.zeros((len(bins) - d, len(bins) - d), dtype=np.int64)
        others = [count_leaves(forest.kind, bins, d, counts) for forest in forests]
        self._tables = plan_tables(counts, bins[d:], max(most_bytes // (8 * shape[0] * shape[1]), 0))
        self._constant = np.zeros(shape)
        self._cells = np.zeros((self._tables.cells, *shape))
        unplaced = int(counts[self._tables.choice < 0].sum())
        lists = [
            self._add(forest, target, bins, point_bins, others[target] + unplaced)
            for target, forest in enumerate(forests)
        ]
        self._accumulate(bins[d:])
        self._constant /= draws
        self._constant += offset[:, None]
        self._cells /= draws
        self._boxes = _grouped(lists, point_bins, draws)
        self._cut_points = np.concatenate([np.empty(0), *cut_points[d:]])
        self._starts = np.concatenate([[0], np.cumsum(bins[d:] - 1)])
        self._arguments = (
            self._constant, self._cells, self._tables.first, self._tables.axes, self._tables.strides, *self._boxes,
            self._row_of_point,
        )  # fmt: skip

    def __call__(self, theta: Array) -> Array:
        output = np.empty((len(self._row_of_point), len(self._constant)))
        look_up(np.ascontiguousarray(theta), self._cut_points, self._starts, *self._arguments, output)
        return output

    @property
    def boxes(self) -> int:
        """Number of boxes that are in no table."""
        return len(self._boxes.value)

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self._tables.first)

    def _add(self, forest: Packed, target: int, bins: IntArray, point_bins: Bytes, most: int) -> tuple[Bytes, Array]:
        """Add the leaves of one target; what has no table, as boxes (B, 2 k) and values."""
        box, value = np.empty((most, 2 * len(bins)), dtype=np.uint8), np.empty(most)
        choice, first, axes, strides, _ = self._tables
        count = add_leaves(
            *forest, bins, point_bins, target, choice, first, axes, strides, self._constant, self._cells, box, value
        )
        return box[:count], value[:count]

    def _accumulate(self, bins: IntArray) -> None:
        """Differences become values, in place."""
        for first, (i, j), (_, stride) in zip(self._tables.first, self._tables.axes, self._tables.strides, strict=True):
            width = bins[j] if stride else 1
            table = self._cells[first : first + bins[i] * width].reshape(bins[i], width, *self._constant.shape)
            for axis in (0, 1) if stride else (0,):
                np.cumsum(table, axis=axis, out=table)


def plan_tables(counts: IntArray, bins: IntArray, most_cells: int) -> LookupTables:
    """Tables for the pairs of parameters with most leaves first, then for single ones that are in none of them.

    ``counts`` (p, p) are the leaves that depend on a pair, or on one parameter on the diagonal.
    """
    p = len(bins)
    choice = np.full((p, p), -1, dtype=np.int64)
    first: list[int] = []
    axes: list[tuple[int, int]] = []
    strides: list[tuple[int, int]] = []
    used = 0
    pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
    singles = [(i, i) for i in range(p)]
    for i, j in sorted(pairs, key=lambda pair: -int(counts[pair])) + singles:
        size = int(bins[i] * bins[j]) if i < j else int(bins[i])
        if not counts[i, j] or choice[i, j] >= 0 or used + size > most_cells:
            continue
        choice[i, j] = len(first)
        for one in (i, j):
            if choice[one, one] < 0:
                choice[one, one] = len(first)
        first.append(used)
        axes.append((i, j))
        strides.append((int(bins[j]), 1) if i < j else (1, 0))
        used += size
    shaped = [np.array(values, dtype=np.int64).reshape(-1, 2) for values in (axes, strides)]
    return LookupTables(choice, np.array(first, dtype=np.int64), shaped[0], shaped[1], used)


def unique_rows(points: Array, cut_points: list[Array]) -> tuple[Bytes, IntArray]:
    """The distinct cells of the points, bins (d, u), and which of them each point is in, (m,)."""
    if not points.shape[1]:
        return np.zeros((0, 1), dtype=np.uint8), np.zeros(len(points), dtype=np.int64)
    columns = [np.searchsorted(cuts, column) for cuts, column in zip(cut_points, points.T, strict=True)]
    rows, inverse = np.unique(np.stack(columns, axis=1).astype(np.uint8), axis=0, return_inverse=True)
    return np.ascontiguousarray(rows.T), inverse.ravel().astype(np.int64)


def _grouped(lists: list[tuple[Bytes, Array]], point_bins: Bytes, draws: int) -> Boxes:
    """The boxes of all targets in groups; equal boxes are added up, those without a point left out."""
    d, k = len(point_bins), lists[0][0].shape[1] // 2
    bounds, values, sizes, targets, row_lists = [], [], [], [], []
    for target, (box, value) in enumerate(lists):
        # the bounds in x first, so that sorting makes the groups
        theta = [*range(d, k), *range(k + d, 2 * k)]
        distinct, member = _unique_bytes(np.hstack([_in_ranks(box, point_bins), box[:, theta]]))
        summed = np.bincount(member, value, len(distinct)) / draws
        changes = np.flatnonzero((distinct[1:, : 2 * d] != distinct[:-1, : 2 * d]).any(axis=1)) + 1
        ends = np.concatenate([[0], changes, [len(distinct)]]) if len(distinct) else np.zeros(1, dtype=np.intp)
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            rows = _rows_between(distinct[start, :d], distinct[start, d : 2 * d], point_bins)
            if len(rows):
                bounds.append(distinct[start:end, 2 * d :])
                values.append(summed[start:end])
                sizes.append(end - start)
                targets.append(target)
                row_lists.append(rows)
    ends_of_theta = np.concatenate([np.empty((0, 2 * (k - d)), dtype=np.uint8), *bounds]).T
    return Boxes(
        low=np.ascontiguousarray(ends_of_theta[: k - d]),
        extent=np.ascontiguousarray(ends_of_theta[k - d :] - ends_of_theta[: k - d]),
        value=np.concatenate([np.empty(0), *values]),
        group_ends=np.cumsum(sizes, dtype=np.int64),
        group_target=np.array(targets, dtype=np.int64),
        row_ends=np.cumsum([len(rows) for rows in row_lists], dtype=np.int64),
        group_rows=np.concatenate([np.empty(0, dtype=np.int64), *row_lists]),
    )


def _in_ranks(box: Bytes, point_bins: Bytes) -> Bytes:
    """The bounds in x, (B, 2 d), as those of the outermost points inside: boxes with the same points become equal."""
    d, k = len(point_bins), box.shape[1] // 2
    low, high = np.empty((len(box), d), dtype=np.uint8), np.empty((len(box), d), dtype=np.uint8)
    for v, bins in enumerate(point_bins):
        present = np.unique(bins)
        first = np.searchsorted(present, box[:, v])
        last = np.searchsorted(present, box[:, k + v], side="right") - 1
        empty = first > last
        low[:, v] = np.where(empty, 1, present[np.minimum(first, len(present) - 1)])
        high[:, v] = np.where(empty, 0, present[last])
    return np.hstack([low, high])


def _rows_between(low: Bytes, high: Bytes, point_bins: Bytes) -> IntArray:
    """The rows of points in a box."""
    return np.flatnonzero(((point_bins >= low[:, None]) & (point_bins <= high[:, None])).all(axis=0))


def _unique_bytes(rows: Bytes) -> tuple[Bytes, IntArray]:
    """The distinct rows of an array of bytes, sorted, and which of them each row is."""
    if not rows.size:
        return rows, np.zeros(len(rows), dtype=np.intp)
    whole = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    distinct, member = np.unique(whole, return_inverse=True)
    return distinct.view(np.uint8).reshape(-1, rows.shape[1]), member.ravel().astype(np.intp)


# Forests as smooth functions of theta.
#
# A draw of BART is a staircase of theta: what is closest to it is a place on one of its steps, and between two of a
# design's values each draw has its steps elsewhere. So a cut at c becomes a gate: with t +- w around it a point goes
# left with the probability that t + w u < c, u with Epanechnikov's density. In x the trees stay as they are.


class SoftForest(NamedTuple):
    """offset + sum of trees, each leaf times a factor, of r targets: a function of inputs (M, k).

    Attributes
    ----------
    forests, factors
        The packed trees of each target, and what each of their nodes is multiplied by, (L,).
    offset
        (r,).
    cut_points
        Of each input.
    width
        Half the width of the gates of each input, (k,).
    """

    forests: list[Packed]
    factors: list[Array]
    offset: Array
    cut_points: list[Array]
    width: Array

    def predict(self, inputs: Array) -> Array:
        """(M, r): every input is smooth."""
        function = self.at(np.empty((1, 0)))
        return np.concatenate([function(row) for row in inputs])

    def gradient(self, inputs: Array) -> Array:
        """(M, r, k)."""
        function = self.at(np.empty((1, 0)))
        return np.concatenate([function.gradient(row) for row in inputs])

    def at(self, points: Array) -> SoftFunction:
        """The function of theta (p,), the other inputs, at points (m, d)."""
        return SoftFunction(self, points)


class SoftFunction:
    """theta (p,) -> (m, r) at fixed points (m, d), with its gradient (m, r, p)."""

    def __init__(self, forest: SoftForest, points: Array) -> None:
        d = points.shape[1]
        self._forest, self._width = forest, np.ascontiguousarray(forest.width[d:])
        self._point_bins, self._row_of_point = unique_rows(points, forest.cut_points[:d])
        own = forest.cut_points[d:]
        self._cut_points = np.concatenate([np.empty(0), *own])
        self._starts = np.concatenate([[0], np.cumsum([len(cuts) for cuts in own], dtype=np.int64)])

    def __call__(self, theta: Array) -> Array:
        return self._walked(theta)[:, :, 0]

    def gradient(self, theta: Array) -> Array:
        return self._walked(theta)[:, :, 1:]

    def _walked(self, theta: Array) -> Array:
        """(m, r, 1 + p)."""
        targets = []
        for forest, factor, offset in zip(self._forest.forests, self._forest.factors, self._forest.offset, strict=True):
            output = np.zeros((1 + len(theta), self._point_bins.shape[1]))
            output[0] = offset
            walk_softly(
                *forest, factor, self._cut_points, self._starts, self._point_bins, np.ascontiguousarray(theta),
                self._width, output,
            )  # fmt: skip
            targets.append(output.T[self._row_of_point])
        return np.stack(targets, axis=1)

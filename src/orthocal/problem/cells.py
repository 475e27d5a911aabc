"""The share of a box that belongs to each of many points: nested slices of about equally many of them.

The box is cut along its first input into slices that hold about equally many points, half way between neighbours, each
slice along the second, and so on, until a cell holds a few; points in one cell share its volume. It takes a
sort for each input, where counting by nearest neighbour takes over a hundred searches for each point.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, IntArray

#: points that share a cell
POINTS_A_CELL = 4.0


def cell_volumes(rows: Array, lower: Array, upper: Array) -> Array:
    """Volumes (n,) for distinct points (n, d), as shares of the box: they add up to one."""
    n, d = rows.shape
    inside = (np.clip(rows, lower, upper) - lower) / (upper - lower)
    cell: IntArray = np.zeros(n, dtype=np.intp)
    volume: Array = np.ones(1)
    for j in range(d):
        cell, volume = _sliced(inside[:, j], cell, volume, d - j)
    return np.asarray(volume[cell] / np.bincount(cell)[cell])


def _sliced(values: Array, cell: IntArray, volume: Array, left: int) -> tuple[IntArray, Array]:
    """The cell of each point, (n,), and the cells' volumes, after each cell was cut along ``values``.

    ``left`` is the number of inputs that are still to be cut, with this one.
    """
    order = np.lexsort((values, cell))
    value, parent = values[order], cell[order]
    counts = np.bincount(parent)
    begin = np.cumsum(counts) - counts
    slices = np.maximum((counts / POINTS_A_CELL) ** (1 / left), 1.0).round()
    # equal values belong to one slice: no cell is empty, and none has no width
    new_value = np.ones(len(order), dtype=bool)
    new_value[1:] = (value[1:] != value[:-1]) | (parent[1:] != parent[:-1])
    first = np.maximum.accumulate(np.where(new_value, np.arange(len(order)), 0))
    within = ((first - begin[parent]) * slices[parent] // counts[parent]).astype(np.intp)
    opens = np.ones(len(order), dtype=bool)
    opens[1:] = (parent[1:] != parent[:-1]) | (within[1:] != within[:-1])
    at = np.flatnonzero(opens)
    # each begins half way from the point before it, or with its parent, whose edges are 0 and 1 here
    start = np.where(at == begin[parent[at]], 0.0, 0.5 * (value[at] + value[at - 1]))
    last = np.append(parent[at][1:] != parent[at][:-1], True)
    end = np.where(last, 1.0, np.append(start[1:], 1.0))
    cells = np.empty(len(order), dtype=np.intp)
    cells[order] = np.cumsum(opens) - 1
    return cells, np.asarray(volume[parent[at]] * (end - start))

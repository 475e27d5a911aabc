"""Where the simulator is judged: the measure P_x, as nodes and weights.

An integral over the domain is ``∫ h dP_x ≈ sum_r w_r h(x_r)`` with weights that sum to one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.stats import qmc

from ...arrays import Array, IntArray, as_floats, unique_rows
from ...errors import InputError
from ...projection import quadrature_error
from ..data.labels import labelled_inputs

# The share of a box that belongs to each of many points: nested slices of about equally many of them.
#
# The box is cut along its first input into slices that hold about equally many points, half way between neighbours,
# each slice along the second, and so on, until a cell holds a few; points in one cell share its volume. It takes a
# sort for each input, where counting by nearest neighbour takes over a hundred searches for each point.

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


#: Gauss–Legendre nodes a dimension for one input and for two. The paper has 15: enough for smooth functions, but with
#: 15 in one input the posterior of theta with a sum of trees is up to twice as wide as it should be, with 40 up to a
#: fourth, with 200 within 2 % (in ``examples.curved(0.5)``; a fifth, 3 % and 0 in Model 1)
LEGENDRE_NODES = {1: 200, 2: 15}
#: scrambled Sobol nodes for more than two inputs
SOBOL_NODES = 256
#: with more distinct points than this, their cells in two and more inputs are slices instead of counted
MOST_COUNTED = 20_000


class Rule(NamedTuple):
    """A quadrature rule: ``nodes`` (m, d) and ``weights`` (m,) that sum to one."""

    nodes: Array
    weights: Array


@runtime_checkable
class Domain(Protocol):
    """A region with a measure on it."""

    def check(self, x: Array) -> None:
        """Raise an error where ``x`` does not lie in the domain."""

    def rules(self, d: int) -> tuple[Rule, Rule | None]:
        """The quadrature rule, and a coarser one to estimate its error."""

    def volumes(self, x: Array) -> Array:
        """The share of the measure nearest to each row of ``x``; equal rows share theirs."""

    def bounds(self, d: int) -> tuple[Array, Array]:
        """Lower and upper corner, (d,) each."""


class Box:
    """The box between ``lower`` and ``upper`` with the uniform measure.

    Parameters
    ----------
    lower, upper
        The corners; a number stands for every input.
    nodes
        Gauss–Legendre nodes a dimension (one input, default 200; two, default 15) or the number of scrambled Sobol
        nodes (more inputs, default 256).

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.Box(0, 1)
    Box(0, 1)
    >>> box = oc.Box([0, 10], [1, 30], nodes=3)
    >>> rule, coarser = box.rules(2)
    >>> len(rule.nodes), len(coarser.nodes)
    (9, 4)
    >>> oc.Box(1, 0)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: Box(1, 0) is empty: every upper bound must exceed its lower bound
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike, nodes: int | None = None) -> None:
        self.lower = np.atleast_1d(as_floats(lower, "the lower corner of the box"))
        self.upper = np.atleast_1d(as_floats(upper, "the upper corner of the box"))
        self.nodes = nodes
        if self.lower.ndim > 1 or self.upper.ndim > 1:
            raise InputError("the corners of a box are numbers or one number an input")
        if not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all()):
            raise InputError("the corners of a box must be finite")
        if len({self.lower.size, self.upper.size} - {1}) > 1:
            raise InputError(
                f"Box({lower!r}, {upper!r}): the corners have {self.lower.size} and {self.upper.size} numbers"
            )
        if not np.all(self.lower < self.upper):
            raise InputError(f"Box({lower!r}, {upper!r}) is empty: every upper bound must exceed its lower bound")
        if nodes is not None and (not isinstance(nodes, int | np.integer) or nodes < 2):
            raise InputError(f"nodes={nodes}: a quadrature rule needs a whole number of nodes, at least 2")

    def __repr__(self) -> str:
        corners = (", ".join(f"{value:g}" for value in corner) for corner in (self.lower, self.upper))
        return "Box({}, {})".format(*(text if "," not in text else f"[{text}]" for text in corners))

    def bounds(self, d: int) -> tuple[Array, Array]:
        """Lower and upper corner, (d,) each.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.Box(0, [1, 5]).bounds(2)
        (array([0., 0.]), array([1., 5.]))
        """
        for corner in (self.lower, self.upper):
            if corner.size not in (1, d):
                raise InputError(f"the box has {corner.size} dimensions but x has {d} inputs")
        return np.broadcast_to(self.lower, d).copy(), np.broadcast_to(self.upper, d).copy()

    def check(self, x: Array) -> None:
        """Raise an error where a row of ``x`` lies outside of the box.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.Box(0, 1).check(np.array([[0.5], [1.5]]))
        Traceback (most recent call last):
            ...
        orthocal.errors.InputError: 1 of 2 rows of x lie outside the domain Box(0, 1), the first is row 1, x
            = [1.5]: widen the domain or leave these rows out
        """
        lower, upper = self.bounds(x.shape[1])
        # numbers that were once single precision may miss a corner by rounding
        room = 1e-6 * (upper - lower)
        rows = np.flatnonzero(((x < lower - room) | (x > upper + room)).any(axis=1))
        if rows.size:
            raise InputError(
                f"{rows.size} of {len(x)} rows of x lie outside the domain {self!r}, the first is row {rows[0]}, "
                f"x = {x[rows[0]].tolist()}: widen the domain or leave these rows out"
            )

    def rules(self, d: int) -> tuple[Rule, Rule | None]:
        """The quadrature rule for d inputs, and a coarser one to estimate its error.

        Examples
        --------
        >>> import orthocal as oc
        >>> rule, coarser = oc.Box(0, 2).rules(1)
        >>> len(rule.nodes), len(coarser.nodes)
        (200, 100)
        >>> print(round(rule.weights @ rule.nodes[:, 0] ** 2, 3))
        1.333
        """
        if d <= 2:
            count = self.legendre_nodes(d)
            return self._legendre(d, count), self._legendre(d, (count + 1) // 2)
        fine = self.sobol(d, self.nodes or SOBOL_NODES)
        half = (len(fine.nodes) + 1) // 2
        # the first half of a Sobol sequence is itself one
        return fine, Rule(fine.nodes[:half], np.full(half, 1.0 / half))

    def legendre_nodes(self, d: int) -> int:
        """Gauss–Legendre nodes an input, for one input or two.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.Box(0, 1).legendre_nodes(1), oc.Box(0, 1).legendre_nodes(2), oc.Box(0, 1, nodes=30).legendre_nodes(2)
        (200, 15, 30)
        """
        return self.nodes or LEGENDRE_NODES[d]

    def volumes(self, x: Array) -> Array:
        """The share of the box nearest to each row of ``x``, (n,); equal rows share theirs.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.Box(0, 1).volumes(np.array([[0.1], [0.3], [0.9], [0.9]]))
        array([0.2, 0.4, 0.2, 0.2])
        """
        rows, (place,) = unique_rows(x)
        if x.shape[1] == 1:
            shares = self._cells(rows)
        elif len(rows) <= MOST_COUNTED:
            shares = self._counted_cells(rows)
        else:
            shares = cell_volumes(rows, *self.bounds(x.shape[1]))
        return (shares / np.bincount(place))[place]

    def _legendre(self, d: int, count: int) -> Rule:
        lower, upper = self.bounds(d)
        points, weights = np.polynomial.legendre.leggauss(count)
        grids = np.meshgrid(*[(points + 1) / 2] * d, indexing="ij")
        shares = np.meshgrid(*[weights / 2] * d, indexing="ij")
        unit = np.stack([grid.ravel() for grid in grids], axis=1)
        return Rule(lower + unit * (upper - lower), np.prod(shares, axis=0).ravel())

    def sobol(self, d: int, count: int) -> Rule:
        """Scrambled Sobol nodes: of two counts, the nodes of the smaller begin those of the larger.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> few, many = oc.Box(0, 1).sobol(3, 8), oc.Box(0, 1).sobol(3, 16)
        >>> few.nodes.shape, np.array_equal(few.nodes, many.nodes[:8])
        ((8, 3), True)
        """
        lower, upper = self.bounds(d)
        # a fixed seed: the rule belongs to the problem, not to the run
        points = qmc.Sobol(d, rng=np.random.default_rng(0)).random_base2(int(np.ceil(np.log2(count))))
        return Rule(lower + points[:count] * (upper - lower), np.full(count, 1.0 / count))

    def _cells(self, rows: Array) -> Array:
        """Lengths of the Voronoi cells of sorted distinct points, clipped to the box."""
        lower, upper = self.bounds(1)
        middles = np.clip((rows[1:, 0] + rows[:-1, 0]) / 2, lower, upper)
        return np.diff(np.concatenate([lower, middles, upper])) / (upper - lower)

    def _counted_cells(self, rows: Array) -> Array:
        """Volumes of the Voronoi cells, by counting Sobol points by nearest neighbour."""
        lower, upper = self.bounds(rows.shape[1])
        count = max(2**14, 128 * len(rows))
        points = self.sobol(rows.shape[1], count).nodes
        _, nearest = cKDTree((rows - lower) / (upper - lower)).query((points - lower) / (upper - lower))
        return np.bincount(nearest, minlength=len(rows)) / count


class Points:
    """Any measure, given by its points, for instance bins and their areas: ∫ h dP_x = sum_r w_r h(x_r).

    Parameters
    ----------
    nodes
        (m, d). Where inputs are categorical, so are the same columns of the nodes.
    weights
        (m,), not negative; they are scaled to sum to one. Without them all nodes weigh the same.

    Examples
    --------
    >>> import orthocal as oc
    >>> domain = oc.Points([[0.5], [1.5], [3.0]], weights=[1, 1, 2])
    >>> domain, domain.weights
    (Points(3 nodes), array([0.25, 0.25, 0.5 ]))
    """

    def __init__(self, nodes: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.nodes, _, self.labels = labelled_inputs(nodes, None, None, "nodes")
        count = len(self.nodes)
        self.weights = np.ones(count) if weights is None else as_floats(weights, "weights")
        if self.weights.shape != (count,):
            raise InputError(f"there are {count} nodes but weights has shape {self.weights.shape}: give one a node")
        if not (np.isfinite(self.nodes).all() and np.isfinite(self.weights).all()):
            raise InputError("nodes and weights must be finite")
        if (self.weights < 0).any() or self.weights.sum() <= 0:
            raise InputError("weights must not be negative, and not all zero")
        self.weights = self.weights / self.weights.sum()

    def __repr__(self) -> str:
        return f"Points({len(self.nodes)} nodes)"

    def check(self, x: Array) -> None:
        """Raise an error where ``x`` has not the columns of the nodes.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.Points([[0.5], [1.5]]).check(np.zeros((4, 2)))
        Traceback (most recent call last):
            ...
        orthocal.errors.InputError: the nodes have 1 dimensions but x has 2 inputs
        """
        if self.nodes.shape[1] != x.shape[1]:
            raise InputError(f"the nodes have {self.nodes.shape[1]} dimensions but x has {x.shape[1]} inputs")

    def bounds(self, d: int) -> tuple[Array, Array]:
        """The smallest and the largest value of each input, (d,) each.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.Points([[0.0, 2.0], [1.0, 5.0]]).bounds(2)
        (array([0., 2.]), array([1., 5.]))
        """
        return self.nodes.min(axis=0), self.nodes.max(axis=0)

    def rules(self, d: int) -> tuple[Rule, Rule | None]:
        """The nodes and weights themselves, and no coarser rule.

        Examples
        --------
        >>> import orthocal as oc
        >>> rule, coarser = oc.Points([[0.5], [1.5]]).rules(1)
        >>> rule.weights, coarser
        (array([0.5, 0.5]), None)
        """
        return Rule(self.nodes, self.weights), None

    def volumes(self, x: Array) -> Array:
        """The share of the measure nearest to each row of ``x``, (n,); equal rows share theirs.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.Points([[0.0], [1.0], [2.0], [3.0]]).volumes(np.array([[0.2], [2.6]]))
        array([0.5, 0.5])
        """
        rows, (place,) = unique_rows(x)
        spread = np.ptp(self.nodes, axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        _, nearest = cKDTree(rows / scale).query(self.nodes / scale)
        shares = np.bincount(nearest, weights=self.weights, minlength=len(rows))
        return (shares / np.bincount(place))[place]


# How well nodes and weights integrate the products of gradients, Q_jl = <g_j, g_l>.

#: where half the nodes change Q by more than this, twice as many say how good all of them are
LARGE = 0.01


def rule_error(domain: Domain, d: int, gram: Array, gram_of: Callable[[Rule], Array]) -> float | None:
    """The relative error of Q, (p, p), by the rule of the domain; None where it has no other.

    It is at most what half the nodes change it by. Where that is much it says little: a rule that is exact for the
    highest wave among the gradients may be of no use with half the nodes.
    """
    rule, coarse = domain.rules(d)
    if coarse is None:
        return None
    error = quadrature_error(gram, gram_of(coarse))
    if error < LARGE or not isinstance(domain, Box):
        return error
    finer = Box(domain.lower, domain.upper, 2 * round(len(rule.nodes) ** (1 / d if d <= 2 else 1)))
    return min(error, quadrature_error(gram, gram_of(finer.rules(d)[0])))


def bounding_box(x: Array) -> Box:
    lower, upper = x.min(axis=0), x.max(axis=0)
    if (lower == upper).any():
        column = int(np.flatnonzero(lower == upper)[0])
        raise InputError(f"input {column + 1} of x is constant: give the domain as oc.Box(lower, upper)")
    return Box(lower, upper)

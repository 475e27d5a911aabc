"""Where the data are: which part of a domain has none nearby, and how far from them a point lies.

Along each input, the gaps between neighbouring data are compared with each other: a gap that is much wider than the
others is a hole, and so is the room beyond the last data. In several inputs, the distance to the nearest data is also
compared with that in a design that fills the data's box. ``docs/limits.md`` has the rates of false alarms.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import gammaln

from ...arrays import Array, BoolArray, unique_rows
from ..record import Record

#: a hole is wider than so many typical gaps of evenly spaced data, and as many more where they are scattered at random
END_GAPS, INNER_GAPS = (2.0, 2.5), (3.0, 4.0)
#: gaps whose sd is this share of their mean, the largest left out, count as random
RANDOM_SPREAD = 0.7
#: data closer than this share of their width are one value; in several inputs, one cell
SAME_VALUE, SAME_CELL = 0.01, 0.05
#: an input that was never varied: points farther from its value than this share of the domain's width are far
CONSTANT_REACH = 0.1
#: with fewer values along an input, its gaps are levels that were chosen
FEWEST_VALUES = 6
#: a part of the domain that is no hole of its own
SMALL_SHARE = 0.05
#: a bias that is no Gaussian process: the share of the data's width that stands for its length-scale, as in KO's prior
USUAL_LENGTH = 0.3


class Spacing(NamedTuple):
    """The data along one input: their distinct values, and from what width on a gap inside or beyond is a hole."""

    values: Array
    inner: float
    end: float

    @classmethod
    def of(cls, column: Array, d: int, width: float) -> Spacing:
        low, high = column.min(), column.max()
        if low == high:
            return cls(np.array([low]), np.inf, CONSTANT_REACH * width)
        step = SAME_VALUE * (high - low)
        values = low + step * np.unique(np.round((column - low) / step))
        gaps = np.diff(values)
        others = np.delete(gaps, gaps.argmax()) if len(gaps) > 1 else gaps
        # the gap in which half of the way along the others lies, but not less than the mean of all
        ordered = np.sort(others)
        typical = max(ordered[np.searchsorted(np.cumsum(ordered), 0.5 * others.sum())], gaps.mean())
        spread = others.std(ddof=1) / others.mean() if len(others) > 1 else 0.0
        # with more inputs, more gaps are looked at
        random = min(1.0, spread / RANDOM_SPREAD)
        inner, end = (least + random * (more + np.log(d)) for least, more in (INNER_GAPS, END_GAPS))
        return cls(values, typical * inner if len(values) >= FEWEST_VALUES else np.inf, typical * end)

    def holes(self, lower: float, upper: float) -> Iterator[tuple[float, float]]:
        """The holes between lower and upper, from where to where."""
        if len(self.values) == 1:
            return
        if self.values[0] - lower > self.end:
            yield lower, float(self.values[0])
        for k in np.flatnonzero(np.diff(self.values) > self.inner):
            yield float(self.values[k]), float(self.values[k + 1])
        if upper - self.values[-1] > self.end:
            yield float(self.values[-1]), upper

    def far(self, column: Array) -> BoolArray:
        """Which points lie in a hole between the data, or so far beyond them."""
        low, high = self.values[0], self.values[-1]
        found = (low - column > self.end) | (column - high > self.end)
        for left, right in self.holes(low, high):
            found |= (left < column) & (column < right)
        return np.asarray(found)


class Coverage:
    """The data x (n, d), one of ``looks`` such sets; inputs that are constant have the domain's ``width``, (d,)."""

    def __init__(self, x: Array, width: Array, looks: int = 1) -> None:
        d = x.shape[1]
        own = np.ptp(x, axis=0)
        self.unit = np.where(own > 0, own, np.where(width > 0, width, 1.0))
        self.spacings = [Spacing.of(column, looks * d, one) for column, one in zip(x.T, self.unit, strict=True)]
        self._x = np.unique(x, axis=0)
        # an input that was never varied is said by itself
        self._varied = own > 0
        d = int(self._varied.sum())
        cells = len(np.unique(np.floor((x - x.min(axis=0)) / (SAME_CELL * self.unit)), axis=0))
        # log volume of the ball of radius one; in a design that fills the box, a ball of this radius holds one point
        ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1)
        self._radius = (2.5 + 2.0 / d) * np.exp(-(np.log(cells) + ball) / d) if d > 1 else np.inf

    def distance(self, points: Array, unit: Array) -> Array:
        """min_i |(x - x_i) / unit|, (m,)."""
        if not self._x.shape[1]:
            return np.zeros(len(points))
        return np.asarray(cKDTree(self._x / unit).query(points / unit)[0])

    def remote(self, points: Array) -> BoolArray:
        """Which points are farther from any data than those of a design that fills the data's box."""
        if not np.isfinite(self._radius):
            return np.zeros(len(points), dtype=bool)
        unit = np.where(self._varied, self.unit, np.inf)
        return np.asarray(self.distance(points, unit) > self._radius)

    def far(self, points: Array) -> BoolArray:
        """Which points lie far from the data, (m,)."""
        found = self.remote(points)
        for spacing, column in zip(self.spacings, points.T, strict=True):
            found = found | spacing.far(column)
        return found


class Hole(NamedTuple):
    """A hole along one input: between which values, and its share of the domain; of which labels, where some have any.

    ``labels`` (l,) are the numbers that these have in x.
    """

    name: str
    lower: float
    upper: float
    share: float
    labels: tuple[float, ...] = ()
    words: str = ""


class LabelCombination(NamedTuple):
    """The domain of one combination of labels: its nodes (m,), its labels, what they are called, and its data."""

    nodes: BoolArray
    labels: tuple[float, ...]
    words: str
    data: Coverage | None


class DomainCoverage:
    """How the data of a record cover its domain; those of each combination of labels are looked at by themselves."""

    def __init__(self, record: Record) -> None:
        self._record = record
        lower, upper = record.constant("domain")
        self._numeric = record.labels.numeric(len(lower))
        self.names = tuple(record.input_names[j] for j in self._numeric)
        self.lower, self.upper = lower[self._numeric], upper[self._numeric]
        self._nodes, self._weights = record.constant("nodes"), record.constant("node_weights")
        self.data = Coverage(record.x[:, self._numeric], self.upper - self.lower)

    @cached_property
    def parts(self) -> list[LabelCombination]:
        """Of each combination of labels; the whole domain where no input has any."""
        labels, x = self._record.labels, self._record.x
        if not labels:
            return [LabelCombination(np.ones(len(self._nodes), dtype=bool), (), "", self.data)]
        found, columns = [], list(labels.columns)
        combinations, (place,) = unique_rows(self._nodes[:, columns])
        for k, values in enumerate(combinations):
            own = (x[:, columns] == values).all(axis=1)
            each = zip(labels.each, values, strict=True)
            words = ", ".join(f"{one.name} {one.text(value)}" for one, value in each)
            width = self.upper - self.lower
            data = Coverage(x[own][:, self._numeric], width, len(combinations)) if own.any() else None
            found.append(LabelCombination(place == k, tuple(values.tolist()), words, data))
        return found

    @cached_property
    def holes(self) -> list[Hole]:
        """The holes along the inputs."""
        return [hole for part in self.parts if part.data is not None for hole in self._holes(part, part.data)]

    def _holes(self, part: LabelCombination, data: Coverage) -> Iterator[Hole]:
        whole = float(self._weights[part.nodes].sum())
        for j, (name, spacing) in enumerate(zip(self.names, data.spacings, strict=True)):
            for low, high in spacing.holes(float(self.lower[j]), float(self.upper[j])):
                column = self._nodes[:, self._numeric[j]]
                share = float(self._weights[part.nodes & (column >= low) & (column <= high)].sum())
                if share >= SMALL_SHARE * whole:
                    yield Hole(name, low, high, share, part.labels, part.words)

    @cached_property
    def unseen(self) -> list[tuple[str, float]]:
        """Combinations of labels without any data, and their shares of the domain."""
        return [
            (part.words, float(self._weights[part.nodes].sum()))
            for part in self.parts
            if part.data is None and self._weights[part.nodes].any()
        ]

    def empty(self) -> float:
        """Share of the domain's weight without data nearby."""
        inside = np.zeros(len(self._nodes), dtype=bool)
        for part in self.parts:
            if part.data is None:
                inside |= part.nodes
            else:
                inside[part.nodes] |= part.data.remote(self._nodes[part.nodes][:, self._numeric])
        for hole in self.holes:
            column = self._nodes[:, self._record.input_names.index(hole.name)]
            own = next(part.nodes for part in self.parts if part.labels == hole.labels)
            inside |= own & (column >= hole.lower) & (column <= hole.upper)
        return float(self._weights[inside].sum())


class Distances(NamedTuple):
    """How far points lie from the data: ``values`` in ``unit``, ``widths`` in widths of the data, which are ``far``."""

    values: Array
    unit: str
    widths: Array
    far: BoolArray

    @property
    def words(self) -> str | None:
        """What to say where points are far out."""
        if not self.far.any():
            return None
        return (
            f"{self.far.sum()} of {len(self.far)} points of x_new lie far from the data, up to "
            f"{self.widths[self.far].max():.2g} times their width: there the bias is an extrapolation, and the "
            "intervals hold only if it goes on as its prior says; see the variables distance and far"
        )


def distances(record: Record, points: Array) -> Distances:
    """min_i |(x - x_i) / l| with the bias's length-scales l, the shortest of all outcomes.

    No length-scale counts as longer than the data are wide. Where the bias is no Gaussian process, l is 0.3 of that
    width.
    """
    covered, labels, d = DomainCoverage(record), record.labels, points.shape[1]
    data, numeric = covered.data, labels.numeric(d)
    given = [[one["lengthscale"][j] for j in numeric] for one in record.run_facts.bias if _has_lengths(one, d)]
    unit, words = USUAL_LENGTH * data.unit, f"times {USUAL_LENGTH:g} of the data's width"
    if given:
        unit, words = np.minimum(np.min(given, axis=0), data.unit), "length-scales of the bias"
    found = Distances(np.zeros(len(points)), words, np.zeros(len(points)), np.ones(len(points), dtype=bool))
    columns = list(labels.columns)
    for part in covered.parts:
        own = (points[:, columns] == part.labels).all(axis=1)
        # the data of other labels are all that is known of one that has none
        at, nearest = points[own][:, numeric], part.data or data
        found.values[own], found.widths[own] = nearest.distance(at, unit), nearest.distance(at, data.unit)
        found.far[own] = part.data is None or part.data.far(at)
    return found


def _has_lengths(findings: dict[str, Any], d: int) -> bool:
    """Whether a bias has a length-scale for each input."""
    return len(findings.get("lengthscale", [])) == d

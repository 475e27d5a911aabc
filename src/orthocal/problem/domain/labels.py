"""Domains with categorical inputs: a measure on the numeric inputs times one on the labels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from ...arrays import Array, as_floats, unique_rows
from ...errors import InputError
from ..data.field_data import FieldData
from ..data.labels import LabelColumn, LabelColumns, listed
from .domain import Box, Domain, Points, Rule, bounding_box

#: nodes of all labels together that a box aims at where their number is not given, and the fewest of each label: in
#: one input, in each of two, in more. The errors of the labels' rules are independent where the bias is rough, and
#: their mean is what counts
ALL_NODES, FEWEST = 1200, {1: 40, 2: 8}
FEWEST_SOBOL, MOST_SOBOL = 64, 256
MOST_LEGENDRE = {1: 200, 2: 20}
#: combinations of labels that a rule is made of
MOST_COMBINATIONS = 200


class Labels:
    """P_x = the measure of ``within`` on the numeric inputs times ``weights`` on the labels of the categorical ones.

    Parameters
    ----------
    within
        ``oc.Box`` or ``oc.Points`` of the numeric inputs alone, in their order; None is the smallest box around them.
    weights
        Name of a categorical input -> label -> its weight, positive; they are scaled to sum to one. Inputs that are not
        named have labels that weigh the same.

    Examples
    --------
    >>> import pandas as pd, orthocal as oc
    >>> from scipy import stats
    >>> x = pd.DataFrame({"length": [0.1, 0.4, 0.6, 0.9], "machine": ["old", "new", "old", "new"]})
    >>> mostly_new = oc.Labels(oc.Box(0, 1, nodes=10), {"machine": {"new": 3, "old": 1}})
    >>> def simulator(x, theta):
    ...     return theta[0] * x[:, 0]
    >>> slope = {"slope": stats.norm(0, 10)}
    >>> problem = oc.Problem(x, [0.1, 0.4, 0.6, 1.0], simulator, slope, mostly_new, noise_cov=0.01)
    >>> nodes, weights = problem.rule
    >>> print(round(weights[nodes[:, 1] == problem.categories["machine"]["new"]].sum(), 3))
    0.75
    """

    def __init__(
        self,
        within: Domain | None = None,
        weights: Mapping[str, Mapping[Any, float]] | None = None,
    ) -> None:
        if within is not None and not isinstance(within, Domain):
            raise InputError(f"Labels(within={within!r}): give oc.Box(lower, upper) or oc.Points(nodes, weights)")
        self.within = within
        self.weights = {str(name): dict(own) for name, own in (weights or {}).items()}

    def __repr__(self) -> str:
        return f"Labels({self.within!r}, {self.weights!r})"

    def of(self, column: LabelColumn) -> Array:
        """The labels' shares of the measure, in their order.

        Examples
        --------
        >>> import pandas as pd, orthocal as oc
        >>> from scipy import stats
        >>> x = pd.DataFrame({"length": [0.1, 0.4, 0.6, 0.9], "machine": ["old", "new", "old", "new"]})
        >>> slope = {"slope": stats.norm(0, 10)}
        >>> y = 2 * x["length"]
        >>> problem = oc.Problem(x, y, lambda x, theta: theta[0] * x[:, 0], slope, noise_cov=0.01)
        >>> oc.Labels(weights={"machine": {"new": 3, "old": 1}}).of(problem.data.labels.each[0])
        array([0.75, 0.25])
        """
        given = {str(label): weight for label, weight in self.weights.get(column.name, {}).items()}
        if not given:
            return np.full(len(column.labels), 1 / len(column.labels))
        if set(given) != set(column.labels):
            raise InputError(
                f"weights of {column.name!r} are given for {listed(list(given))}: give one for each of "
                f"{listed(column.labels)}"
            )
        weights = as_floats([given[label] for label in column.labels], f"weights of {column.name!r}")
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError(f"weights of {column.name!r} must be positive numbers")
        return np.asarray(weights / weights.sum())


class LabelDomain:
    """The domain of ``Labels`` for known categorical inputs: a rule of the numeric inputs for every combination."""

    def __init__(self, within: Domain | None, numeric: int, labels: LabelColumns, shares: list[Array]) -> None:
        """``numeric`` inputs are not categorical; ``shares`` of the measure are those of each input's labels."""
        self.labels = labels
        count = int(np.prod([len(own) for own in shares]))
        if count > MOST_COMBINATIONS:
            raise InputError(
                f"the categorical inputs {', '.join(one.name for one in labels.each)} have {count} combinations of "
                f"labels, more than the {MOST_COMBINATIONS} that a domain can be made of: give it as "
                "oc.Points(nodes, weights)"
            )
        self.within = _with_nodes(within, numeric, count) if isinstance(within, Box) else within
        self._values = np.array(list(product(*(one.values for one in labels.each))))
        self._shares = np.array([np.prod(own) for own in product(*shares)])

    def __repr__(self) -> str:
        each = [f"{one.name} ({listed(one.labels)})" for one in self.labels.each]
        return " x ".join([*([] if self.within is None else [repr(self.within)]), *each])

    def check(self, x: Array) -> None:
        if self.within is not None:
            self.within.check(self._numeric(x))

    def bounds(self, d: int) -> tuple[Array, Array]:
        lower, upper = np.zeros(d), np.zeros(d)
        for one in self.labels.each:
            lower[one.column], upper[one.column] = min(one.values), max(one.values)
        numeric = self.labels.numeric(d)
        if self.within is not None:
            lower[numeric], upper[numeric] = self.within.bounds(len(numeric))
        return lower, upper

    def rules(self, d: int) -> tuple[Rule, Rule | None]:
        if self.within is None:
            return self._tensor(Rule(np.empty((1, 0)), np.ones(1)), d), None
        fine, coarse = self.within.rules(len(self.labels.numeric(d)))
        return self._tensor(fine, d), None if coarse is None else self._tensor(coarse, d)

    def volumes(self, x: Array) -> Array:
        """Those of the points of each combination of labels; what has no data is nearest to all alike."""
        found, missing = np.zeros(len(x)), 0.0
        row = np.zeros(x.shape[1])
        for values, share in zip(self._values, self._shares, strict=True):
            row[list(self.labels.columns)] = values
            own = self.labels.same(x, row)
            if own.any():
                found[own] = share * self._within_volumes(x[own])
            else:
                missing += share
        return found if missing == 0 else np.asarray(found + missing * self._within_volumes(x))

    def _within_volumes(self, x: Array) -> Array:
        return np.full(len(x), 1 / len(x)) if self.within is None else self.within.volumes(self._numeric(x))

    def _numeric(self, x: Array) -> Array:
        return x[:, self.labels.numeric(x.shape[1])]

    def _tensor(self, rule: Rule, d: int) -> Rule:
        """The nodes of the numeric inputs once for each combination of labels, one combination after the other."""
        count = len(rule.nodes)
        nodes = np.empty((len(self._values) * count, d))
        nodes[:, self.labels.numeric(d)] = np.tile(rule.nodes, (len(self._values), 1))
        nodes[:, list(self.labels.columns)] = np.repeat(self._values, count, axis=0)
        return Rule(nodes, np.kron(self._shares, rule.weights))


class LabelPoints(Points):
    """The user's nodes, with labels in some of their columns."""

    def __init__(self, points: Points, labels: LabelColumns) -> None:
        super().__init__(_nodes_of(points, labels), points.weights)
        self._labels = labels

    def volumes(self, x: Array) -> Array:
        rows, (place,) = unique_rows(x)
        spread = np.ptp(self.nodes, axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        tree = cKDTree(self._labels.apart(rows, scale))
        nearest = tree.query(self._labels.apart(self.nodes, scale))[1]
        shares = np.bincount(nearest, weights=self.weights, minlength=len(rows))
        return np.asarray((shares / np.bincount(place))[place])


def domain_of(given: Domain | Labels | None, data: FieldData) -> Domain:
    """The domain of the data, from what the user gave: by default the smallest box around the numeric inputs.

    A box, and points with as many columns as there are numeric inputs, are of these; all labels weigh the same.
    """
    if not data.labels:
        if isinstance(given, Labels):
            raise InputError(
                "domain=oc.Labels(...) is for categorical inputs, and x has none: give oc.Box(lower, upper), or say "
                "which inputs hold labels, categorical=[...]"
            )
        _require_numbers(given)
        return bounding_box(data.x) if given is None else given
    numeric = data.labels.numeric(data.d)
    if isinstance(given, LabelDomain):
        if given.labels != data.labels:
            raise InputError(f"the domain {given!r} is of other labels: give oc.Labels(within, weights)")
        return given
    if isinstance(given, Points) and given.nodes.shape[1] == data.d:
        return LabelPoints(given, data.labels)
    chosen = given if isinstance(given, Labels) else Labels(given)
    for name in set(chosen.weights) - {one.name for one in data.labels.each}:
        raise InputError(
            f"weights names {name!r}, which is no categorical input: these are "
            f"{', '.join(one.name for one in data.labels.each)}"
        )
    _require_numbers(chosen.within)
    within = chosen.within
    if not len(numeric):
        if within is not None:
            raise InputError(f"domain={within!r}: x has categorical inputs alone, leave the domain out")
    elif within is None:
        within = bounding_box(data.x[:, numeric])
    elif isinstance(within, Box) and max(within.lower.size, within.upper.size) == data.d > len(numeric):
        raise InputError(
            f"{within!r} has {data.d} dimensions, but {len(numeric)} of the inputs are numbers: give the corners for "
            f"{', '.join(data.input_names[j] for j in numeric)} alone"
        )
    return LabelDomain(within, len(numeric), data.labels, [chosen.of(one) for one in data.labels.each])


def _with_nodes(box: Box, d: int, count: int) -> Box:
    """The box with a number of nodes for each of ``count`` combinations of labels, where it has none of its own."""
    if box.nodes is not None or count == 1:
        return box
    each = ALL_NODES / count
    nodes = (
        int(np.clip(each ** (1 / d), FEWEST[d], MOST_LEGENDRE[d]))
        if d <= 2
        else int(np.clip(each, FEWEST_SOBOL, MOST_SOBOL))
    )
    return Box(box.lower, box.upper, nodes)


def _nodes_of(points: Points, labels: LabelColumns) -> Array:
    """The nodes with the numbers that the labels have in x."""
    nodes = points.nodes.copy()
    for one in labels.each:
        own = points.labels.of(one.column)
        if own is not None:
            texts = [own.text(value) for value in nodes[:, one.column]]
            nodes[:, one.column] = one.read(texts, "nodes")
    for own in points.labels.each:
        if labels.of(own.column) is None:
            raise InputError(f"column {own.column + 1} of the nodes holds labels, but that of x numbers: give numbers")
    labels.check(nodes, "nodes")
    return nodes


def _require_numbers(domain: Domain | None) -> None:
    if isinstance(domain, Points) and domain.labels:
        raise InputError(
            f"the nodes have labels, {listed(domain.labels.each[0].labels)}, where x has numbers: give numbers"
        )

"""Trees for an experiment with few data: what these leave open of the bias is left open.

Usual trees have five points a leaf, so that ten points leave one cut, cuts between the data only, so that a gap is
bridged by a constant, and leaves whose size is a guess from the range of the data. With the usual weights such an
experiment has as much say in theta as one of a thousand points, and theta would be known too well. Here cuts are
anywhere in the domain, a leaf without data has its prior, and the size of the leaves is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..arrays import Array
from ..bias import BART, BiasPrior, SoftBART
from ..bias.base import BiasSampler, Setting
from ..bias.tree_size import WithOffset, with_size
from ..problem.problem import Problem

#: data beyond which trees are the usual ones
MOST_POINTS = 200
#: lower and upper end of each numeric input; they come first where labels have become columns
Corners = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class SmallDataBART(BART):
    """Trees with cuts anywhere between the corners of the domain, whose size is drawn with them."""

    corners: Corners = ()

    def cut_points(self, setting: Setting) -> list[Array]:
        wide = [np.linspace(*ends, self.cuts + 2)[1:-1] if ends[1] > ends[0] else np.empty(0) for ends in self.corners]
        return [*wide, *super().cut_points(setting)[len(wide) :]]

    def prepare(self, setting: Setting) -> BiasSampler:
        return _sized(super().prepare(setting), setting)


@dataclass(frozen=True)
class SmallDataSoftBART(SoftBART):
    """The same with smooth trees, whose leaves have data of their own only in part in any case."""

    corners: Corners = ()

    def range_of_cuts(self, setting: Setting) -> tuple[Array, Array]:
        low, width = super().range_of_cuts(setting)
        for j, (lower, upper) in enumerate(self.corners):
            low[j], width[j] = lower, upper - lower
        return low, width

    def prepare(self, setting: Setting) -> BiasSampler:
        return _sized(super().prepare(setting), setting)


def _sized(trees: BiasSampler, setting: Setting) -> BiasSampler:
    assert isinstance(trees, WithOffset)
    return with_size(trees, setting.noise_var)


def small_data_prior(prior: BiasPrior, problem: Problem) -> BiasPrior:
    """The prior of an experiment's bias: trees as they are for few data, and any other as it is."""
    data = problem.data
    if not isinstance(prior, BART | SoftBART) or data.without_inputs or problem.unmerged.data.n > MOST_POINTS:
        return prior
    ends = np.stack(problem.domain.bounds(data.d), axis=1)[data.labels.numeric(data.d)]
    corners = tuple((float(lower), float(upper)) for lower, upper in ends)
    chosen = {one.name: getattr(prior, one.name) for one in fields(BART if isinstance(prior, BART) else SoftBART)}
    if isinstance(prior, BART):
        return SmallDataBART(**{**chosen, "least": 0}, corners=corners)
    return SmallDataSoftBART(**chosen, corners=corners)

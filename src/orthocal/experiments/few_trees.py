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
from ..bias import BART, BiasPrior
from ..bias.base import BiasSampler, Setting
from ..bias.offset import GriddedOffset
from ..bias.tree_size import with_size
from ..problem.problem import Problem
from .integrated_scales import MOST_POINTS


@dataclass(frozen=True)
class FewTrees(BART):
    """Trees with cuts anywhere between the corners of the domain, whose size is drawn with them."""

    corners: tuple[tuple[float, float], ...] = ()

    def cut_points(self, setting: Setting) -> list[Array]:
        if len(self.corners) != setting.x.shape[1]:
            # labels have become columns
            return super().cut_points(setting)
        return [np.linspace(*ends, self.cuts + 2)[1:-1] for ends in self.corners]

    def prepare(self, setting: Setting) -> BiasSampler:
        trees = super().prepare(setting)
        assert isinstance(trees, GriddedOffset)
        return with_size(trees, setting.noise_var)


def for_few(prior: BiasPrior, problem: Problem) -> BiasPrior:
    """The prior of an experiment's bias: trees as they are for few data, and any other as it is."""
    data = problem.data
    if not isinstance(prior, BART) or data.without_inputs or problem.unmerged.data.n > MOST_POINTS:
        return prior
    chosen = {one.name: getattr(prior, one.name) for one in fields(BART)}
    corners = np.stack(problem.domain.bounds(data.d), axis=1)
    return FewTrees(**{**chosen, "least": 0}, corners=tuple((float(a), float(b)) for a, b in corners))

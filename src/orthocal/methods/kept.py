"""The draws that a run keeps, in the outcomes' units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..problem.problem import Problem
from .base import Draws
from .covariance import padded_ends


class KeptDraw(NamedTuple):
    """One draw of all chains.

    Every method has theta (c, p), the simulator and the bias at the data (c, n, q), whitened, and statistics (c,). What
    only some have: ``records`` for predictions, and ``others``, fields of ``Draws`` as they are, both (c, ...).
    """

    theta: Array
    model: Array
    bias: Array
    stats: dict[str, Array]
    records: dict[str, Array]
    others: dict[str, Array]

    @staticmethod
    def of(
        theta: Array,
        model: Array,
        bias: Array,
        stats: dict[str, Array],
        records: dict[str, Array] | None = None,
        others: dict[str, Array] | None = None,
    ) -> KeptDraw:
        """With copies of what may be a part of larger arrays."""
        return KeptDraw(theta.copy(), model.copy(), bias.copy(), stats, records or {}, others or {})


def finished(problem: Problem, kept: list[KeptDraw], **rest: Any) -> Draws:
    """All of them; ``rest`` are the fields of ``Draws`` that do not belong to single draws."""
    own: dict[str, Any] = {name: stacked([draw.others[name] for draw in kept]) for name in kept[0].others}
    return Draws(
        theta=stacked([draw.theta for draw in kept]),
        model=problem.unwhiten(stacked([draw.model for draw in kept])),
        bias=problem.unwhiten(stacked([draw.bias for draw in kept])),
        stats={name: stacked([draw.stats[name] for draw in kept]) for name in kept[0].stats},
        bias_state={name: stacked(padded_ends([draw.records[name] for draw in kept])) for name in kept[0].records},
        **own,
        **rest,
    )


def stacked(values: list[Array]) -> Array:
    """Values (c, ...) of single draws as (c, s, ...)."""
    whole = np.empty((len(values[0]), len(values), *values[0].shape[1:]), values[0].dtype)
    for s, value in enumerate(values):
        whole[:, s] = value
    return whole

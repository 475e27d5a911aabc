"""The draws that a run keeps, in the outcomes' units."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..problem.problem import Problem
from .base import Draws, Plan
from .covariance import padded_ends


class Kept:
    """Arrays for the kept draws, filled one draw at a time.

    ``add`` takes what every method has: theta (c, p), the simulator and the bias at the data (c, n, q), whitened, and
    statistics (c,). What only some have goes to ``add_record`` (for predictions) and ``add_other``, as it is.
    """

    def __init__(self, plan: Plan, problem: Problem) -> None:
        c, s = len(plan.rngs), plan.draws
        (n, q), p = problem.data.y.shape, problem.parameters.p
        self._problem = problem
        self._theta = np.empty((c, s, p))
        self._model, self._bias = np.empty((c, s, n, q)), np.empty((c, s, n, q))
        self._stats: dict[str, list[Array]] = {}
        self._records: dict[str, list[Array]] = {}
        self._others: dict[str, list[Array]] = {}

    def add(self, s: int, theta: Array, model: Array, bias: Array, **stats: Array) -> None:
        self._theta[:, s], self._model[:, s], self._bias[:, s] = theta, model, bias
        for name, value in stats.items():
            self._stats.setdefault(name, []).append(value)

    def add_record(self, records: dict[str, Array]) -> None:
        """What predictions need of this draw, name -> (c, ...)."""
        for name, value in records.items():
            self._records.setdefault(name, []).append(value)

    def add_other(self, **values: Array) -> None:
        """Fields of ``Draws`` that only some methods have, (c, ...)."""
        for name, value in values.items():
            self._others.setdefault(name, []).append(value)

    def finish(self, **rest: Any) -> Draws:
        """All of it; ``rest`` are the fields of ``Draws`` that do not belong to single draws."""
        others: dict[str, Any] = {name: np.stack(values, axis=1) for name, values in self._others.items()}
        return Draws(
            theta=self._theta,
            model=self._problem.unwhiten(self._model),
            bias=self._problem.unwhiten(self._bias),
            stats={name: np.stack(values, axis=1) for name, values in self._stats.items()},
            bias_state={name: np.stack(padded_ends(values), axis=1) for name, values in self._records.items()},
            **others,
            **rest,
        )

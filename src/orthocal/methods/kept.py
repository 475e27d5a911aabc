"""The draws that a run keeps, in the outcomes' units."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..bias import BiasSampler
from ..kernels.base import StepInfo, ThetaState
from ..kernels.memory import memory
from ..problem import Problem
from ..projection import ProjectedBias, Projection
from .base import Draws, Plan
from .covariance import BiasCovariance, padded_ends


class Kept:
    """Arrays for the kept draws, filled one draw at a time."""

    def __init__(self, plan: Plan, problem: Problem) -> None:
        c, s = len(plan.rngs), plan.draws
        (n, q), p = problem.data.y.shape, problem.parameters.p
        self._problem = problem
        self._theta, self._coefficient = np.empty((c, s, p)), np.empty((c, s, p))
        self._before, self._centre = np.empty((c, s, p)), np.empty((c, s, p))
        self._model, self._bias = np.empty((c, s, n, q)), np.empty((c, s, n, q))
        self._stats: dict[str, Array] = {
            name: np.empty((c, s)) for name in ("lp", "acceptance_rate", "orthogonality_error")
        }
        self._records: dict[str, list[Array]] = {}
        self._noise_cov: list[Array] = []

    def add(
        self,
        s: int,
        state: ThetaState,
        projected: ProjectedBias,
        info: StepInfo,
        records: dict[str, Array],
        noise_cov: Array | None,
    ) -> None:
        self._theta[:, s], self._coefficient[:, s] = state.theta, projected.coefficient
        self._model[:, s], self._bias[:, s] = state.model, projected.bias
        self._stats["lp"][:, s] = info.log_density
        self._stats["acceptance_rate"][:, s] = info.acceptance
        self._stats["orthogonality_error"][:, s] = projected.error
        for name, value in records.items():
            self._records.setdefault(name, []).append(value)
        if noise_cov is not None:
            self._noise_cov.append(noise_cov)

    def add_step(self, s: int, before: Array, centre: Array) -> None:
        """Where the theta step started and where it aimed at, (c, p)."""
        self._before[:, s], self._centre[:, s] = before, centre

    def memory(self) -> float:
        """How much of its start the theta step remembers."""
        return memory(*(part.reshape(-1, part.shape[-1]) for part in (self._before, self._theta, self._centre)))

    def finish(
        self,
        samplers: list[BiasSampler],
        projection: Projection,
        covariance: BiasCovariance | None,
        notes: dict[str, Any],
    ) -> Draws:
        reference: dict[str, Array] = {}
        if covariance is not None and covariance.records:
            reference = {**covariance.records, "constraint": covariance.factor.T @ projection.constraint}
        return Draws(
            theta=self._theta,
            model=self._problem.unwhiten(self._model),
            bias=self._problem.unwhiten(self._bias),
            stats=self._stats,
            projection="finite" if projection.finite else "functional",
            coefficient=self._coefficient,
            directions=projection.directions.reshape(*self._bias.shape[2:], -1) if projection.finite else None,
            noise_cov=np.stack(self._noise_cov, axis=1) if self._noise_cov else None,
            bias_state={name: np.stack(padded_ends(values), axis=1) for name, values in self._records.items()},
            reference_state=reference,
            samplers=samplers,
            notes=notes,
        )

"""Calibration as if the simulator were right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...arrays import Array
from ...kernels import Kernel, Laplace
from ...kernels.base import Conditional, Rngs, StepInfo, ThetaModel, ThetaState, require_kernel
from ...problem.noise.noise import NoiseSource
from ...problem.preflight.cost import RunCost
from ...problem.problem import Problem
from ..base import CHAIN_COST, Draws, ListedMethod, Plan, listed
from ..chain_noise import ChainNoise
from ..sampled_noise import NoiseDraws
from ..stored_draws import KeptDraw, finished
from .gradients import Gradients
from .marginal import MarginalRun


@listed
@dataclass(frozen=True)
class NoBias(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, noise).

    Where the simulator is wrong, the answer is confidently wrong: it depends on where the data happen to lie, and the
    interval knows of the noise only. Where the noise is unknown, it grows to what the simulator leaves. The best
    fit is ``problem.theta_tilde``.

    Parameters
    ----------
    kernel
        How theta is drawn, see ``orthocal.kernels``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> settings = {"draws": 100, "chains": 2, "seed": 1, "progress": False}
    >>> none = oc.calibrate(problem, oc.methods.NoBias(), **settings)
    >>> gp = oc.calibrate(problem, "gp", **settings)
    >>> bool(none.theta.std() < gp.theta.std())
    True
    """

    kind: ClassVar[str] = "none"
    cost: ClassVar[RunCost | None] = CHAIN_COST

    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        return MarginalRun(problem, plan, self.kernel, _NoiseAlone(problem, plan)).draws()

    def words(self) -> str:
        return (
            "The simulator is taken as right and all that it misses as noise: where it is wrong, theta is confidently "
            "wrong, because its interval knows of the noise only."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "kernel": self.kernel.describe()}


class _NoiseAlone:
    """No bias: the noise, where it is unknown, drawn given theta, so that theta is a Student t if f is linear."""

    drawn: Any
    gradients: Gradients | None = None

    def __init__(self, problem: Problem, plan: Plan) -> None:
        noise, self._problem, chains = problem.noise, problem, len(plan.rngs)
        y = problem.whiten(problem.complete_y)
        self._noise = ChainNoise(problem) if noise.source is NoiseSource.UNKNOWN else None
        self.drawn = None if self._noise is None else self._noise.start(chains)
        self._no_sizes = np.zeros((chains, 0, y.shape[1]))
        # errors that are correlated between rows are one Gaussian of all cells
        shape = y.shape if noise.rows is None else (1, y.size)
        if noise.rows is not None:
            precision = noise.joint_precision.reshape(1, y.size, y.size)
        else:
            precision = noise.precision if noise.coupled else np.einsum("nii->ni", noise.precision)
        self._model = ThetaModel(
            problem.parameters,
            lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)).reshape(-1, *shape),
            lambda theta: problem.whitened_gradient(problem.data.x, theta).reshape(*shape, -1),
            precision,
        )
        self._offset = np.broadcast_to(y.reshape(shape), (chains, *shape))

    @property
    def model(self) -> ThetaModel:
        if self._noise is None:
            return self._model
        rows = self._noise.of_observed(self.drawn).mean(axis=0)
        return self._model._replace(precision=np.broadcast_to(rows, (self._offset.shape[1], *rows.shape[1:])))

    def target(self) -> Conditional:
        rows = None if self._noise is None else self._noise.of_observed(self.drawn)
        return Conditional(self._model, self._offset, rows)

    def move(self, rngs: Rngs, state: ThetaState) -> None:
        if self._noise is not None:
            errors = self._noise.completed(rngs, self._offset - state.model, self.drawn)
            self.drawn = self._noise.draw(rngs, self.drawn, errors, self._no_sizes)

    def kept(self, rngs: Rngs, state: ThetaState, info: StepInfo) -> KeptDraw:
        model, noise = state.model.reshape(len(rngs), *self._problem.data.y.shape), dict[str, Array]()
        stats = {"lp": info.log_density, "acceptance_rate": info.acceptance}
        if self._noise is not None:
            own = NoiseDraws(self._problem.noise)
            noise = own.fields(own.precision(self._noise.covariance(self.drawn)))
        return KeptDraw.of(state.theta, model, np.zeros_like(model), stats, None, noise)

    def finished(self, kept: list[KeptDraw]) -> Draws:
        return finished(self._problem, kept)

"""Calibration with the bias integrated out: theta from its marginal posterior, then the bias given theta.

In whitened coordinates y - f(theta) ~ N(0, S), and S^-1 = M'M makes that least squares again: the theta kernel of the
projected methods does it, with M f in the place of f. What a method adds to the log density of theta (a constraint
that depends on theta) is its ``extra``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..arrays import Array, matrix_root
from ..bias import GP
from ..bias.outcomes import OutcomesBias
from ..errors import InputError
from ..kernels import Kernel
from ..kernels.base import Conditional, ThetaModel, at_middle, dispersed_starts
from ..kernels.laplace import LaplaceTuning, inner_steps, linearised
from ..kernels.warmup import Changing, run_chains
from ..problem.noise.noise import NoiseSource
from ..problem.problem import Problem
from .base import Draws, Plan, RunNotes
from .fitted import fitted_bias
from .gradients import Gradients
from .kept import KeptDraw, finished

#: beyond this many cells of y, the matrices of the marginal likelihood do not fit; with sampled noise there are new
#: ones in every iteration, which cost their number cubed
MOST_CELLS, MOST_SAMPLED = 6_000, 1_000


@runtime_checkable
class WithFunctions(Protocol):
    """A kernel whose tuning holds functions: without them it can be stored, and they can be made anew."""

    def plain(self, tuning: Any) -> Any:
        """The tuning without them."""

    def with_functions(self, plain: Any, model: ThetaModel) -> Any:
        """The tuning again."""


class DrawnBias(NamedTuple):
    """A bias at the data points, (c, n, q), whitened; what predictions need of it, and statistics (c,)."""

    bias: Array
    records: dict[str, Array]
    stats: dict[str, Array]


class Marginal(NamedTuple):
    """Theta's marginal posterior.

    Attributes
    ----------
    evidence
        S^-1, (n q, n q), the precision of the residual; None where it is that of the noise.
    draw_bias
        The bias given generators, theta (c, p) and the residual (c, n, q), whitened.
    extra
        What comes to the log density of theta beside prior and likelihood, (c,), from theta (c, p) and the residual
        (c, n, q), whitened.
    proposal_rows
        For a pivot (p,): further rows C, (r, n q), such that C (y - f) ~ N(0, I) describes ``extra`` near it.
    kernel
        A theta step that knows ``extra`` better than the one that was asked for, for fixed noise: from the root M of
        the evidence, M'M = S^-1.
    gradients
        What ``extra`` and ``draw_bias`` remember of other theta, where they do.
    """

    evidence: Array | None
    draw_bias: Callable[[list[np.random.Generator], Array, Array], DrawnBias]
    extra: Callable[[Array, Array], Array] | None = None
    proposal_rows: Callable[[Array], Array] | None = None
    kernel: Callable[[Array], Kernel] | None = None
    gradients: Gradients | None = None


#: the marginal posterior given the rows' precision (n, q, q), or given that of the problem's noise
MarginalAt = Callable[[Array | None], Marginal]


def gaussian_bias(problem: Problem, prior: GP, nodes: Array) -> OutcomesBias:
    """The Gaussian processes of the bias, with hyperparameters from the residual at theta_tilde."""
    data = problem.data
    sampled = problem.noise.source is NoiseSource.SAMPLED
    most = MOST_SAMPLED if sampled else MOST_CELLS
    if data.y.size > most:
        when = " in every iteration, where the noise is sampled" if sampled else ""
        raise InputError(
            f"y has {data.y.size} cells, and with the bias integrated out a matrix of that size would be needed{when}: "
            f"this method takes at most {most}; use a projected method, or thin the data"
        )
    return fitted_bias(prior, problem, nodes)


class FixedNoiseRun(Changing):
    """Draws of theta from its marginal posterior and of the bias given theta."""

    changing = ("_state", "_plain_tuning", "_marginal.gradients.known")

    def __init__(
        self, problem: Problem, plan: Plan, marginal: Marginal, bias: OutcomesBias | None, kernel: Kernel
    ) -> None:
        self._problem, self._plan, self._marginal, self._bias = problem, plan, marginal, bias
        self._root = None if marginal.evidence is None else matrix_root(marginal.evidence)
        self._y = problem.whiten(problem.complete_y)
        cells = self._y.size
        if self._root is None:
            noise = problem.noise
            precision = noise.precision if noise.coupled else np.einsum("nii->ni", noise.precision)
            self._model = ThetaModel(problem.parameters, self._simulated, self._gradient, precision)
            self._offset = self._y
        else:
            # the simulator itself comes along, with weight zero: the bias is drawn from it
            rows = np.vstack([self._root, np.eye(cells)])
            weights = np.concatenate([np.ones(len(self._root)), np.zeros(cells)])
            self._model = self._combined(rows, weights)
            if marginal.extra is not None:
                own = marginal.extra
                self._model = self._model._replace(extra=lambda theta, model: own(theta, self._residual(model)))
            self._offset = np.concatenate([self._root @ self._y.ravel(), np.zeros(cells)])[:, None]
        tilde = problem.theta_tilde
        self._kernel = kernel
        if marginal.kernel is not None and self._root is not None:
            self._kernel = marginal.kernel(self._root)
        self._tuning = self._tuned(self._kernel.tune(self._model, tilde), tilde)
        starts = dispersed_starts(self._model, tilde, plan.rngs, getattr(self._tuning, "root", None))
        self._state = self._model.state(starts)
        self._target = Conditional(self._model, np.broadcast_to(self._offset, (len(starts), *self._offset.shape)))

    def _residual(self, model: Array) -> Array:
        """y - f, (c, n, q), from the model's outcomes: f, or combinations of it with f at their end."""
        return np.asarray(self._y - model.reshape(len(model), -1)[:, -self._y.size :].reshape(-1, *self._y.shape))

    def _simulated(self, theta: Array) -> Array:
        problem = self._problem
        return problem.whiten(problem.simulator.batch(problem.data.x, theta))

    def _gradient(self, theta: Array) -> Array:
        return self._problem.whitened_gradient(self._problem.data.x, theta)

    def _combined(self, rows: Array, weights: Array) -> ThetaModel:
        """The model with the outcomes ``rows`` f, (r, 1)."""
        return ThetaModel(
            self._problem.parameters,
            lambda theta: (self._simulated(theta).reshape(len(theta), -1) @ rows.T)[:, :, None],
            lambda theta: (rows @ self._gradient(theta).reshape(rows.shape[1], -1))[:, None],
            weights[:, None],
        )

    def draws(self, fields: dict[str, Any]) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        samplers = [] if self._bias is None else self._bias.samplers
        notes = RunNotes(inner_steps(self._tuning), bias=tuple(sampler.findings() for sampler in samplers))
        return finished(self._problem, kept, samplers=samplers, notes=notes, **fields)

    def step(self) -> tuple[Array, Array]:
        self._state, self._info = self._kernel.step(self._plan.rngs, self._tuning, self._state, self._target)
        return self._state.theta, self._info.tuned

    def adapt(self, *window: Array) -> None:
        thetas, acceptance = window
        tuning = self._kernel.adapt(self._tuning, self._model, thetas, acceptance)
        self._tuning = at_middle(lambda pivot: self._tuned(tuning, pivot), self._problem.parameters, thetas)

    @property
    def _plain_tuning(self) -> Any:
        """Without functions, which cannot be stored."""
        return self._kernel.plain(self._tuning) if isinstance(self._kernel, WithFunctions) else self._tuning

    @_plain_tuning.setter
    def _plain_tuning(self, plain: Any) -> None:
        own = self._kernel
        self._tuning = own.with_functions(plain, self._model) if isinstance(own, WithFunctions) else plain

    def kept(self) -> KeptDraw:
        theta, residual = self._state.theta, self._residual(self._state.model)
        drawn = self._marginal.draw_bias(self._plan.rngs, theta, residual)
        stats = {"lp": self._info.log_density, "acceptance_rate": self._info.acceptance, **drawn.stats}
        return KeptDraw.of(theta, self._y - residual, drawn.bias, stats, drawn.records)

    def _tuned(self, tuning: Any, pivot: Array) -> Any:
        """The tuning with the proposal that knows ``extra``: its centre does not depend on the draws."""
        if self._marginal.proposal_rows is None or self._root is None or not isinstance(tuning, LaplaceTuning):
            return tuning
        rows = np.vstack([self._root, self._marginal.proposal_rows(pivot)])
        own = linearised(self._combined(rows, np.ones(len(rows))), pivot)
        centre = own.centre + own.gain @ (rows @ self._y.ravel())
        gain = np.zeros((len(pivot), len(self._offset)))
        return tuning._replace(centre=centre, gain=gain, lower=own.lower, root=own.root, refinements=0)

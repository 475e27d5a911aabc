"""Theta from its marginal posterior, the noise and the bias integrated out: the sampler of none, ko, sgasp and ogp.

Size and length-scales of the bias, and the noise where it is unknown, are one of m points v_i that are alike where the
simulator is linear: c_i p(y | v_i) is the same for all, c_i their prior and their spacing. Each iteration:

    (1) theta ~ Pi(theta | v, y), by the theta kernel;
    (2) v from proposals of other points, accepted with the ratio of p(y | theta, v_i) / p(y | v_i), so that the target
        is c_i p(y | theta, v_i) pi(theta);
    (3) for a draw that is kept, b ~ Pi(b | theta, v, y).

What is given is no unknown: then there is one point. A method states its ``Law``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_solve

from ...arrays import Array, BoolArray
from ...bias import GP
from ...errors import InputError
from ...kernels import Kernel
from ...kernels.base import Conditional, Extra, Rngs, StepInfo, ThetaModel, ThetaState, dispersed_starts
from ...kernels.laplace import inner_steps
from ...kernels.warmup import Stepper, run_chains
from ...problem.problem import Problem
from ..base import Draws, Plan
from ..bias_samplers import fitted_bias
from ..joint.gaussian_model import GaussianModel
from ..joint.regress import Linear
from ..joint.regress_integrated import (
    Asked,
    hyperparameter_points,
    hyperparameter_records,
    hyperparameter_samplers,
    hyperparameter_stats,
)
from ..joint.unknowns import Unknowns
from ..sampled_noise import NoiseDraws
from ..stored_draws import KeptDraw, finished
from .delayed import Delayed
from .gradients import Gradients

#: proposals of another point in each iteration
PROPOSALS = 2
#: beyond this many cells of y, the matrices do not fit; each point has its own
MOST_CELLS, MOST_INTEGRATED = 6_000, 2_000
#: numbers of the matrices of all points
MOST_NUMBERS = 100_000_000


class Law:
    """What a point v says: y - f(theta) ~ N(0, C), with a bias that theta does not constrain.

    Cells of y are in units of their outcome's noise sd; what stands at a missing one has no effect.
    """

    def __init__(self, model: GaussianModel, v: Array, cells: BoolArray) -> None:
        self.v, self._model, self._cells, self._given = v, model, cells, model.law(v)
        lower = self._given.lower
        self.precision = np.zeros((len(cells), len(cells)))
        self.precision[np.ix_(cells, cells)] = cho_solve((lower, True), np.eye(len(lower)))
        self.log_size = float(np.log(np.diag(lower)).sum())

    def log_gaussian(self, left: Array) -> float:
        """log p(y | theta, v) up to a constant and ``extra``, for what theta leaves of y, (n q,)."""
        return -self.log_size - 0.5 * float(left @ self.precision @ left)

    def extra(self, theta: Array, left: Array) -> float:
        """What comes to it where theta (p,) is in more than f."""
        return 0.0

    def drawn_bias(self, rng: np.random.Generator, theta: Array, left: Array) -> tuple[Array, dict[str, float]]:
        """b at data and nodes, (n + m, q), whitened, and statistics of it."""
        white = self._model.drawn_white(rng, self._given, left[self._cells])
        return self._model.values(self._given, white), {}


class Beside(Protocol):
    """What is drawn beside theta: the noise alone, or a point and the bias.

    Attributes
    ----------
    drawn
        It, for all chains, as what checkpoints can store.
    gradients
        What is remembered of other theta, where that is something.
    """

    drawn: Any
    gradients: Gradients | None

    @property
    def model(self) -> ThetaModel:
        """Prior and likelihood of theta, for what is typical."""

    def target(self) -> Conditional:
        """Pi(theta | y) of each chain, given what was drawn last."""

    def move(self, rngs: Rngs, state: ThetaState) -> None:
        """Draw it given theta."""

    def kept(self, rngs: Rngs, state: ThetaState, info: StepInfo) -> KeptDraw:
        """The draw with all that belongs to it."""

    def finished(self, kept: list[KeptDraw]) -> Draws:
        """All draws."""


class MarginalRun(Stepper[KeptDraw]):
    """One run of the sampler."""

    changing = ("_state", "_plain_tuning", "_beside.drawn", "_beside.gradients.known")

    def __init__(self, problem: Problem, plan: Plan, kernel: Kernel, beside: Beside) -> None:
        self._plan, self._kernel, self._beside = plan, kernel, beside
        model, tilde = beside.model, problem.theta_tilde
        self._tuning = kernel.tune(model, tilde)
        self._state = model.state(dispersed_starts(model, tilde, plan.rngs, getattr(self._tuning, "root", None)))

    def draws(self, **fields: Any) -> Draws:
        """All of them; ``fields`` are further ones of ``Draws``."""
        found = self._beside.finished(run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs))
        return replace(found, notes=replace(found.notes, inner_steps=inner_steps(self._tuning)), **fields)

    def step(self) -> tuple[Array, Array]:
        rngs, target = self._plan.rngs, self._beside.target()
        self._state, self._info = self._kernel.step(rngs, self._tuning, self._state, target)
        self._beside.move(rngs, self._state)
        return self._state.theta, self._info.tuned

    def adapt(self, *window: Array) -> None:
        self._tuning = self._kernel.adapt(self._tuning, self._beside.model, *window)

    def kept(self) -> KeptDraw:
        return self._beside.kept(self._plan.rngs, self._state, self._info)

    @property
    def _plain_tuning(self) -> Any:
        """Without functions, which cannot be stored."""
        return self._kernel.plain(self._tuning) if isinstance(self._kernel, Delayed) else self._tuning

    @_plain_tuning.setter
    def _plain_tuning(self, plain: Any) -> None:
        own = self._kernel
        self._tuning = own.with_functions(plain, self._beside.model) if isinstance(own, Delayed) else plain


class WithBias:
    """A Gaussian-process bias: the number of each chain's point. The theta step sees all cells of y as one row.

    Parameters
    ----------
    nodes
        Where the bias is wanted beside the data.
    law
        What a point says.
    pull
        As ``GaussianModel`` has it.
    extra
        Of the laws of all chains and y in units of the noise, (n q,), where theta is in more than f.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        prior: GP,
        nodes: Array | None = None,
        law: Callable[[GaussianModel, Array, BoolArray], Law] = Law,
        pull: float | None = None,
        extra: Callable[[list[Law], Array], Extra] | None = None,
        gradients: Gradients | None = None,
    ) -> None:
        self._problem, self._make, self._extra, self.gradients = problem, law, extra, gradients
        nowhere = problem.data.x[:0]
        nodes = nowhere if nodes is None else nodes
        prior, self._unknowns = _process(problem, prior)
        linear = _without_projection(problem, nodes)
        check_cells(problem, self._unknowns)
        asked = Asked(problem, prior, _without_projection(problem, nowhere), self._unknowns, nowhere, pull=pull)
        points = hyperparameter_points(asked)
        most = max(1, MOST_NUMBERS // (5 * (problem.data.y.size + len(nodes) * problem.data.q) ** 2))
        self._points = points[np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).astype(int))]
        self._gaussian = GaussianModel(problem, linear, prior, self._unknowns, nodes, pull=pull)
        self._evidence, typical = np.zeros(len(self._points)), 0
        if len(self._points) > 1:
            free = asked.model()
            self._evidence = np.concatenate([free.evidence(v[None]) for v in self._points])
            typical = int(np.argmax(self._evidence))
        self._samplers = hyperparameter_samplers(problem, prior, nodes)
        self._laws: dict[int, Law] = {}
        self._sd, self._cells = np.sqrt(np.diag(problem.noise.cov)), problem.data.observed.ravel()
        self._y = (problem.complete_y / self._sd).ravel()
        self.drawn = np.array([rng.integers(len(self._points)) for rng in plan.rngs])
        self._stacked = self.drawn - 1
        # without a constant that merged rows do not have
        self._size = self._law(typical).log_size
        self.model = ThetaModel(problem.parameters, self._simulated, self._gradient, self._law(typical).precision[None])
        self.typical = Conditional(
            self.model, self._y[None, None], None, None if extra is None else extra([self._law(typical)], self._y)
        )

    def _simulated(self, theta: Array) -> Array:
        values = self._problem.simulator.batch(self._problem.data.x, theta)
        return np.asarray((values / self._sd).reshape(len(theta), 1, -1))

    def _gradient(self, theta: Array) -> Array:
        slopes = self._problem.simulator.gradient(self._problem.data.x, theta)
        return np.asarray((slopes / self._sd[:, None]).reshape(1, -1, len(theta)))

    def _law(self, number: int) -> Law:
        if number not in self._laws:
            self._laws[number] = self._make(self._gaussian, self._points[number], self._cells)
        return self._laws[number]

    def target(self) -> Conditional:
        laws = [self._law(number) for number in self.drawn]
        # with one point, its precision is the model's
        if len(self._points) > 1 and (self._stacked != self.drawn).any():
            self._precision, self._stacked = np.stack([law.precision[None] for law in laws]), self.drawn
        return Conditional(
            self.model,
            np.broadcast_to(self._y, (len(laws), 1, len(self._y))),
            self._precision if len(self._points) > 1 else None,
            None if self._extra is None else self._extra(laws, self._y),
        )

    def move(self, rngs: Rngs, state: ThetaState) -> None:
        if len(self._points) > 1:
            each = zip(rngs, self.drawn, state.theta, self._y - state.model[:, 0], strict=True)
            self.drawn = np.array([self._moved(*one) for one in each])

    def _moved(self, rng: np.random.Generator, number: int, theta: Array, left: Array) -> int:
        """The number of a chain's point after some proposals.

        What a Gaussian does not accept needs no ``extra``: first one decides, then the other (Christen and Fox 2005).
        """
        now = self._law(number).log_gaussian(left) - self._evidence[number]
        rest = self._law(number).extra(theta, left)
        for other in rng.integers(len(self._points), size=PROPOSALS):
            then = (law := self._law(other)).log_gaussian(left) - self._evidence[other]
            if np.log1p(-rng.random()) < then - now and np.log1p(-rng.random()) < law.extra(theta, left) - rest:
                number, now, rest = other, then, law.extra(theta, left)
        return number

    def kept(self, rngs: Rngs, state: ThetaState, info: StepInfo) -> KeptDraw:
        problem, unknowns = self._problem, self._unknowns
        laws, left = [self._law(number) for number in self.drawn], self._y - state.model[:, 0]
        found = [law.drawn_bias(*one) for law, *one in zip(laws, rngs, state.theta, left, strict=True)]
        bias, vectors = np.stack([values for values, _ in found]), self._points[self.drawn]
        lp = problem.parameters.log_prior(state.theta) + [
            law.log_gaussian(own) + self._size + law.extra(one, own) + unknowns.log_prior(law.v)
            for law, one, own in zip(laws, state.theta, left, strict=True)
        ]
        stats = {name: np.array([one[name] for _, one in found]) for name in found[0][1]}
        log_values = np.stack([unknowns.log_sd_and_lengths(v) for v in vectors])
        records, noise = hyperparameter_records(self._samplers, log_values, bias), dict[str, Array]()
        if unknowns.noise:
            own = NoiseDraws(problem.noise)
            noise = own.fields(own.precision(np.stack([unknowns.noise_cov(v) for v in vectors])))
        model = problem.whiten(state.model.reshape(len(laws), *problem.data.y.shape) * self._sd)
        stats = {"lp": lp, "acceptance_rate": info.acceptance, **stats}
        return KeptDraw.of(state.theta, model, bias[:, : problem.data.n], stats, records, noise)

    def finished(self, kept: list[KeptDraw]) -> Draws:
        found = finished(self._problem, kept, samplers=[sampler for sampler, _ in self._samplers])
        log_values = [found.bias_state[f"hyperparameters_{k}"] for k in range(self._problem.data.q)]
        stats = hyperparameter_stats(self._samplers, self._unknowns, np.stack(log_values, axis=2), chain=True)
        notes = replace(found.notes, bias=tuple(sampler.findings() for sampler in found.samplers))
        return replace(found, stats=found.stats | stats, notes=notes)


def check_cells(problem: Problem, unknowns: Unknowns) -> None:
    """That the matrices of all cells fit."""
    cells, free = problem.data.y.size, bool(unknowns.free.any())
    if cells > (most := MOST_INTEGRATED if free else MOST_CELLS):
        which = " for each of several noises and biases" if free else ""
        raise InputError(
            f"y has {cells} cells, and with the bias integrated out a matrix of that size would be needed{which}: "
            f"this method takes at most {most}; use a projected method, or thin the data"
        )


def _process(problem: Problem, prior: GP) -> tuple[GP, Unknowns]:
    """The prior and what is unknown of it; outputs without inputs have a number each, at one point."""
    if not problem.data.without_inputs:
        return prior, Unknowns.of(problem, prior)
    each = fitted_bias(prior, problem, problem.data.x[:0]).processes
    prior = GP(sd=1.0, lengthscale=1.0)
    return prior, replace(Unknowns.of(problem, prior), given_sd=np.log([process.sd for process in each]))


def _without_projection(problem: Problem, nodes: Array) -> Linear:
    """The simulator around theta_tilde, for a bias that nothing is taken from; what has no effect keeps its prior."""
    gradient, spread = problem.gradient_at_data, problem.parameters.spread
    pull, precision = problem.parameters.gaussian_part(problem.parameters.clipped(problem.theta_tilde, 1e-6))
    own = np.diag(precision)
    precision = precision + np.diag(np.where(own > 0, 0.0, 1 / spread**2))
    length = np.sqrt(np.sum(gradient**2, axis=(0, 1)))
    unit = np.where(length > 0, 1 / np.where(length > 0, length, 1.0), spread)
    at_nodes = np.zeros((len(nodes), *gradient.shape[1:]))
    return Linear(gradient, at_nodes, np.zeros((len(unit), len(nodes) * problem.data.q)), pull, precision, unit)

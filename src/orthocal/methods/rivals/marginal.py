"""Calibration with the bias integrated out: theta from its marginal posterior, then the bias given theta.

In whitened coordinates y - f(theta) ~ N(0, S), and S^-1 = M'M makes that least squares again: the theta kernel of the
projected methods does it, with M f in the place of f. What a method adds to the log density of theta (a constraint
that depends on theta) is its ``extra``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array, matrix_root
from ...bias import GP
from ...bias.outcomes import OutcomesBias
from ...errors import InputError, NonFiniteError
from ...kernels import Kernel
from ...kernels.base import Conditional, StepInfo, ThetaModel, ThetaState, at_middle, dispersed_starts
from ...kernels.laplace import LaplaceTuning, inner_steps, linearised, with_precision
from ...kernels.warmup import Stepper, run_chains
from ...problem.noise.noise import NoiseSource
from ...problem.problem import Problem
from ..base import Draws, Plan, RunNotes
from ..bias_samplers import fitted_bias
from ..sampled_noise import noise_sampler
from ..stored_draws import KeptDraw, finished
from .delayed import Delayed

# The simulator's gradients at the nodes, each computed once, and what they say about its second derivatives.

#: gradients that are kept at least, and numbers that they may take
REMEMBERED, MOST_NUMBERS = 50, 20_000_000
#: gradients a coefficient that a regression needs
GRADIENTS_A_TERM = 4


class Gradients:
    """T df/dtheta at the nodes, (m, q, p), remembered for the thetas that were asked for last.

    What is ``known`` decides how second derivatives are found: it belongs to the state of a chain.
    """

    def __init__(self, problem: Problem, chains: int) -> None:
        self._problem = problem
        p = problem.parameters.p
        self._pairs = list(combinations_with_replacement(range(p), 2))
        size = len(problem.rule.nodes) * problem.data.q * p
        # the chains' own ones are never forgotten
        least = max(REMEMBERED, 4 * chains)
        wanted = max(least, 2 * GRADIENTS_A_TERM * (p + len(self._pairs)))
        self._most = max(least, min(wanted, MOST_NUMBERS // size))
        self.known: dict[bytes, tuple[Array, Array]] = {}
        self._ahead: dict[bytes, Array] = {}

    def ahead(self, theta: Array) -> None:
        """Of theta (c, p), which will be asked for next: the simulator may be called for all of them together."""
        if not self._problem.simulator.many_at_a_time:
            return
        missing = {one.tobytes(): one for one in theta if one.tobytes() not in self.known}
        if len(missing) > 1:
            found = self._problem.whitened_gradients(self._problem.rule.nodes, np.stack(list(missing.values())))
            self._ahead = dict(zip(missing, found, strict=True))

    def at(self, theta: Array) -> Array:
        """For theta (p,); NaN where the simulator fails."""
        key = theta.tobytes()
        found = self.known.pop(key, None)
        if found is None:
            ahead = self._ahead.pop(key, None)
            found = theta.copy(), self._called(theta) if ahead is None else ahead
        # the end of the line is for what was used last
        self.known[key] = found
        if len(self.known) > self._most:
            del self.known[next(iter(self.known))]
        return found[1]

    def _called(self, theta: Array) -> Array:
        try:
            return self._problem.whitened_gradient(self._problem.rule.nodes, theta)
        except NonFiniteError:
            return np.full((len(self._problem.rule.nodes), self._problem.data.q, len(theta)), np.nan)

    def second_derivative(self, theta: Array, along: Array, root: Array) -> tuple[Array, float] | None:
        """d2 <f, along> / dz2 at theta + root z, z = 0, for ``along`` (m, q) and ``root`` (p, p), with its error.

        By regression of the gradients that are known nearby on z and its products; None where they are too few.
        """
        others = [one for one in self.known.values() if np.isfinite(one[1][0, 0, 0]) and not np.all(one[0] == theta)]
        p, terms = len(theta), len(theta) + len(self._pairs)
        if len(others) < GRADIENTS_A_TERM * terms:
            return None
        z = np.linalg.solve(root, np.stack([one[0] - theta for one in others], axis=1)).T
        near = np.argsort(np.sum(z**2, axis=1), kind="stable")[: GRADIENTS_A_TERM * terms]
        gradients = np.stack([others[i][1] for i in near]) - self.at(theta)
        changes = np.einsum("smkp,mk->sp", gradients, along) @ root
        z = z[near]
        features = np.column_stack([z, *(z[:, i] * z[:, j] for i, j in self._pairs)])
        found, _, rank, _ = np.linalg.lstsq(features, changes, rcond=None)
        if rank < terms:
            return None
        error_var = np.sum((changes - features @ found) ** 2, axis=0).max() / (len(near) - terms)
        slope, spread = found[:p], np.linalg.inv(features.T @ features)[:p, :p].diagonal().max()
        # that of a function is symmetric
        lopsided = float(np.abs(slope - slope.T).max())
        return 0.5 * (slope + slope.T), float(np.sqrt(error_var * spread)) + 0.5 * lopsided


#: beyond this many cells of y, the matrices of the marginal likelihood do not fit; with sampled noise there are new
#: ones in every iteration, which cost their number cubed
MOST_CELLS, MOST_SAMPLED = 6_000, 1_000


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
    sampled = problem.noise.source is NoiseSource.UNKNOWN
    most = MOST_SAMPLED if sampled else MOST_CELLS
    if data.y.size > most:
        when = " in every iteration, where the noise is sampled" if sampled else ""
        raise InputError(
            f"y has {data.y.size} cells, and with the bias integrated out a matrix of that size would be needed{when}: "
            f"this method takes at most {most}; use a projected method, or thin the data"
        )
    return fitted_bias(prior, problem, nodes)


class FixedNoiseRun(Stepper[KeptDraw]):
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
        return self._kernel.plain(self._tuning) if isinstance(self._kernel, Delayed) else self._tuning

    @_plain_tuning.setter
    def _plain_tuning(self, plain: Any) -> None:
        own = self._kernel
        self._tuning = own.with_functions(plain, self._model) if isinstance(own, Delayed) else plain

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


# Theta from its marginal posterior while the noise covariance is an unknown too.
#
# Each iteration, chain by chain: (1) theta ~ Pi(theta | noise, y), with the bias integrated out; (2) b ~ Pi(b | theta,
# noise, y); (3) noise ~ Pi(noise | theta, b, y), its full conditional. Steps (1) and (2) together are one draw of theta
# and the bias, so only the noise remembers the last iteration.


def sample(
    problem: Problem, plan: Plan, at: MarginalAt, bias: OutcomesBias | None, kernel: Kernel, **fields: Any
) -> Draws:
    """Draw theta from its marginal posterior and the bias given theta; ``fields`` are further ones of ``Draws``."""
    if problem.noise.source is NoiseSource.UNKNOWN:
        return _MarginalRun(problem, plan, at, bias, kernel).draws(fields)
    return FixedNoiseRun(problem, plan, at(None), bias, kernel).draws(fields)


class _MarginalRun(Stepper[KeptDraw]):
    """One run of the sampler; each chain has its own noise, and with it its own marginal posterior of theta."""

    changing = ("_precision", "_tuning", "_states", "_gradients.known")

    def __init__(self, problem: Problem, plan: Plan, at: MarginalAt, bias: OutcomesBias | None, kernel: Kernel) -> None:
        self._problem, self._plan, self._at, self._bias, self._kernel = problem, plan, at, bias, kernel
        self._y = problem.whiten(problem.complete_y)
        self._noise = noise_sampler(problem.noise)
        self._precision = self._noise.start(len(plan.rngs))
        tilde = problem.theta_tilde
        rows = self._rows(self._precision[0])
        marginal = at(rows)
        self._gradients, typical = marginal.gradients, self._model(marginal, rows)
        self._tuning = kernel.tune(typical, tilde)
        self._states = [typical.state(one[None]) for one in dispersed_starts(typical, tilde, plan.rngs)]

    def draws(self, fields: dict[str, Any]) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        samplers = [] if self._bias is None else self._bias.samplers
        notes = RunNotes(inner_steps(self._tuning), bias=tuple(sampler.findings() for sampler in samplers))
        return finished(self._problem, kept, samplers=samplers, notes=notes, **fields)

    def step(self) -> tuple[Array, Array, Array]:
        each = [self._drawn(c) for c in range(len(self._states))]
        self._bias_drawn = [drawn for drawn, _ in each]
        infos = [info for _, info in each]
        self._acceptance = np.concatenate([info.acceptance for info in infos])
        self._density = np.concatenate([info.log_density for info in infos])
        errors = self._residual() - np.concatenate([drawn.bias for drawn in self._bias_drawn])
        errors = self._noise.completed(self._plan.rngs, errors, self._precision)
        self._precision = self._noise.draw(self._plan.rngs, errors)
        return self._theta(), np.concatenate([info.tuned for info in infos]), self._precision

    def adapt(self, *window: Array) -> None:
        thetas, acceptance, precision = window
        rows = self._rows(precision.mean(axis=(0, 1)))
        self._tuning = self._kernel.adapt(self._tuning, self._model(self._at(rows), rows), thetas, acceptance)

    def kept(self) -> KeptDraw:
        stats = {
            "lp": self._density,
            "acceptance_rate": self._acceptance,
            **_joined([d.stats for d in self._bias_drawn]),
        }
        bias = np.concatenate([drawn.bias for drawn in self._bias_drawn])
        records, others = _joined([drawn.records for drawn in self._bias_drawn]), self._noise.fields(self._precision)
        return KeptDraw.of(self._theta(), self._y - self._residual(), bias, stats, records, others)

    def _drawn(self, c: int) -> tuple[DrawnBias, StepInfo]:
        """Steps (1) and (2) of one chain: its bias, and how theta moved."""
        rows = self._rows(self._precision[c])
        marginal, rng = self._at(rows), self._plan.rngs[c]
        model = self._model(marginal, rows)
        # what was kept of the density is that of another noise
        state = self._states[c]._replace(log_prior=model.log_prior(self._states[c].theta, self._states[c].model))
        target = Conditional(model, self._y.reshape(1, *state.model.shape[1:]))
        self._states[c], info = self._kernel.step([rng], self._own_tuning(marginal, model), state, target)
        state = self._states[c]
        drawn = marginal.draw_bias([rng], state.theta, self._left(state))
        return drawn, info

    def _own_tuning(self, marginal: Marginal, model: ThetaModel) -> Any:
        """The tuning with a chain's own noise; where ``extra`` can be described by rows, with these."""
        tuning = self._tuning
        if not isinstance(tuning, LaplaceTuning):
            return tuning
        if marginal.proposal_rows is None:
            return with_precision(tuning, model)
        try:
            rows = marginal.proposal_rows(tuning.pivot)
        except NonFiniteError:
            # a simulator that fails at some node
            return with_precision(tuning, model)._replace(refinements=0)
        known = model._replace(precision=model.precision + rows.T @ rows)
        return with_precision(tuning, known)._replace(refinements=0)

    def _model(self, marginal: Marginal, rows: Array) -> ThetaModel:
        """Prior and likelihood of theta given the noise; with a bias, all cells are one row that S^-1 correlates."""
        problem = self._problem
        shape = self._y.shape if marginal.evidence is None else (1, self._y.size)
        model = ThetaModel(
            problem.parameters,
            lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)).reshape(-1, *shape),
            lambda theta: problem.whitened_gradient(problem.data.x, theta).reshape(*shape, -1),
            rows if marginal.evidence is None else marginal.evidence[None],
        )
        extra = marginal.extra
        if extra is None:
            return model
        return model._replace(extra=lambda theta, values: extra(theta, self._y - values.reshape(-1, *self._y.shape)))

    def _rows(self, precision: Array) -> Array:
        """What the observed cells of each row say for the precision of the noise, as its sampler has it, (n, q, q)."""
        n, q = self._y.shape
        return np.array(np.broadcast_to(self._noise.row_precision(precision[None])[0], (n, q, q)))

    def _theta(self) -> Array:
        return np.concatenate([state.theta for state in self._states])

    def _left(self, state: ThetaState) -> Array:
        """y - f of one chain, (1, n, q)."""
        return np.asarray(self._y - state.model.reshape(1, *self._y.shape))

    def _residual(self) -> Array:
        return np.concatenate([self._left(state) for state in self._states])


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Values of single chains, name -> (1, ...), as those of all."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

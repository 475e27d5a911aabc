"""The joint projection of several experiments: regress all of them, project on all of them, and tell them apart again.

theta(y_R) = argmin_t sum_e w_e ∫ |y_R,e - f_e(., t_e)|²_W dP_e, draw by draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from ..arrays import Array, IntArray
from ..emulators import Emulator
from ..errors import InputError
from ..methods import Method
from ..methods.base import Drawn, Draws, Plan, RunNotes, spread_rows
from ..methods.joint.closest import Closest
from ..methods.joint.emulator_draws import (
    Emulated,
    EmulatorDraws,
    bound_as,
    emulator_numbers,
    projected_on_draws,
    with_simulator,
)
from ..methods.joint.identifiable import outside_support, with_open_directions
from ..methods.joint.joint import Joint
from ..methods.joint.objective import domain_squares
from ..methods.joint.regress import Linear, Regressed
from ..methods.joint.weights import Weights, importance_weights
from ..methods.sampled_noise import NoiseDraws
from ..methods.stored_draws import AtData, at_data
from ..problem.fingerprint import digest
from ..problem.problem import Problem
from ..problem.simulator.emulator import DrawLike, EmulatorWithDraws, emulator_with_draws
from ..projection import ProjectionKind
from .arrowhead import RegressionPart
from .experiments import Experiments
from .pooled import Hyper, with_pooling
from .regression import JointRegression, regressed
from .stacked import ExperimentCells, Stacked, StackedSimulator

# Draws of the experiments' emulators, which stand together for all that is unknown about their simulators.
#
# The k-th draw of all experiments has the k-th of each emulator, and the other simulators as they are. Emulators of the
# same runs have the same draws, since their errors are the same in all experiments; others have seeds of their own.


class StackedDraws(Sequence[DrawLike]):
    """The cells of all experiments, with draws of their emulators in the place of these."""

    def __init__(self, stacked: Stacked, own: Mapping[str, EmulatorDraws]) -> None:
        self._stacked, self._own = stacked, own

    def __len__(self) -> int:
        return len(next(iter(self._own.values())).draws)

    @overload
    def __getitem__(self, number: int) -> DrawLike: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[DrawLike]: ...
    def __getitem__(self, number: int | slice) -> DrawLike | Sequence[DrawLike]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        parts = [self._drawn(name, cells, number) for name, cells in self._stacked.parts.items()]
        return StackedSimulator(parts, self._stacked.problem.parameters.p)

    def _drawn(self, name: str, cells: ExperimentCells, number: int) -> ExperimentCells:
        if name not in self._own:
            return cells
        return cells._replace(problem=with_simulator(cells.problem, self._own[name].simulator(number)))


def draws_of_each(problems: Mapping[str, Problem], plan: Plan) -> dict[str, EmulatorDraws]:
    """The draws of the emulator of each experiment that has one with draws, as a plan asks for them."""
    if not plan.emulator_draws:
        return {}
    found: dict[str, EmulatorDraws] = {}
    seeds: dict[str, int] = {}
    made: dict[int, Sequence[DrawLike]] = {}
    for name, problem in problems.items():
        emulator = emulator_with_draws(problem.simulator.emulator)
        if emulator is None or problem.emulator_error:
            continue
        seed = seeds.setdefault(_learnt_from(emulator), plan.emulator_seed + len(seeds))
        own = EmulatorDraws.of(problem, plan._replace(emulator_seed=seed), made)
        if own is not None:
            found[name] = own
    return found


def _learnt_from(emulator: EmulatorWithDraws) -> str:
    """The runs, where it has them: each table of a problem file has an emulator of its own, of runs that may be one."""
    if not isinstance(emulator, Emulator):
        return str(id(emulator))
    output = emulator.runs.output
    return digest(emulator.runs.theta, *(output if isinstance(output, tuple) else (output,)))


class Emulators(NamedTuple):
    """The draws of the emulators of several experiments.

    Attributes
    ----------
    own
        Those of each experiment that has any.
    whole
        Those of all of them as draws of the simulator of the stacked problem; None where there are none.
    coefficients
        What takes errors at the nodes of all to theta, (P, cells).
    """

    own: dict[str, EmulatorDraws]
    whole: Emulated | None
    coefficients: Array

    @classmethod
    def of(cls, stacked: Stacked, problems: Mapping[str, Problem], linear: Linear, plan: Plan) -> Emulators:
        """As a plan asks for them; ``problems`` have the best fit of all, where the stacked one is ``linear``."""
        own = draws_of_each(problems, plan)
        if not own:
            return cls(own, None, linear.coefficients)
        smooth = all(one.smooth for one in own.values())
        drawn = StackedDraws(stacked, own)
        draws = EmulatorDraws(drawn, emulator_numbers(plan), bound_as(stacked.problem), smooth=smooth)
        return cls(own, Emulated.with_draws(stacked.problem, draws, linear), linear.coefficients)

    def shift(self, name: str, nodes: slice, columns: IntArray) -> Array | None:
        """By how much the errors of one emulator move the parameters ``columns``, to first order, (k, p).

        ``nodes`` are the cells of its experiment. None where parameters are not told apart.
        """
        if self.whole is None or name not in self.own or len(self.coefficients) <= columns.max():
            return None
        return np.asarray(self.whole.errors[:, nodes, 0] @ self.coefficients[columns, nodes].T)


#: numbers in the arrays of a block of draws whose simulator is called together
BLOCK = 20_000_000


@dataclass(frozen=True)
class JointDraws:
    """Draws of all parameters (c, s, P) and of mu and tau of pools, their diagnostics, and those of each experiment."""

    theta: Array
    hyper: dict[str, Array]
    stats: dict[str, Array]
    own: dict[str, Draws]
    notes: RunNotes


class _Rows(NamedTuple):
    """Which draws are kept, and how they become chains."""

    rows: IntArray
    chains: int
    draws: int

    def __call__(self, values: Array) -> Array:
        return np.asarray(values[self.rows].reshape(self.chains, self.draws, *values.shape[1:]))

    def of_numbers(self, values: IntArray) -> IntArray:
        """The same for whole numbers (s,)."""
        return values[self.rows].reshape(self.chains, self.draws)


def joint_method(method: Method) -> Joint:
    """The method, which must be the joint projection."""
    if not isinstance(method, Joint):
        kind = getattr(method, "kind", type(method).__name__)
        raise InputError(
            f"several experiments are calibrated by the joint projection, not by {kind!r}: take gp, bart, softbart, "
            "bmars, bnn, or oc.methods.Joint(bias=...)"
        )
    return method


def joint_draws(experiments: Experiments, method: Joint, plan: Plan) -> JointDraws:
    """Draws of the posterior."""
    found = regressed(experiments, method.bias, plan, method.merges)
    together, pooled = experiments.together, list[Hyper]()
    real = found.regressed
    if found.determined is not None:
        real = with_open_directions(found.determined, real, plan.rngs)
    elif experiments.pools:
        real, pooled = with_pooling(found.linear, real, experiments.pools, together.theta_tilde, plan)
    held = None if found.determined is None else found.determined.holding(together.theta_tilde + real.moved)
    process, spread = together.fit_at_nodes + real.at_nodes, real.moved.std(axis=0)
    linear = found.linear if found.determined is None else found.determined.linear
    problems = {name: part.problem for name, part in found.parts.items()}
    emulators = Emulators.of(experiments.stacked, problems, linear, plan)
    if emulators.whole is None:
        closest = method.projected(together, process, spread, at_data=False, held=held)
    else:
        # what they do to a prior of theta is left to the importance weights
        spread, draws = emulators.whole.spread(real.moved), emulators.whole.draws
        closest = projected_on_draws(method.projected, together, process, spread, held, draws, linear)
    outside = None if found.determined is None else outside_support(together, found.determined, closest.theta)
    real = real._replace(log_prior=_log_prior(experiments, real, pooled, closest))
    weights = importance_weights(together, closest, real, plan.rngs, outside)
    return _told_apart(experiments, found, real, pooled, closest, weights, emulators, plan)


def _log_prior(experiments: Experiments, real: Regressed, pooled: list[Hyper], closest: Closest) -> Array:
    """Of what is in the draws, for importance weights: pooled values have their law, not the prior that was given."""
    total, parameters = real.log_prior, experiments.parameters
    for hyper in pooled:
        columns = list(hyper.pool.columns)
        linear, exact = (one[:, columns] for one in (experiments.theta_tilde + real.moved, closest.theta))
        given = sum(
            block.log_density(closest.theta[:, [j]])
            for block, j in ((parameters.blocks[_block_of(experiments, j)], j) for j in columns)
        )
        total = total + hyper.log_density(linear) - hyper.log_density(exact) + given
    return np.asarray(total)


def _block_of(experiments: Experiments, column: int) -> int:
    """The number of the prior of a parameter that has one of its own."""
    return list(experiments.parameters.given).index(experiments.parameters.names[column])


def _told_apart(
    experiments: Experiments,
    found: JointRegression,
    real: Regressed,
    pooled: list[Hyper],
    closest: Closest,
    weights: Weights,
    emulators: Emulators,
    plan: Plan,
) -> JointDraws:
    chain = _Rows(weights.rows, len(plan.rngs), plan.draws)
    hyper = {
        name: chain(values) for one in pooled for name, values in zip(one.pool.names, (one.mu, one.tau), strict=True)
    }
    own, start_data, start_nodes = {}, 0, 0
    for name, part in found.parts.items():
        data = slice(start_data, start_data := start_data + part.problem.data.y.size)
        nodes = slice(start_nodes, start_nodes := start_nodes + len(part.problem.rule.nodes) * part.problem.data.q)
        view = _View(experiments, name, part, found.own[name], real, closest, data, nodes, emulators)
        own[name] = spread_rows(view.draws(chain, plan), part.problem)
    share = {"on_bound": closest.on_bound, "stuck": closest.stuck, "elsewhere": closest.elsewhere}
    stats = {
        "lp": np.sum([one.stats["lp"] for one in own.values()], axis=0),
        "orthogonality_error": chain(closest.error),
        "loss": chain(closest.loss),
        **{name: chain(value.astype(float)) for name, value in share.items()},
    }
    notes = RunNotes(pareto_k=weights.pareto_k, weighted_draws=weights.effective, impossible=weights.impossible)
    return JointDraws(chain(closest.theta), hyper, stats, own, notes)


class _View(NamedTuple):
    """One experiment's share of the draws: its cells of the data and of the nodes."""

    experiments: Experiments
    name: str
    part: RegressionPart
    own: Regressed
    real: Regressed
    closest: Closest
    data: slice
    nodes: slice
    emulators: Emulators

    @property
    def emulator(self) -> EmulatorDraws | None:
        return self.emulators.own.get(self.name)

    @property
    def problem(self) -> Problem:
        return self.part.problem

    def draws(self, chain: _Rows, plan: Plan) -> Draws:
        problem, own, columns = self.problem, self.own, self.experiments.columns[self.name]
        theta = self.closest.theta[:, columns]
        kept = plan.kept(problem.unmerged.data.y.size)
        values, squares = self._values(theta, chain, plan, kept)
        shift, precision = self.real.shift, own.noise_precision
        noise = dict[str, Any]() if precision is None else NoiseDraws(problem.noise).fields(chain(precision))
        basis = self.part.linear.basis
        beta = own.beta if basis is None else own.beta @ basis.T
        missed = 0.0 if own.missed_square is None else own.missed_square @ (problem.noise.unwhitener**2).T
        return Draws(
            theta=chain(theta),
            model=values.model,
            bias=values.bias,
            kept=kept,
            at_data=values.statistics,
            stats={"lp": chain(-0.5 * self._squares()), "acceptance_rate": np.ones((chain.chains, chain.draws))},
            projection=ProjectionKind.JOINT,
            coefficient=-chain(beta[:, columns]),
            prior_shift=None if shift is None else chain(shift),
            unshifted=None if shift is None else chain(self.real.moved - shift),
            bias_square=chain(squares[0] + missed),
            process_square=chain(squares[1] + missed),
            bias_state={name: chain(values) for name, values in own.records.items()},
            samplers=own.samplers,
            nodes_drawn=True,
            drawn=Drawn.RESIDUAL,
            emulator_number=None if self.emulator is None else chain.of_numbers(self.emulator.numbers),
            emulator_shift=self.emulators.shift(self.name, self.nodes, columns),
            **noise,
            notes=self._notes(),
        )

    def _notes(self) -> RunNotes:
        emulator = self.emulator
        if emulator is None:
            return RunNotes(**self.own.bias_notes)
        return RunNotes(
            **self.own.bias_notes,
            emulator_draws=len(emulator.draws),
            emulator_seed=emulator.seed,
            emulator_stretch=emulator.stretch,
        )

    def _model(self, x: Array, theta: Array, rows: IntArray) -> Array:
        """The simulator of the draws numbered ``rows`` at their theta (k, p), (k, m, q)."""
        if self.emulator is None:
            return self.problem.simulator.batch(x, theta)
        return self.emulator.models(x, theta, rows)

    def _real_at_data(self, rows: IntArray) -> Array:
        """y_R - f(theta_tilde) at the data, whitened, (k, n, q)."""
        if self.real.shift is None:
            # those of all experiments would cost their number squared
            return np.asarray(self.own.at_data(rows))
        return np.asarray(self.real.at_data(rows)[:, self.data, 0].reshape(len(rows), *self.problem.data.y.shape))

    def _values(
        self, theta: Array, chain: _Rows, plan: Plan, kept: IntArray | None
    ) -> tuple[AtData, tuple[Array, Array]]:
        """Model and bias at the data, and ∫ b² and the variance of y_R over the domain, (s, q) each."""
        problem = self.problem
        cells = self.real.at_nodes[:, self.nodes, 0].reshape(len(theta), -1, problem.data.q)
        real_nodes = problem.unwhiten(cells @ np.linalg.inv(self.part.to_cells).T) + problem.fit_at_nodes
        points = problem.rule.nodes if kept is not None else np.concatenate([problem.data.x, problem.rule.nodes])
        n = 0 if kept is not None else problem.data.n
        model = np.empty((len(theta), n, problem.data.q))
        squares = np.empty((2, len(theta), problem.data.q))
        each = max(1, BLOCK // (len(points) * problem.data.q))
        for start in range(0, len(theta), each):
            rows = np.arange(start, min(start + each, len(theta)))
            simulated = self._model(points, theta[rows], rows)
            model[rows] = simulated[:, :n]
            squares[:, rows] = domain_squares(
                real_nodes[rows] - simulated[:, n:], real_nodes[rows], problem.rule.weights
            )
        if kept is None:
            real = problem.fit + problem.unwhiten(self._real_at_data(np.arange(len(theta))))
            return AtData(chain(model), chain(real - model), {}), (squares[0], squares[1])

        def draw(numbers: IntArray) -> tuple[Array, Array]:
            rows = chain.rows[numbers]
            own = self._model(problem.data.x, theta[rows], rows)
            return own, problem.fit + problem.unwhiten(self._real_at_data(rows)) - own

        found = at_data(draw, kept, chain.chains, chain.draws, problem.fit.shape)
        return found, (squares[0], squares[1])

    def _squares(self) -> Array:
        """(y - y_R)'P (y - y_R) of every draw, (s,)."""
        problem, precision = self.problem, self.own.noise_precision
        each = problem.noise.precision if precision is None else NoiseDraws(problem.noise).row_precision(precision)
        residual = problem.whiten(problem.complete_y - problem.fit)
        count = len(self.real.moved)
        squares, block = np.empty(count), max(1, BLOCK // residual.size)
        for start in range(0, count, block):
            rows = np.arange(start, min(start + block, count))
            misfit = residual - self._real_at_data(rows)
            if problem.noise.rows is not None:
                squares[rows] = problem.noise.squares(misfit)
                continue
            rest = each if precision is None else each[rows]
            squares[rows] = np.sum(misfit * (rest @ misfit[..., None])[..., 0], axis=(1, 2))
        return squares

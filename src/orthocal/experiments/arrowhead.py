"""Independent draws for Gaussian processes in every experiment: a matrix with the shape of an arrow.

With b_e = L_e w_e, all of (beta, w_1, w_2, ...) is Gaussian. Its precision has a block for each experiment and a border
for beta; the prior of u = theta - theta_tilde = beta + sum_e s_e, s_e = M_e w_e, adds a matrix of the rank of its
precision V. Given beta, and with T, Z and m the sums of what the experiments say of s (``experiment_model.py``),

    u | beta ~ N(m + A beta, Z) before its prior,   A = I - T

so that with p the pull of the prior, W = (I + V Z)^-1 and Q = W V, beta has the precision H + A'Q A. Draws with
beta = 0 and no prior of theta, (g_e, s_e, b_e) of each experiment, become draws with both by

    (H + A'Q A) beta = g + A'W (p - V s),   mu = W (p - V (s + A beta))

where p has noise of the covariance V: b_e then moves by its slopes on beta and mu. Nothing larger than one experiment
is ever factorised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array, IntArray
from ..bias.outcomes import OutcomesState, split_points
from ..methods.base import Plan
from ..methods.joint.gaussian_model import normals
from ..methods.joint.regress import Linear, Regressed, in_memory
from ..methods.joint.regress_integrated import KeptHyperparameters, in_turn, kept_hyperparameters
from .experiment_model import ExperimentModel, RegressionPart, Told
from .hyperparameter_sets import HyperparameterSets, ThetaPrior, ToldByAll, model_of


def arrow_draws(parts: list[RegressionPart], linear: Linear, plan: Plan) -> list[Regressed]:
    """Draws of every experiment, with one beta."""
    prior, sets = ThetaPrior.of(linear), HyperparameterSets.of(parts, linear)
    chosen = in_turn(plan, len(sets.numbers))
    # of the prior's own noise, which is the covariance of its pull
    root = (linear.prior_root() * linear.unit)[:, prior.felt]
    pulls = prior.pull + normals(plan.rngs, np.full(len(plan.rngs), plan.draws), len(root)) @ root
    drawn = [
        _ExperimentDraws.drawn(part, points, numbers[chosen], plan, prior.felt)
        for part, points, numbers in zip(parts, sets.points, sets.numbers.T, strict=True)
    ]
    beta, multipliers = np.empty((chosen.size, len(linear.unit))), np.empty((chosen.size, len(prior.felt)))
    for number, which in enumerate(sets.numbers):
        rows = np.flatnonzero(chosen.ravel() == number)
        if len(rows):
            each = [(one, one.told[int(place)]) for one, place in zip(drawn, which, strict=True)]
            beta[rows], multipliers[rows] = _solved(each, rows, pulls[rows], prior, beta.shape[1])
    return [one.regressed(beta, multipliers, linear.unit) for one in drawn]


def _solved(
    each: list[tuple[_ExperimentDraws, Told]], rows: IntArray, pulls: Array, prior: ThetaPrior, p: int
) -> tuple[Array, Array]:
    """beta (s, P) and mu (s, j) of the draws with one set."""
    sums, left = ToldByAll.zeros(1, p, len(prior.felt)), np.zeros((len(rows), p))
    added = np.zeros((len(rows), len(prior.felt)))
    for one, told in each:
        sums = sums.plus(one.part.columns, Told(*(part[None] for part in told)))
        left[:, one.part.columns] += one.pull[rows]
        added += one.added[rows]
    (A,), (W,), (precision,) = sums.through(prior)
    right = left + (pulls - added @ prior.precision) @ W.T @ A
    beta = np.linalg.solve(precision, right.T).T
    return beta, (pulls - (added + beta @ A.T) @ prior.precision) @ W.T


@dataclass
class _ExperimentDraws:
    """The draws of one experiment, b (s, n + m, q) among them; by the numbers of its points, what holds for each."""

    part: RegressionPart
    points: Array
    chosen: IntArray
    bias: Array
    pull: Array
    added: Array
    told: dict[int, Told]
    moves: dict[int, Array]

    @classmethod
    def drawn(
        cls, part: RegressionPart, points: Array, chosen: IntArray, plan: Plan, felt: IntArray
    ) -> _ExperimentDraws:
        """With beta = 0 and no prior of theta; ``chosen`` (c, s) says which point each draw has."""
        prior, unknowns = model_of(part)
        model = ExperimentModel(part, prior, unknowns, felt)
        n, m, q = part.problem.data.n, len(part.problem.rule.nodes), part.problem.data.q
        shapes = (n + m, q), (len(part.columns),), (len(felt),)
        bias, pull, added = (np.empty((chosen.size, *shape)) for shape in shapes)
        found = cls(part, points, chosen, bias, pull, added, {}, {})
        for number in map(int, np.unique(chosen)):
            rows, counts = np.flatnonzero(chosen.ravel() == number), np.sum(chosen == number, axis=1)
            found.told[number], one = model.drawn(plan.rngs, counts, points[number])
            found.bias[rows], found.pull[rows], found.added[rows] = one.bias, one.pull, one.added
            found.moves[number] = np.concatenate([one.slopes, one.along])
        return found

    def regressed(self, beta: Array, multipliers: Array, unit: Array) -> Regressed:
        """``beta`` (s, P) and ``multipliers`` (s, j) are in units of the gradients' lengths."""
        part, linear, n = self.part, self.part.linear, self.part.problem.data.n
        steps = np.concatenate([beta[:, part.columns], multipliers], axis=1)
        for number, moves in self.moves.items():
            rows = np.flatnonzero(self.chosen.ravel() == number)
            self.bias[rows] += np.tensordot(steps[rows], moves, axes=1)
        slopes, bias = beta * unit, self.bias
        moved = slopes + bias[:, n:].reshape(len(bias), -1) @ linear.coefficients.T
        records, samplers, stats, noise = self._kept()
        gradient = np.concatenate([linear.at_data, linear.at_nodes])
        real = bias + np.einsum("xkp,sp->sxk", gradient, slopes)
        nothing = np.zeros(len(bias))
        at_data, at_nodes = in_memory(real[:, :n]), real[:, n:]
        return Regressed(at_data, at_nodes, slopes, moved, records, samplers, nothing, stats, noise_precision=noise)

    def _kept(self) -> KeptHyperparameters:
        problem, own = self.part.problem, self.part.bias
        if self.part.prior is not None and self.part.unknowns is not None:
            given = problem, self.part.prior, self.part.unknowns, self.points, self.chosen, self.bias
            return kept_hyperparameters(*given)
        assert own is not None
        states = []
        for k, process in enumerate(own.processes):
            order = np.argsort(split_points(problem.data.x, problem.rule.nodes, problem.noise.variances[:, k]).order)
            root, rows = process.prior_root
            values = np.empty((len(self.bias), len(root)))
            values[:, rows] = self.bias[:, order, k]
            states.append(values)
        return KeptHyperparameters(own.records(OutcomesState(states, self.bias)), own.samplers, {}, None)

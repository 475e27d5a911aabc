"""Draws of the real processes of all experiments: beta is common, the biases are independent.

    y_e - f_e(., theta_tilde) = G_e beta + b_e + e,   theta - theta_tilde = beta + sum_e lambda_e(b_e)

G_e has a column for every parameter of all experiments, zero for those that experiment e does not have, and lambda_e
takes b_e at its nodes to what it adds to the coefficients of the projection of all biases on all gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray
from ..bias import BMARS, GP, BiasPrior
from ..bias.gp_sampler import MOST_JOINT_POINTS, JointGP
from ..errors import IdentifiabilityError, InputError
from ..kernels.warmup import Stepper, run_chains
from ..methods.base import Plan
from ..methods.bias_samplers import fitted_bias, with_integrals
from ..methods.joint.gibbs import Gibbs, GibbsDraw, drawn_beta
from ..methods.joint.identifiable import Determined, identifiable_part
from ..methods.joint.regress import RANK, Linear, Regressed, with_prior
from ..methods.joint.regress_integrated import integrable
from ..methods.joint.unknowns import Unknowns
from ..problem.noise.noise import NoiseSource
from ..problem.problem import Problem
from .arrowhead import arrow_draws
from .experiment_model import RegressionPart
from .experiments import Experiments


class JointRegression(NamedTuple):
    """The regression of all experiments, and of each."""

    regressed: Regressed
    own: dict[str, Regressed]
    parts: dict[str, RegressionPart]
    linear: Linear
    determined: Determined | None


def prepared(experiments: Experiments, prior: BiasPrior, merges: bool) -> tuple[dict[str, RegressionPart], Linear]:
    """The parts of the regression, and the simulator of all together."""
    together = experiments.together
    # an error about the parameters comes before any long work
    determined = identifiable_part(together)
    if determined is not None and experiments.pools:
        raise InputError(
            "some combination of the parameters does not move any simulator, so that pooled values cannot be learnt: "
            "fix a parameter, or leave oc.Pooled out"
        )
    linear = Linear.of(together) if determined is None else determined.linear
    if experiments.pools:
        linear = _flat_in(linear, np.concatenate([one.columns for one in experiments.pools]).astype(np.intp))
    problems = {name: one.merged if merges else one for name, one in experiments.linearised.items()}
    own = {name: _own_linear(experiments, name, one, linear) for name, one in problems.items()}
    _check_determined(problems, own, linear)
    parts, start = {}, 0
    for name, problem in problems.items():
        size = len(problem.rule.nodes) * problem.data.q
        coefficients = linear.coefficients[:, start : start + size]
        start += size
        parts[name] = _part(experiments, name, problem, own[name], coefficients, prior)
    if not all(map(_gaussian, parts.values())):
        # one chain for all
        parts = {name: _with_samplers(one, prior) for name, one in parts.items()}
    return parts, linear


def _flat_in(linear: Linear, columns: IntArray) -> Linear:
    """Without a prior of these parameters: they are pooled afterwards."""
    pull, precision = linear.pull.copy(), linear.precision.copy()
    pull[columns] = precision[columns] = precision[:, columns] = 0.0
    return linear._replace(pull=pull, precision=precision)


def _own_linear(experiments: Experiments, name: str, problem: Problem, linear: Linear) -> Linear:
    """The simulator of an experiment as a function of all parameters."""
    columns, p = experiments.columns[name], experiments.parameters.p
    gradients = []
    for own in (problem.gradient_at_data, problem.gradient_at_nodes):
        whole = np.zeros((*own.shape[:2], p))
        whole[:, :, columns] = own
        gradients.append(whole if linear.basis is None else whole @ linear.basis)
    return linear._replace(at_data=gradients[0], at_nodes=gradients[1])


def _part(
    experiments: Experiments, name: str, problem: Problem, own: Linear, coefficients: Array, prior: BiasPrior
) -> RegressionPart:
    cells = experiments.stacked.parts[name].at_nodes @ problem.noise.unwhitener
    # cells of the nodes stand in the order of the nodes, outcome by outcome: (P, m, q) times what takes q to cells
    taken = (coefficients.reshape(len(coefficients), -1, problem.data.q) @ cells).reshape(len(coefficients), -1)
    columns = np.flatnonzero(np.abs(np.concatenate([own.at_data, own.at_nodes])).max(axis=(0, 1)) > 0)
    part = RegressionPart(problem, own._replace(coefficients=taken), columns, cells, None, None, None, None)
    if not isinstance(prior, GP) or not _few(prior, problem):
        return _with_samplers(part, prior)
    unknowns = Unknowns.of(problem, prior)
    return part._replace(prior=prior, unknowns=unknowns) if unknowns.free.any() else _with_samplers(part, prior)


def _few(prior: GP, problem: Problem) -> bool:
    """Whether its unknowns and its points are few enough to integrate over the one and to factorise the other."""
    points = problem.data.q * (problem.data.n + len(problem.rule.nodes))
    return integrable(prior, problem) and points <= MOST_JOINT_POINTS


def _with_samplers(part: RegressionPart, prior: BiasPrior) -> RegressionPart:
    """With samplers of the bias, whose hyperparameters are fixed where there are any."""
    if part.bias is not None:
        return part
    # splines of a drawn size cannot be moved together with beta, and would keep to one of several explanations
    drawn = not isinstance(prior, BMARS)
    bias = fitted_bias(prior, part.problem, part.problem.rule.nodes, size_drawn=drawn)
    bias, integrals = with_integrals(prior, part.problem, bias)
    return part._replace(prior=None, unknowns=None, bias=bias, integrals=integrals)


def _gaussian(part: RegressionPart) -> bool:
    """Whether all of it is Gaussian given some unknowns that are integrated over."""
    if part.bias is None:
        return True
    known = part.problem.noise.source is not NoiseSource.UNKNOWN
    return known and part.bias.gaussian and JointGP.possible(part.bias.processes)


def regressed(experiments: Experiments, prior: BiasPrior, plan: Plan, merges: bool) -> JointRegression:
    """Draws of all experiments together, with theta's prior."""
    parts, linear = prepared(experiments, prior, merges)
    each = list(parts.values())
    gaussian = all(map(_gaussian, each))
    own = arrow_draws(each, linear, plan) if gaussian else _gibbs_draws(each, plan)
    gathered = _gathered(each, own, linear)
    determined = identifiable_part(experiments.together)
    if determined is None and not gaussian:
        gathered = with_prior(_with_data(linear, each), gathered, plan.rngs)
    elif determined is None:
        gathered = gathered._replace(log_prior=linear.log_prior(gathered.moved))
    if not gaussian:
        own = [
            one.with_integration(part.problem, part.integrals, part.linear, gathered.moved)
            for part, one in zip(each, own, strict=True)
        ]
    return JointRegression(gathered, dict(zip(parts, own, strict=True)), parts, _with_data(linear, each), determined)


def _with_data(linear: Linear, parts: list[RegressionPart]) -> Linear:
    """The simulators of all at all data, one after the other."""
    rows = [one.linear.at_data.reshape(-1, 1, one.linear.at_data.shape[2]) for one in parts]
    return linear._replace(at_data=np.concatenate(rows))


def _check_determined(problems: dict[str, Problem], own: dict[str, Linear], linear: Linear) -> None:
    """Refuse data that do not determine beta, where it has no prior."""
    p = len(linear.unit)
    information = np.zeros((p, p))
    for name, problem in problems.items():
        seen = own[name].at_data[problem.data.observed.any(axis=1)].reshape(-1, p)
        information += seen.T @ seen
    size = np.sqrt(np.diag(information))
    if not (size > 0).all() or np.linalg.eigvalsh(information / np.outer(size, size))[0] < RANK**2 * p:
        raise IdentifiabilityError(
            f"the data of all experiments together do not determine the {p} parameters: give more data, fix some "
            "parameters, or make fewer of them private"
        )


class _Chains(Stepper[tuple[GibbsDraw, ...]]):
    """The chains of all experiments with one beta."""

    def __init__(self, runs: list[Gibbs], plan: Plan) -> None:
        self._runs, self._plan = runs, plan
        self._exact = all(run.exact for run in runs)

    def step(self) -> tuple[Array, ...]:
        for run in self._runs:
            run.complete()
        if self._exact:
            # in turns with the biases beta would hardly move: each is known well given the other
            self._draw_beta([run.information_without_bias() for run in self._runs])
        for run in self._runs:
            run.draw_bias()
        if not self._exact:
            self._draw_beta_and_coefficients()
        for run in self._runs:
            run.draw_noise()
        return ()

    def _draw_beta_and_coefficients(self) -> None:
        """beta | b; where b is a sum of functions, these first, with beta and all coefficients integrated out.

        A slope that all experiments have can stand in beta, or in the biases of some of them. Given beta, one
        experiment cannot leave it while the others stay, so that chains kept to one side for hundreds of draws.
        """
        each = [run.information_given_functions() if run.given_functions else run.information() for run in self._runs]
        for i, run in enumerate(self._runs):
            if run.given_functions:
                rest = each[:i] + each[i + 1 :]
                run.move_functions(*(np.sum([one[k] for one in rest], axis=0) for k in (0, 1)))
                each[i] = run.information_given_functions()
        self._draw_beta(each)
        for run in self._runs:
            if run.given_functions:
                run.draw_coefficients()

    def _draw_beta(self, each: list[tuple[Array, Array]]) -> None:
        B, pull = (np.sum([one[k] for one in each], axis=0) for k in (0, 1))
        beta = drawn_beta(B, pull, self._plan.rngs)
        for run in self._runs:
            run.beta = beta

    def adapt(self, *window: Array) -> None:
        """There is nothing to tune."""

    def kept(self) -> tuple[GibbsDraw, ...]:
        return tuple(run.kept() for run in self._runs)

    def stored(self) -> list[object]:
        return [run.stored() for run in self._runs]

    def restore(self, stored: list[object]) -> None:
        for run, own in zip(self._runs, stored, strict=True):
            run.restore(own)


def _gibbs_draws(parts: list[RegressionPart], plan: Plan) -> list[Regressed]:
    runs = [Gibbs(one.problem, plan, one.bias, one.linear, one.integrals) for one in parts if one.bias is not None]
    kept = run_chains(_Chains(runs, plan), plan.warmup, plan.draws, plan.rngs)
    return [run.free(list(own)) for run, own in zip(runs, zip(*kept, strict=True), strict=True)]


def _gathered(parts: list[RegressionPart], own: list[Regressed], linear: Linear) -> Regressed:
    """The draws of all experiments as those of the stacked problem."""
    beta = own[0].beta
    moved = np.sum([one.moved - beta for one in own], axis=0) + beta

    def at_data(rows: IntArray) -> Array:
        return np.concatenate([one.at_data(rows).reshape(len(rows), -1) for one in own], axis=1)[:, :, None]

    at_nodes = np.concatenate([part.cells(one.at_nodes) for part, one in zip(parts, own, strict=True)], axis=1)
    return Regressed(at_data, at_nodes[:, :, None], beta, moved, {}, [], np.zeros(len(moved)), {})

"""Projected calibration (Xie and Xu 2021): theta is where the simulator is closest to a draw of the real process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...arrays import Array, BoolArray
from ...bias import GP
from ...errors import InputError
from ...problem.preflight.cost import CallsEach, RunCost
from ...problem.problem import Problem
from ...progress import progress_bar
from ..base import CLOSEST, Drawn, Draws, ListedMethod, Plan, RunNotes, listed
from ..joint.regress import Linear
from ..joint.regress_integrated import integrated_draws
from ..joint.unknowns import Unknowns
from ..sampled_noise import NoiseDraws
from .marginal import check_cells

#: Gauss-Newton steps, and halvings of one, before a draw is taken as it is
MOST_STEPS, MOST_HALVINGS = 50, 8
#: draws that are fitted at a time: their gradients are held in memory together
BATCH = 2000


@listed
@dataclass(frozen=True)
class PCAL(ListedMethod):
    """y_R ~ GP, drawn given y; theta = argmin ∫ (y_R - f)' W (y_R - f) dP_x for each draw.

    The prior of theta is not used, but for its support. All draws are fitted together, by Gauss-Newton steps from
    theta_tilde.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the real process y_R, as for ``oc.bias.GP``; what is left out is integrated over.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> posterior = oc.calibrate(problem, oc.methods.PCAL(), draws=50, chains=2, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    kind: ClassVar[str] = "pcal"
    cost: ClassVar[RunCost | None] = RunCost(
        CallsEach((3.0, 3.5), (2.0, 2.5)), CallsEach((7.0, 15.0), (6.0, 14.0)), chains=False
    )
    takes_prior: ClassVar[bool] = False

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None

    def __post_init__(self) -> None:
        self._prior()

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # an error about the parameters comes before any long work
        _ = problem.sensitivity
        check_cells(problem, Unknowns.of(problem, self._prior()))
        real = integrated_draws(problem, plan, self._prior(), _no_parameters(problem), np.zeros_like(problem.fit))
        chains, shape = (len(plan.rngs), plan.draws), problem.data.y.shape
        parts = [slice(start, start + BATCH) for start in range(0, len(real.at_nodes), BATCH)]
        each = [closest(problem, real.at_nodes[part]) for part in progress_bar(parts, "projecting")]
        theta, loss, barred = (np.concatenate(found) for found in zip(*each, strict=True))
        models = [problem.simulator.batch(problem.data.x, theta[part]) for part in parts]
        model = np.concatenate(models).reshape(*chains, *shape)
        drawn = problem.unwhiten(real.at_data(np.arange(len(theta))).reshape(*chains, *shape))
        stats = {"lp": -0.5 * loss, "acceptance_rate": np.ones(len(theta)), **real.stats}
        precision, noise = real.noise_precision, dict[str, Any]()
        if precision is not None:
            noise = NoiseDraws(problem.noise).fields(precision.reshape(*chains, *precision.shape[1:]))
        draws = Draws(
            theta=theta.reshape(*chains, -1),
            model=model,
            bias=drawn - model,
            stats={name: value.reshape(chains) for name, value in stats.items()},
            bias_state={name: value.reshape(*chains, *value.shape[1:]) for name, value in real.records.items()},
            samplers=real.samplers,
            nodes_drawn=True,
            drawn=Drawn.PROCESS,
            notes=RunNotes(**real.bias_notes),
            **noise,
        )
        return only_possible(draws, barred.reshape(chains), plan.rngs)

    def words(self) -> str:
        return (
            f"The real process is a Gaussian process, learnt from the data without the simulator, and {CLOSEST}, draw "
            "by draw; the prior of theta gives its bounds only."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "process": self._prior().describe()}

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)


def only_possible(draws: Draws, impossible: BoolArray, rngs: list[np.random.Generator]) -> Draws:
    """Without the draws (c, s) that are closest where theta is impossible: others of their chain take their place."""
    if not impossible.any():
        return draws
    share = 1 - float(impossible.mean())
    if impossible.all(axis=1).any():
        raise InputError(
            f"the real process has its closest simulator at an allowed theta in {share:.1%} of the draws only: the "
            "constraint, or where the simulator fails, excludes what the data say; loosen it"
        )
    rows = np.tile(np.arange(impossible.shape[1]), (len(rngs), 1))
    for own, barred, rng in zip(rows, impossible, rngs, strict=True):
        own[barred] = rng.choice(np.flatnonzero(~barred), int(barred.sum()))
    notes = replace(draws.notes, impossible=1 - share, weighted_draws=float((~impossible).sum()))
    return replace(draws.taken(rows), notes=notes)


def _no_parameters(problem: Problem) -> Linear:
    """A regression of y on nothing."""
    (n, q), m = problem.data.y.shape, len(problem.rule.nodes)
    nothing = np.zeros(0)
    return Linear(np.zeros((n, q, 0)), np.zeros((m, q, 0)), np.zeros((0, m * q)), nothing, np.zeros((0, 0)), nothing)


def closest(problem: Problem, target: Array) -> tuple[Array, Array, BoolArray]:
    """For targets (s, m, q) at the nodes, whitened: the theta (s, p) whose f is closest in L2, and the loss (s,).

    The last are those that are closest where theta is not allowed, or where the simulator fails, (s,).
    """
    nodes, parameters = problem.rule.nodes, problem.parameters
    weighted = problem.rule.weights[:, None, None] * problem.metric

    def losses(theta: Array, goal: Array) -> tuple[Array, Array]:
        left = goal - problem.whiten(problem.simulator.batch(nodes, theta))
        loss = np.einsum("smk,mkl,sml->s", left, weighted, left)
        return left, np.where(np.isnan(loss), np.inf, loss)

    theta = np.tile(parameters.clipped(problem.theta_tilde, 1e-9), (len(target), 1))
    left, loss = losses(theta, target)
    moving = np.arange(len(target))
    barred = np.zeros(len(target), dtype=bool)
    for _ in range(MOST_STEPS):
        step = _gauss_newton(problem, theta[moving], left[moving], weighted)
        settled = np.max(np.abs(step) / parameters.spread, axis=1) < 1e-9
        lost = np.isnan(step).any(axis=1)
        barred[moving[settled]], barred[moving[lost]] = False, True
        settled |= lost
        moving, step = moving[~settled], step[~settled]
        size = np.ones(len(moving))
        for _ in range(MOST_HALVINGS):
            trial = parameters.clipped(theta[moving] + size[:, None] * step, 1e-9)
            new_left, new_loss = losses(trial, target[moving])
            # of the last whole step: where it was to go
            barred[moving] = np.where(size == 1, np.isinf(new_loss), barred[moving])
            worse = new_loss > loss[moving]
            if not worse.any():
                break
            size = np.where(worse, size / 2, size)
        better = ~worse
        places = moving[better]
        theta[places], left[places], loss[places] = trial[better], new_left[better], new_loss[better]
        # what no halving improves is as close as it gets
        moving = places
        if not len(moving):
            break
    return theta, loss, barred


def _gauss_newton(problem: Problem, theta: Array, left: Array, weighted: Array) -> Array:
    """The steps (s, p) for what is left of the targets, (s, m, q); NaN where there is no gradient."""
    gradient = problem.whitened_gradients(problem.rule.nodes, theta)
    image = np.einsum("mkl,smlp->smkp", weighted, gradient)
    gram = np.einsum("smkp,smkr->spr", gradient, image)
    slope = np.einsum("smkp,smk->sp", image, left)
    # a parameter without effect at some theta stays where it is
    ridge = 1e-12 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(gram + ridge, slope[..., None])[..., 0])

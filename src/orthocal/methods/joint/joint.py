"""Orthogonal calibration by the joint projection: regress, then project.

    (1) regress   y = y_R(x) + e,  y_R = f(., theta_tilde) + G beta + b,  G the gradient at theta_tilde, b ~ any prior
    (2) project   theta = argmin_t ∫ (y_R - f(., t))' W (y_R - f(., t)) dP_x,  b* = y_R - f(., theta), draw by draw

where f is an emulator that has draws, and theta is moved as one of them moves it (``methods/joint/emulator_draws.py``).

With beta = theta - theta_tilde - lambda(b), lambda(b) the coefficients of the projection of b on G, a flat beta is a
flat theta that is independent of b, and y = f(theta) + b* + e where f is linear. So a Gaussian prior of theta is one of
beta + lambda(b); what is not Gaussian in the prior, and what curvature changes, is put right by importance weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...arrays import Array, IntArray
from ...bias import GP, BiasPrior
from ...bias.base import ListedPrior
from ...bias.gp_sampler import JointGP
from ...errors import InputError
from ...losses import Chosen, chosen_loss
from ...problem.noise.noise import NoiseSource
from ...problem.preflight.cost import CallsEach, RunCost
from ...problem.problem import Problem
from ...projection import ProjectionKind
from ..base import CLOSEST, Drawn, Draws, ListedMethod, Plan, RunNotes, listed_with_priors
from ..bias_samplers import fitted_bias, with_integrals
from ..sampled_noise import NoiseDraws
from ..stored_draws import AtData, at_data
from .closest import Closest, closest
from .emulator_draws import Emulated, projected_on_draws
from .gibbs import gibbs_draws
from .identifiable import identifiable_part, outside_support, with_open_directions
from .objective import Held
from .regress import Linear, Regressed, gaussian_draws
from .regress_cells import cells_draws
from .regress_integrated import integrable, integrated_draws
from .regress_large import large_draws, wanted
from .weights import Weights, importance_weights

#: numbers in the arrays of a block of draws that are projected together
BLOCK = 20_000_000
#: residuals of all draws that are looked at for their log density, where there is a shorter way
MOST_SQUARES = 200_000_000


@listed_with_priors("")
@dataclass(frozen=True)
class Joint(ListedMethod):
    """theta = argmin_t ∫ (y_R - f(., t))' W (y_R - f(., t)) dP_x, for each draw of the real process y_R given y.

    The draws keep the fit: f(theta) + b* is the draw of y_R. The simulator's curvature beside a large bias is taken
    into account, because each draw has its own theta. For a Gaussian process the draws are independent; for other
    priors they come from a Markov chain that never calls the simulator.

    Parameters
    ----------
    bias
        A prior on the bias, for instance ``oc.bias.GP(nu=1.5)``.
    loss
        What "closest" means: ``"squared"``, ``"absolute"``, ``oc.losses.Huber(k)``, or a function that takes residuals
        at the nodes (m, q), in the outcomes' units, to a number. A function of two arguments is given the nodes'
        weights (m,) too.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 100))
    >>> method = oc.methods.Joint(bias=oc.bias.GP(nu=2.5))
    >>> posterior = oc.calibrate(problem, method, draws=200, chains=2, seed=1, progress=False)
    >>> print(posterior.theta.mean().round(1), np.round(model1.theta_star[0], 1))
    3.5 3.6
    >>> bool(posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-6)
    True
    """

    kind: ClassVar[str] = "joint"
    cost: ClassVar[RunCost | None] = RunCost(CallsEach((1.0, 1.0)), CallsEach((1.8, 2.6)), chains=False)
    draws_emulators: ClassVar[bool] = True

    bias: BiasPrior = field(default_factory=GP)
    loss: Chosen = "squared"

    def __post_init__(self) -> None:
        chosen_loss(self.loss)
        if not isinstance(self.bias, BiasPrior):
            raise InputError(f"bias={self.bias!r}: give a prior on the bias, for instance oc.bias.GP(nu=1.5)")

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # an error about the parameters comes before any long work
        part = identifiable_part(problem)
        linear = Linear.of(problem) if part is None else part.linear
        emulated = Emulated.of(problem, plan, linear)
        if part is None:
            wide = linear if emulated is None else emulated.widened(linear)
            regressed = self.regressed(problem, plan, wide)
        else:
            regressed = with_open_directions(part, self.regressed(problem, plan, linear), plan.rngs)
        if emulated is not None:
            # undetermined parameters have their prior in the draws already: there the weights do it all
            emulated, regressed = emulated.tilted(linear if part is None else None, regressed, plan.rngs)
        held = None if part is None else part.holding(problem.theta_tilde + regressed.moved)
        real = problem.whiten(problem.fit_at_nodes) + regressed.at_nodes
        kept = plan.kept(problem.unmerged.data.y.size)
        if emulated is None:
            found = self.projected(problem, real, regressed.moved.std(axis=0), kept is None, held)
        else:
            spread = emulated.spread(regressed.moved)
            target = emulated.untilted(real)
            found = projected_on_draws(self.projected, problem, target, spread, held, emulated.draws, linear)
            found = emulated.completed(problem, found, real, kept is None)
        outside = None if part is None else outside_support(problem, part, found.theta)
        weights = importance_weights(problem, found, regressed, plan.rngs, outside)
        return _finished(problem, plan, regressed, found, weights, kept, emulated)

    def regressed(self, problem: Problem, plan: Plan, linear: Linear) -> Regressed:
        """Step (1): draws of y_R less the best fit, at data and nodes, with ``linear`` as the linearised simulator.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from orthocal.methods.joint.regress import Linear
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> plan = oc.methods.Plan(50, 100, [np.random.default_rng(c) for c in range(2)])
        >>> regressed = oc.methods.Joint().regressed(problem, plan, Linear.of(problem))
        >>> regressed.at_nodes.shape, regressed.moved.shape
        ((100, 15, 1), (100, 1))
        """
        if isinstance(self.bias, GP) and wanted(self.bias, problem):
            return large_draws(problem, plan, self.bias, linear)
        if isinstance(self.bias, GP) and integrable(self.bias, problem):
            return integrated_draws(problem, plan, self.bias, linear)
        bias = fitted_bias(self.bias, problem, problem.rule.nodes, size_drawn=True)
        known = problem.noise.source is not NoiseSource.UNKNOWN
        if known and bias.gaussian and JointGP.possible(bias.processes):
            return gaussian_draws(problem, plan, bias, linear)
        bias, integrals = with_integrals(self.bias, problem, bias)
        on_cells = cells_draws(problem, plan, bias, linear, integrals)
        drawn = gibbs_draws(problem, plan, bias, linear, integrals) if on_cells is None else on_cells
        return drawn.with_integration(problem, integrals, linear)

    def projected(
        self, problem: Problem, real: Array, spread: Array, at_data: bool = True, held: Held | None = None
    ) -> Closest:
        """Step (2) for draws of y_R at the nodes, in blocks that fit into memory.

        Parameters
        ----------
        problem
            With the simulator, the nodes and W.
        real
            y_R at the nodes, (s, m, q), whitened.
        spread
            That of theta, roughly, (p,).
        at_data
            Whether the simulator is wanted at the data too.
        held
            What of theta is known before.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> real = problem.whiten(model1.truth(problem.rule.nodes)[:, None])
        >>> found = oc.methods.Joint().projected(problem, real[None], spread=np.array([0.1]))
        >>> np.allclose(found.theta, model1.theta_star)
        True
        """
        each = max(1, BLOCK // (real[0].size * (problem.parameters.p + 2)))
        loss = chosen_loss(self.loss)
        parts = [slice(start, start + each) for start in range(0, len(real), each)]
        blocks = [
            closest(problem, real[part], spread, loss, at_data, None if held is None else held.part(part))
            for part in parts
        ]
        return Closest(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    @property
    def merges(self) -> bool:
        # a prior of the user's may count the data points, or take their noise for the same everywhere
        return isinstance(self.bias, ListedPrior)

    def words(self) -> str:
        prior = self.bias
        own = (
            prior.words if isinstance(prior, ListedPrior) else f"The bias has the prior {prior.describe().get('kind')}"
        )
        return (
            f"{own}. Draws of the real process, simulator and bias together, are projected, so {CLOSEST}, draw by draw."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "bias": self.bias.describe(), "loss": chosen_loss(self.loss).describe()}


def _finished(
    problem: Problem,
    plan: Plan,
    regressed: Regressed,
    found: Closest,
    weights: Weights,
    kept: IntArray | None,
    emulated: Emulated | None,
) -> Draws:
    """The draws in chains; each chain keeps its own, resampled where the weights say so."""
    chains, draws = len(plan.rngs), plan.draws
    rows = weights.rows

    def by_chain(values: Array) -> Array:
        return np.asarray(values[rows].reshape(chains, draws, *values.shape[1:]))

    if kept is None:
        real = problem.whiten(problem.fit) + regressed.at_data(np.arange(len(rows)))
        model, bias = (problem.unwhiten(by_chain(part)) for part in (found.model, real - found.model))
        values = AtData(model, bias, {})
    else:
        values = _of_kept(problem, plan, regressed, found.theta[rows], rows, kept, emulated)
    precision, shift = regressed.noise_precision, regressed.shift
    noise = dict[str, Any]() if precision is None else NoiseDraws(problem.noise).fields(by_chain(precision))
    missed = _missed(problem, regressed)
    share = {"on_bound": found.on_bound, "stuck": found.stuck, "elsewhere": found.elsewhere}
    return Draws(
        theta=by_chain(found.theta),
        model=values.model,
        bias=values.bias,
        kept=kept,
        at_data=values.statistics,
        stats={
            "lp": by_chain(-0.5 * _squares(problem, regressed)),
            "acceptance_rate": np.ones((chains, draws)),
            **{name: by_chain(value) for name, value in regressed.stats.items()},
            "orthogonality_error": by_chain(found.error),
            "loss": by_chain(found.loss),
            **{name: by_chain(value.astype(float)) for name, value in share.items()},
        },
        projection=ProjectionKind.JOINT,
        coefficient=-by_chain(regressed.beta),
        prior_shift=None if shift is None else by_chain(shift),
        unshifted=None if shift is None else by_chain(regressed.moved - shift),
        bias_square=by_chain(found.bias_square + missed),
        process_square=by_chain(found.process_square + missed),
        **({} if emulated is None else emulated.recorded(rows, chains)),
        bias_state={name: by_chain(values) for name, values in regressed.records.items()},
        samplers=regressed.samplers,
        nodes_drawn=True,
        drawn=Drawn.RESIDUAL,
        **noise,
        notes=_notes(plan, regressed, weights, emulated),
    )


def _notes(plan: Plan, regressed: Regressed, weights: Weights, emulated: Emulated | None) -> RunNotes:
    return RunNotes(
        **regressed.bias_notes,
        pareto_k=weights.pareto_k,
        weighted_draws=weights.effective,
        impossible=weights.impossible,
        emulator_draws=plan.emulator_draws,
        emulator_seed=plan.emulator_seed,
        emulator_stretch=1.0 if emulated is None else emulated.draws.stretch,
    )


def _missed(problem: Problem, regressed: Regressed) -> Array | float:
    """What ∫ b² has beyond the nodes, in the outcomes' units, (s, q).

    Whitened outcomes have samplers of their own: what is missed of two of them has nothing in common.
    """
    square = regressed.missed_square
    return 0.0 if square is None else np.asarray(square @ (problem.noise.unwhitener**2).T)


def _squares(problem: Problem, regressed: Regressed) -> Array:
    """(y - y_R)'P (y - y_R) of every draw, (s,), whitened, a block of draws at a time.

    What a prior of theta that was put in afterwards changes is left out for large data, of which it says little.
    """
    large = regressed.shift is None or problem.data.y.size * len(regressed.moved) > MOST_SQUARES
    if regressed.square is not None and large:
        return regressed.square
    precision = regressed.noise_precision
    if problem.noise.rows is not None:
        return _joint_squares(problem, regressed)
    each = problem.noise.precision if precision is None else NoiseDraws(problem.noise).row_precision(precision)
    y, fit = problem.whiten(problem.complete_y), problem.whiten(problem.fit)
    count = len(regressed.moved)
    block = max(1, BLOCK // y.size)
    squares = np.empty(count)
    for start in range(0, count, block):
        own = np.arange(start, min(start + block, count))
        misfit = y - (fit + regressed.at_data(own))
        rest = each if precision is None else each[own]
        squares[own] = np.sum(misfit * (rest @ misfit[..., None])[..., 0], axis=(1, 2))
    return squares


def _joint_squares(problem: Problem, regressed: Regressed) -> Array:
    """The same where the noise is correlated between rows."""
    left, count = problem.whiten(problem.complete_y - problem.fit), len(regressed.moved)
    squares = np.empty(count)
    for own in np.array_split(np.arange(count), count * left.size // BLOCK + 1):
        squares[own] = problem.noise.squares(left - regressed.at_data(own))
    return squares


def _of_kept(
    problem: Problem,
    plan: Plan,
    regressed: Regressed,
    theta: Array,
    rows: IntArray,
    kept: IntArray,
    emulated: Emulated | None,
) -> AtData:
    """Model and bias at the data of the draws that are kept; ``theta`` (s, p) is that of ``rows`` (s,)."""

    def draw(numbers: IntArray) -> tuple[Array, Array]:
        if emulated is None:
            model = problem.simulator.batch(problem.data.x, theta[numbers])
        else:
            model = emulated.models(problem, theta[numbers], rows[numbers])
        return model, problem.fit + problem.unwhiten(regressed.at_data(rows[numbers])) - model

    return at_data(draw, kept, len(plan.rngs), plan.draws, problem.fit.shape, regressed.together)

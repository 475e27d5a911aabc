"""Kennedy and O'Hagan (2001): a Gaussian-process bias that is left free."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import cho_solve

from ...arrays import Array
from ...bias import GP
from ...bias.gp_sampler import JointGP
from ...bias.outcomes import OutcomesBias
from ...kernels import Kernel, Laplace
from ...kernels.base import Conditional, ThetaModel, dispersed_starts, require_kernel
from ...kernels.laplace import inner_steps
from ...kernels.warmup import Stepper, run_chains
from ...problem.noise.noise import NoiseSource
from ...problem.preflight.cost import RunCost
from ...problem.problem import Problem
from ..base import CHAIN_COST, Draws, ListedMethod, Plan, RunNotes, listed
from ..joint.gaussian_model import GaussianLaw, GaussianModel
from ..joint.regress import Linear
from ..joint.regress_integrated import (
    hyperparameter_points,
    hyperparameter_records,
    hyperparameter_samplers,
    hyperparameter_stats,
)
from ..joint.unknowns import Unknowns
from ..sampled_noise import noise_sampler
from ..stored_draws import KeptDraw, finished
from .marginal import DrawnBias, Marginal, gaussian_bias, sample

# Kennedy and O'Hagan's method with the hyperparameters of the bias, and the noise, integrated over.
#
# They are one of m points v_i that are alike where the simulator is linear: c_i p(y | v_i) is the same for all, c_i
# their prior and their spacing. Each iteration: (1) theta ~ Pi(theta | v, y); (2) proposals of another point, accepted
# with the ratio of N(y; f(theta), C_i) / p(y | v_i), so that the target is c_i N(y; f(theta), C_i) pi(theta); and for a
# kept draw (3) b ~ Pi(b | theta, v, y).

#: proposals of another point in each iteration
PROPOSALS = 4


class _IntegratedRun(Stepper[tuple[KeptDraw, Array]]):
    """One run of the sampler. The theta step sees all cells of y as one row, correlated by C."""

    changing = ("_tuning", "_state", "_numbers")

    def __init__(self, problem: Problem, plan: Plan, prior: GP, kernel: Kernel) -> None:
        self._problem, self._plan, self._kernel, nodes = problem, plan, kernel, problem.data.x[:0]
        self._unknowns, linear = Unknowns.of(problem, prior), _without_projection(problem)
        self._points = hyperparameter_points(problem, prior, linear, self._unknowns, nodes)
        self._gaussian = GaussianModel(problem, linear, prior, self._unknowns, nodes)
        self._samplers = hyperparameter_samplers(problem, prior, nodes)
        self._evidence = np.concatenate([self._gaussian.evidence(v[None]) for v in self._points])
        self._laws: dict[int, tuple[GaussianLaw, Array]] = {}
        self._sd, self._cells = np.sqrt(np.diag(problem.noise.cov)), problem.data.observed.ravel()
        self._y = (problem.complete_y / self._sd).reshape(1, 1, -1)
        self._model = ThetaModel(problem.parameters, self._simulated, self._gradient, self._law(0)[1][None])
        self._numbers = np.array([rng.integers(len(self._points)) for rng in plan.rngs])
        self._tuning = kernel.tune(self._model, problem.theta_tilde)
        self._state = self._model.state(dispersed_starts(self._model, problem.theta_tilde, plan.rngs))

    def _simulated(self, theta: Array) -> Array:
        values = self._problem.simulator.batch(self._problem.data.x, theta)
        return np.asarray((values / self._sd).reshape(len(theta), 1, -1))

    def _gradient(self, theta: Array) -> Array:
        slopes = self._problem.simulator.gradient(self._problem.data.x, theta)
        return np.asarray((slopes / self._sd[:, None]).reshape(1, -1, len(theta)))

    def _law(self, number: int) -> tuple[GaussianLaw, Array]:
        """Of a point, with C^-1 at all cells, zero at those that are missing."""
        if number not in self._laws:
            law = self._gaussian.law(self._points[number])
            precision = np.zeros((len(self._cells), len(self._cells)))
            precision[np.ix_(self._cells, self._cells)] = cho_solve((law.lower, True), np.eye(len(law.lower)))
            self._laws[number] = law, precision
        return self._laws[number]

    def draws(self) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        log_values = np.stack([own for _, own in kept], axis=1)
        stats = hyperparameter_stats(self._samplers, self._unknowns, log_values)
        samplers = [sampler for sampler, _ in self._samplers]
        notes = RunNotes(inner_steps(self._tuning), bias=tuple(sampler.findings() for sampler in samplers))
        found = finished(self._problem, [draw for draw, _ in kept], samplers=samplers, notes=notes)
        return replace(found, stats=found.stats | stats)

    def step(self) -> tuple[Array, Array]:
        precision = np.stack([self._law(number)[1][None] for number in self._numbers])
        target = Conditional(self._model, np.broadcast_to(self._y, self._state.model.shape), precision)
        self._state, self._info = self._kernel.step(self._plan.rngs, self._tuning, self._state, target)
        self._moved = np.array([self._move(c, rng) for c, rng in enumerate(self._plan.rngs)])
        return self._state.theta, self._info.tuned

    def adapt(self, *window: Array) -> None:
        self._tuning = self._kernel.adapt(self._tuning, self._model, *window)

    def _left(self, c: int) -> Array:
        """What theta leaves at the cells of a chain."""
        return np.asarray((self._y - self._state.model)[c, 0, self._cells])

    def _move(self, c: int, rng: np.random.Generator) -> float:
        """Proposals of another point in a chain; the share accepted."""
        left, accepted = self._left(c), 0
        proposals = [self._numbers[c], *rng.integers(len(self._points), size=PROPOSALS)]
        fits = [self._gaussian.log_likelihood(self._law(one)[0], left) - self._evidence[one] for one in proposals]
        now = fits[0]
        for number, then in zip(proposals[1:], fits[1:], strict=True):
            if np.log1p(-rng.random()) < then - now:
                self._numbers[c], now, accepted = number, then, accepted + 1
        return accepted / PROPOSALS

    def kept(self) -> tuple[KeptDraw, Array]:
        problem, unknowns, gaussian = self._problem, self._unknowns, self._gaussian
        laws, vectors = [self._law(number)[0] for number in self._numbers], self._points[self._numbers]
        left = [self._left(c) for c in range(len(laws))]
        bias = np.stack(list(map(gaussian.draw_bias, self._plan.rngs, laws, left)))
        log_values = np.stack(list(map(unknowns.log_sd_and_lengths, vectors)))
        likelihood = np.array(list(map(gaussian.log_likelihood, laws, left)))
        lp = problem.parameters.log_prior(self._state.theta) + likelihood + list(map(unknowns.log_prior, vectors))
        stats = {"acceptance_rate": self._info.acceptance, "hyperparameter_acceptance_rate": self._moved}
        records, noise = hyperparameter_records(self._samplers, log_values, bias), dict[str, Array]()
        if unknowns.noise:
            own = noise_sampler(problem.noise)
            noise = own.fields(own.precision(np.stack(list(map(unknowns.noise_cov, vectors)))))
        model = problem.whiten(self._state.model.reshape(len(laws), *problem.data.y.shape) * self._sd)
        return KeptDraw.of(self._state.theta, model, bias, {"lp": lp, **stats}, records, noise), log_values


def _without_projection(problem: Problem) -> Linear:
    """The simulator around theta_tilde, for a bias that nothing is taken from; what has no effect keeps its prior."""
    gradient, spread = problem.gradient_at_data, problem.parameters.spread
    pull, precision = problem.parameters.gaussian_part(problem.parameters.clipped(problem.theta_tilde, 1e-6))
    own = np.diag(precision)
    precision = precision + np.diag(np.where(own > 0, 0.0, 1 / spread**2))
    length = np.sqrt(np.sum(gradient**2, axis=(0, 1)))
    unit = np.where(length > 0, 1 / np.where(length > 0, length, 1.0), spread)
    nowhere = np.zeros((0, *gradient.shape[1:]))
    return Linear(gradient, nowhere, np.zeros((len(unit), 0)), pull, precision, unit)


@listed
@dataclass(frozen=True)
class KO(ListedMethod):
    """theta | y with y - f(theta) ~ N(0, K + noise): the bias is integrated out and not constrained.

    Theta and the bias cannot be told apart: the posterior is wide, and it depends on the prior of the bias however
    many data there are. It is here for comparison.

    Parameters
    ----------
    nu, sd, lengthscale
        Of the bias, as for ``oc.bias.GP``.
    hyperparameters
        What happens to an sd and length-scales that are not given: ``"marginal-likelihood"`` fixes them at their best
        values for the residual at theta_tilde; ``"sample"`` integrates over them, with the priors of ``oc.bias.GP``,
        and so does every run where the noise is sampled. The draws are in ``posterior.data["sample_stats"]``: ``sd_k``
        and ``lengthscale_k_j`` for outcome k and input j, from 0 on, with sd in the unit of the outcome.
    kernel
        How theta is drawn, see ``orthocal.kernels``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> settings = {"draws": 100, "chains": 2, "seed": 1, "progress": False}
    >>> ko = oc.calibrate(problem, oc.methods.KO(nu=2.5), **settings)
    >>> gp = oc.calibrate(problem, "gp", **settings)
    >>> bool(ko.theta.std() > 1.5 * gp.theta.std())
    True
    """

    kind: ClassVar[str] = "ko"
    cost: ClassVar[RunCost | None] = CHAIN_COST
    tells_apart: ClassVar[bool] = False
    free_bias: ClassVar[bool] = True

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    hyperparameters: Literal["marginal-likelihood", "sample"] = "marginal-likelihood"
    kernel: Kernel = field(default_factory=Laplace)

    def __post_init__(self) -> None:
        self._prior()
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # with both given there is nothing to sample
        free = self.hyperparameters == "sample" and (self.sd is None or self.lengthscale is None)
        if free or problem.noise.source is NoiseSource.UNKNOWN:
            return _IntegratedRun(problem, plan, self._prior(), self.kernel).draws()
        bias = gaussian_bias(problem, self._prior(), np.empty((0, problem.data.d)))
        return sample(problem, plan, lambda precision: free_bias(bias, bias.joint(None, precision)), bias, self.kernel)

    def words(self) -> str:
        return (
            "The bias is a Gaussian process that nothing constrains, so theta and the bias cannot be told apart: where "
            "there is a bias, the posterior of theta is wide, it depends on the bias's prior, and more data do not "
            "help."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bias": self._prior().describe(),
            "hyperparameters": self.hyperparameters,
            "kernel": self.kernel.describe(),
        }

    def _prior(self) -> GP:
        return GP(self.nu, self.sd, self.lengthscale)


def free_bias(bias: OutcomesBias, joint: JointGP) -> Marginal:
    """Theta's marginal posterior with a bias that nothing constrains."""

    def draw(rngs: list[np.random.Generator], theta: Array, residual: Array) -> DrawnBias:
        state, values = bias.gathered(joint.draw(rngs, residual))
        return DrawnBias(values[:, : residual.shape[1]], bias.records(state), {})

    return Marginal(joint.evidence_precision(), draw)

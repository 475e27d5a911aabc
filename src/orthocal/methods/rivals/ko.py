"""Kennedy and O'Hagan (2001): a Gaussian-process bias that is left free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import cho_solve

from ...arrays import Array
from ...bias import GP
from ...bias.gp import check_hyperparameters
from ...bias.gp_sampler import JointGP
from ...bias.outcomes import OutcomesBias
from ...kernels import Kernel, Laplace
from ...kernels.base import Conditional, ThetaModel, dispersed_starts, require_kernel
from ...kernels.laplace import inner_steps
from ...kernels.warmup import Stepper, run_chains
from ...problem.preflight.cost import RunCost
from ...problem.problem import Problem
from ..base import CHAIN_COST, Draws, ListedMethod, Plan, RunNotes, listed
from ..hyperparameters import HyperState, Walks, hyper_outcomes, require_separate_outcomes
from ..sampled_noise import NoiseSampler
from ..stored_draws import KeptDraw, finished
from .marginal import DrawnBias, Marginal, gaussian_bias, sample

# Kennedy and O'Hagan's method with the hyperparameters of the bias sampled together with theta.
#
# In whitened coordinates, for each outcome k, y_k - f_k(theta) ~ N(0, S_k), S_k = sd_k^2 R(lengthscale_k) + noise. Each
# iteration: (1) theta ~ Pi(theta | S, y); (2) some Metropolis steps on the hyperparameters of each outcome given theta;
# and for a kept draw (3) b ~ Pi(b | theta, S, y).


def sample_with_hyperparameters(problem: Problem, plan: Plan, prior: GP, kernel: Kernel) -> Draws:
    """Draws of theta, of the hyperparameters that ``prior`` does not give, and of the bias."""
    require_separate_outcomes(problem)
    return _KORun(problem, plan, prior, kernel).draws()


class _KORun(Stepper[tuple[KeptDraw, Array]]):
    """One run of the sampler. The theta step sees an outcome as a row, whose cells are correlated by S_k."""

    changing = ("_precision", "_tuning", "_state", "_walks.places", "_typical")

    def __init__(self, problem: Problem, plan: Plan, prior: GP, kernel: Kernel) -> None:
        self._problem, self._plan = problem, plan
        self._y = problem.whiten(problem.complete_y).T
        self._outcomes = hyper_outcomes(problem, prior, problem.data.x[:0])
        self._walks = Walks(self._outcomes, plan.rngs)
        self._precision = np.stack([self._precision_of(states) for states in self._walks.states])
        self._model = ThetaModel(
            problem.parameters,
            lambda theta: problem.whiten(problem.simulator.batch(problem.data.x, theta)).swapaxes(1, 2),
            lambda theta: problem.whitened_gradient(problem.data.x, theta).swapaxes(0, 1),
            self._precision_of([walk.state(walk.prior.mean) for walk in self._walks.each]),
        )
        tilde = problem.theta_tilde
        self._kernel = kernel
        self._tuning = self._kernel.tune(self._model, tilde)
        self._state = self._model.state(dispersed_starts(self._model, tilde, plan.rngs))

    def draws(self) -> Draws:
        kept = run_chains(self, self._plan.warmup, self._plan.draws, self._plan.rngs)
        drawn = np.stack([log_values for _, log_values in kept], axis=1)
        for k, outcome in enumerate(self._outcomes):
            outcome.sampler.summarise(drawn[:, :, k], outcome.prior.free)
        samplers = [outcome.sampler for outcome in self._outcomes]
        notes = RunNotes(inner_steps(self._tuning), bias=tuple(sampler.findings() for sampler in samplers))
        return finished(self._problem, [draw for draw, _ in kept], samplers=samplers, notes=notes)

    def step(self) -> tuple[Array, Array, Array, Array]:
        y = np.broadcast_to(self._y, self._state.model.shape)
        target = Conditional(self._model, y, self._precision)
        self._state, self._info = self._kernel.step(self._plan.rngs, self._tuning, self._state, target)
        self._accepted = self._move(self._y - self._state.model)
        return self._state.theta, self._info.tuned, self._walks.log_values(), self._accepted

    def adapt(self, *window: Array) -> None:
        thetas, acceptance, log_values, accepted = window
        self._walks.adapt(log_values, accepted)
        means = log_values.mean(axis=(0, 1))
        typical = [walk.state(mean) for walk, mean in zip(self._walks.each, means, strict=True)]
        self._model = self._model._replace(precision=self._precision_of(typical))
        self._tuning = self._kernel.adapt(self._tuning, self._model, thetas, acceptance)

    def _move(self, residual: Array) -> Array:
        """Metropolis steps on all hyperparameters given the residual (c, q, n); the shares accepted, (c, q)."""
        accepted = self._walks.move(residual)
        for c in np.flatnonzero(accepted.any(axis=1)):
            self._precision[c] = self._precision_of(self._walks.states[c])
        return accepted

    def _precision_of(self, states: list[HyperState]) -> Array:
        """S^-1 of each outcome, (q, n, n), with zeros where a cell is missing."""
        n = self._problem.data.n
        whole = np.zeros((len(states), n, n))
        for k, (state, outcome) in enumerate(zip(states, self._outcomes, strict=True)):
            rows = np.flatnonzero(outcome.points.informed)
            whole[k][np.ix_(rows, rows)] = cho_solve((state.lower, True), np.eye(len(rows)))
        return whole

    @property
    def _typical(self) -> Array:
        """What of the model is tuned."""
        return self._model.precision

    @_typical.setter
    def _typical(self, precision: Array) -> None:
        self._model = self._model._replace(precision=precision)

    def kept(self) -> tuple[KeptDraw, Array]:
        state, records = self._state, dict[str, Array]()
        residual, log_values = self._y - state.model, self._walks.log_values()
        bias = np.empty_like(residual)
        # the state's own log_prior is that of theta: there is no other part of the density in it
        lp = state.log_prior.copy()
        stats = {
            "acceptance_rate": self._info.acceptance,
            "hyperparameter_acceptance_rate": self._accepted.mean(axis=1),
        }
        for k, outcome in enumerate(self._outcomes):
            for c, states in enumerate(self._walks.states):
                lp[c] += self._walks.each[k].log_density(states[k], residual[c, k, outcome.points.informed])
            record, bias[:, k] = self._walks.draw_bias(k, residual[:, k])
            records |= {f"{name}_{k}": value for name, value in record.items()}
            stats |= outcome.named(k, log_values[:, k])
        precision = self._walks.noise_precision()
        noise = {} if precision is None else {"noise_cov": NoiseSampler(self._problem.noise).covariance(precision)}
        model, bias = state.model.swapaxes(1, 2), bias.swapaxes(1, 2)
        return KeptDraw.of(state.theta, model, bias, {"lp": lp, **stats}, records, noise), log_values


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
        values for the residual at theta_tilde; ``"sample"`` draws them together with theta, for each whitened outcome,
        with the independent priors

            log sd ~ N(log s, 1.5^2),   log lengthscale_j ~ N(log(0.3 span_j), 1)

        where s is the root mean square of the residual at theta_tilde (of the noise, where the simulator fits exactly)
        and span_j the domain's width. So 95 % of the prior lie within a factor of 19 of s, and between 0.04 and 2.1
        domain widths. The cost grows as n^3, and n is at most 1000: four chains of 1000 draws take about ten seconds
        for n = 100, and a quarter of an hour for n = 1000. The draws are in ``posterior.data["sample_stats"]``:
        ``sd_k`` and ``lengthscale_k_j`` for outcome k and input j, from 0 on, with sd in the unit of the outcome.
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
        check_hyperparameters(self.hyperparameters)
        require_kernel(self.kernel)

    def run(self, problem: Problem, plan: Plan) -> Draws:
        # with both given there is nothing to sample
        if self.hyperparameters == "sample" and (self.sd is None or self.lengthscale is None):
            return sample_with_hyperparameters(problem, plan, self._prior(), self.kernel)
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

"""Does a theta kernel keep the contract of ``orthocal.kernels.base``?

The simulator of these checks is linear and the priors are Gaussian, so Pi(theta | b*, y) is known: chains that begin
with draws from it must go on with draws from it, independent of each other.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from scipy import stats

from ..arrays import Array
from ..kernels import Kernel
from ..kernels.base import Conditional, Rngs, StepInfo, ThetaModel, ThetaState
from ..problem.prior.parameters import Parameters
from ..problem.prior.priors import Distribution
from .base import check_clauses, require

#: a true kernel fails one of the three clauses on distributions with this probability, for the seeds at hand
FALSE_ALARM = 1e-4


def check_kernel(kernel: Kernel, chains: int = 200, steps: int = 4, seed: int = 0) -> list[str]:
    """Check that a theta kernel keeps the contract of ``orthocal.kernels.base``; the clauses that were checked.

    Parameters
    ----------
    kernel
        The kernel.
    chains, steps
        Chains of the checks of distributions, and their steps: after so many a bad start must be forgotten.
    seed
        Of the made-up data.

    Raises
    ------
    ContractError
        At the first clause that is not kept.

    Examples
    --------
    >>> import orthocal as oc
    >>> from orthocal.testing import check_kernel
    >>> check_kernel(oc.kernels.Laplace(), chains=100)[:3]
    ['shapes', 'inputs are left alone', 'determinism']
    """
    return check_clauses(_KernelCheck(kernel, chains, steps, seed))


class _Linear:
    """f(theta) = G theta, of two correlated outcomes at five points with one missing cell; theta is Gaussian."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.prior_var = np.array([1.0, 4.0])
        self.gradient = rng.standard_normal((5, 2, 2))
        self._noise_cov = np.array([[0.4, -0.2], [-0.2, 0.6]])
        self.precision = np.tile(np.linalg.inv(self._noise_cov), (5, 1, 1))
        self.precision[1] = np.diag([0.0, 1 / self._noise_cov[1, 1]])
        priors: dict[str, Distribution] = {"a": stats.norm(0, 1), "b": stats.norm(0, 2)}
        self.model = ThetaModel(Parameters(priors), self.simulate, lambda _: self.gradient, self.precision)
        rows = np.einsum("nqp,nqr->nrp", self.gradient, self.precision)
        self.cov = np.linalg.inv(np.einsum("nrp,nrs->ps", rows, self.gradient) + np.diag(1 / self.prior_var))
        self._pull = np.einsum("ps,nrs->pnr", self.cov, rows)

    def simulate(self, theta: Array) -> Array:
        return np.asarray(np.einsum("nqp,cp->cnq", self.gradient, theta))

    def observed(self, rng: np.random.Generator, theta: Array) -> Array:
        """y - b* given theta (c, p), (c, n, q); anything in the missing cell."""
        noise = rng.standard_normal((len(theta), 5, 2)) @ np.linalg.cholesky(self._noise_cov).T
        return np.asarray(self.simulate(theta) + noise)

    def whitened(self, theta: Array, offset: Array) -> Array:
        """theta (c, p) less its conditional mean, in units of its conditional spread: standard normal, (c, p)."""
        mean = np.einsum("pnr,cnr->cp", self._pull, offset)
        return np.asarray(np.linalg.solve(np.linalg.cholesky(self.cov), (theta - mean).T).T)

    def exact(self, normal: Array, offset: Array) -> Array:
        """The theta (c, p) whose ``whitened`` is ``normal``."""
        return np.asarray(
            np.einsum("pnr,cnr->cp", self._pull, offset) + normal @ np.linalg.cholesky(self.cov).T,
        )


class _KernelCheck:
    def __init__(self, kernel: Kernel, chains: int, steps: int, seed: int) -> None:
        self._kernel, self._chains, self._steps, self._seed = kernel, chains, steps, seed
        self._rng = np.random.default_rng([seed, 0])
        self._linear = _Linear(self._rng)
        self._tuning = self._tuned(self._linear.model, np.zeros(2))

    def shapes(self) -> None:
        target, state = self._problem(3)
        new, info = self._step(self._rngs(3), state, target)
        for name, value, shape in (
            ("state.theta", new.theta, (3, 2)),
            ("state.model", new.model, (3, 5, 2)),
            ("state.log_prior", new.log_prior, (3,)),
            ("info.acceptance", info.acceptance, (3,)),
            ("info.log_density", info.log_density, (3,)),
        ):
            require(np.shape(value) == shape, f"{name} has shape {np.shape(value)}, expected {shape}")
        kept = np.allclose(new.model, self._linear.simulate(new.theta))
        require(kept, "state.model is not the simulator at state.theta")
        kept = np.allclose(info.log_density, target.log_density(new))
        require(kept, "info.log_density is not that of the new state")
        require(bool(np.all((info.acceptance >= 0) & (info.acceptance <= 1))), "info.acceptance is no share")

    def inputs_are_left_alone(self) -> None:
        target, state = self._problem(3)
        before = copy.deepcopy([*state, target.offset])
        self._step(self._rngs(3), state, target)
        for name, old, new in zip((*state._fields, "offset"), before, (*state, target.offset), strict=True):
            require(np.array_equal(old, new), f"a step changed the {name} it was given in place")

    def determinism(self) -> None:
        target, state = self._problem(3)
        first, again, other = (self._step(self._rngs(3, seed), state, target)[0].theta for seed in (0, 0, 1))
        require(np.array_equal(first, again), "the same generators gave different draws")
        require(not np.array_equal(first, other), "different generators gave the same draws")

    def a_saved_state_goes_on(self) -> None:
        target, state = self._problem(3)
        rngs = self._rngs(3)
        state, _ = self._step(rngs, state, target)
        saved, saved_rngs = copy.deepcopy(state), copy.deepcopy(rngs)
        for _ in range(3):
            state, _ = self._step(rngs, state, target)
            saved, _ = self._step(saved_rngs, saved, target)
        require(np.array_equal(state.theta, saved.theta), "a saved state and generators did not go on in the same way")

    def bounds_and_failures_are_honoured(self) -> None:
        """theta ~ U(0, 1) is pulled to the bound at 0; the simulator fails above 0.5."""
        asked: list[Array] = []

        def simulate(theta: Array) -> Array:
            asked.append(np.array(theta))
            return np.where(theta[:, :, None] > 0.5, np.nan, np.tile(theta[:, :, None], (1, 4, 1)))

        parameters = Parameters({"t": stats.uniform(0, 1)})
        model = ThetaModel(parameters, simulate, lambda _: np.ones((4, 1, 1)), np.full((4, 1), 6.0))
        tuning = self._tuned(model, np.array([0.2]))
        state, rngs = model.state(np.full((4, 1), 0.2)), self._rngs(4)
        target = Conditional(model, np.full((4, 4, 1), -0.2))
        for _ in range(10):
            state, _ = self._kernel.step(rngs, tuning, state, target)
            inside = bool(parameters.inside(state.theta).all())
            require(inside, f"a draw lies outside of the prior's support: {state.theta.ravel()}")
            require(bool((state.theta <= 0.5).all()), "a draw lies where the simulator fails")
        inside = bool(parameters.inside(np.concatenate(asked)).all())
        require(inside, "the simulator was called outside of the prior's support")

    def missing_cells_do_not_matter(self) -> None:
        """Their precision is zero."""
        target, state = self._problem(3)
        offset = target.offset.copy()
        offset[:, 1, 0] += 1e3
        first, _ = self._step(self._rngs(3), state, target)
        other, _ = self._step(self._rngs(3), state, target._replace(offset=offset))
        require(np.allclose(first.theta, other.theta, rtol=1e-6), "what stands in a missing cell changes the draws")

    def a_gaussian_conditional_is_left_invariant(self) -> None:
        target, state = self._problem(self._chains)
        rngs = self._rngs(self._chains)
        for _ in range(self._steps):
            state, _ = self._step(rngs, state, target)
        found = self._linear.whitened(state.theta, target.offset)
        self._require_normal(found, "draws from the conditional do not stay draws from it")

    def a_moved_target_is_honoured(self) -> None:
        """Geweke's joint test: y given theta, theta given y, in turn, with a precision of the noise for each chain."""
        linear = self._linear
        theta = self._rng.standard_normal((self._chains, 2)) * np.sqrt(linear.prior_var)
        state, rngs = linear.model.state(theta), self._rngs(self._chains, 2)
        own = np.broadcast_to(linear.precision, (self._chains, 5, 2, 2))
        for _ in range(self._steps):
            target = Conditional(linear.model, linear.observed(self._rng, state.theta), own)
            state, _ = self._step(rngs, state, target)
        found = linear.whitened(state.theta, target.offset)
        self._require_normal(found, "with data drawn anew before every step the draws do not follow the last ones")

    def a_bad_start_is_forgotten(self) -> None:
        target, _ = self._problem(self._chains)
        far = np.full((self._chains, 2), 4.0)
        state, rngs = self._linear.model.state(self._linear.exact(far, target.offset)), self._rngs(self._chains, 3)
        for _ in range(self._steps):
            state, _ = self._step(rngs, state, target)
        found = self._linear.whitened(state.theta, target.offset)
        self._require_normal(found, f"{self._steps} steps from four sds away are no draws from the conditional")

    def the_description_can_be_stored(self) -> None:
        stored = self._kernel.describe()
        require(json.loads(json.dumps(stored)) == stored, "describe() does not survive JSON")

    def _require_normal(self, values: Array, what: str) -> None:
        """Kolmogorov and Smirnov on each of both coordinates and on their joint size."""
        samples = [(values[:, 0], stats.norm()), (values[:, 1], stats.norm()), ((values**2).sum(axis=1), stats.chi2(2))]
        p = min(float(stats.kstest(sample, law.cdf).pvalue) for sample, law in samples)
        # three clauses of three tests
        require(p > FALSE_ALARM / 9, f"{what} (p = {p:.1g})")

    def _problem(self, chains: int) -> tuple[Conditional, ThetaState]:
        """A conditional for each chain, and a state drawn from it."""
        linear = self._linear
        offset = linear.observed(self._rng, self._rng.standard_normal((chains, 2)))
        theta = linear.exact(self._rng.standard_normal((chains, 2)), offset)
        return Conditional(linear.model, offset), linear.model.state(theta)

    def _tuned(self, model: ThetaModel, pivot: Array) -> Any:
        """The tuning after two windows of warm-up."""
        tuning, rngs = self._kernel.tune(model, pivot), self._rngs(4, 4)
        state = model.state(np.tile(pivot, (4, 1)))
        target = Conditional(model, np.array(state.model))
        for _ in range(2):
            window = []
            for _ in range(10):
                state, info = self._kernel.step(rngs, tuning, state, target)
                window.append((state.theta, info.acceptance))
            thetas, acceptance = (np.stack(part) for part in zip(*window, strict=True))
            tuning = self._kernel.adapt(tuning, model, thetas, acceptance)
        return tuning

    def _step(self, rngs: Rngs, state: ThetaState, target: Conditional) -> tuple[ThetaState, StepInfo]:
        return self._kernel.step(rngs, self._tuning, state, target)

    def _rngs(self, chains: int, seed: int = 0) -> Rngs:
        return [np.random.default_rng(one) for one in np.random.SeedSequence([self._seed, 1 + seed]).spawn(chains)]

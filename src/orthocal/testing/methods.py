"""Does a calibration method keep the contract of ``orthocal.methods.base``?

The made-up simulators are linear in theta, so that their gradient is the same everywhere and a method may be orthogonal
to it at theta_tilde or at its own theta.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy import stats

from ..arrays import Array
from ..calibration import calibrate
from ..errors import OrthocalError
from ..methods import Draws, Method, Plan
from ..problem import Box, Problem
from ..problem.prior.priors import Distribution
from ..results import Posterior
from .base import ContractError, check_clauses, require

CHAINS = 2
#: how far a bias that is predicted at known points may lie from the draws, as a share of its size
ROUNDING = 1e-4


def check_method(method: Method, draws: int = 10, warmup: int = 25, seed: int = 0) -> list[str]:
    """Check that a method keeps the contract of ``orthocal.methods.base``; the clauses that were checked.

    Parameters
    ----------
    method
        The method.
    draws, warmup
        Of each chain, in every run.
    seed
        Of the made-up data.

    Raises
    ------
    ContractError
        At the first clause that is not kept.

    Examples
    --------
    >>> import orthocal as oc
    >>> from orthocal.testing import check_method
    >>> check_method(oc.methods.NoBias())[:3]
    ['shapes', 'the model is the simulator at theta', 'inputs are left alone']
    """
    return check_clauses(_MethodCheck(method, draws, warmup, seed))


class _MethodCheck:
    def __init__(self, method: Method, draws: int, warmup: int, seed: int) -> None:
        self._method, self._draws, self._warmup, self._seed = method, draws, warmup, seed
        self._problems = [_one_outcome()]
        self._results = [self._run(self._problems[0])]
        self._posteriors: list[Posterior] = []
        # a method may be made for one outcome, or for complete rows, if it says so
        with suppress(OrthocalError):
            problem = _two_outcomes()
            self._results.append(self._run(problem))
            self._problems.append(problem)

    def shapes(self) -> None:
        for problem, result in zip(self._problems, self._results, strict=True):
            (n, q), p = problem.data.y.shape, problem.parameters.p
            lead = (CHAINS, self._draws)
            expected = {"theta": (*lead, p), "model": (*lead, n, q), "bias": (*lead, n, q)}
            for name, shape in expected.items():
                _require_array(name, getattr(result, name), shape)
            for name in {"lp", "acceptance_rate", *result.stats}:
                require(name in result.stats, f"stats has no {name!r}")
                _require_array(f"stats[{name!r}]", result.stats[name], lead)
            for name, value in result.bias_state.items():
                found = np.shape(value)[:2]
                require(found == lead, f"bias_state[{name!r}] begins with {found}, expected (chain, draw) = {lead}")

    def the_model_is_the_simulator_at_theta(self) -> None:
        for problem, result in zip(self._problems, self._results, strict=True):
            require(bool(problem.parameters.inside(result.theta).all()), "a draw lies outside of the prior's support")
            expected = problem.simulator.batch(problem.data.x, result.theta.reshape(-1, problem.parameters.p))
            kept = np.allclose(result.model.reshape(expected.shape), expected, rtol=1e-10, atol=1e-12)
            require(kept, "model is not the simulator at theta, in the outcomes' units")

    def inputs_are_left_alone(self) -> None:
        problem, fresh = self._problems[0], _one_outcome()
        for name in ("x", "y"):
            kept = np.array_equal(getattr(fresh.data, name), getattr(problem.data, name))
            require(kept, f"the run changed the problem's {name} in place")

    def determinism(self) -> None:
        """The same Problem is used again: nothing of the first run may stick to it."""
        first = self._results[0]
        other, again = (self._run(self._problems[0], seed) for seed in (1, 0))
        for name in ("theta", "bias"):
            kept = np.array_equal(getattr(first, name), getattr(again, name))
            require(kept, f"the same generators gave a different {name}")
        require(not np.array_equal(first.theta, other.theta), "different generators gave the same theta")

    def the_description_can_be_stored(self) -> None:
        stored = self._method.describe()
        require(json.loads(json.dumps(stored)) == stored, "describe() does not survive JSON")

    def the_simulator_may_fail(self) -> None:
        """A theta for which the simulator returns NaN is impossible."""
        result = self._run(_one_outcome(lambda x, t: np.where(t[1] > 2.2, np.nan, _line(x, t))))
        require(bool((result.theta[..., 1] <= 2.2).all()), "theta was drawn where the simulator fails")

    def predictions_continue_the_draws(self) -> None:
        """Through the whole calibration, which labels and stores the draws."""
        for problem in self._problems:
            posterior = calibrate(problem, self._method, self._draws, CHAINS, 0, self._warmup, progress=False)
            self._posteriors.append(posterior)
            stored = np.asarray(posterior.data["bias"]["bias"])
            gap = float(np.abs(posterior.predict(problem.data.x)["bias"].values - stored).max())
            size = float(np.abs(stored).max())
            require(
                gap <= ROUNDING * size, f"the bias that is predicted at the data differs from the draws by {gap:.2g}"
            )

    def orthogonality_where_it_is_claimed(self) -> None:
        """<b, df/dtheta_j> = 0 over the domain, or over the data points, if there is an ``orthogonality_error``."""
        for problem, posterior in zip(self._problems, self._posteriors, strict=True):
            if "orthogonality_error" not in posterior.data["sample_stats"]:
                continue
            claimed = float(posterior.data["sample_stats"]["orthogonality_error"].max())
            require(claimed < 1e-10, f"the method's own orthogonality_error is {claimed:.2g}")
            rules = [(problem.rule.nodes, problem.rule.weights), (problem.data.x, problem.volumes)]
            cosine = min(_cosine(problem, posterior, *rule) for rule in rules)
            require(
                cosine < ROUNDING, f"the bias is not orthogonal to df/dtheta, as it claims: its cosine is {cosine:.2g}"
            )

    def what_it_cannot_do_is_refused(self) -> None:
        """It works, or it says what is wrong with an ``OrthocalError``."""
        hard: dict[str, Callable[[], Problem]] = {
            "sampled noise": lambda: _one_outcome(noise_cov="sample"),
            "sampled noise and missing cells": lambda: _two_outcomes(noise_cov="sample"),
            "collinear parameters": lambda: _one_outcome(lambda x, t: (t[0] + t[1]) * x[:, 0]),
            "a parameter of no effect": lambda: _one_outcome(lambda x, t: t[1] * x[:, 0]),
            "a simulator that always fails": lambda: _one_outcome(lambda x, t: np.full(len(x), np.nan)),
        }
        for what, make in hard.items():
            try:
                result = self._run(make())
            except OrthocalError:
                continue
            except Exception as error:
                said = f"{type(error).__name__} ({error})"
                raise ContractError(f"{what}: {said} where an OrthocalError should say what to do") from error
            require(bool(np.isfinite(result.theta).all()), f"{what}: draws of theta that are not finite")

    def _run(self, problem: Problem, seed: int = 0) -> Draws:
        rngs = [np.random.default_rng(one) for one in np.random.SeedSequence([self._seed, seed]).spawn(CHAINS)]
        return self._method.run(problem, Plan(self._draws, self._warmup, rngs))


def _line(x: Array, theta: Array) -> Array:
    return np.asarray(theta[0] + theta[1] * x[:, 0])


def _one_outcome(simulator: Callable[[Array, Array], Array] = _line, noise_cov: float | str = 0.04) -> Problem:
    rng = np.random.default_rng(0)
    x = rng.random((20, 1))
    y = 1 + 2 * x[:, 0] + np.sin(5 * x[:, 0]) + 0.2 * rng.standard_normal(20)
    return Problem(x, y, simulator, _priors(), Box(0, 1), noise_cov, starts=2)


def _two_outcomes(noise_cov: tuple[tuple[float, float], ...] | str = ((0.04, 0.01), (0.01, 0.09))) -> Problem:
    """Correlated noise, two missing cells and a row without any observation."""
    rng = np.random.default_rng(1)
    x = rng.random((20, 1))
    y = np.column_stack([_line(x, np.ones(2)), np.sin(5 * x[:, 0])]) + 0.2 * rng.standard_normal((20, 2))
    y[[0, 3, 7, 7], [1, 0, 0, 1]] = np.nan
    return Problem(
        x, y, lambda x, t: np.column_stack([_line(x, t), t[1] * x[:, 0] ** 2]), _priors(), Box(0, 1), noise_cov
    )


def _priors() -> dict[str, Distribution]:
    return {"a": stats.norm(0, 3), "b": stats.uniform(-5, 15)}


def _cosine(problem: Problem, posterior: Posterior, points: Array, weights: Array) -> float:
    """The largest |<b, g_j>_W| / (|b|_W |g_j|_W) over draws and parameters, in the outcomes' units."""
    bias = posterior.predict(points, warn=False)["bias"].values
    gradient = problem.simulator.gradient(points, problem.theta_tilde)
    weighted = np.einsum("m,kl,mlp->mkp", weights, problem.weight, gradient)
    inner = np.einsum("csmk,mkp->csp", bias, weighted)
    size = np.sqrt(np.einsum("csmk,m,kl,csml->cs", bias, weights, problem.weight, bias))
    length = np.sqrt(np.einsum("mkp,mkp->p", gradient, weighted))
    return float(np.max(np.abs(inner) / (size[..., None] * length)))


def _require_array(name: str, value: Array, shape: tuple[int, ...]) -> None:
    require(np.shape(value) == shape, f"{name} has shape {np.shape(value)}, expected {shape}")
    require(bool(np.isfinite(value).all()), f"{name} has NaN or infinity")

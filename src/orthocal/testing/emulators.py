"""Does a new emulator keep the contract?"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from scipy.stats import qmc, uniform

from ..arrays import Array
from ..emulators import Emulator, Regressor, emulate
from ..emulators.scikit_learn import FitPredict
from ..errors import InputError
from ..problem import Box, Problem
from ..problem.simulator.emulator import EmulatorLike, emulator_with_draws
from ..runs.table import RunTable
from .base import check_clauses, require

#: the made-up simulator's parameters, in units of their own, and its points
NAMES, LOW, HIGH = ("a", "b"), np.array([1.0, -3.0]), np.array([2.0, 5.0])
X = np.linspace(0, 1, 6)[:, None]
#: an emulator must leave less of the spread of runs that it has not seen
MOST_ERROR = 0.5
#: and its gradient must be that of the function within this share, seen by differences over this share of the runs'
#: range to either side
MOST_GRADIENT_ERROR, DIFFERENCE = 0.35, 0.1

#: draws that are looked at; their mean is within so many standard errors, and so much of the runs' spread, of it
DRAWS, MOST_AWAY, MOST_SMOOTHED = 8, 8.0, 0.2

Given: TypeAlias = str | Regressor | FitPredict | Callable[[RunTable], EmulatorLike]


def check_emulator(emulator: Given, runs: int = 32, seed: int = 0) -> list[str]:
    """Check that an emulator keeps the contract of ``orthocal.problem.simulator.emulator``; its clauses.

    Parameters
    ----------
    emulator
        What ``oc.emulate`` takes: a name, settings, or an object with ``fit`` and ``predict``. Or a function that makes
        an emulator of an ``oc.RunTable``.
    runs
        Number of runs of the made-up simulator; more for an emulator that learns slowly.
    seed
        Of the made-up data.

    Raises
    ------
    ContractError
        At the first clause that is not kept.

    Examples
    --------
    >>> import orthocal as oc
    >>> from orthocal.testing import check_emulator
    >>> check_emulator(oc.emulators.GP(nu=2.5), runs=16)[:3]
    ['it is an emulator', 'shapes', 'arguments stay as they are']
    """
    return check_clauses(_EmulatorCheck(emulator, runs, seed))


def simulate(x: Array, theta: Array) -> Array:
    """Two outcomes of very different size, smooth in theta, (m, 2)."""
    a, b = (theta - LOW) / (HIGH - LOW)
    wave = np.sin(1.5 * x[:, 0])
    return np.stack([100 + 20 * (wave * a + b) + 5 * a * b, 1e-3 * (b * x[:, 0] + a + 0.5 * a**2)], axis=1)


class _EmulatorCheck:
    def __init__(self, emulator: Given, runs: int, seed: int) -> None:
        self._given = emulator
        rng = np.random.default_rng(seed)
        unit = qmc.Sobol(len(LOW), rng=rng).random(2 ** int(np.ceil(np.log2(runs))))[:runs]
        self._theta = LOW + unit * (HIGH - LOW)
        self._output = np.stack([simulate(X, theta) for theta in self._theta])
        self._spread = self._output.std(axis=(0, 1))
        self._new = LOW + rng.uniform(0.15, 0.85, (12, len(LOW))) * (HIGH - LOW)
        self._x = [rng.uniform(size=(4 + s % 3, 1)) for s in range(runs)]
        self._made = self._make(RunTable(self._theta, self._output, X, NAMES))

    def it_is_an_emulator(self) -> None:
        require(
            isinstance(self._made, EmulatorLike),
            f"{type(self._made).__name__} lacks some of __call__, gradient, variance, has_variance, outside and "
            "parameter_names",
        )
        names = tuple(self._made.parameter_names)
        require(names == NAMES, f"the runs have the parameters {NAMES}, the emulator {names}")

    def shapes(self) -> None:
        for x in (X, X[:3] + 0.03):
            self._require_shape("a call", self._made(x, self._new[0]), (len(x), 2))
            self._require_shape("the gradient", self._made.gradient(x, self._new[0]), (len(x), 2, 2))

    def arguments_stay_as_they_are(self) -> None:
        x, theta = X.copy(), self._new[0].copy()
        for function in (self._made, self._made.gradient):
            function(x, theta)
            require(np.array_equal(x, X) and np.array_equal(theta, self._new[0]), "x or theta was changed in place")

    def determinism(self) -> None:
        first, again = (self._at(self._made, self._new) for _ in range(2))
        require(np.array_equal(first, again), "the same theta gave different output")
        other = self._make(RunTable(self._theta, self._output, X, NAMES))
        require(np.array_equal(first, self._at(other, self._new)), "the same runs and seed gave another emulator")

    def threads(self) -> None:
        expected = self._at(self._made, self._new)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda theta: self._made(X, theta), self._new))
        require(np.array_equal(expected, np.stack(found)), "calls in threads gave other output than one by one")

    def it_learns(self) -> None:
        self._require_learnt(self._made, "new theta")

    def the_gradient_is_that_of_the_function(self) -> None:
        steps = DIFFERENCE * np.diag(np.ptp(self._theta, axis=0))
        wide = [
            [(self._made(X, theta + h) - self._made(X, theta - h)) / (2 * h.sum()) for h in steps]
            for theta in self._new
        ]
        expected = np.moveaxis(np.array(wide), 1, -1)
        found = np.stack([self._made.gradient(X, theta) for theta in self._new])
        size = np.sqrt(np.mean(expected**2, axis=(0, 1)))
        error = float((np.sqrt(np.mean((found - expected) ** 2, axis=(0, 1))) / size).max())
        require(
            error < MOST_GRADIENT_ERROR,
            f"the gradient differs from differences of the emulator by {error:.2g} of their size",
        )

    def the_variance_covers_the_error(self) -> None:
        """Only of emulators that have one: the usual error is not many sds."""
        if not self._made.has_variance:
            return
        for x in (X, X[:3] + 0.03):
            var = self._made.variance(x, self._new[0])
            self._require_shape("the variance", var, (len(x), 2))
            require(bool((var >= 0).all()), "the variance is negative")
        sd = np.sqrt([self._made.variance(X, theta) for theta in self._new])
        error = np.abs(self._at(self._made, self._new) - self._truth())
        beyond = float((np.median(error / self._spread) - 1e-6) / np.median(sd / self._spread))
        require(beyond < 5, f"the usual error is {beyond:.2g} times the emulator's sd")

    def the_draws_are_functions_about_it(self) -> None:
        """Only of emulators that have some: each a function with a gradient, the same from the same seed."""
        emulator = emulator_with_draws(self._made)
        if emulator is None:
            return
        draws = emulator.draws(DRAWS, 1)
        require(len(draws) == DRAWS, f"draws({DRAWS}, 1) has {len(draws)} members")
        each = []
        for draw in draws:
            self._require_shape("a call of a draw", draw(X, self._new[0]), (len(X), 2))
            self._require_shape("the gradient of a draw", draw.gradient(X, self._new[0]), (len(X), 2, 2))
            each.append(draw(X, self._new[0]))
        again = np.stack([draw(X, self._new[0]) for draw in emulator.draws(DRAWS, 1)])
        require(np.array_equal(np.stack(each), again), "the same seed gave other draws")
        spread = np.std(each, axis=0, ddof=1)
        require(bool((spread > 0).any()), "all draws are the same function")
        away = np.abs(np.mean(each, axis=0) - self._made(X, self._new[0]))
        # smooth draws of step functions differ from their mean by what is smoothed
        room = MOST_AWAY * spread / np.sqrt(DRAWS) + MOST_SMOOTHED * self._spread
        require(bool((away < room).all()), "the draws are not about the emulator: their mean is far from it")

    def where_the_runs_are(self) -> None:
        middle, far = self._theta.mean(axis=0), self._theta.mean(axis=0) + 2 * (HIGH - LOW)
        outside = np.asarray(self._made.outside(np.stack([middle, far])))
        require(outside.shape == (2,), f"outside of two theta has shape {outside.shape}, expected (2,)")
        require(not outside[0], "the mean of the runs counts as outside of them")
        require(bool(outside[1]), "theta far away from all runs does not count as outside")

    def one_outcome(self) -> None:
        made = self._make(RunTable(self._theta, self._output[:, :, 0], X, NAMES))
        self._require_shape("a call with one outcome", made(X, self._new[0]), (len(X), 1))
        self._require_shape("the gradient of one outcome", made.gradient(X, self._new[0]), (len(X), 1, 2))

    def failed_runs_and_missing_cells(self) -> None:
        output = self._output.copy()
        output[3] = np.nan
        # in every third run, each outcome's cells of its own
        output[::3, 2, 0] = output[1::3, 5, 1] = np.nan
        self._require_learnt(self._make(RunTable(self._theta, output, X, NAMES)), "runs with missing cells")

    def runs_at_points_of_their_own(self) -> None:
        output = [simulate(x, theta) for x, theta in zip(self._x, self._theta, strict=True)]
        made = self._make(RunTable(self._theta, output, self._x, NAMES))
        self._require_learnt(made, "runs at points of their own")
        self._require_shape("the gradient", made.gradient(X, self._new[0]), (len(X), 2, 2))

    def its_place_in_a_problem(self) -> None:
        theta = (LOW + HIGH) / 2
        priors = {name: uniform(low, high - low) for name, low, high in zip(NAMES, LOW, HIGH, strict=True)}
        cov = np.diag((0.01 * self._spread) ** 2)
        problem = Problem(X, simulate(X, theta), self._made, priors, domain=Box(0, 1), noise_cov=cov, starts=4)
        require(problem.simulator.gradient_kind == "given", "a problem does not use the emulator's gradient")
        error = float((np.abs(problem.theta_tilde - theta) / (HIGH - LOW)).max())
        require(error < MOST_ERROR, f"the best theta is off by {error:.2g} of the range of the runs")
        try:
            Problem(X, simulate(X, theta), self._made, dict(reversed(priors.items())), noise_cov=cov)
        except InputError:
            return
        require(False, "a problem takes parameters in another order than that of the runs")

    def _make(self, runs: RunTable) -> EmulatorLike:
        given = self._given
        if isinstance(given, str | Regressor | FitPredict):
            made: Emulator = emulate(runs, given, progress=False)
            return made
        return given(runs)

    def _truth(self) -> Array:
        return np.stack([simulate(X, theta) for theta in self._new])

    def _at(self, made: EmulatorLike, theta: Array) -> Array:
        return np.stack([made(X, one) for one in theta])

    def _require_learnt(self, made: EmulatorLike, what: str) -> None:
        error = np.sqrt(np.mean((self._at(made, self._new) - self._truth()) ** 2, axis=(0, 1)))
        left = float((error / self._spread).max())
        # not the other way round, as NaN is not learnt either
        require(left < MOST_ERROR, f"{what}: the error is {left:.2g} of the spread of the runs")

    def _require_shape(self, what: str, found: Array, expected: tuple[int, ...]) -> None:
        require(np.shape(found) == expected, f"{what} returned shape {np.shape(found)}, expected {expected}")
        require(bool(np.isfinite(found).all()), f"{what} returned NaN or infinity")

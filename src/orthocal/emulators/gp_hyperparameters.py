"""Hyperparameters of an emulator's process: the likeliest ones, and, where runs are few, others beside them.

By the values v = log (sd, length-scales, noise variance) of a process with a linear trend whose coefficients have flat
priors, the targets of c components have the restricted likelihood that ``regression/gaussian_process.py`` knows. Few
runs tell v within factors. The likeliest ones then are those of a smoother function than the simulator as often as
not, and what is expected of the errors beside them is too little; so draws of an emulator have draws of v. Their prior
is flat within the bounds of the search, but on one side: a simulator is seldom rougher than TYPICAL_LENGTH, and little
of it is noise. With ten runs of two parameters posterior sds are twice as large without; from thirty runs of five on
these say it themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from ..arrays import Array
from ..kernels.adaptive import WalkTuning
from ..regression.gaussian_process import MergedValues, RestrictedDensity, restricted_deviance, sample_of_points
from .replicates import MergedRuns, trend_basis

#: the search for hyperparameters starts on few rows and ends on more
SEARCH_ROWS, LIKELIHOOD_ROWS = 150, 600
#: bounds of sd, length-scales and noise variance, for targets of sd 1 in the unit cube
LOWEST, HIGHEST = (1e-3, 0.03, 1e-9), (30.0, 30.0, 2.0)
STARTS = ((1.0, 0.5, 1e-2), (2.0, 2.0, 1e-4), (20.0, 5.0, 1e-7))
#: rows that are few: so many for each input (a design has ten, as a rule), and at most
FEW_EACH, MOST_FEW = 20, 200
#: below this a length-scale, above this a noise variance is improbable, of targets of sd 1 in the unit cube: half a
#: normal density of their logarithms, with these sds
TYPICAL_LENGTH, LENGTH_SD = 0.5, 0.5
TYPICAL_NOISE, NOISE_SD = 1e-3, 2.0
#: draws that are kept, steps of the walk between them, and steps of its warm-up, which is tuned in windows
KEPT, APART, WARMUP, WINDOW = 32, 20, 400, 50
#: sd of the walk's first steps, in logarithms; and steps from one draw of the noise to the next
FIRST_STEP, NOISE_EVERY = 0.3, 10


def likeliest(runs: MergedRuns, candidates: tuple[float, ...], size: int) -> tuple[float, Array]:
    """nu, and v (k + 2,), for a trend of so many functions."""
    inputs = runs.values.x
    k = inputs.shape[1]
    lower, upper = _bounds(inputs)

    def search(nu: float, start: Array, most: int) -> tuple[float, float, Array]:
        sample = runs.values.part(sample_of_points(len(inputs), most))
        result = minimize(
            _deviance,
            np.clip(start, lower, upper),
            args=(sample, nu, trend_basis(sample.x, size)),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(lower, upper, strict=True)),
            options={"maxiter": 60, "ftol": 1e-7},
        )
        return float(result.fun), nu, result.x

    found = [search(nu, _each(start, k), SEARCH_ROWS) for nu in candidates for start in STARTS]
    _, nu, values = min(found, key=lambda one: one[0])
    if len(inputs) > SEARCH_ROWS:
        values = search(nu, values, LIKELIHOOD_ROWS)[2]
    return nu, values


def few(inputs: Array) -> bool:
    """Whether so few rows, (N, k), leave the hyperparameters uncertain."""
    rows, k = inputs.shape
    return bool(rows <= min(FEW_EACH * k, MOST_FEW))


def likely(runs: MergedRuns, nu: float, start: Array, size: int, rng: np.random.Generator) -> Array:
    """Draws of v given the targets, (KEPT, k + 2), from ``start``, the likeliest.

    Adaptive Metropolis on sd and length-scales. Of a simulator without noise all small noise variances are as likely, a
    plateau of many decades that no tuned step crosses: the noise is drawn by its slice between the bounds.
    """
    merged = runs.values
    lower, upper = _bounds(merged.x)
    of_means = RestrictedDensity(merged.x, merged.z, nu, trend_basis(merged.x, size), merged.relative_var)

    def density(values: Array) -> float:
        if (values < lower).any() or (values > upper).any():
            return -np.inf
        scatter, _ = merged.scatter_deviance(float(values[-1]))
        return of_means(values) - scatter / 2 + log_prior(values, runs.known)

    walking = np.flatnonzero(upper[:-1] > lower[:-1])
    tuning = WalkTuning.first(FIRST_STEP * np.eye(len(walking)))
    values = np.clip(start, lower, upper)
    here, moves = density(values), 0
    kept, window = np.empty((KEPT, len(values))), np.empty((WINDOW, len(walking)))
    for step in range(WARMUP + KEPT * APART):
        proposal = values.copy()
        proposal[walking] += tuning.scale * tuning.root @ rng.standard_normal(len(walking))
        there = density(proposal)
        if np.log1p(-rng.random()) < there - here:
            values, here, moves = proposal, there, moves + 1
        if step % NOISE_EVERY == 0:
            values, here = _noise_drawn(values, here, density, lower[-1], upper[-1], rng)
        if step < WARMUP:
            window[step % WINDOW] = values[walking]
            if step % WINDOW == WINDOW - 1:
                tuning, moves = tuning.adapted(window, moves / WINDOW), 0
        elif (step - WARMUP) % APART == APART - 1:
            kept[(step - WARMUP) // APART] = values
    return kept


def log_prior(values: Array, scatter_known: bool) -> float:
    """Of v, up to a constant; what replicates tell of the noise needs no prior."""
    short = np.minimum((values[1:-1] - np.log(TYPICAL_LENGTH)) / LENGTH_SD, 0.0)
    noisy = 0.0 if scatter_known else max((values[-1] - np.log(TYPICAL_NOISE)) / NOISE_SD, 0.0)
    return -float(short @ short + noisy**2) / 2


def _noise_drawn(
    values: Array, here: float, density: Callable[[Array], float], low: float, high: float, rng: np.random.Generator
) -> tuple[Array, float]:
    """v with the noise variance drawn by slice sampling (Neal 2003), from all of its range; and the density there."""
    level = here + np.log1p(-rng.random())
    while True:
        proposal = values.copy()
        proposal[-1] = rng.uniform(low, high)
        there = density(proposal)
        # the second ends it where rounding leaves nothing but the place itself
        if there >= level or high - low < 1e-12:
            return proposal, there
        if proposal[-1] < values[-1]:
            low = proposal[-1]
        else:
            high = proposal[-1]


def _bounds(inputs: Array) -> tuple[Array, Array]:
    """Of v, (k + 2,) each."""
    k = inputs.shape[1]
    lower, upper = _each(LOWEST, k), _each(HIGHEST, k)
    # on a grid, a length-scale below the gap between its values would explain anything
    gaps = [np.median(np.diff(np.unique([0.0, 1.0, *column]))) for column in inputs.T]
    lower[1 : k + 1] = np.maximum(lower[1 : k + 1], np.log(gaps))
    # nothing is known about an input that does not vary
    constant = np.flatnonzero(np.ptp(inputs, axis=0) == 0)
    lower[1 + constant] = upper[1 + constant]
    return lower, upper


def _deviance(values: Array, runs: MergedValues, nu: float, basis: Array) -> tuple[float, Array]:
    """-2 log restricted likelihood of all runs, whose replicates are merged, and its gradient."""
    deviance, gradient = restricted_deviance(values, runs.x, runs.z, nu, basis, runs.relative_var)
    scatter, slope = runs.scatter_deviance(float(values[-1]))
    gradient[-1] += slope
    return deviance + scatter, gradient


def _each(values: tuple[float, float, float], k: int) -> Array:
    """The log of sd, length-scale and noise variance with one length-scale an input."""
    return np.asarray(np.log([values[0], *[values[1]] * k, values[2]]))

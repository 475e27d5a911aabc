"""Where to run the simulator next: where the emulator's error matters most to what is uncertain about theta."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .arrays import Array
from .emulators.choice import emulate
from .emulators.components import ComponentEmulator
from .emulators.fitting import usable_runs
from .emulators.gp import FittedGP
from .errors import InputError
from .machine.threads import one_blas_thread
from .results.posterior import Posterior
from .runs.table import RunTable

#: draws that stand for the posterior, and as many candidates for the next runs
DRAWS, CANDIDATES = 200, 400
#: candidates lie around the posterior as well, where its tails may turn out to be
WIDENED = 1.5
#: processes with a smaller share of the criterion are left out
NEGLIGIBLE = 1e-4


@one_blas_thread()
def next_runs(posterior: Posterior, runs: RunTable, n: int, seed: int = 0, progress: bool = True) -> pd.DataFrame:
    """The n values of theta whose runs reduce most what the emulator adds to the uncertainty of theta.

    With a Gaussian-process emulator f_hat + e, an error e moves the least-squares theta by A e,
    A = (G'WG)^-1 G'W, G the gradient at the data points. The criterion is the variance of A e, each parameter in units
    of its posterior sd, averaged over the posterior. Variances do not depend on what a run will give, so the best run
    is taken, the variance updated as if it had been made, and so on: the batch does not repeat itself.

    Parameters
    ----------
    posterior
        From ``oc.calibrate`` with an emulator as the simulator.
    runs
        All runs so far.
    n
        Number of runs to make.
    seed
        Of the candidates.
    progress
        Show progress on a terminal where a Gaussian process must be fitted.

    Returns
    -------
    One row a run, one column a parameter: what ``oc.campaign`` takes as its design, with the store of the runs so far.
    """
    used = usable_runs(runs)
    if posterior.parameter_names != used.parameter_names:
        raise InputError(
            f"the posterior is about {', '.join(posterior.parameter_names)}, "
            f"the runs about {', '.join(used.parameter_names)}"
        )
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= CANDIDATES:
        raise InputError(f"n={n!r}: give the number of runs, from 1 to {CANDIDATES}")
    rng = np.random.default_rng(seed)
    draws = posterior.theta.reshape(-1, used.p)
    x = posterior.record.x
    emulator = _gaussian_process(posterior, used, x, progress)
    candidates = _candidates(posterior, draws, rng)
    sample = draws[rng.choice(len(draws), min(DRAWS, len(draws)), replace=False)]
    errors = _errors(emulator, _influence(posterior, emulator, x, draws), np.vstack([sample, candidates]))
    chosen = _greedy(errors, len(sample), n)
    return pd.DataFrame(candidates[chosen], columns=list(used.parameter_names))


class Errors(NamedTuple):
    """Errors of one process at sample and candidates: their covariance, what a run adds, and their importance."""

    covariance: Array
    noise_var: float
    importance: float


def _gaussian_process(posterior: Posterior, runs: RunTable, x: Array, progress: bool) -> ComponentEmulator:
    """The posterior's own emulator if it is a Gaussian process of components and of these runs, or a new one."""
    own = posterior.emulator
    if isinstance(own, ComponentEmulator) and own.name == "gp" and own.runs is runs:
        return own
    table = runs
    if runs.ragged:
        # a common set of points: the data's, where each run is what an emulator makes of it
        stacked: Any = own if own is not None else emulate(runs, "bart", progress=progress)
        table = RunTable(
            runs.theta, np.stack([stacked(x, theta) for theta in runs.theta]), x, parameter_names=runs.parameter_names
        )
    found = emulate(table, "gp", layout="components", progress=progress)
    assert isinstance(found, ComponentEmulator)
    return found


def _candidates(posterior: Posterior, draws: Array, rng: np.random.Generator) -> Array:
    """Draws of the posterior, half of them moved away from its mean, within the priors' supports."""
    chosen = draws[rng.choice(len(draws), CANDIDATES, replace=len(draws) < CANDIDATES)]
    mean = draws.mean(axis=0)
    support, constraint = posterior.record.support, posterior.record.constraint
    widened = np.clip(mean + WIDENED * (chosen[::2] - mean), support.lower, support.upper)
    if support.possible is not None:
        widened = widened[support.possible(widened)]
    elif constraint:
        # a function, which is not known any more: the draws themselves are allowed
        widened = chosen[::2]
    unique: Array = np.unique(np.concatenate([np.clip(chosen[1::2], support.lower, support.upper), widened]), axis=0)
    return unique


def _influence(posterior: Posterior, emulator: ComponentEmulator, x: Array, draws: Array) -> list[Array]:
    """How far an error of one sd of each component moves theta, in posterior sds: (p, r) for each outcome."""
    transforms, centre = posterior.record.transforms, draws.mean(axis=0)
    slope = transforms.slope(emulator(x, centre)) if transforms else np.ones(posterior.record.y.shape)
    gradient = slope[:, :, None] * emulator.gradient(x, centre)
    observed = ~np.isnan(posterior.record.y)
    weight = np.linalg.inv(posterior.record.noise_cov)
    # missing cells say nothing
    weighted = np.einsum("nkp,kl,nl->nlp", gradient * observed[:, :, None], weight, observed)
    gram = np.einsum("nlp,nlr->pr", weighted, gradient)
    projector = np.linalg.solve(gram, weighted.reshape(-1, gram.shape[0]).T).reshape(len(gram), *observed.shape) * slope
    sd = draws.std(axis=0)
    if not (sd > 0).all():
        raise InputError("the posterior has no spread in a parameter: there is nothing to reduce")
    return [
        (projector[:, :, k] @ functions.T) * scale.scale / sd[:, None]
        for k, (scale, (_, functions, _)) in enumerate(zip(emulator.scores, emulator.functions(x), strict=True))
    ]


def _errors(emulator: ComponentEmulator, influence: list[Array], theta: Array) -> list[Errors]:
    unit = emulator.unit.apply(theta)
    found = []
    for fitted, moves in zip(emulator.fitted, influence, strict=True):
        assert isinstance(fitted, FittedGP)
        for process in fitted.processes:
            importance = float(np.sum(moves[:, process.members] ** 2))
            found.append((importance * process.sd**2, importance, fitted, process))
    most = max(size for size, *_ in found)
    return [
        Errors(fitted.covariance(process, unit), process.noise_var, importance)
        for size, importance, fitted, process in found
        if size > NEGLIGIBLE * most
    ]


def _greedy(errors: list[Errors], sample: int, n: int) -> list[int]:
    """Numbers of the candidates, one after the other."""
    covariances = [one.covariance.copy() for one in errors]
    chosen: list[int] = []
    for _ in range(n):
        gain = np.zeros(len(covariances[0]) - sample)
        for covariance, error in zip(covariances, errors, strict=True):
            var = np.maximum(np.diag(covariance)[sample:], 0.0) + error.noise_var
            gain += error.importance * (covariance[:sample, sample:] ** 2).mean(axis=0) / np.where(var > 0, var, np.inf)
        gain[chosen] = -np.inf
        best = int(np.argmax(gain))
        chosen.append(best)
        for covariance, error in zip(covariances, errors, strict=True):
            column = covariance[:, sample + best].copy()
            own_var = max(float(column[sample + best]), 0.0) + error.noise_var
            if own_var > 0:
                covariance -= np.outer(column, column) / own_var
    return chosen

"""Where to run the simulator next: where the emulator's error matters most to what is uncertain about theta."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from .arrays import Array
from .emulators.choice import emulate
from .emulators.components import ComponentEmulator
from .emulators.error_reduction import best_runs, errors_at, influence
from .emulators.fitting import usable_runs
from .errors import InputError
from .machine.threads import one_blas_thread
from .results.posterior import Posterior
from .runs.table import RunTable

#: draws that stand for the posterior, and as many candidates for the next runs
DRAWS, CANDIDATES = 200, 400
#: candidates lie around the posterior as well, where its tails may turn out to be
WIDENED = 1.5


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

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> theta, x = np.linspace(1, 3, 5)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, oc.emulators.GP(nu=2.5), progress=False)
    >>> problem = oc.Problem(x, np.exp(-2.2 * x), emulator, {"rate": stats.uniform(1, 2)}, noise_cov=1e-3)
    >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False, emulator_draws=0)
    >>> more = oc.next_runs(posterior, runs, 3, progress=False)
    >>> more.shape, bool(more["rate"].between(1, 3).all())
    ((3, 1), True)
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
    errors = errors_at(emulator, _influence(posterior, emulator, x, draws), sample, candidates)
    chosen = [number for number, _ in islice(best_runs(errors, len(sample)), n)]
    return pd.DataFrame(candidates[chosen], columns=list(used.parameter_names))


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
    record = posterior.record
    return influence(emulator, x, ~np.isnan(record.y), record.noise_cov, record.transforms, draws)

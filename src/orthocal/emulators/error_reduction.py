"""What further runs would take away from the error of a Gaussian-process emulator, as far as theta feels it.

An error e of the emulator moves the least-squares theta by A e, A = (G'WG)^-1 G'W, G the gradient at the data points.
The criterion is the variance of A e, each parameter in units of its posterior sd, averaged over the posterior.
Variances do not depend on what a run will give: they can be updated as if it had been made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray
from ..errors import InputError
from ..problem.data.transforms import Transforms
from .components import ComponentEmulator
from .gp import FittedGP

#: processes with a smaller share of the criterion are left out
NEGLIGIBLE = 1e-4
#: draws that stand for the posterior, and candidates, where the number of runs is counted
SAMPLE, CANDIDATES = 100, 200


class Errors(NamedTuple):
    """Errors of one process at sample and candidates: their covariance, and their importance.

    ``run_var`` is the noise variance of one run at each candidate, larger where a random simulator scatters more.
    """

    covariance: Array
    run_var: Array
    importance: float


def influence(
    emulator: ComponentEmulator, x: Array, observed: BoolArray, noise_cov: Array, transforms: Transforms, draws: Array
) -> list[Array]:
    """How far an error of one sd of each component moves theta, in posterior sds: (p, r) for each outcome."""
    centre = draws.mean(axis=0)
    slope = transforms.slope(emulator(x, centre)) if transforms else np.ones(observed.shape)
    gradient = slope[:, :, None] * emulator.gradient(x, centre)
    weight = np.linalg.inv(noise_cov)
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


def errors_at(emulator: ComponentEmulator, moves: list[Array], sample: Array, candidates: Array) -> list[Errors]:
    """Those of all processes that matter, where ``moves`` is their influence."""
    unit = emulator.unit.apply(np.vstack([sample, candidates]))
    found = []
    for fitted, own in zip(emulator.fitted, moves, strict=True):
        assert isinstance(fitted, FittedGP)
        for process in fitted.processes:
            importance = float(np.sum(own[:, process.members] ** 2))
            found.append((importance * process.sd**2, importance, fitted, process))
    most = max(size for size, *_ in found)
    return [
        Errors(fitted.covariance(process, unit), process.run_var(unit[len(sample) :]), importance)
        for size, importance, fitted, process in found
        if size > NEGLIGIBLE * most
    ]


def criterion(errors: list[Errors], covariances: list[Array], sample: int) -> float:
    """The variance of A e over the first ``sample`` places."""
    return sum(
        one.importance * float(np.maximum(np.diag(covariance)[:sample], 0.0).mean())
        for one, covariance in zip(errors, covariances, strict=True)
    )


def best_runs(errors: list[Errors], sample: int) -> Iterator[tuple[int, float]]:
    """Numbers of the candidates, which follow the sample, the best first, and the criterion after each run."""
    covariances = [one.covariance.copy() for one in errors]
    chosen: list[int] = []
    for _ in range(len(covariances[0]) - sample):
        gain = np.zeros(len(covariances[0]) - sample)
        for covariance, error in zip(covariances, errors, strict=True):
            var = np.maximum(np.diag(covariance)[sample:], 0.0) + error.run_var
            gain += error.importance * (covariance[:sample, sample:] ** 2).mean(axis=0) / np.where(var > 0, var, np.inf)
        gain[chosen] = -np.inf
        best = int(np.argmax(gain))
        chosen.append(best)
        for covariance, error in zip(covariances, errors, strict=True):
            column = covariance[:, sample + best].copy()
            own_var = max(float(column[sample + best]), 0.0) + error.run_var[best]
            if own_var > 0:
                covariance -= np.outer(column, column) / own_var
        yield best, criterion(errors, covariances, sample)


def runs_to_halve(
    emulator: ComponentEmulator,
    x: Array,
    observed: BoolArray,
    noise_cov: Array,
    transforms: Transforms,
    draws: Array,
    most: int,
) -> int | None:
    """How many runs, each where it is best, halve the criterion, if not more than ``most``; draws are (s, p)."""
    rng = np.random.default_rng(0)
    sample = draws[rng.choice(len(draws), min(SAMPLE, len(draws)), replace=False)]
    candidates = draws[rng.choice(len(draws), min(CANDIDATES, len(draws)), replace=False)]
    moves = influence(emulator, x, observed, noise_cov, transforms, draws)
    errors = errors_at(emulator, moves, sample, candidates)
    half = 0.5 * criterion(errors, [one.covariance for one in errors], len(sample))
    for number, (_, left) in enumerate(best_runs(errors, len(sample)), start=1):
        if left <= half:
            return number
        if number == most:
            break
    return None

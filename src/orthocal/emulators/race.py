"""Emulators learnt from some of the runs, and their errors at the others: all of them, or those still in the race.

The runs are held out in parts. In a race an emulator is dropped after a part if it is clearly worse than the best so
far: with e its rms errors at the held-out theta and b those of the best, where the mean of e - b exceeds zero by more
than a one-sided t-test at the level below allows, and its errors together are the larger. The pairs are what makes this
sharp: theta that are hard to predict are so for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from ..arrays import Array, IntArray, repeated_rows
from ..errors import InputError
from ..execution.work.workers import cores
from ..progress import progress_bar
from ..runs.table import RunTable
from .emulator import Emulator
from .fitting import EmulatorChoice, fitted_emulator

#: from this many theta on, one split is enough; with fewer each is held out once
MANY_RUNS, FOLDS = 200, 5
#: level of the test, and fewest held-out theta that can tell
LEVEL, LEAST_HELD_OUT = 0.01, 4


class HeldOut(NamedTuple):
    """Output, prediction and its sd at held-out theta, (N, q), less the mean of the other runs, and the times.

    Replicates are averaged. ``place`` (N,) is the row's theta, counted from 0.
    """

    truth: Array
    prediction: Array
    sd: Array | None
    place: IntArray
    fit_seconds: float
    predict_ms: float


class Raced(NamedTuple):
    """The parts of each emulator, why some failed and why some were dropped, and the runs that were held out."""

    parts: dict[str, list[HeldOut]]
    failures: dict[str, str]
    dropped: dict[str, str]
    held_out: int

    @property
    def truth(self) -> Array:
        """What was held out, (N, q)."""
        return np.concatenate([one.truth for one in max(self.parts.values(), key=len)])

    @property
    def spread(self) -> Array:
        """Its rms about the mean run, (q,)."""
        spread = np.sqrt(np.nanmean(self.truth**2, axis=0))
        return np.where(spread > 0, spread, 1.0)


def split(runs: RunTable, folds: int | None, seed: int) -> list[IntArray]:
    """The held-out runs of each part; replicates stay together."""
    repeats = repeated_rows(runs.theta)
    s = runs.s if repeats is None else len(repeats.first)
    count = (1 if s >= MANY_RUNS else min(FOLDS, s)) if folds is None else folds
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= s:
        what = "runs" if repeats is None else "distinct theta of the runs"
        raise InputError(f"folds={folds!r}: give a whole number from 1 to the number of {what}, {s}")
    order = np.random.default_rng(seed).permutation(s).astype(np.intp)
    parts = np.array_split(order, FOLDS)[:1] if count == 1 else np.array_split(order, count)
    if repeats is None:
        return [np.sort(part) for part in parts]
    return [np.flatnonzero(np.isin(repeats.place, part)).astype(np.intp) for part in parts]


def raced(
    runs: RunTable, emulators: Mapping[str, EmulatorChoice], tests: Sequence[IntArray], race: bool, jobs: int | None
) -> Raced:
    """Hold out the parts; in a race one after the other, among the emulators that are left.

    Fits run in ``jobs`` threads: compiled code and linear algebra do not hold Python's lock, and the result of a fit
    depends on nothing that others do.
    """
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise InputError(f"jobs={jobs!r}: give the number of fits at a time, or None for that of the cores")
    found = Raced({label: [] for label in emulators}, {}, {}, 0)
    pool = ThreadPoolExecutor(jobs or cores())
    rounds: Iterable[Sequence[IntArray]] = [[test] for test in tests] if race else [tests]
    ended = 0
    try:
        for together in rounds:
            fits = [(label, test) for test in together for label in found.parts if label not in found.dropped]
            futures = [pool.submit(_held_out, runs, test, emulators[label]) for label, test in fits]
            for (label, _), future in zip(fits, progress_bar(futures, "emulators"), strict=True):
                _settle(found, label, future)
            ended += sum(map(len, together))
            found = found._replace(held_out=ended)
            if race and found.parts and _decided(found):
                break
    finally:
        # after an interrupt nothing that waits is begun, and nobody waits for what is under way
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def _settle(found: Raced, label: str, future: Future[HeldOut]) -> None:
    try:
        part = future.result()
    except InputError as error:
        found.parts.pop(label, None)
        found.failures.setdefault(label, str(error))
        return
    if label in found.parts:
        found.parts[label].append(part)


def _decided(found: Raced) -> bool:
    """Drop what is clearly worse than the best; whether one is left, and its error is known well enough."""
    errors = {label: _errors(parts, found.spread) for label, parts in found.parts.items() if label not in found.dropped}
    best = min(errors, key=lambda label: float(np.mean(errors[label] ** 2)))
    for label, own in errors.items():
        if label != best and clearly_worse(own, errors[best]):
            worse, n = int(np.sum(own > errors[best])), len(own)
            found.dropped[label] = f"after {n} held-out theta, at {worse} of which {best} was better"
    return len(errors) - len(found.dropped.keys() & errors.keys()) == 1 and len(errors[best]) >= MANY_RUNS // FOLDS


def clearly_worse(own: Array, best: Array) -> bool:
    """Whether rms errors (n,) at some theta are worse than those of the best there by more than chance."""
    difference, n = own - best, len(own)
    if n < LEAST_HELD_OUT or np.mean(own**2) <= np.mean(best**2):
        return False
    se = float(difference.std(ddof=1)) / np.sqrt(n)
    return bool(difference.mean() > student.ppf(1 - LEVEL, n - 1) * se)


def _errors(parts: list[HeldOut], spread: Array) -> Array:
    """The rms error at each held-out theta, over points and outcomes, (n,)."""
    found = []
    for part in parts:
        squares = ((part.prediction - part.truth) / spread) ** 2
        known = ~np.isnan(squares)
        cells = np.bincount(part.place, known.sum(axis=1))
        sums = np.bincount(part.place, np.where(known, squares, 0.0).sum(axis=1))
        found.append(np.sqrt(sums / np.maximum(cells, 1)))
    return np.concatenate(found)


def _held_out(runs: RunTable, test: IntArray, emulator: EmulatorChoice) -> HeldOut:
    part = runs.subset(np.setdiff1d(np.arange(runs.s), test))
    started = perf_counter()
    fitted = fitted_emulator(part, emulator, progress=False)
    fit_seconds = perf_counter() - started
    truth: list[Array] = []
    prediction: list[Array] = []
    var: list[Array] = []
    spent = 0.0
    theta, compared = _compared_runs(runs, test)
    for one, (x, output, count) in zip(theta, compared, strict=True):
        if not truth:
            # what is computed once for these points does not count for each theta
            fitted(x, one)
        started = perf_counter()
        prediction.append(fitted(x, one))
        spent += perf_counter() - started
        truth.append(output)
        if fitted.has_variance:
            var.append(_var_of_mean(fitted, x, one, count))
    mean = _mean_run(part)
    means = np.concatenate([np.broadcast_to(mean, one.shape) for one in truth])
    return HeldOut(
        truth=np.concatenate(truth) - means,
        prediction=np.concatenate(prediction) - means,
        sd=np.sqrt(np.concatenate(var)) if var else None,
        place=_places(theta, [len(one) for one in truth]),
        fit_seconds=fit_seconds,
        predict_ms=1000 * spent / len(theta),
    )


def _var_of_mean(fitted: Emulator, x: Array, theta: Array, count: int) -> Array:
    """Variance of the mean of ``count`` runs about the prediction, (m, q)."""
    var = fitted.variance(x, theta)
    return var + fitted.scatter_var(x, theta) / count if fitted.has_scatter else var


def _compared_runs(runs: RunTable, test: IntArray) -> tuple[Array, list[tuple[Array, Array, int]]]:
    """What is predicted: theta, and x, output and number of runs of each; replicates at common points are averaged."""
    if runs.ragged:
        return runs.theta[test], [(runs.x[i], runs.output[i], 1) for i in test]
    x, output = np.asarray(runs.x), np.asarray(runs.output)[test]
    repeats = repeated_rows(runs.theta[test])
    if repeats is None:
        return runs.theta[test], [(x, one, 1) for one in output]
    known = ~np.isnan(output)
    counts = repeats.sums(known.astype(np.float64))
    means = np.where(counts > 0, repeats.sums(np.where(known, output, 0.0)) / np.maximum(counts, 1), np.nan)
    return runs.theta[test][repeats.first], [(x, one, int(n)) for one, n in zip(means, repeats.counts, strict=True)]


def _places(theta: Array, sizes: list[int]) -> IntArray:
    """The theta of each row, counted from 0; of a ragged table replicates have one."""
    repeats = repeated_rows(theta)
    own = np.arange(len(theta)) if repeats is None else repeats.place
    return np.repeat(own, sizes).astype(np.intp)


def _mean_run(runs: RunTable) -> Array:
    """The mean of the runs at each common point, (m, q), or over all points, (q,), where each run has its own."""
    if runs.ragged:
        return np.asarray(np.nanmean(runs.long.output, axis=0))
    output = np.asarray(runs.output)
    known = ~np.isnan(output)
    total = np.where(known, output, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1))

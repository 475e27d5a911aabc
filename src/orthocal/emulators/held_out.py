"""Emulators side by side: each is learnt from some runs and predicts the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from ..arrays import Array, IntArray
from ..errors import InputError
from ..progress import progress_bar, progress_shown
from ..runs.table import RunTable
from .base import EMULATORS
from .fitting import EmulatorChoice, fitted_emulator, regressor_by_name, usable_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: with at least this many runs one split is enough, with fewer each run is held out once
MANY_RUNS, FOLDS = 200, 5
#: half the width of a 95 % interval in sds
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class EmulatorComparison:
    """How well emulators predict runs that they have not seen.

    Attributes
    ----------
    table
        One row an emulator and outcome: ``relative_rmse``, the rms error of all held-out cells relative to their spread
        about the mean run, ``coverage`` of the 95 % intervals (NaN without a variance), ``fit_seconds`` and
        ``predict_ms``, the time of one theta at all points of a run.
    failures
        Emulator -> why it was left out.
    predictions
        Emulator -> (held-out output, prediction), each (N, q), relative to the mean run and in units of the spread.
    held_out
        Number of runs that were predicted.
    """

    table: pd.DataFrame
    failures: dict[str, str]
    predictions: dict[str, tuple[Array, Array]] = field(repr=False)
    held_out: int
    emulators: dict[str, EmulatorChoice] = field(repr=False)

    @property
    def best(self) -> EmulatorChoice:
        """The emulator with the smallest relative error (rms over the outcomes), to be given to ``oc.emulate``."""
        return self.emulators[self.ranking.index[0]]

    @property
    def ranking(self) -> pd.Series[float]:
        """The relative error of each emulator (rms over the outcomes), best first."""
        squared = self.table["relative_rmse"].pow(2).groupby(level="emulator").mean()
        return squared.pow(0.5).sort_values()

    def figure(self) -> Figure:
        """The errors of all emulators, and what the best one predicted against what the runs gave."""
        from .figure import held_out_figure

        return held_out_figure(self.table["relative_rmse"], list(self.ranking.index), self.predictions)

    def __str__(self) -> str:
        lines = [f"{self.held_out} held-out runs; errors relative to the spread of the runs", self._text()]
        return "\n".join([*lines, *(f"{name} was left out: {why}" for name, why in self.failures.items())])

    def _text(self) -> str:
        shown = self.table.copy()
        shown["coverage"] = [f"{value:.2f}" if np.isfinite(value) else "-" for value in shown["coverage"]]
        shown["relative_rmse"] = [
            f"{value:.3f}" if value >= 0.01 else f"{value:.1g}" for value in shown["relative_rmse"]
        ]
        for column, digits in (("fit_seconds", 1), ("predict_ms", 3)):
            shown[column] = [f"{value:.{digits}f}" for value in shown[column]]
        return str(shown.rename(columns=lambda name: name.replace("_", " ")).to_string())


def compare_emulators(
    runs: RunTable,
    emulators: Sequence[EmulatorChoice] | Mapping[str, EmulatorChoice] | None = None,
    folds: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> EmulatorComparison:
    """Fit every emulator to some of the runs and compare its predictions of the others with what they gave.

    Parameters
    ----------
    emulators
        As for ``oc.emulate``, a list or label -> emulator; default: all that have names.
    folds
        1 holds out a fifth of the runs; a larger number holds out each run once, in as many parts. Default: 1 from
        200 runs on, 5 below.
    seed
        Of the split.
    progress
        Show progress on a terminal.
    """
    used = usable_runs(runs)
    chosen = _labelled(tuple(EMULATORS) if emulators is None else emulators)
    tests = _split(used.s, folds, seed)
    collected: dict[str, list[HeldOut]] = {}
    failures: dict[str, str] = {}
    with progress_shown(progress):
        for label, emulator in progress_bar(list(chosen.items()), "emulators"):
            try:
                collected[label] = [_held_out(used, test, emulator) for test in tests]
            except InputError as error:
                failures[label] = str(error)
    if not collected:
        raise InputError("no emulator could be fitted: " + "; ".join(f"{k}: {why}" for k, why in failures.items()))
    spread = np.sqrt(np.nanmean(np.concatenate([one.truth for one in next(iter(collected.values()))]) ** 2, axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    rows = [row for label, parts in collected.items() for row in _rows(label, parts, spread, used.outcome_names)]
    table = pd.DataFrame(rows).set_index(["emulator", "outcome"])
    predictions = {label: _joined(parts, spread) for label, parts in collected.items()}
    return EmulatorComparison(table, failures, predictions, int(sum(map(len, tests))), chosen)


def _labelled(emulators: Sequence[EmulatorChoice] | Mapping[str, EmulatorChoice]) -> dict[str, EmulatorChoice]:
    if isinstance(emulators, Mapping):
        return dict(emulators)
    given = [emulators] if isinstance(emulators, str) else list(emulators)
    labels = [regressor_by_name(one)[0] for one in given]
    return {
        label if labels.count(label) == 1 else f"{label} {labels[: i + 1].count(label)}": one
        for i, (label, one) in enumerate(zip(labels, given, strict=True))
    }


def _split(s: int, folds: int | None, seed: int) -> list[IntArray]:
    """The held-out runs of each part."""
    count = (1 if s >= MANY_RUNS else FOLDS) if folds is None else folds
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= s:
        raise InputError(f"folds={folds!r}: give a whole number from 1 to the number of runs, {s}")
    order = np.random.default_rng(seed).permutation(s).astype(np.intp)
    return [
        np.sort(part) for part in (np.array_split(order, FOLDS)[:1] if count == 1 else np.array_split(order, count))
    ]


class HeldOut(NamedTuple):
    """Output, prediction and its sd of held-out runs, less the mean of the others, and the times."""

    truth: Array
    prediction: Array
    sd: Array | None
    fit_seconds: float
    predict_ms: float


def _held_out(runs: RunTable, test: IntArray, emulator: EmulatorChoice) -> HeldOut:
    train = np.setdiff1d(np.arange(runs.s), test)
    part = runs.subset(train)
    started = perf_counter()
    fitted = fitted_emulator(part, emulator, progress=False)
    fit_seconds = perf_counter() - started
    truth: list[Array] = []
    prediction: list[Array] = []
    var: list[Array] = []
    spent = 0.0
    for i in test:
        x, output = (runs.x[i], runs.output[i]) if runs.ragged else (np.asarray(runs.x), np.asarray(runs.output)[i])
        if not truth:
            # what is computed once for these points does not count for each theta
            fitted(x, runs.theta[i])
        started = perf_counter()
        prediction.append(fitted(x, runs.theta[i]))
        spent += perf_counter() - started
        truth.append(output)
        if fitted.has_variance:
            var.append(fitted.variance(x, runs.theta[i]))
    mean = _mean_run(part)
    means = np.concatenate([np.broadcast_to(mean, one.shape) for one in truth])
    return HeldOut(
        truth=np.concatenate(truth) - means,
        prediction=np.concatenate(prediction) - means,
        sd=np.sqrt(np.concatenate(var)) if var else None,
        fit_seconds=fit_seconds,
        predict_ms=1000 * spent / len(test),
    )


def _mean_run(runs: RunTable) -> Array:
    """The mean of the runs at each common point, (m, q), or over all points, (q,), where each run has its own."""
    if runs.ragged:
        return np.asarray(np.nanmean(runs.long.output, axis=0))
    output = np.asarray(runs.output)
    known = ~np.isnan(output)
    total = np.where(known, output, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def _joined(parts: list[HeldOut], spread: Array) -> tuple[Array, Array]:
    truth = np.concatenate([one.truth for one in parts])
    return truth / spread, np.concatenate([one.prediction for one in parts]) / spread


def _rows(label: str, parts: list[HeldOut], spread: Array, outcomes: Sequence[str]) -> list[dict[str, object]]:
    truth, prediction = _joined(parts, spread)
    error = prediction - truth
    known = ~np.isnan(truth)
    sds = [one.sd for one in parts if one.sd is not None]
    sd = np.concatenate(sds) / spread if sds else None
    rows = []
    for k, outcome in enumerate(outcomes):
        own = error[known[:, k], k]
        # an emulator that is exact has intervals of no width: rounding must not count as a miss
        covered = np.nan if sd is None else np.mean(np.abs(own) <= NORMAL_95 * sd[known[:, k], k] + 1e-10)
        rows.append(
            {
                "emulator": label,
                "outcome": outcome,
                "relative_rmse": float(np.sqrt(np.mean(own**2))),
                "coverage": float(covered),
                "fit_seconds": float(np.mean([one.fit_seconds for one in parts])),
                "predict_ms": float(np.mean([one.predict_ms for one in parts])),
            }
        )
    return rows

"""The fits behind a comparison: every method with all data, and with each part of the data left out."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..arrays import BoolArray, IntArray
from ..calibration import calibrate
from ..errors import InputError, OrthocalError
from ..methods import Method
from ..problem.data.field_data import FieldData
from ..problem.problem import Problem
from ..progress import progress_bar
from ..results.posterior import Posterior
from ..results.predict.scores import CellScores, cell_scores
from .folds import Fold, Split
from .left_out import output_scores


class HeldOut(NamedTuple):
    """Scores of the held-out cells, by model + bias and by the model alone."""

    with_bias: CellScores
    model_alone: CellScores


class Scored(NamedTuple):
    """What came of one split, by label: scores of the held-out cells, and fold -> why it has none."""

    fold_of_row: IntArray | None
    held_out: dict[str, HeldOut]
    missed: dict[str, dict[str, str]]


class Fits(NamedTuple):
    """What came of the methods, by label: posterior, reason of a failure, and what came of each split."""

    posteriors: dict[str, Posterior]
    failures: dict[str, str]
    scored: list[Scored]


def prepared(problem: Problem) -> tuple[float, int]:
    """Do what all methods share, so that it does not count as the work of the first; its seconds and calls."""
    started, calls = perf_counter(), problem.simulator.calls
    _ = problem.loss_minima, problem.gradient_at_data, problem.gradient_error
    # a method that needs it says so itself, and others do not need it
    with suppress(OrthocalError):
        _ = problem.quadrature_error
    return perf_counter() - started, problem.simulator.calls - calls


def run_methods(
    problem: Problem,
    methods: dict[str, Method],
    splits: list[Split],
    seed: int,
    options: dict[str, Any],
    fold_options: dict[str, Any],
) -> Fits:
    """Every method with all data, and with each fold of each split left out.

    A method that fails with all data is not tried again. A fold that fails has no scores, and the others count.
    """
    posteriors: dict[str, Posterior] = {}
    failures: dict[str, str] = {}
    pieces: list[dict[str, list[HeldOut | str]]] = [{name: [] for name in methods} for _ in splits]
    places = [(s, k) for s, split in enumerate(splits) for k in range(len(split.folds))]
    for name, place in progress_bar([(name, place) for name in methods for place in [None, *places]], "methods"):
        if name in failures:
            continue
        if place is None:
            try:
                posteriors[name] = calibrate(problem, methods[name], seed=seed, **options)
            except OrthocalError as error:
                failures[name] = str(error)
            continue
        s, k = place
        # the first split has the seeds that it has alone
        own_seed = int(np.random.SeedSequence([seed, k + 1, *([s] if s else [])]).generate_state(1)[0])
        pieces[s][name].append(_fold_scores(problem, methods[name], splits[s].folds[k], own_seed, fold_options))
    if not posteriors:
        raise InputError("no method can do this problem: " + "; ".join(f"{a}: {b}" for a, b in failures.items()))
    scored = []
    for split, parts in zip(splits, pieces, strict=True):
        scored.append(Scored(split.fold_of_row, {}, {}))
        for name in posteriors:
            why = {fold.name: one for fold, one in zip(split.folds, parts[name], strict=True) if isinstance(one, str)}
            if len(why) == len(split.folds):
                failures[name] = "without {}: {}".format(*next(iter(why.items())))
                continue
            scored[-1].held_out[name] = _joined(parts[name], split, problem.data)
            if why:
                scored[-1].missed[name] = why
    return Fits(posteriors, failures, scored)


def _fold_scores(problem: Problem, method: Method, fold: Fold, seed: int, options: dict[str, Any]) -> HeldOut | str:
    """Scores of one fold, or why there are none."""
    if fold.problem is None:
        return fold.failure
    try:
        return _scored(calibrate(fold.problem, method, seed=seed, **options), problem, fold.rows)
    except OrthocalError as error:
        return str(error)


def _scored(fit: Posterior, problem: Problem, rows: BoolArray) -> HeldOut:
    """Scores of the rows, or of the outputs without inputs, that a fit has not seen."""
    if problem.data.without_inputs:
        return HeldOut(*output_scores(fit, problem, rows))
    predicted = fit.predict(problem.data.x[rows], scale="transformed", warn=False)
    roots = fit.record.noise_roots(predicted["draw"].values, problem.data.x[rows])
    if problem.noise.by_point is not None and problem.noise.groups is None:
        # predictions at new points have the noise of a typical one, but these points' own is known
        roots = np.linalg.cholesky(problem.noise.by_point[rows])
    # drawn anew, from the fold's seed: all methods get the same noise, and chance does not set them apart
    rng = np.random.default_rng(np.random.SeedSequence(fit.record.seed, spawn_key=(1,)))
    noise = np.einsum("...ij,...j->...i", roots, rng.standard_normal(predicted["mean"].shape))
    y = problem.data.native_y[rows]
    draws = (problem.data.transforms.inverse(predicted[name].values + noise) for name in ("mean", "model"))
    return HeldOut(*(cell_scores(one.reshape(-1, *y.shape), y) for one in draws))


def _joined(pieces: list[HeldOut | str], split: Split, data: FieldData) -> HeldOut:
    """The scores of all rows, in their order, from those of the folds; NaN where a fold has none.

    Of outputs without inputs the cells are (q n, 1), output after output.
    """
    shape, each = ((data.y.size, 1), data.n) if data.without_inputs else (data.y.shape, 1)
    parts = []
    for which in range(len(HeldOut._fields)):
        whole = CellScores(*(np.full(shape, np.nan) for _ in CellScores._fields))
        for fold, piece in zip(split.folds, pieces, strict=True):
            if not isinstance(piece, str):
                for into, values in zip(whole, piece[which], strict=True):
                    into[np.repeat(fold.rows, each)] = values
        parts.append(whole)
    return HeldOut(*parts)

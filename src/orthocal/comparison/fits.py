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
from ..problem.problem import Problem
from ..progress import progress_bar
from ..results.posterior import Posterior
from ..results.scores import CellScores, cell_scores
from .left_out import output_folds, output_scores


class HeldOut(NamedTuple):
    """Scores of the held-out cells, by model + bias and by the model alone."""

    with_bias: CellScores
    model_alone: CellScores


class Split(NamedTuple):
    """The fold of each row, or of each output without inputs, and the problem without each fold."""

    fold_of_row: IntArray
    problems: list[Problem]


class Fits(NamedTuple):
    """What came of the methods, by label: posterior, reason of a failure, scores of the held-out cells."""

    posteriors: dict[str, Posterior]
    failures: dict[str, str]
    held_out: dict[str, HeldOut]


def prepared(problem: Problem) -> tuple[float, int]:
    """Do what all methods share, so that it does not count as the work of the first; its seconds and calls."""
    started, calls = perf_counter(), problem.simulator.calls
    _ = problem.theta_tilde, problem.gradient_at_data, problem.gradient_error
    # a method that needs it says so itself, and others do not need it
    with suppress(OrthocalError):
        _ = problem.quadrature_error
    return perf_counter() - started, problem.simulator.calls - calls


def split_rows(problem: Problem, folds: int, seed: int) -> Split:
    """The rows at random in parts whose sizes differ by one at most; outputs, where they have no inputs."""
    if problem.data.without_inputs:
        return Split(*output_folds(problem, folds, seed))
    fold_of_row = np.empty(problem.data.n, dtype=np.intp)
    order = np.random.default_rng(np.random.SeedSequence([seed, 0])).permutation(problem.data.n)
    fold_of_row[order] = np.arange(problem.data.n) % folds
    problems = []
    for fold in range(folds):
        try:
            problems.append(problem.subset(fold_of_row != fold))
        except OrthocalError as error:
            raise InputError(f"without fold {fold + 1} of {folds}: {error}; or take more folds, or folds=0") from None
    return Split(fold_of_row, problems)


def run_methods(
    problem: Problem,
    methods: dict[str, Method],
    split: Split | None,
    seed: int,
    options: dict[str, Any],
    fold_options: dict[str, Any],
) -> Fits:
    """Every method with all data, and with each fold left out; a method that fails is not tried again."""
    posteriors: dict[str, Posterior] = {}
    failures: dict[str, str] = {}
    pieces: dict[str, list[HeldOut]] = {name: [] for name in methods}
    folds = 0 if split is None else len(split.problems)
    for name, fold in progress_bar([(name, fold) for name in methods for fold in range(folds + 1)], "methods"):
        if name in failures:
            continue
        try:
            if split is None or fold == 0:
                posteriors[name] = calibrate(problem, methods[name], seed=seed, **options)
            else:
                own_seed = int(np.random.SeedSequence([seed, fold]).generate_state(1)[0])
                fit = calibrate(split.problems[fold - 1], methods[name], seed=own_seed, **fold_options)
                pieces[name].append(_scored(fit, problem, split.fold_of_row == fold - 1))
        except OrthocalError as error:
            failures[name] = str(error) if fold == 0 else f"without fold {fold} of {folds}: {error}"
    if not posteriors:
        raise InputError("no method can do this problem: " + "; ".join(f"{a}: {b}" for a, b in failures.items()))
    held_out = {}
    if split is not None:
        held_out = {name: _joined(pieces[name], split.fold_of_row) for name in methods if name not in failures}
    return Fits(posteriors, failures, held_out)


def _scored(fit: Posterior, problem: Problem, rows: BoolArray) -> HeldOut:
    """Scores of the rows, or of the outputs without inputs, that a fit has not seen."""
    if problem.data.without_inputs:
        return HeldOut(*output_scores(fit, problem, rows))
    predicted = fit.predict(problem.data.x[rows], scale="transformed", warn=False)
    roots = fit.record.noise_roots(predicted["draw"].values, problem.data.x[rows])
    if problem.noise.by_point is not None:
        # predictions at new points have the noise of a typical one, but these points' own is known
        roots = np.linalg.cholesky(problem.noise.by_point[rows])
    # drawn anew, from the fold's seed: all methods get the same noise, and chance does not set them apart
    rng = np.random.default_rng(np.random.SeedSequence(fit.record.seed, spawn_key=(1,)))
    noise = np.einsum("...ij,...j->...i", roots, rng.standard_normal(predicted["mean"].shape))
    y = problem.data.native_y[rows]
    draws = (problem.data.transforms.inverse(predicted[name].values + noise) for name in ("mean", "model"))
    return HeldOut(*(cell_scores(one.reshape(-1, *y.shape), y) for one in draws))


def _joined(pieces: list[HeldOut], fold_of_row: IntArray) -> HeldOut:
    """The scores of all rows, in their order, from those of the folds."""
    # an output without inputs may have several cells
    cells = sum(len(one.with_bias.crps) for one in pieces) // len(fold_of_row)
    place = np.argsort(np.argsort(np.repeat(fold_of_row, cells), kind="stable"), kind="stable")

    def joined(parts: list[CellScores]) -> CellScores:
        return CellScores(*(np.concatenate(arrays)[place] for arrays in zip(*parts, strict=True)))

    return HeldOut(joined([one.with_bias for one in pieces]), joined([one.model_alone for one in pieces]))

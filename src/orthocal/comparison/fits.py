"""The fits behind a comparison: every method with all data, and with each part of the data left out."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray
from ..calibration import calibrate
from ..errors import InputError, OrthocalError, OrthocalWarning
from ..execution.checkpoints.checkpoint_file import Checkpoint, kept_in
from ..methods import Method
from ..methods.bias_samplers import method_for
from ..problem.data.field_data import FieldData, Groups, chosen_groups
from ..problem.problem import Problem
from ..progress import progress_bar
from ..results.posterior import Posterior
from ..results.predict.scores import CellScores, cell_scores

# Many fits in one checkpoint: what was done is not done again.


@contextmanager
def checkpointed_fits(
    checkpoint: str | Path | Checkpoint | None, work: Callable[[], dict[str, str]], seed: int | None
) -> Iterator[int]:
    """All fits in one file, if there is to be one; the seed, that of the file or a new one where none was given."""
    own = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    if checkpoint is None:
        yield own
        return
    where = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(Path(checkpoint))
    with kept_in(where, work, own, seed is not None, "the fits that were done") as file:
        yield file.seed


# Warnings of many fits: each kind is said once, with the number of fits that it holds for.


@contextmanager
def deduplicate_warnings() -> Iterator[None]:
    """Keep the warnings of what is done inside, and give them at its end; those that differ in numbers are one kind."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OrthocalWarning)
            yield
    finally:
        kinds: dict[str, list[str]] = {}
        for one in caught:
            if issubclass(one.category, OrthocalWarning):
                text = one.message.args[0] if isinstance(one.message, Warning) else one.message
                kinds.setdefault(re.sub(r"[\d.]*\d", "#", text), []).append(text)
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        for texts in kinds.values():
            more = f" (and the same in {len(texts) - 1} more of the fits)" if len(texts) > 1 else ""
            warnings.warn(texts[0] + more, OrthocalWarning, stacklevel=4)


# The folds of a comparison: which rows are held out together.

#: up to so many groups each is left out alone; more are put together in as many folds
MOST_GROUP_FOLDS = 10
#: group names in a fold's own name
MOST_NAMES = 4


class Fold(NamedTuple):
    """Rows that are held out together: their problem without them, or why there is none."""

    name: str
    rows: BoolArray
    problem: Problem | None
    failure: str = ""


class Split(NamedTuple):
    """The fold of each row, (n,), or of each output without inputs, (q,), and the folds."""

    fold_of_row: IntArray
    folds: list[Fold]


def held_groups(data: FieldData, groups: ArrayLike | str | None) -> Groups | None:
    """The groups to hold out: at least two of them."""
    if groups is None:
        return None
    if data.without_inputs:
        raise InputError("outputs without inputs have no groups of rows: leave out outputs, folds=5")
    found = chosen_groups(data, groups)
    if found.count < 2:
        raise InputError(
            f"groups {found.name!r} has one group only, {found.labels[0]!r}: at least 2 are needed to leave one out"
        )
    return found


def split_rows(problem: Problem, folds: int, seed: int) -> Split:
    """The rows at random in parts of nearly one size; equal rows of x stay together."""
    codes = _row_codes(problem.data.x)
    count = min(folds, int(codes.max()) + 1)
    if count < 2:
        raise InputError("all rows of x are the same: there is nothing to predict from the others, take folds=0")
    fold_of_row = _balanced(codes, count, np.random.default_rng(np.random.SeedSequence([seed, 0])))
    parts = [_fold(problem, f"fold {k + 1} of {count}", fold_of_row == k) for k in range(count)]
    for part in parts:
        if part.problem is None:
            raise InputError(f"without {part.name}: {part.failure}; or take more folds, or folds=0")
    return Split(fold_of_row, parts)


def split_groups(problem: Problem, groups: Groups, seed: int) -> Split:
    """Each group alone, or several groups together where there are many."""
    if groups.count <= MOST_GROUP_FOLDS:
        fold_of_row = groups.codes
    else:
        rng = np.random.default_rng(np.random.SeedSequence([seed, 0, 1]))
        fold_of_row = _balanced(groups.codes, MOST_GROUP_FOLDS, rng)
    folds = []
    for k in range(int(fold_of_row.max()) + 1):
        held = [groups.labels[code] for code in np.unique(groups.codes[fold_of_row == k])]
        more = f" and {len(held) - MOST_NAMES} more" if len(held) > MOST_NAMES else ""
        folds.append(_fold(problem, f"{groups.name} {', '.join(held[:MOST_NAMES])}{more}", fold_of_row == k))
    if all(fold.problem is None for fold in folds):
        raise InputError(f"no group can be left out: without {folds[0].name}, {folds[0].failure}")
    return Split(fold_of_row, folds)


def _fold(problem: Problem, name: str, rows: BoolArray) -> Fold:
    try:
        return Fold(name, rows, problem.subset(~rows))
    except OrthocalError as error:
        return Fold(name, rows, None, str(error))


def _row_codes(x: Array) -> IntArray:
    """The number of each row among the different ones, in the order of their first, (n,)."""
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse.ravel()])


def _balanced(codes: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Blocks of rows in random order, each to the fold with the fewest rows so far, (n,)."""
    sizes = np.bincount(codes)
    filled = np.zeros(folds, dtype=np.intp)
    fold_of_block = np.empty(len(sizes), dtype=np.intp)
    for block in rng.permutation(len(sizes)):
        # an empty fold first: there are as many blocks as folds at least
        fold_of_block[block] = int(np.argmin(filled))
        filled[fold_of_block[block]] += sizes[block]
    return np.asarray(fold_of_block[codes])


# Outputs without inputs that are left out: each is predicted from the others, through theta and a bias of its own.


def with_output_priors(problem: Problem, methods: dict[str, Method]) -> dict[str, Method]:
    """The methods with the priors that they have for outputs without inputs, so that they are described as they are."""
    chosen = dict(methods)
    for name, method in methods.items():
        # one that cannot do the problem says so when it is tried
        with suppress(InputError):
            chosen[name] = method_for(problem, method)
    return chosen


def output_folds(problem: Problem, folds: int, seed: int) -> Split:
    """The outputs at random in parts whose sizes differ by one at most, and the problem without each part."""
    q = problem.data.q
    fold_of_output = np.empty(q, dtype=np.intp)
    order = np.random.default_rng(np.random.SeedSequence([seed, 0])).permutation(q)
    fold_of_output[order] = np.arange(q) % folds
    parts = []
    for k in range(folds):
        name, hidden = f"fold {k + 1} of {folds}", fold_of_output == k
        try:
            parts.append(Fold(name, hidden, problem.subset(np.arange(problem.data.n), hidden=hidden)))
        except OrthocalError as error:
            raise InputError(f"without {name}: {error}; or take more folds, or folds=0") from None
    return Split(fold_of_output, parts)


def noise_sds(problem: Problem) -> Array:
    """The noise's standard deviation of each cell, (n, q)."""
    own = problem.noise.by_point
    variances = np.diag(problem.noise.cov) if own is None else np.einsum("nii->ni", own)
    return np.broadcast_to(np.sqrt(variances), problem.data.y.shape)


def output_scores(fit: Posterior, problem: Problem, outputs: BoolArray) -> tuple[CellScores, CellScores]:
    """Scores of outputs (q,) that a fit has not seen, by model + bias and by the model alone.

    Cells are (count r, 1), output after output, in units of each one's noise: their own units differ.
    """
    predicted = fit.predict()
    # drawn anew, from the fold's seed: all methods get the same noise, and chance does not set them apart
    rng = np.random.default_rng(np.random.SeedSequence(fit.record.seed, spawn_key=(1,)))
    sd = np.sqrt(np.diag(problem.noise.cov))
    draws = predicted["mean"].shape[:2]
    noise = rng.standard_normal((*draws, *problem.data.y.shape)) * noise_sds(problem)
    y = (problem.data.y / sd)[:, outputs].T.reshape(-1, 1)
    scores = []
    for name in ("mean", "model"):
        values = ((predicted[name].values + noise) / sd)[..., outputs].swapaxes(2, 3)
        scores.append(cell_scores(values.reshape(-1, *y.shape), y))
    return scores[0], scores[1]


class HeldOutScores(NamedTuple):
    """Scores of the held-out cells, by model + bias and by the model alone."""

    with_bias: CellScores
    model_alone: CellScores


class SplitScores(NamedTuple):
    """What came of one split, by label: scores of the held-out cells, and fold -> why it has none."""

    fold_of_row: IntArray | None
    held_out: dict[str, HeldOutScores]
    missed: dict[str, dict[str, str]]


class Fits(NamedTuple):
    """What came of the methods, by label: posterior, reason of a failure, and what came of each split."""

    posteriors: dict[str, Posterior]
    failures: dict[str, str]
    scored: list[SplitScores]


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
    pieces: list[dict[str, list[HeldOutScores | str]]] = [{name: [] for name in methods} for _ in splits]
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
        scored.append(SplitScores(split.fold_of_row, {}, {}))
        for name in posteriors:
            why = {fold.name: one for fold, one in zip(split.folds, parts[name], strict=True) if isinstance(one, str)}
            if len(why) == len(split.folds):
                failures[name] = "without {}: {}".format(*next(iter(why.items())))
                continue
            scored[-1].held_out[name] = _joined(parts[name], split, problem.data)
            if why:
                scored[-1].missed[name] = why
    return Fits(posteriors, failures, scored)


def _fold_scores(
    problem: Problem, method: Method, fold: Fold, seed: int, options: dict[str, Any]
) -> HeldOutScores | str:
    """Scores of one fold, or why there are none."""
    if fold.problem is None:
        return fold.failure
    try:
        return _scored(calibrate(fold.problem, method, seed=seed, **options), problem, fold.rows)
    except OrthocalError as error:
        return str(error)


def _scored(fit: Posterior, problem: Problem, rows: BoolArray) -> HeldOutScores:
    """Scores of the rows, or of the outputs without inputs, that a fit has not seen."""
    if problem.data.without_inputs:
        return HeldOutScores(*output_scores(fit, problem, rows))
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
    return HeldOutScores(*(cell_scores(one.reshape(-1, *y.shape), y) for one in draws))


def _joined(pieces: list[HeldOutScores | str], split: Split, data: FieldData) -> HeldOutScores:
    """The scores of all rows, in their order, from those of the folds; NaN where a fold has none.

    Of outputs without inputs the cells are (q n, 1), output after output.
    """
    shape, each = ((data.y.size, 1), data.n) if data.without_inputs else (data.y.shape, 1)
    parts = []
    for which in range(len(HeldOutScores._fields)):
        whole = CellScores(*(np.full(shape, np.nan) for _ in CellScores._fields))
        for fold, piece in zip(split.folds, pieces, strict=True):
            if not isinstance(piece, str):
                for into, values in zip(whole, piece[which], strict=True):
                    into[np.repeat(fold.rows, each)] = values
        parts.append(whole)
    return HeldOutScores(*parts)

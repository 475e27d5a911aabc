"""The folds of a comparison: which rows are held out together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray
from ..errors import InputError, OrthocalError
from ..problem.data.field_data import FieldData, Groups, chosen_groups
from ..problem.problem import Problem

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
    codes = _distinct(problem.data.x)
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


def _distinct(x: Array) -> IntArray:
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

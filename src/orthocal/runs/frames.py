"""Columns and rows of a long table of runs: its numbers, and which rows are one run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..arrays import Array, IntArray, as_floats
from ..errors import InputError
from .reading import RUN


def floats_of(frame: pd.DataFrame, names: list[str]) -> Array:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise InputError(f"the table has no column {', '.join(map(repr, missing))}; there are: {there}")
    return np.stack([as_floats(frame[name], f"column {name!r}") for name in names], axis=-1)


def aligned(runs: list[IntArray], x: Array) -> list[IntArray]:
    """The rows of each run in the order of x, where all have the same points, and only their order differs."""
    if len({len(rows) for rows in runs}) > 1 or all(np.array_equal(x[rows], x[runs[0]]) for rows in runs):
        return runs
    ordered = [rows[np.lexsort(x[rows].T[::-1])] for rows in runs]
    return ordered if all(np.array_equal(x[rows], x[ordered[0]]) for rows in ordered) else runs


def grouped(run: pd.Series | None, parameters: Array) -> list[IntArray]:
    """The rows of each run, in the order in which the runs appear."""
    if run is None:
        _, label = np.unique(parameters, axis=0, return_inverse=True)
    else:
        if run.isna().any():
            raise InputError(f"column {RUN!r} has empty cells")
        label = pd.factorize(run)[0]
    rows = np.argsort(label.ravel(), kind="stable")
    pieces = np.split(rows, np.flatnonzero(np.diff(label.ravel()[rows])) + 1)
    return sorted((piece.astype(np.intp) for piece in pieces), key=lambda piece: int(piece[0]))

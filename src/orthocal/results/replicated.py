"""New data that a fit foretells at the points of the old ones: y_rep = model + bias + noise, by the stored draws."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, IntArray
from .record import Record

#: replicated data sets, of all chains together
REPLICATES = 400


def replicated(record: Record, rows: IntArray) -> Array:
    """y_rep at some rows, (r, m, q), on the outcomes' own scale; always the same for a result."""
    rng = np.random.default_rng(np.random.SeedSequence(record.seed, spawn_key=(2**31 + 3,)))
    each = max(1, REPLICATES // record.chains)
    some = np.unique(np.linspace(0, len(record.kept) - 1, min(each, len(record.kept))).round().astype(np.intp))
    keep = record.kept[some]
    model, bias = (record.at_data(name)[:, some][:, :, rows] for name in ("model", "bias"))
    normal = _normal(record, rng, (*model.shape[:2], len(record.x), record.q))[:, :, rows]
    noise = np.einsum("...ij,...j->...i", _roots(record, keep, rows), normal)
    found = record.transforms.inverse(model + bias + noise)
    return np.asarray(found.reshape(-1, *found.shape[2:]))


def _roots(record: Record, keep: IntArray, rows: IntArray) -> Array:
    """R with R R' = Sigma_i, (c, s, m, q, q), with axes of length one where it is the same."""
    cov = record.noise_of_rows
    cov = cov[:, keep] if cov.shape[1] > 1 else cov
    cov = cov[:, :, rows] if cov.shape[2] > 1 else cov
    return np.linalg.cholesky(cov)


def _normal(record: Record, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    correlated = record.row_correlation
    normal = rng.standard_normal(shape)
    return normal if correlated is None else np.einsum("ij,csjk->csik", correlated.lower, normal, optimize=True)


def levels_of(y: Array, drawn: Array) -> Array:
    """The share of foretold values (r, m) below each observed one, (m,), between 0 and 1; NaN where one is missing."""
    below = (drawn < y).mean(axis=0)
    return np.where(np.isnan(y), np.nan, below)

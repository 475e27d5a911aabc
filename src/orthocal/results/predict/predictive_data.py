"""Observations drawn at the data: what ArviZ's posterior predictive checks look at.

They are drawn anew when the tree is first looked at, always the same, and are not written to files.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from ...arrays import Array, IntArray
from ..data_tree import outcome_variables
from ..record import Record

#: more numbers than this are not drawn: of large data, these are observations of some of the draws
MOST = 4_000_000


def predictive_group(record: Record) -> xr.Dataset:
    """y = f(x_i, theta) + b(x_i) + noise at the cells that were observed, named as ``observed_data`` names them."""
    keep = _numbers(record)
    drawn = _observations(record, keep)
    coords = {"chain": record.values("posterior", "chain"), "draw": record.values("posterior", "draw")[keep]}
    observed, seen = record.data["observed_data"].to_dataset(), ~np.isnan(record.native_y)
    if record.without_inputs:
        cells = {"y": drawn[:, :, seen]}
    else:
        names = outcome_variables(record.outcome_names)
        cells = {name: drawn[:, :, seen[:, k], k] for k, name in enumerate(names)}
    variables = {name: (("chain", "draw", *observed[name].dims), values) for name, values in cells.items()}
    return xr.Dataset(variables, coords={**coords, **observed.coords})


def _numbers(record: Record) -> IntArray:
    """Of the draws that are taken, evenly spread over those whose model and bias are there."""
    most = max(1, MOST // (record.chains * record.native_y.size))
    if len(record.stored_draws) <= most:
        return record.stored_draws
    return record.stored_draws[np.linspace(0, len(record.stored_draws) - 1, most).round().astype(np.intp)]


def _observations(record: Record, keep: IntArray) -> Array:
    """Of every row, on the outcomes' own scale, (c, s, n, q)."""
    drawn = record.at_data("model", keep) + record.at_data("bias", keep)
    rng = np.random.default_rng(np.random.SeedSequence(record.seed, spawn_key=(2**31 + 2,)))
    normal, rows = rng.standard_normal(drawn.shape), record.row_correlation
    if rows is not None:
        normal = np.einsum("ij,csjk->csik", rows.lower, normal, optimize=True)
    cov = record.noise_of_rows
    roots = np.linalg.cholesky(cov if cov.shape[1] == 1 else cov[:, keep])
    drawn += np.einsum("...ij,...j->...i", roots, normal)
    return record.transforms.inverse(drawn) if record.transforms else drawn


# Replicated data, predicted by the fit at the points of the data: y_rep = model + bias + noise, by the stored draws.

#: replicated data sets, of all chains together
REPLICATES = 400


def replicated(record: Record, rows: IntArray) -> Array:
    """y_rep at some rows, (r, m, q), on the outcomes' own scale; always the same for a result."""
    rng = np.random.default_rng(np.random.SeedSequence(record.seed, spawn_key=(2**31 + 3,)))
    each, stored = max(1, REPLICATES // record.chains), record.stored_draws
    some = np.unique(np.linspace(0, len(stored) - 1, min(each, len(stored))).round().astype(np.intp))
    keep = stored[some]
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
    """The share of predicted values (r, m) below each observed one, (m,), between 0 and 1; NaN where one is missing."""
    below = (drawn < y).mean(axis=0)
    return np.where(np.isnan(y), np.nan, below)

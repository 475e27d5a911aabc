"""The likelihood of every observation in every draw: what leave-one-out needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...advice import JOINT
from ...arrays import Array, BoolArray
from ...errors import InputError
from ...methods.base import KINDS
from ...problem.data.transforms import Transforms
from ...problem.noise.row_correlation import joint_precision
from ..record import Record

#: more numbers than this are not kept with the draws unless they are asked for
MOST_KEPT = 20_000_000


def has_likelihood(record: Record) -> bool:
    """Whether the draws come from one joint distribution of theta and the bias."""
    family = KINDS.get(str(record.method.get("kind")))
    joint = family is None or family.joint_density
    return joint and record.all_stored and record.transforms.has_density(record.native_y)


def few_enough(record: Record) -> bool:
    """Whether there is a likelihood that is kept with the draws without being asked for."""
    return has_likelihood(record) and record.at_data("model").size <= MOST_KEPT


def require_likelihood(record: Record) -> None:
    require_density(record.transforms, record.native_y)
    if not record.all_stored:
        raise InputError(
            f"model and bias at the {len(record.x)} data points were kept of {len(record.stored_draws)} of "
            f"{record.draws} draws a chain: leave-one-out needs all of them, calibrate with a larger keep_mb, or take "
            "oc.compare(..., folds=10)"
        )
    if not has_likelihood(record):
        raise InputError(
            "the paper's algorithm has no likelihood of its draws: theta and the bias are drawn in turns that have no "
            "joint density, so leave-one-out has no meaning for them; take " + JOINT + ", or oc.compare(..., folds=10)"
        )


def require_density(transforms: Transforms, y: Array) -> None:
    """An error where an observation has no finite density on its own scale."""
    if not transforms.has_density(y):
        raise InputError(
            "y has zeros, where the density of y is infinite if sqrt y is normal: there is no leave-one-out by "
            "likelihood; take oc.compare(..., folds=10), whose scores are on the scale of y"
        )


def likelihood_group(record: Record) -> xr.Dataset:
    """ArviZ's group: one value a row that has an observation, (chain, draw, point), and one variable.

    It has the name of the outcome, of several outcomes ``y``. Outputs without inputs have one value an observation, row
    after row.
    """
    observed = record.data["observed_data"].to_dataset()
    if len(observed.data_vars) == 1:
        (name,) = observed.data_vars
        (dim,) = observed[name].dims
        coords: dict[Any, Any] = dict(observed.coords)
    else:
        name, dim = "y", "point"
        coords = {dim: np.flatnonzero((~np.isnan(record.y)).any(axis=1))}
    coords |= {index: record.values("posterior", index) for index in ("chain", "draw")}
    return xr.Dataset({name: (("chain", "draw", dim), log_likelihood(record))}, coords=coords)


def log_likelihood(record: Record) -> Array:
    """log p(observed cells of row i | theta, bias, noise) for every draw, (c, s, rows), without rows that have none.

    The density is that of y itself, log p(T(y)) + log T'(y) for an outcome with a transform: so fits with and without
    one can be compared.
    """
    observed = ~np.isnan(record.y)
    residual = record.y - record.at_data("model") - record.at_data("bias")
    if record.without_inputs:
        return _of_cells(residual, observed, np.broadcast_to(record.noise_of_rows[0, 0], (*observed.shape, record.q)))
    if record.row_correlation is not None:
        return _given_other_rows(record, residual)
    density = np.zeros(residual.shape[:3])
    patterns, pattern_of_row = np.unique(observed, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows, cells = np.flatnonzero(pattern_of_row.ravel() == number), np.flatnonzero(pattern)
        if not len(cells):
            continue
        lower = np.linalg.cholesky(record.noise_of_rows[..., cells[:, None], cells])
        lower = lower[:, :, rows] if lower.shape[2] > 1 else lower
        own = residual[:, :, rows[:, None], cells]
        scaled = np.einsum("csnij,csnj->csni", np.broadcast_to(np.linalg.inv(lower), (*own.shape, len(cells))), own)
        size = 2 * np.log(np.einsum("...ii->...i", lower)).sum(axis=-1) + len(cells) * np.log(2 * np.pi)
        density[:, :, rows] = -0.5 * (np.sum(scaled**2, axis=-1) + size)
    if record.transforms:
        density = density + np.nansum(np.log(record.transforms.slope(record.native_y)), axis=1)
    return density[:, :, observed.any(axis=1)]


def _given_other_rows(record: Record, residual: Array) -> Array:
    """log p(observed cells of row i | all other rows, theta, bias) for every draw, (c, s, rows).

    With P the inverse of the covariance of all observed cells: N(e_i; e_i - P_ii^-1 (P e)_i, P_ii^-1). Leave-one-out by
    importance weights needs just this where observations are not independent (Buerkner, Gabry and Vehtari 2021).
    """
    noise = record.noise
    assert noise.rows is not None
    n, q = record.y.shape
    precision = joint_precision(noise.rows, noise.cov, noise.by_point, noise.observed)
    left = np.nan_to_num(residual)
    pulls = (left.reshape(-1, n * q) @ precision.reshape(n * q, n * q)).reshape(left.shape)
    parts = []
    for i in np.flatnonzero(noise.observed.any(axis=1)):
        cells = np.flatnonzero(noise.observed[i])
        lower = np.linalg.cholesky(precision[i, :, i][np.ix_(cells, cells)])
        scaled = np.linalg.solve(lower, pulls[:, :, i, cells].reshape(-1, len(cells)).T)
        size = len(cells) * np.log(2 * np.pi) - 2 * np.log(np.diag(lower)).sum()
        density = -0.5 * (np.sum(scaled**2, axis=0) + size)
        if record.transforms:
            density = density + np.nansum(np.log(record.transforms.slope(record.native_y[i : i + 1])))
        parts.append(density.reshape(residual.shape[:2]))
    return np.stack(parts, axis=2)


def _of_cells(residual: Array, observed: BoolArray, cov: Array) -> Array:
    """log p(y_ik | the other cells of the row, theta, bias) for every observed cell, (c, s, cells).

    With P the inverse of the covariance of a row's observed cells: N(e_k; e_k - (P e)_k / P_kk, 1 / P_kk).
    """
    parts = []
    for left, seen, own in zip(np.moveaxis(residual, 2, 0), observed, cov, strict=True):
        precision = np.linalg.inv(own[np.ix_(seen, seen)])
        diagonal = np.diag(precision)
        square = (left[:, :, seen] @ precision) ** 2 / diagonal
        parts.append(-0.5 * (square - np.log(diagonal) + np.log(2 * np.pi)))
    return np.concatenate(parts, axis=2)

"""Rows of the field data with the same x as one: their mean says all that they say.

With the rows' precisions P_i at one x, and m = f + b there,

    sum_i (y_i - m)' P_i (y_i - m) = (y - m)' P (y - m) + sum_i (y_i - y)' P_i (y_i - y),

P = sum_i P_i and P y = sum_i P_i y_i: one row with the values y and the covariance P^-1 has the same likelihood, but
for a constant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Repeats, repeated_rows
from .data.field_data import FieldData
from .noise.noise import Noise, NoiseSource, observed_precision


class Merged(NamedTuple):
    """Data and noise with one row for each distinct x; how the rows repeat, and the scatter that is left out."""

    data: FieldData
    noise: Noise
    repeats: Repeats
    scatter: float


def merged_rows(data: FieldData, noise: Noise) -> Merged | None:
    """Rows with the same x as one, or None where none repeats; a cell is missing where it always is."""
    repeats = repeated_rows(data.x)
    # sampled noise needs every row, and so do errors that are correlated between rows: a mean does not say all of them
    if repeats is None or noise.source is NoiseSource.UNKNOWN or noise.rows is not None:
        return None
    each = _precisions(noise)
    observed = repeats.sums(noise.observed.astype(float)) > 0
    # the inverse at the cells that are there, and zero at the others
    cov = observed_precision(repeats.sums(each), observed)
    pull = repeats.sums(np.einsum("nkl,nl->nk", each, np.where(noise.observed, data.y, 0.0)))
    y = np.where(observed, np.einsum("ukl,ul->uk", cov, pull), np.nan)
    apart = np.where(noise.observed, data.y - y[repeats.place], 0.0)
    by_point = cov + np.einsum("uk,kl->ukl", ~observed, np.eye(data.q))
    return Merged(
        replace(data, x=data.x[repeats.first], y=y, native_y=data.transforms.inverse(y), groups=None),
        replace(noise, observed=observed, by_point=by_point),
        repeats,
        float(np.einsum("nk,nkl,nl", apart, each, apart)),
    )


def _precisions(noise: Noise) -> Array:
    """P_i, (n, q, q), zero at missing cells."""
    return observed_precision(noise.cov if noise.by_point is None else noise.by_point, noise.observed)

"""Outputs without inputs, for checks and pages: what was observed, what the simulator gives, and each one's bias."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...pages.tables import with_error
from ..record import Record
from .predict import central_band

WEIGHTS = {
    "noise-precision": "Each output counts in units of its noise: one that is measured more precisely counts more.",
    "identity": "The squared differences are added as they are: an output with larger numbers counts more.",
    "matrix": "The differences of the outputs are weighted by the matrix W that was given.",
}


class OutputBands(NamedTuple):
    """Of each output: its observed mean, the noise's sd of that mean and of one observation, (q,); bands are (3, q).

    The mean is NaN where an output is missing. Bands are mean, lower and upper end of 95 % of the draws.
    """

    observed: Array
    mean_sd: Array
    noise_sd: Array
    model: Array
    bias: Array
    total: Array


def output_bands(record: Record) -> OutputBands:
    """From the stored draws, which are the same in every replicated row."""
    model, bias = (record.at_data(name)[:, :, :1] for name in ("model", "bias"))
    bands = (central_band(values)[:, 0] for values in (model, bias, model + bias))
    seen = ~np.isnan(record.y)
    noise_var = np.diag(record.noise_cov)
    own = record.noise_by_point
    each = np.broadcast_to(noise_var, seen.shape) if own is None else np.einsum("nii->ni", own)
    weight = np.where(seen, 1 / each, 0.0).sum(axis=0)
    total = np.where(seen, np.nan_to_num(record.y) / each, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return OutputBands(total / weight, np.sqrt(1 / weight), np.sqrt(noise_var), *bands)


def output_rows(record: Record) -> Iterator[dict[str, str]]:
    """The outputs as texts for a table."""
    bands, noise_sd = output_bands(record), np.sqrt(np.diag(record.noise_cov))
    model, bias = (record.at_data(name)[:, :, 0] for name in ("model", "bias"))
    for k, name in enumerate(record.outcome_names):
        seen = not np.isnan(bands.observed[k])
        columns = {"model": model, "bias": bias, "noise_sds": bias / noise_sd, "total": model + bias}
        yield {
            "name": name,
            "observed": with_error(float(bands.observed[k]), float(bands.mean_sd[k]), 2) if seen else "missing",
            **{
                what: with_error(float(own[..., k].mean()), float(own[..., k].std()), 2)
                for what, own in columns.items()
            },
        }

"""Outputs without inputs, for checks and pages: what was observed, what the simulator gives, and each one's bias."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from ...advice import NOISE_COV
from ...arrays import Array
from ...findings import Finding, Level
from ...pages.tables import with_error
from ...problem.noise.noise import NoiseSource
from ..record import Record
from .predict import central_band

#: replicates behind an estimated noise that are few, and too few: its sds are uncertain by 25 and by 40 per cent
FEW_REPLICATES = 9, 4
#: probability that an output is called missed where none is
MISSED_ALARM = 0.05
#: outputs that a sentence names
MOST_NAMED = 5
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


def output_findings(record: Record) -> Iterator[Finding]:
    """What is to be known about the biases, and about how they can be told from the noise."""
    seen = (~np.isnan(record.y)).sum(axis=0)
    yield from _told_apart(record, seen)
    yield from _sizes(record)
    spare = int((seen > 0).sum()) - len(record.parameter_names)
    if spare <= 0:
        message = f"there are as many parameters as observed outputs ({len(record.parameter_names)})"
        advice = "whatever the simulator misses, some theta explains: of the bias the data say nothing"
        yield Finding("note", "bias", message, advice)


def _told_apart(record: Record, seen: Array) -> Iterator[Finding]:
    if record.notes.noise_source is NoiseSource.ESTIMATED:
        least = int(seen.min())
        message = (
            f"it was estimated from as few as {least} observations of an output, to {50 / (least / 2) ** 0.5:.0f} %"
        )
        if least <= FEW_REPLICATES[0]:
            level: Level = "problem" if least <= FEW_REPLICATES[1] else "note"
            yield Finding(level, "noise", message, "intervals are too narrow: give " + NOISE_COV + ", or more rows")
    single = int((seen == 1).sum())
    if single:
        message = f"{single} outputs have one observation, which cannot tell noise from bias: the noise that was given"
        yield Finding("note", "noise", f"{message} decides what counts as bias")


def _sizes(record: Record) -> Iterator[Finding]:
    bands = output_bands(record)
    sds = bands.bias / bands.noise_sd
    size = float(np.sqrt(np.mean(sds[0] ** 2)))
    yield Finding("fine", "bias", f"over all outputs it is {size:.2g} noise standard deviations (rms)")
    # where none is missed, one of q is called so in at most 5 % of the data sets
    spread = record.at_data("bias")[:, :, 0].std(axis=(0, 1)) / bands.noise_sd
    missed = np.flatnonzero(np.abs(sds[0]) > norm.isf(0.5 * MISSED_ALARM / record.q) * spread)
    if len(missed):
        order = missed[np.argsort(-np.abs(sds[0, missed]))]
        named = ", ".join(f"{record.outcome_names[k]} ({sds[0, k]:+.1f} noise sds)" for k in order[:MOST_NAMED])
        more = f" and {len(order) - MOST_NAMED} more" if len(order) > MOST_NAMED else ""
        message = f"the simulator at its best misses {len(order)} of {record.q} outputs: {named}{more}"
        yield Finding("note", "bias", message)

"""What is found about the bias: its size, what its prior says about itself, and which outputs the simulator misses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import norm

from ...bias.base import SAMPLERS
from ...findings import Finding
from ..predict.outputs import output_bands
from ..record import Record
from ..run_facts import RunFacts
from .noise_findings import replicates_of_outputs

_INPUT = re.compile(r"\binput (\d+)\b")
#: probability that an output is called missed where none is
MISSED_ALARM = 0.05
#: outputs that a sentence names
MOST_NAMED = 5


def bias_findings(record: Record, facts: RunFacts) -> Iterator[Finding]:
    if record.without_inputs:
        yield from output_findings(record)
        return
    bias = record.at_data("bias").mean(axis=(0, 1))
    sd = np.sqrt(np.diag(record.noise_cov))
    for k, name in enumerate(record.scale_names):
        size = float(np.sqrt(np.mean(bias[:, k] ** 2)))
        yield Finding(
            "fine",
            "bias",
            f"that of {name} is {size:.3g} (rms), {size / sd[k]:.2g} noise standard deviations",
        )
    # the prior's own file says what its figures mean; of a prior of the user's nothing is known
    for settings, found in zip(record.samplers, facts.bias, strict=True):
        known = SAMPLERS.get(str(settings.get("kind")))
        for one in known.remarks(found) if known is not None else ():
            # it knows inputs by their numbers
            yield one._replace(message=_INPUT.sub(partial(_named, record.input_names), one.message))


def _named(inputs: tuple[str, ...], found: re.Match[str]) -> str:
    number = int(found[1])
    return inputs[number - 1] if number <= len(inputs) else found[0]


def output_findings(record: Record) -> Iterator[Finding]:
    """What is to be known about the biases, and about how they can be told from the noise."""
    seen = (~np.isnan(record.y)).sum(axis=0)
    yield from replicates_of_outputs(record, seen)
    yield from _sizes(record)
    spare = int((seen > 0).sum()) - len(record.parameter_names)
    if spare <= 0:
        message = f"there are as many parameters as observed outputs ({len(record.parameter_names)})"
        advice = "whatever the simulator misses, some theta explains: of the bias the data say nothing"
        yield Finding("note", "bias", message, advice)


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

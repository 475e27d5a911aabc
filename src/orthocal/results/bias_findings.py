"""What is found about the bias, and what its prior says about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from ..bias.base import SAMPLERS
from ..findings import Finding
from .notes import Notes
from .outputs import output_findings
from .record import Record

_INPUT = re.compile(r"\binput (\d+)\b")


def bias_findings(record: Record, notes: Notes) -> Iterator[Finding]:
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
    for settings, found in zip(record.samplers, notes.bias, strict=True):
        known = SAMPLERS.get(str(settings.get("kind")))
        for one in known.remarks(found) if known is not None else ():
            # it knows inputs by their numbers
            yield one._replace(message=_INPUT.sub(partial(_named, record.input_names), one.message))


def _named(inputs: tuple[str, ...], found: re.Match[str]) -> str:
    number = int(found[1])
    return inputs[number - 1] if number <= len(inputs) else found[0]

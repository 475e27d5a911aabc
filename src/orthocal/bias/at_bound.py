"""Hyperparameters of a Gaussian process that ended on a bound of their search: at which end, and what that means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array
from ..findings import Finding, Level
from ..regression.gaussian_process import Hyperparameters


def ends(fit: Hyperparameters, residual: Array, span: Array) -> tuple[str, ...]:
    """What ended on a bound, with the end: ``"smallest sd"``, ``"longest lengthscale 2"``.

    Bounds are far from the size of the residuals (n,) that were fitted, and from the width of the domain, (d,).
    """
    size = float(np.std(residual)) or float(np.abs(residual).max())
    found = []
    for name in fit.at_bound:
        if name == "sd":
            found.append("smallest sd" if fit.sd < size or size == 0 else "largest sd")
        else:
            j = int(name.split()[-1]) - 1
            ends_of = ("least", "most") if name.startswith("label") else ("shortest", "longest")
            found.append(f"{ends_of[0] if fit.lengthscale[j] < span[j] else ends_of[1]} {name}")
    return tuple(found)


def bound_findings(findings: dict[str, Any]) -> Iterator[Finding]:
    """One a hyperparameter, with its value; where the bias has no size, its length-scales mean nothing."""
    ended = findings.get("at_bound") or []
    for place in ["smallest sd"] if "smallest sd" in ended else ended:
        end, _, name = place.partition(" ")
        if end in _LABELS:
            which = f"the correlation of the bias between the labels of input {name.split()[-1]}"
            yield Finding(
                "fine", "bias prior", f"the search for {which} ended at the {end} that is looked for: {_LABELS[end]}"
            )
            continue
        if end not in _MEANINGS:
            # a file of version 0.1 does not know the end
            end, name = "last", place
        number = name.removeprefix("lengthscale ")
        which = f"its length-scale along input {number}" if number != name else "its sd"
        value = findings["sd"] if number == name else findings["lengthscale"][int(number) - 1]
        meaning, advice = _MEANINGS.get(end, ("", ""))
        # a bias that needs no more than a straight line is nothing to worry about
        level: Level = "fine" if end == "longest" else "note"
        message = f"the search for {which} ended at the {end} that is looked for, {value:.3g}"
        yield Finding(level, "bias prior", f"{message}{meaning}", advice)


#: the same of the correlation between labels: neither end is anything to worry about
_LABELS = {
    "least": "each label has a bias of its own, about which the others say nothing",
    "most": "all labels have the same bias",
}
#: what each end means, and what to do
_MEANINGS = {
    "smallest": (
        ": the data show no bias beside the noise, and theta's interval allows for none",
        "if the simulator cannot be as good as that, give the sd of its bias, oc.bias.GP(sd=...)",
    ),
    "largest": (
        ": the bias is far larger than what the simulator leaves of the data, as a trend beyond them would be",
        "give sd and lengthscale, oc.bias.GP(sd=..., lengthscale=...), or a simulator that has the trend",
    ),
    "longest": (": along it the bias is constant or a straight line", ""),
    "shortest": (
        ": the bias changes from each point to the next, as noise does",
        "noise_cov may be too small; or give the lengthscale, oc.bias.GP(lengthscale=...)",
    ),
}

"""What a notebook shows of a table of runs: how many there are, and over which theta."""

from __future__ import annotations

from typing import Protocol

from ..arrays import Array, BoolArray
from ..pages.notebook import Table, listed, shown_html


class Runs(Protocol):
    """What is shown of a table."""

    theta: Array
    parameter_names: tuple[str, ...]
    input_names: tuple[str, ...]
    outcome_names: tuple[str, ...]

    @property
    def s(self) -> int: ...

    @property
    def m(self) -> int: ...

    @property
    def ragged(self) -> bool: ...

    @property
    def failed(self) -> BoolArray: ...


def runs_html(runs: Runs) -> str:
    """Facts, and the range of each parameter."""
    facts = {
        "runs": f"{runs.s}, {int(runs.failed.sum())} failed",
        "points": "each run has its own" if runs.ragged else f"{runs.m}",
        "inputs": listed(runs.input_names),
        "outcomes": listed(runs.outcome_names),
    }
    ends = zip(runs.parameter_names, runs.theta.min(axis=0), runs.theta.max(axis=0), strict=True)
    rows = [[name, f"{low:.4g}", f"{high:.4g}"] for name, low, high in ends]
    return shown_html("Table of runs", facts, [Table(["parameter", "least", "most"], rows)])

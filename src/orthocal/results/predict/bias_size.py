"""How large the bias is over the domain, with its uncertainty, and how well it was integrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from ...advice import NODES
from ...arrays import Array
from ...bias.large_gp import MOVE_LIMITS
from ...errors import InputError
from ...findings import Finding, Level
from ..record import Record
from ..run_facts import Notes


def size_table(
    record: Record, interval: float, computed: Callable[[], tuple[Array, Array]] | None = None
) -> pd.DataFrame:
    """One row an outcome; ``computed`` gives what the record does not hold, see ``domain_squares``."""
    if not 0 < interval < 1:
        raise InputError(f"interval={interval}: give its probability, between 0 and 1")
    if record.has("bias", "bias_square"):
        bias, process = (record.values("bias", name) for name in ("bias_square", "process_square"))
    else:
        assert computed is not None
        bias, process = computed()
    bias, process = (values.reshape(-1, record.q) for values in (bias, process))
    noise_sd = np.sqrt(np.diag(record.noise_cov))
    rms = np.sqrt(bias)
    # a real process that is the same everywhere has no variation to have a share of
    share = np.divide(bias, process, out=np.full_like(bias, np.nan), where=process > 0)
    rows = []
    for k in range(record.q):
        row: dict[str, float] = {}
        for name, values in (("rms", rms[:, k]), ("noise_sds", rms[:, k] / noise_sd[k]), ("share", share[:, k])):
            row[name] = float(values.mean())
            ends = np.quantile(values, [(1 - interval) / 2, (1 + interval) / 2])
            row[f"{name}_lower"], row[f"{name}_upper"] = map(float, ends)
        rows.append(row)
    table = pd.DataFrame(rows, index=pd.Index(record.scale_names, name="outcome"))
    # a number has no variation either
    return table.drop(columns=["share", "share_lower", "share_upper"]) if record.without_inputs else table


def bias_integrals(record: Record, notes: Notes) -> Iterator[Finding]:
    """Where the bias was integrated at other nodes than the domain's: how well."""
    if notes.bias_nodes is None:
        return
    if notes.bias_nodes == 0:
        yield Finding(
            "fine", "quadrature", "integrals of the bias are exact, cell by cell between the cuts of its trees"
        )
    elif notes.bias_nodes_moved is not None:
        moved = notes.bias_nodes_moved
        message = f"integrals of the bias with {notes.bias_nodes} nodes: half of them would move theta by {moved:.2g}"
        level: Level = "fine" if moved <= MOVE_LIMITS[0] else "note" if moved <= MOVE_LIMITS[1] else "problem"
        advice = "" if level == "fine" else "take more " + NODES
        yield Finding(level, "quadrature", f"{message} posterior sds", advice)

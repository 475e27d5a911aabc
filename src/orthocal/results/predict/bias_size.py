"""How large the bias is over the domain, with its uncertainty, and how well it was integrated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from ...arrays import Array
from ...errors import InputError
from ..record import Record


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

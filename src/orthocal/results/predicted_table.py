"""Predictions as a table: one row a point, with centres and ends of intervals over the draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import xarray as xr

from ..arrays import Array
from ..errors import InputError
from .posterior import Posterior

#: numbers of draws, points and outcomes that are in memory at a time
BLOCK = 4_000_000
#: which quantities have a centre; observations are about what a new measurement will be, which only an interval says
CENTRED = ("model", "bias", "mean")


def predicted_table(
    posterior: Posterior,
    x_new: Array | None = None,
    level: float = 0.95,
    draws: int | None = None,
    seed: int | None = None,
) -> pd.DataFrame:
    """``model``, ``bias`` and ``mean`` with ``_lower`` and ``_upper``, and the interval of observations.

    Centres are means over the draws, of an outcome with a transform medians; intervals are equal-tailed. Of several
    outcomes the names begin with that of the outcome, ``speed_mean``. ``distance`` is that to the nearest data, and
    ``far`` says which points lie far from them.

    Parameters
    ----------
    x_new
        (m, d), checked; None for the data points.
    level
        Of the intervals.
    draws
        Number of draws a chain; None for all.
    """
    if not 0 < level < 1:
        raise InputError(f"the level of the intervals is {level:g}: give a number between 0 and 1")
    parts = [_summarised(posterior, found, level) for found in _predicted(posterior, x_new, draws, seed)]
    return pd.concat(parts, ignore_index=True)


def data_table(posterior: Posterior, table: pd.DataFrame) -> pd.DataFrame:
    """Predictions at the data with the inputs and what was observed there before them."""
    record = posterior.record
    several = record.q > 1
    before = pd.DataFrame(index=range(len(table)))
    if not record.without_inputs:
        for j, name in enumerate(record.input_names):
            column, labels = record.x[:, j], record.labels.of(j)
            before[name] = column if labels is None else [labels.text(value) for value in column]
        for k, name in enumerate(record.outcome_names):
            before[f"{name}_observed" if several else "observed"] = record.native_y[:, k]
    prefix = free_prefix(before.columns.astype(str).tolist(), table)
    return pd.concat([before, table.add_prefix(prefix)], axis=1)


def free_prefix(names: list[str], table: pd.DataFrame) -> str:
    """What must stand before the columns of a table so that they have names of their own among others."""
    prefix = ""
    while {f"{prefix}{name}" for name in table.columns} & set(names):
        prefix += "predicted_"
    return prefix


def _predicted(posterior: Posterior, x_new: Array | None, draws: int | None, seed: int | None) -> Iterator[xr.Dataset]:
    """Predictions at some points at a time."""
    record = posterior.record
    if x_new is None:
        yield posterior.predict(None, draws, seed)
        return
    every = record.chains * min(record.draws, draws or record.draws) * record.q
    size = max(1, BLOCK // every)
    for start in range(0, len(x_new), size):
        yield posterior.predict(x_new[start : start + size], draws, seed, warn=False)


def _summarised(posterior: Posterior, found: xr.Dataset, level: float) -> pd.DataFrame:
    record = posterior.record
    tails = [0.5 - level / 2, 0.5 + level / 2]
    changed = record.transforms.names if record.transforms else (None,) * record.q
    columns: dict[str, Array] = {}
    for k, (name, transform) in enumerate(zip(record.outcome_names, changed, strict=True)):
        before = f"{name}_" if record.q > 1 else ""
        for quantity in (*CENTRED, "observation"):
            values = found[quantity].values[..., k]
            every = values.reshape(-1, values.shape[-1])
            if quantity in CENTRED:
                columns[before + quantity] = every.mean(axis=0) if transform is None else np.median(every, axis=0)
            columns[f"{before}{quantity}_lower"], columns[f"{before}{quantity}_upper"] = np.quantile(
                every, tails, axis=0
            )
    if "distance" in found:
        columns |= {"distance": found["distance"].values, "far": found["far"].values}
    return pd.DataFrame(columns)

"""Draws as a table, and what a notebook shows of a posterior."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from ..arrays import IntArray
from ..pages.tables import Table, listed, shown_html, summary_rows
from .record import Record

#: what is predicted
QUANTITIES = ("model", "bias", "mean", "observation")


def draws_frame(record: Record, keep: IntArray, predicted: xr.Dataset | None = None) -> pd.DataFrame:
    """One row a draw, of those numbered ``keep``: chain, draw, the parameters, and what is ``predicted``."""
    chain, draw = np.meshgrid(np.arange(record.chains), keep, indexing="ij")
    columns = {"chain": chain.ravel(), "draw": draw.ravel()}
    theta = record.theta[:, keep].reshape(len(columns["chain"]), -1)
    columns |= dict(zip(record.parameter_names, theta.T, strict=True))
    for name in QUANTITIES if predicted is not None else ():
        assert predicted is not None
        values = predicted[name].values.reshape(len(theta), *predicted[name].shape[2:])
        for i in range(values.shape[1]):
            for k, outcome in enumerate(record.outcome_names):
                label = f"{name}[{i}]" if record.q == 1 else f"{name}[{i}, {outcome}]"
                columns[label] = values[:, i, k]
    return pd.DataFrame(columns)


def posterior_html(record: Record, title: str) -> str:
    """The method, the data, and the summary."""
    kind, bias = (str(one) for one in (record.method.get("kind"), (record.method.get("bias") or {}).get("kind", "")))
    facts = {"method": f"{kind}, bias {bias}" if bias else kind, "chains, draws": f"{record.chains} x {record.draws}"}
    if record.has("constant_data", "x"):
        inputs = "" if record.without_inputs else f", inputs {listed(record.input_names)}"
        facts["data"] = f"{len(record.x)} rows{inputs}, outcomes {listed(record.outcome_names)}"
    header = ["parameter", "mean", "sd", "2.5 %", "97.5 %", "ESS", "R-hat"]
    rows = [list(row.values()) for row in summary_rows(record.summary())]
    return shown_html(title, facts, [Table(header, rows)], ["posterior.check() says whether to trust it"])

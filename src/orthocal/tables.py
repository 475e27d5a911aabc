"""Summary tables with as many digits as the Monte-Carlo error allows."""

from __future__ import annotations

import numpy as np
import pandas as pd


def summary_rows(summary: pd.DataFrame) -> list[dict[str, str]]:
    """One row a parameter, as texts: name, mean, sd, lower, upper, ess, rhat."""
    rows = []
    for name, row in summary.iterrows():
        error = float(row["sd"] / np.sqrt(row["ess_bulk"]))
        digits = int(np.clip(-np.floor(np.log10(error)), 0, 10)) if error > 0 else 4
        number = f"{{:.{digits}f}}" if abs(row["mean"]) < 1e6 and error > 1e-9 else "{:.6g}"
        lower, upper = (column for column in summary.columns if str(column).startswith("eti"))
        rows.append(
            {
                "name": str(name),
                "mean": number.format(row["mean"]),
                "sd": number.format(row["sd"]),
                "lower": number.format(row[lower]),
                "upper": number.format(row[upper]),
                "ess": f"{row['ess_bulk']:.0f}",
                "rhat": f"{row['r_hat']:.3f}",
            }
        )
    return rows


def summary_text(summary: pd.DataFrame) -> str:
    """The summary for a terminal."""
    header = {
        "name": "parameter",
        "mean": "mean",
        "sd": "sd",
        "lower": "2.5 %",
        "upper": "97.5 %",
        "ess": "ESS",
        "rhat": "R-hat",
    }
    rows = [header, *summary_rows(summary)]
    widths = {key: max(len(row[key]) for row in rows) for key in header}
    return "\n".join(
        "  ".join(
            row[key].ljust(widths[key]) if key == "name" else row[key].rjust(widths[key]) for key in header
        ).rstrip()
        for row in rows
    )

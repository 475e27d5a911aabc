"""The tables of a study: our figures, and the paper's beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .base import Column, Study
from .printed import Printed, printed_numbers
from .replicate import ParameterRow, Row

NONE = "–"


def figures(study: Study, rows: Sequence[Row]) -> pd.DataFrame:
    """One row a parameter and column, in the study's order; of columns that have a replication.

    ``mean`` is the mean of the posterior means, ``scatter`` their standard deviation, ``mean_low`` and ``mean_high``
    their range; ``sd_mean`` is the mean posterior sd, ``sd_low`` and ``sd_high`` the smallest and largest;
    ``ess_per_second`` is the median of ESS over CPU seconds.
    """
    found = []
    for j, parameter in enumerate(study.model.parameters):
        for column in study.columns:
            own = [row for row in rows if row["column"] == column.key]
            if own:
                found.append(_figures_of(study, column, j, parameter, own))
    return pd.DataFrame(found)


def _figures_of(study: Study, column: Column, j: int, parameter: str, rows: list[Row]) -> dict[str, object]:
    good = [row for row in rows if row["error"] is None]
    return {
        "parameter": parameter,
        "theta_star": study.theta_star(column)[j],
        "key": column.key,
        "column": column.label,
        "replications": len(good),
        "failed": len(rows) - len(good),
        **_ours([row["parameters"][parameter] for row in good], np.array([row["cpu_seconds"] for row in good])),
        **_papers(column.printed, j),
    }


def _ours(rows: list[ParameterRow], cpu: np.ndarray) -> dict[str, float]:
    names = (
        "mean",
        "scatter",
        "sd_mean",
        "mean_low",
        "mean_high",
        "sd_low",
        "sd_high",
        "coverage",
        "ess",
        "ess_per_second",
        "cpu_seconds",
    )
    if not rows:
        return dict.fromkeys((*names, "rhat"), np.nan)
    mean, sd, ess = (np.array([row[name] for row in rows]) for name in ("mean", "sd", "ess"))
    covered = np.mean([row["covered"] for row in rows])
    speed = np.median(ess / cpu)
    scatter = mean.std(ddof=1) if len(mean) > 1 else np.nan
    ends = (mean.min(), mean.max(), sd.min(), sd.max())
    values = (mean.mean(), scatter, sd.mean(), *ends, covered, ess.mean(), speed, np.median(cpu))
    return {**dict(zip(names, map(float, values), strict=True)), "rhat": float(np.max([row["rhat"] for row in rows]))}


def _papers(printed: Printed | None, j: int) -> dict[str, object]:
    """The paper's figures as printed, and as numbers."""
    texts = {
        "mean": printed.mean[j] if printed else None,
        "sd": printed.sd[j] if printed else None,
        "coverage": printed.coverage[j] if printed and printed.coverage else None,
    }
    numbers: dict[str, object] = {f"paper_{name}": text for name, text in texts.items()}
    numbers["paper_runtime"] = printed.runtime if printed else None
    for name, text in texts.items():
        ends = printed_numbers(text) if text else (np.nan,)
        numbers[f"paper_{name}_low"], numbers[f"paper_{name}_high"] = ends[0], ends[-1]
    return numbers


HEADER = (
    "method",
    "replications",
    "posterior mean",
    "paper",
    "posterior sd",
    "paper",
    "coverage",
    "paper",
    "ESS",
    "ESS / s",
    "CPU s",
    "paper's time",
)


def cells(table: pd.DataFrame, parameter: str) -> list[tuple[str, ...]]:
    """The texts under ``HEADER`` for one parameter, one row a column of the study."""
    return [
        _cells_of({str(k): v for k, v in row.items()})
        for row in table[table["parameter"] == parameter].to_dict("records")
    ]


def _cells_of(row: dict[str, object]) -> tuple[str, ...]:
    def number(name: str) -> float:
        return float(row[name])  # type: ignore[arg-type]

    def text(name: str) -> str:
        return NONE if row[name] is None or pd.isna(row[name]) else str(row[name])  # type: ignore[call-overload]

    count = f"{row['replications']}" + (f" ({row['failed']} failed)" if row["failed"] else "")
    if not row["replications"]:
        ours = (NONE,) * 6
    else:
        # two digits of the smallest sd, and the mean to the same place
        places = max(0, 1 - int(np.floor(np.log10(number("sd_low"))))) if number("sd_low") > 0 else 4
        mean, low, high, sd_low, sd_high = (
            f"{number(name):.{places}f}" for name in ("mean", "mean_low", "mean_high", "sd_low", "sd_high")
        )
        ours = (
            f"{mean} ({low}–{high})",
            f"{sd_low}–{sd_high}",
            f"{number('coverage'):.{2 if number('replications') <= 100 else 3}f}",
            f"{number('ess'):.0f}",
            f"{number('ess_per_second'):.0f}",
            f"{number('cpu_seconds'):.2f}",
        )
    return (
        str(row["column"]),
        count,
        ours[0],
        text("paper_mean"),
        ours[1],
        text("paper_sd"),
        ours[2],
        text("paper_coverage"),
        *ours[3:],
        text("paper_runtime"),
    )


def headings(table: pd.DataFrame) -> dict[str, str]:
    """Parameter -> its heading, with theta* where all columns have the same."""
    result = {}
    for parameter, part in table.groupby("parameter", sort=False):
        stars = [f"{star:.6g}" for star in dict.fromkeys(part["theta_star"])]
        labels = ", ".join(
            f"{star:.6g} ({label})" for star, label in zip(part["theta_star"], part["column"], strict=True)
        )
        result[str(parameter)] = f"{parameter}, theta* = {stars[0] if len(stars) == 1 else labels}"
    return result


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose source is aligned too, so it reads well on a terminal."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(header), line(rule), *(line(row) for row in rows)])

"""Tables as texts: summaries with as many digits as the Monte-Carlo error allows, and grids of any cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd

# What notebooks show of an object: a title, a few facts and small tables. All texts are escaped.
#
# Nothing has a colour of its own, so that it can be read on light and on dark pages.

#: rows of a table, names in a list and characters of a text that are shown
MOST_ROWS, MOST_NAMES, LONGEST = 20, 12, 300
_CELL = "text-align:{};padding:.15em .8em .15em 0;vertical-align:top"


class Table(NamedTuple):
    """The names of the columns, and the rows; the first column is what the others are about."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def shown_html(
    title: str, facts: Mapping[str, str] | None = None, tables: Iterable[Table] = (), remarks: Iterable[str] = ()
) -> str:
    """A block for a notebook."""
    parts = [f"<div><strong>{_text(title)}</strong>"]
    if facts:
        parts.append(_rows(Table((), list(facts.items())), "left"))
    parts += [_rows(table, "right") for table in tables]
    parts += [f'<div style="margin:.3em 0">{_text(remark, 1000)}</div>' for remark in remarks if remark]
    return "\n".join([*parts, "</div>"])


def listed(names: Iterable[object]) -> str:
    """Names with commas, not too many of them."""
    every = [str(name) for name in names]
    more = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more


def _rows(table: Table, align: str) -> str:
    """The others are set ``align``; names are on the left."""
    lines = ['<table style="border-collapse:collapse;margin:.3em 0">']
    if table.header:
        cells = "".join(f'<th style="{_side(j, align)}">{_text(one)}</th>' for j, one in enumerate(table.header))
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    for row in table.rows[:MOST_ROWS]:
        cells = "".join(f'<td style="{_side(j, align)}">{_text(one)}</td>' for j, one in enumerate(row))
        lines.append(f"<tr>{cells}</tr>")
    left = len(table.rows) - MOST_ROWS
    more = f'<div style="opacity:.7">and {left} more rows</div>' if left > 0 else ""
    return "\n".join([*lines, f"</table>{more}"])


def _side(column: int, align: str) -> str:
    return _CELL.format("left" if column == 0 else align)


def _text(value: object, longest: int = LONGEST) -> str:
    text = str(value)
    return escape(text if len(text) <= longest else f"{text[:longest]}…")


def summary_rows(summary: pd.DataFrame) -> list[dict[str, str]]:
    """One row a parameter, as texts: name, mean, sd, lower, upper, ess, rhat."""
    rows = []
    for name, row in summary.iterrows():
        # chains that never moved are worth no draws
        error = float(row["sd"] / np.sqrt(row["ess_bulk"])) if row["ess_bulk"] > 0 else 0.0
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


def frame_table(frame: pd.DataFrame) -> Table:
    """A table of pandas for a notebook: its index first, numbers with four digits."""
    named = frame.reset_index()
    rows = [
        [f"{value:.4g}" if isinstance(value, float | np.floating) else str(value) for value in row]
        for row in named.itertuples(index=False)
    ]
    return Table([str(name).replace("_", " ") for name in named.columns], rows)


def with_error(value: float, error: float, digits: int) -> str:
    """value ± error, with as many digits as the error's first ones allow."""
    if not np.isfinite(value):
        return "–"
    if not error > 0 or not np.isfinite(error):
        return f"{value:.3g}"
    if not 1e-4 < max(abs(value), error) < 1e6:
        return f"{value:.3g} ± {error:.{digits}g}"
    places = int(np.clip(digits - 1 - np.floor(np.log10(error)), 0, 10))
    return f"{value:.{places}f} ± {error:.{places}f}"


def counted(number: int, noun: str) -> str:
    """1 row, 2 rows."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Grid(NamedTuple):
    """A table as texts: its heading, what it says, the names of its columns and its rows.

    The first ``labels`` columns are texts, the others numbers.
    """

    title: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    labels: int


def grid_text(grid: Grid) -> str:
    """A table for a terminal."""
    columns = list(zip(grid.header, *grid.rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    lines = [
        "  ".join(
            cell.ljust(width) if j < grid.labels else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [grid.header, *grid.rows]
    ]
    return "\n".join([grid.title, *lines])

"""What notebooks show of an object: a title, a few facts and small tables. All texts are escaped.

Nothing has a colour of its own, so that it can be read on light and on dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

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

"""Headers of wide tables of runs, which have one column a point: ``y_0.5``, ``y[x=0.5]``, ``0.5``, ``speed @ 3``.

A column is an outcome's name, which may be missing where there is one outcome, and the values of the inputs, each with
its name before it where there are several inputs. Brackets and separators in between do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InputError, shortened

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
#: brackets around all of it, or none; what stands between the outcome's name and the point says nothing
_BODY = re.compile(r"[\s_:@|=]*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\{([^{}]*)\}|([^()\[\]{}]*))\s*")
_BETWEEN = r"[\s,;|&_]*"

#: a point of the header: the values of all inputs
Point = tuple[float, ...]


class Placed(NamedTuple):
    """The column of each outcome at each point, and whether the header names the inputs."""

    columns: dict[str, dict[Point, str]]
    named: bool

    @property
    def points(self) -> list[Point]:
        """Of the first outcome."""
        return list(next(iter(self.columns.values()), {}))

    @property
    def numbered(self) -> bool:
        """Whether the points may be nothing but numbers of the columns: 1, 2, 3 and so on."""
        points = self.points
        if self.named or len(points) < 3 or len(points[0]) != 1:
            return False
        values = sorted(point[0] for point in points)
        return values[0] in (0.0, 1.0) and bool(np.all(np.diff(values) == 1))


def placed_columns(names: Sequence[str], outcomes: Mapping[str, str], inputs: Sequence[str], decimal: str) -> Placed:
    """Which of the columns are which outcome (name -> name in the header) at which point."""
    found: dict[str, dict[Point, str]] = {outcome: {} for outcome in outcomes}
    named = False
    for name in names:
        for outcome, rest in _outcomes_of(name, outcomes):
            point = _point(rest, inputs, decimal)
            if point is None:
                continue
            named |= point[1]
            other = found[outcome].setdefault(point[0], name)
            if other != name:
                raise InputError(f"columns {other!r} and {name!r} are one point of {outcome!r}: leave one of them out")
            break
    for outcome, header in outcomes.items():
        _refuse_unclear(outcome, header, list(found[outcome].values()))
    return Placed(found, named)


def _refuse_unclear(outcome: str, header: str, columns: Sequence[str]) -> None:
    """Headers that can be read in two ways must not become other points in silence."""
    bare = [name for name in columns if not name.startswith(header)]
    if bare and len(bare) < len(columns):
        other = next(name for name in columns if name not in bare)
        raise InputError(
            f"columns {other!r} and {bare[0]!r} name points of {outcome!r} in two ways: if the header has decimal "
            "commas, write it with semicolons between cells, or with decimal points; else name them all alike"
        )
    if columns and all(re.match(rf"{re.escape(header)}-[\d.]", name) for name in columns):
        raise InputError(
            f"column {columns[0]!r} may be {outcome!r} at {columns[0][len(header) + 1 :]} or at "
            f"{columns[0][len(header) :]}: write {header}[{columns[0][len(header) + 1 :]}], or give the points"
        )


def _outcomes_of(name: str, outcomes: Mapping[str, str]) -> list[tuple[str, str]]:
    """The outcomes that a column may be of, the longest name first, and what is left of its name."""
    by_length = sorted(outcomes.items(), key=lambda pair: -len(pair[1]))
    own = [(outcome, name[len(header) :]) for outcome, header in by_length if name.startswith(header)]
    if len(outcomes) == 1:
        # names that must not begin with a digit get an X from some programs
        own += [(next(iter(outcomes)), re.sub(rf"^X(?={_NUMBER}$)", "", name))]
    return own


def _point(rest: str, inputs: Sequence[str], decimal: str) -> tuple[Point, bool] | None:
    """The values of the inputs, and whether their names stand before them; None for something else."""
    body = _BODY.fullmatch(rest)
    if body is None:
        return None
    text = next(part for part in body.groups() if part is not None).strip()
    if decimal == "," and len(inputs) == 1:
        text = text.replace(",", ".")
    names = "|".join(re.escape(one) for one in sorted(inputs, key=len, reverse=True))
    token = re.compile(rf"{_BETWEEN}(?:({names})\s*[=:]?\s*)?({_NUMBER})")
    values: dict[str | None, float] = {}
    at = 0
    while at < len(text):
        match = token.match(text, at)
        if match is None or match[1] in values:
            return None
        values[match[1]] = float(match[2])
        at = match.end()
    if set(values) == set(inputs):
        return tuple(values[one] for one in inputs), True
    return ((values[None],), False) if list(values) == [None] and len(inputs) == 1 else None


def numbered_columns(placed: Placed, count: int, file: str) -> dict[str, list[str]]:
    """The columns of each outcome in the order of their numbers, from 0 or from 1, for ``count`` points."""
    ordered = {}
    for outcome, columns in placed.columns.items():
        by_number = {int(point[0]): name for point, name in columns.items() if point[0] == int(point[0])}
        start = 0 if 0 in by_number else 1
        wanted = range(start, start + count)
        if len(by_number) != len(columns) or sorted(by_number) != list(wanted):
            there = shortened(", ".join(columns.values()) or "none", 100)
            raise InputError(
                f"points has {count} rows, and the columns of {outcome!r} in {file} are {there}: give points a column "
                f"with the names of these columns, or have them numbered from 1 to {count}"
            )
        ordered[outcome] = [by_number[number] for number in wanted]
    return ordered


def common_points(placed: Placed, file: str) -> tuple[Array, dict[str, list[str]]]:
    """The points of all outcomes, (m, d), and the columns of each there."""
    points = placed.points
    for outcome, columns in placed.columns.items():
        other = set(points) ^ set(columns)
        if other:
            at = ", ".join(f"{value:g}" for value in min(other))
            lacking = outcome if min(other) not in columns else next(iter(placed.columns))
            raise InputError(f"{file} has no column of {lacking!r} at {at}, where another outcome has one")
    ordered = {outcome: [columns[point] for point in points] for outcome, columns in placed.columns.items()}
    return np.array(points), ordered

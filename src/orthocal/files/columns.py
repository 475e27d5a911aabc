"""Columns of a table by their names, whatever the kind of the file: which are there, and which may have been meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

import pandas as pd

from ..arrays import Array
from ..errors import FileError, shortened


class ColumnTable(Protocol):
    """A table that knows its columns by name; messages call it ``file``."""

    @property
    def file(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def __len__(self) -> int: ...

    def numbers(self, name: str) -> Array:
        """One column of numbers; missing cells are NaN."""

    def labels(self, name: str) -> pd.Series[Any]:
        """One column as numbers where all its cells are, as texts otherwise."""

    def row_words(self, row: int) -> str:
        """Where a row stands, from 0."""

    def missing_words(self, names: Sequence[str]) -> str:
        """That these columns are not there, and what is."""


def require_columns(table: ColumnTable, names: Iterable[str]) -> None:
    """Refuse a table that lacks one of the columns, with all that it lacks."""
    missing = [name for name in names if name not in table.names]
    if missing:
        raise FileError(table.missing_words(missing))


def missing_columns(file: str, missing: Sequence[str], names: Sequence[str], known: str) -> str:
    """In words; ``known`` are the names that are there."""
    guesses = {name: meant for name in missing if (meant := nearest(name, names)) is not None}
    hint = ", ".join(f"{meant!r}" + (f" for {name!r}" if len(missing) > 1 else "") for name, meant in guesses.items())
    return f"{file} has no column {_quoted(missing)}; there are: {known}" + (
        f"; perhaps {hint} is meant" if hint else ""
    )


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that is most like another, where one is, whatever the case of its letters."""
    folded = {one.casefold(): one for one in reversed(names) if one}
    found = get_close_matches(name.casefold(), list(folded), 1)
    return folded[found[0]] if found else None


def _quoted(names: Sequence[str]) -> str:
    return shortened(", ".join(map(repr, names)))

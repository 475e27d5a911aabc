"""Columns of numbers from CSV files, and how the files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import ConfigError, FileError
from ..files.tables import Decimal, Dialect, Separator, TextTable, read_text_table
from ..sections import Section


class TableSection(Section):
    """A section that names a CSV table."""

    separator: Separator = ","
    decimal: Decimal = "."

    @property
    def dialect(self) -> Dialect:
        return Dialect(self.separator, self.decimal)


#: the keys of its dialect
DIALECT_KEYS = frozenset(TableSection.model_fields)


def read_columns(path: Path, names: list[str], section: TableSection) -> pd.DataFrame:
    """Columns of a CSV table."""
    return columns_of(read_table(path, section), names)


def read_table(path: Path, section: TableSection) -> TextTable:
    """A CSV table with names above its columns; messages call it by its own name."""
    try:
        return read_text_table(path, section.dialect, path.name)
    except FileError as error:
        raise ConfigError(str(error)) from None


def labels_of(table: TextTable, name: str) -> pd.Series[Any]:
    """One column of numbers or text, which says what each row belongs to."""
    try:
        return table.labels(name)
    except FileError as error:
        raise ConfigError(str(error)) from None


def columns_of(table: TextTable, names: list[str]) -> pd.DataFrame:
    """The columns with these names, which must hold numbers."""
    try:
        return pd.DataFrame({name: table.numbers(name) for name in names}, columns=names)
    except FileError as error:
        raise ConfigError(str(error)) from None

"""Columns of numbers from CSV and Parquet files, and how the files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from ..errors import ConfigError, FileError
from ..files.parquet import ParquetTable, is_parquet
from ..files.tables import PLAIN, Decimal, Dialect, Separator, TextTable, read_text_table
from ..sections import Section

#: both know ``numbers`` and ``labels`` of a column by its name
Table: TypeAlias = TextTable | ParquetTable


class TableSection(Section):
    """A section that names a CSV or Parquet table."""

    separator: Separator = ","
    decimal: Decimal = "."

    @property
    def dialect(self) -> Dialect:
        return Dialect(self.separator, self.decimal)


#: the keys of its dialect
DIALECT_KEYS = frozenset(TableSection.model_fields)


def read_columns(path: Path, names: list[str], section: TableSection) -> pd.DataFrame:
    """Columns of a table."""
    return columns_of(read_table(path, section), names)


def read_table(path: Path, section: TableSection) -> Table:
    """A table with names of its columns; messages call it by its own name."""
    try:
        if is_parquet(path):
            if section.dialect != PLAIN:
                raise FileError(f"{path.name} is a Parquet table: separator and decimal are for CSV, leave them out")
            return ParquetTable(path, path.name)
        return read_text_table(path, section.dialect, path.name)
    except FileError as error:
        raise ConfigError(str(error)) from None


def labels_of(table: Table, name: str) -> pd.Series[Any]:
    """One column of numbers or text, which says what each row belongs to."""
    try:
        return table.labels(name)
    except FileError as error:
        raise ConfigError(str(error)) from None


def columns_of(table: Table, names: list[str]) -> pd.DataFrame:
    """The columns with these names, which must hold numbers."""
    try:
        return pd.DataFrame({name: table.numbers(name) for name in names}, columns=names)
    except FileError as error:
        raise ConfigError(str(error)) from None

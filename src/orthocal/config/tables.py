"""Columns of numbers from CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import ConfigError


def read_columns(path: Path, names: list[str], file: str) -> pd.DataFrame:
    """Columns of a CSV table; messages call it ``file``."""
    return columns_of(read_table(path), names, file)


def read_table(path: Path) -> pd.DataFrame:
    """A CSV table with names above its columns."""
    try:
        return pd.read_csv(path, skipinitialspace=True)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a CSV table: {error}") from None


def labels_of(table: pd.DataFrame, name: str, file: str) -> pd.Series[Any]:
    """One column of numbers or text, which says what each row belongs to."""
    if name not in table.columns:
        raise ConfigError(f"{file} has no column {name!r}; there are: {', '.join(map(str, table.columns))}")
    return table[name]


def columns_of(table: pd.DataFrame, names: list[str], file: str) -> pd.DataFrame:
    """The columns with these names, which must hold numbers."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        there = ", ".join(map(str, table.columns))
        raise ConfigError(f"{file} has no column {', '.join(map(repr, missing))}; there are: {there}")
    chosen = table[names]
    for name in names:
        if not pd.api.types.is_numeric_dtype(chosen[name]):
            raise ConfigError(f"column {name!r} of {file} holds something that is not a number")
    return chosen

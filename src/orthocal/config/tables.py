"""Columns of numbers from CSV and Parquet files, and how the files are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import pandas as pd
from pydantic import BeforeValidator, Field

from ..errors import ConfigError, FileError
from ..files.tables import (
    PLAIN,
    Decimal,
    Dialect,
    ParquetTable,
    Separator,
    TextTable,
    is_parquet,
    number_of,
    read_text_table,
)
from ..runs.files import knows_its_names
from ..runs.table import RunTable
from ..sections import Names, Section

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


def inputs_of(table: Table, names: list[str], categorical: list[str]) -> pd.DataFrame:
    """The columns with these names: numbers, or labels where they are said to be, or where no cell is like a number."""
    return pd.DataFrame({name: _input(table, name, name in categorical) for name in names}, columns=names)


def _input(table: Table, name: str, labelled: bool) -> pd.Series[Any]:
    if labelled:
        return labels_of(table, name)
    try:
        return columns_of(table, [name])[name]
    except ConfigError:
        if name in table.names and _all_words(labels := labels_of(table, name)):
            return labels
        raise


def _all_words(labels: pd.Series[Any]) -> bool:
    """Whether every cell that is there has a letter, and none is a number, in this or another notation."""
    texts = [str(label) for label in labels.dropna().unique()]
    numbers = (number_of(text, mark) for text in texts for mark in ",.")
    return bool(texts) and all(any(map(str.isalpha, text)) for text in texts) and all(one is None for one in numbers)


def rows_where(table: Table, name: str, label: str) -> Table:
    """The rows whose column ``name`` has this label."""
    if isinstance(table, ParquetTable):
        raise ConfigError(f"{table.file} is a Parquet table: give each experiment a file of its own")
    kept = [i for i, one in enumerate(labels_of(table, name)) if str(one) == label]
    return replace(table, rows=[table.rows[i] for i in kept], lines=[table.lines[i] for i in kept])


# The table of runs that a problem file names: its columns are found by the names of the problem, or by ``[runs]``.

#: columns, or name -> column
NamesOrColumns = Annotated[
    list[str] | dict[str, str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]


class RunsSection(Section):
    """How the table of runs is written, where its columns do not have the names of the problem."""

    parameters: NamesOrColumns | None = None
    x: NamesOrColumns | None = None
    y: NamesOrColumns | None = None
    layout: Literal["auto", "long", "wide"] = "auto"
    points: str | list[float] | list[list[float]] | None = None
    columns: Names | dict[str, list[str]] | None = None
    run: str | None = None
    ignore: Names = Field(default_factory=list)

    @property
    def points_file(self) -> str | None:
        """The table of points beside that of the runs."""
        return self.points if isinstance(self.points, str) and self.points != "header" else None


def load_runs(
    file: str,
    folder: Path,
    section: RunsSection,
    parameters: Sequence[str],
    x: Sequence[str] | None,
    y: Sequence[str],
    dialect: Dialect,
) -> RunTable:
    """The runs of a problem with these names, in their order."""
    path = folder / file
    if not section.model_fields_set and knows_its_names(path):
        runs = RunTable.load(path, separator=dialect.separator, decimal=dialect.decimal)
        _refuse_half_known(runs, x or [], file)
        return runs.ordered(parameters, x, y)
    points = section.points
    return RunTable.load(
        path,
        _columns(section.parameters, parameters, "parameters"),
        _columns(section.x, x or [], "x"),
        _columns(section.y, y, "y"),
        separator=dialect.separator,
        decimal=dialect.decimal,
        layout=section.layout,
        points=folder / points if isinstance(points, str) and points != "header" else points,
        columns=section.columns,
        run=section.run,
        ignore=section.ignore,
    )


def _columns(given: list[str] | dict[str, str] | None, names: Sequence[str], what: str) -> dict[str, str]:
    """Name of the problem -> column of the runs, never by place."""
    if given is None or (isinstance(given, list) and set(given) == set(names)):
        return {name: name for name in names}
    if isinstance(given, dict) and set(given) == set(names):
        return {name: given[name] for name in names}
    if isinstance(given, list) and len(given) == len(names) == 1:
        return {names[0]: given[0]}
    table = ", ".join(f'{name} = "..."' for name in names)
    said = ", ".join(given) or "nothing"
    raise ConfigError(f"runs.{what} has {said}, and the problem {', '.join(names) or 'none'}: give {{ {table} }}")


def _refuse_half_known(runs: RunTable, x: Sequence[str], file: str) -> None:
    """Inputs are matched by name where the names agree, and by place where they say nothing; not in between."""
    common = set(x) & set(runs.input_names)
    if common and common != set(x) | set(runs.input_names) and len(x) == runs.d:
        raise ConfigError(
            f"{file} has the inputs {', '.join(runs.input_names)}, and data.x is {', '.join(x)}: give the columns of "
            "the data under the names of the runs, or all of them under others"
        )

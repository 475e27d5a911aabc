"""Tables of named columns, as text (CSV) and as Parquet: a number is the one that the file says, or there is an error.

Nothing is guessed but for messages: a row that is longer or shorter than the header, a name that occurs twice and a
number in another notation are refused with the line that they stand in.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

import numpy as np
import pandas as pd

from ..arrays import Array
from ..errors import FileError, shortened

# Columns of a table by their names, whatever the kind of the file: which are there, and which may have been meant.


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


Separator = Literal[",", ";", "\t", "|", " "]
Decimal = Literal[".", ","]

#: texts of a missing cell, which are pandas' own
MISSING = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
#: without two ways to match the same digits: a text of thousands of them takes no longer than to read it
_DIGITS = r"[+-]?(\d+({0}\d*)?|{0}\d+)([eE][+-]?\d+)?"
#: what each decimal mark makes a number; Python itself would take 1_000 and the digits of other scripts as well
_NUMBER = {mark: re.compile(_DIGITS.format(re.escape(mark)), re.ASCII) for mark in (".", ",")}
#: fits into 64 bits
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


class Dialect(NamedTuple):
    """How a table is written: what stands between cells, and in numbers before the fraction."""

    separator: str = ","
    decimal: str = "."

    def check(self) -> Dialect:
        """Itself, or an error if cells and fractions could not be told apart."""
        for what, given, known in (("separator", self.separator, ",;\t| "), ("decimal", self.decimal, ".,")):
            if len(given) != 1 or given not in known:
                raise FileError(f"{what} = {given!r}: give one of {', '.join(map(repr, known))}")
        if self.separator == self.decimal:
            raise FileError(
                f"the separator and the decimal mark are both {self.decimal!r}: no reader could tell 1{self.decimal}5 "
                "from two cells; write the table with another separator, a semicolon for instance"
            )
        return self

    def words(self) -> str:
        """As settings."""
        separator = {"\t": '"\\t"'}.get(self.separator, f'"{self.separator}"')
        return f"separator = {separator}" + (f', decimal = "{self.decimal}"' if self.decimal != "." else "")


PLAIN = Dialect()


@dataclass(frozen=True)
class TextTable:
    """The cells of a table, trimmed.

    Attributes
    ----------
    file
        What messages call it.
    names
        Of the columns; those without one are "".
    rows
        The cells of each row.
    lines
        The line of the file that each row stands in, from 1.
    dialect
        How its numbers are written.
    """

    file: str
    names: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    dialect: Dialect = PLAIN

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def known(self) -> str:
        """The names of the columns in words."""
        return shortened(", ".join(name for name in self.names if name) or "none")

    def cells(self, name: str) -> list[str]:
        """The texts of one column."""
        if name not in self.names:
            raise FileError(self.missing_words([name]))
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def missing_words(self, names: Sequence[str]) -> str:
        """That these columns are not there, and what is."""
        return missing_columns(self.file, names, self.names, self.known + self._header_hint())

    def row_words(self, row: int) -> str:
        """Where a row stands, from 0."""
        return f"line {self.lines[row]}"

    def texts(self, name: str) -> pd.Series[Any]:
        """One column as it is; missing cells are NaN."""
        return pd.Series([np.nan if cell in MISSING else cell for cell in self.cells(name)], name=name, dtype=object)

    def numbers(self, name: str) -> Array:
        """One column of numbers; missing cells are NaN."""
        values = [number_of(cell, self.dialect.decimal) for cell in self.cells(name)]
        wrong = [row for row, value in enumerate(values) if value is None]
        if wrong:
            raise FileError(self._not_a_number(name, wrong))
        return np.array(values, dtype=np.float64)

    def labels(self, name: str) -> pd.Series[Any]:
        """One column as numbers where all its cells are, as texts otherwise; missing cells are NaN."""
        cells = self.cells(name)
        if all(_WHOLE.fullmatch(cell) for cell in cells):
            return pd.Series([int(cell) for cell in cells], name=name, dtype=np.int64)
        values = [number_of(cell, self.dialect.decimal) for cell in cells]
        if None not in values:
            return pd.Series(values, name=name, dtype=np.float64)
        for row, cell in enumerate(cells):
            if not cell.isprintable():
                raise FileError(f"column {name!r} of {self.file}, line {self.lines[row]}: {cell[:40]!r} is no label")
        return self.texts(name)

    def _not_a_number(self, name: str, wrong: list[int]) -> str:
        row = wrong[0]
        cell = self.cells(name)[row]
        said = f"column {name!r} of {self.file}, line {self.lines[row]}: {cell[:40]!r} is not a number"
        other = "," if self.dialect.decimal == "." else "."
        if wrong == [0] and len(self.rows) > 1:
            return f"{said}, and all below it are; if line {self.lines[0]} holds the units, delete it"
        if _NUMBER["."].fullmatch(cell):
            return f"{said} that a float can hold, or has another decimal mark than {self.dialect.decimal!r}"
        if _NUMBER[other].fullmatch(cell):
            cure = f'decimal = "{other}"'
            return f"{said} with a decimal {_MARKS[self.dialect.decimal]}: give {cure}, if that is its decimal mark"
        return f"{said}; leave a missing cell empty"

    def _header_hint(self) -> str:
        """What may be wrong with a header that lacks a name."""
        if self.names and all(_NUMBER["."].fullmatch(name) for name in self.names):
            return "; the first line must hold the names of the columns, and it holds numbers"
        separators = [one for one in ";\t|" if len(self.names) == 1 and one in self.names[0]]
        if not separators:
            return ""
        guess = Dialect(separators[0], self.dialect.decimal if self.dialect.decimal == "." else ",")
        return f"; its cells seem to be separated by {separators[0]!r}: give {guess.words()}"


_MARKS = {".": "point", ",": "comma"}


def number_of(cell: str, decimal: str = ".") -> float | None:
    """The number that a trimmed text says, NaN for a missing one, None for something else."""
    if cell in MISSING:
        return np.nan
    if _NUMBER[decimal].fullmatch(cell):
        value = float(cell.replace(",", "."))
        # a number that is too large for a float is not infinity
        return None if np.isinf(value) else value
    return float(cell) if _INFINITE.fullmatch(cell) else None


def read_text_table(path: Path, dialect: Dialect = PLAIN, file: str | None = None) -> TextTable:
    """Read a table with the names of its columns in the first line; messages call it ``file``."""
    return text_table(text_lines(path, file), dialect, str(path) if file is None else file)


def text_lines(path: Path, file: str | None = None) -> TextIO:
    """The lines of a text file as they are, or an error in words."""
    try:
        return io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        said = f"it is not text in UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8"
        raise FileError(f"{path if file is None else file} is not a CSV table: {said}") from None
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def text_table(lines: Iterable[str], dialect: Dialect, file: str, before: int = 0) -> TextTable:
    """A table of lines; ``before`` of the file's own stand above them."""
    separator = dialect.check().separator
    # columns that are aligned have spaces at their ends
    text = (line.strip() for line in lines) if separator == " " else lines
    reader = csv.reader(text, delimiter=separator, skipinitialspace=True, strict=True)
    rows, numbers = [], []
    try:
        for cells in reader:
            trimmed = [cell.strip() for cell in cells]
            if any(trimmed) or len(trimmed) > 1:
                rows.append(trimmed)
                numbers.append(before + reader.line_num)
    except csv.Error as error:
        raise FileError(f"{file} is not a CSV table: line {before + reader.line_num}: {error}") from None
    if not rows:
        raise FileError(f"{file} is not a CSV table: it is empty")
    table = TextTable(file, tuple(rows[0]), rows[1:], numbers[1:], dialect)
    _check(table)
    return table


def _check(table: TextTable) -> None:
    """A name for every column, once, and a cell for every name."""
    named = Counter(name for name in table.names if name)
    twice = [name for name, count in named.items() if count > 1]
    if twice:
        raise FileError(f"{table.file} has two columns {twice[0]!r}: give each column a name of its own")
    # a tab is a hint at the separator, once a name is looked for
    binary = [name for name in named if not name.replace("\t", "").isprintable()]
    if binary:
        raise FileError(f"{table.file} has a column {binary[0][:40]!r}: its name must be printable text")
    width = len(table.names)
    for cells, line in zip(table.rows, table.lines, strict=True):
        if len(cells) != width:
            raise FileError(
                f"line {line} of {table.file} has {len(cells)} cells, and its header names {width} columns"
                f"{_guess(table, cells)}"
            )


def _guess(table: TextTable, cells: Sequence[str]) -> str:
    """How the table may have been written, where a row does not fit the header."""
    dialect, width = table.dialect, len(table.names)
    joined = dialect.separator.join(cells)
    for separator in ";\t|":
        names = dialect.separator.join(table.names).split(separator)
        if separator != dialect.separator and 1 < len(names) == len(joined.split(separator)):
            decimal = "," if any(_NUMBER[","].fullmatch(one) and "," in one for one in joined.split(separator)) else "."
            return f": it seems to be separated by {separator!r}, give {Dialect(separator, decimal).words()}"
    whole = all(re.fullmatch(r"[+-]?\d+", cell, re.ASCII) for cell in cells if cell)
    if dialect.separator == "," and len(cells) > width and whole:
        return (
            ": its numbers seem to have decimal commas, which cannot be told from the commas between cells; write it "
            f"with semicolons between cells, and give {Dialect(';', ',').words()}"
        )
    return "; a missing cell is an empty one" if len(cells) < width else ": quote a cell that holds the separator"


# Parquet tables: columns with the types that the file gives them.
#
# Only the columns that are asked for are read. Nothing in such a file is code: extension types, which older versions of
# pyarrow could unpickle, are refused by their name.

SUFFIXES = (".parquet", ".pq")
#: a file that says it has more rows than this is damaged, or made to fill the memory
MOST_ROWS = 1_000_000_000


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


class ParquetTable:
    """A Parquet file; messages call it ``file``."""

    def __init__(self, path: Path, file: str | None = None) -> None:
        self.file = str(path) if file is None else file
        self._path = path
        _arrow()
        opened = self._said(lambda: _parquet().ParquetFile(path, page_checksum_verification=True))
        self._rows, self._schema = int(opened.metadata.num_rows), opened.schema_arrow
        self.names: tuple[str, ...] = tuple(self._schema.names)
        self._check()

    def __len__(self) -> int:
        return self._rows

    @property
    def known(self) -> str:
        """The names of the columns in words."""
        return shortened(", ".join(self.names) or "none")

    def missing_words(self, names: Sequence[str]) -> str:
        """That these columns are not there, and what is."""
        return missing_columns(self.file, names, self.names, self.known)

    def row_words(self, row: int) -> str:
        """Where a row stands, from 0."""
        return f"row {row}"

    def numbers(self, name: str) -> Array:
        """One column of numbers; missing cells are NaN."""
        column = self._column(name)
        kind = _arrow().types
        numeric = (kind.is_integer, kind.is_floating, kind.is_decimal, kind.is_null)
        if not any(test(column.type) for test in numeric):
            units = "; if its first row holds the units, delete it" if kind.is_string(column.type) else ""
            raise FileError(
                f"column {name!r} of {self.file} holds {shortened(str(column.type), 60)}, not numbers: write it as "
                f"numbers, with null for a missing cell{units}"
            )
        try:
            cast = column.cast(_arrow().float64())
        except _arrow().ArrowException:
            raise FileError(
                f"column {name!r} of {self.file} has whole numbers with more digits than a float can hold"
            ) from None
        return np.array(cast.to_numpy(), dtype=np.float64)

    def labels(self, name: str) -> pd.Series[Any]:
        """One column of numbers or texts; missing cells are NaN."""
        column, kind = self._column(name), _arrow().types
        if kind.is_string(column.type) or kind.is_large_string(column.type):
            texts = self._said(column.to_pylist)
            for row, text in enumerate(texts):
                if text is not None and not text.isprintable():
                    raise FileError(f"column {name!r} of {self.file}, row {row}: {text[:40]!r} is no label")
            return pd.Series([np.nan if text is None else text for text in texts], name=name, dtype=object)
        if kind.is_integer(column.type) and not column.null_count and not kind.is_uint64(column.type):
            return pd.Series(column.to_numpy().astype(np.int64), name=name, dtype=np.int64)
        return pd.Series(self.numbers(name), name=name)

    def _column(self, name: str) -> Any:
        """One column, its values without a dictionary."""
        if name not in self.names:
            raise FileError(self.missing_words([name]))
        if _arrow().types.is_nested(self._schema.field(name).type):
            raise FileError(f"column {name!r} of {self.file} holds tables or lists: give one number a row")

        def read() -> Any:
            file = _parquet().ParquetFile(self._path, page_checksum_verification=True)
            column = file.read(columns=[name], use_threads=False).column(name)
            kind = column.type
            column = column.cast(kind.value_type) if _arrow().types.is_dictionary(kind) else column
            column.validate(full=True)
            return column

        column = self._said(read)
        if len(column) != self._rows:
            raise FileError(f"{self.file} is damaged: it says {self._rows} rows, and column {name!r} has {len(column)}")
        return column

    def _said(self, action: Any) -> Any:
        """What an action returns; its failure is a damaged file."""
        try:
            return action()
        except FileNotFoundError:
            raise FileError(f"cannot read {self._path}: No such file or directory") from None
        except (_arrow().ArrowException, OSError, ValueError, MemoryError, OverflowError, NotImplementedError) as error:
            said = shortened(" ".join(str(error).split()) or type(error).__name__, 200)
            raise FileError(f"{self.file} is not a Parquet table that can be read, or is damaged: {said}") from None

    def _check(self) -> None:
        """A name for every column, once, and rows that can be there."""
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise FileError(f"{self.file} has two columns {twice[0]!r}: give each column a name of its own")
        binary = [name for name in self.names if not name.isprintable()]
        if binary:
            raise FileError(f"{self.file} has a column {binary[0][:40]!r}: its name must be printable text")
        if not 0 <= self._rows <= MOST_ROWS:
            raise FileError(f"{self.file} says that it has {self._rows} rows: it is damaged, or too large to be read")


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise FileError("a Parquet table needs pyarrow: install orthocal[parquet], or write the table as CSV") from None
    return pyarrow


def _parquet() -> Any:
    _arrow()
    from pyarrow import parquet

    return parquet


#: a table that knows its columns by name
ColumnTable = TextTable | ParquetTable

"""Parquet tables: columns of numbers or labels by their names, with the types that the file gives them.

Only the columns that are asked for are read. Nothing in such a file is code: extension types, which older versions of
pyarrow could unpickle, are refused by their name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array
from ..errors import FileError, shortened
from .tables import missing_columns

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

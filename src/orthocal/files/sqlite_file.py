"""What our SQLite files share: marks, locks and transactions, and errors that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from ..errors import KEPT, FileError, OrthocalError

#: the version of all our tables since which every row has a checksum
CHECKED = 2


class SqliteFile:
    """A file that is open until ``close``; a subclass says what is in it."""

    #: four letters that mark the file as ours, the version of its tables, and the tables
    mark: bytes
    version: int
    tables: str
    #: for errors: what the file is, what is said of another one, and what to do
    kind: str
    foreign: str
    cure: str
    #: whether who has opened it keeps all others away, also those who only read
    alone: bool
    #: bytes of a page of a new file: large ones for large values
    page: int = 4096

    def __init__(self, path: Path, patience: float, busy: str, create: bool = True) -> None:
        """Wait ``patience`` seconds for another program that has the file; ``busy`` is the error after that."""
        self.path, self._busy = path, busy
        with self._plain_errors():
            self._connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
            try:
                self._prepare(create)
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def _refuse_cut(self) -> None:
        """A file that is shorter than its header says; SQLite itself may take what is gone for empty."""
        beside = self.path.with_name(f"{self.path.name}-journal")
        if beside.exists() or not self.path.is_file():
            return  # a write was cut off, which SQLite undoes; or a new file
        with self.path.open("rb") as file:
            head = file.read(32)
        # https://www.sqlite.org/fileformat.html: 1 is a page of 65536 bytes
        size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
        if head.startswith(b"SQLite format 3\0") and self.path.stat().st_size < (65536 if size == 1 else size) * pages:
            raise FileError(f"{self.path} is damaged, its end is missing: {self.cure}")

    def _refuse_lost(self) -> None:
        """Where a table is empty, it may be that its page is lost and another looks like an empty one."""
        if self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise FileError(f"{self.path} is damaged, what it held is not found any more: {self.cure}")

    def _prepare(self, create: bool) -> None:
        self._refuse_cut()
        marks = {"application_id": int.from_bytes(self.mark, "big"), "user_version": self.version}
        # asked before any transaction, which gives a new file its first page, and before a lock is kept
        new = not self._connection.execute("PRAGMA page_count").fetchone()[0]
        if self.alone:
            # the lock of the first transaction is kept until the connection closes
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        if create:
            if new:
                self._connection.execute(f"PRAGMA page_size = {self.page}")
            with self._transaction():
                if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    if not new:
                        raise FileError(f"{self.path} is damaged, or not ours: its tables are gone; {self.cure}")
                    for statement in (*self.tables.split(";"), *(f"PRAGMA {name} = {marks[name]}" for name in marks)):
                        self._connection.execute(statement)
        mark, version = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in marks)
        if mark != marks["application_id"] or not 1 <= version <= self.version:
            raise FileError(f"{self.path} {self.foreign}: {self.cure}")
        if create and version < self.version:
            with self._transaction():
                self._upgrade()
                self._connection.execute(f"PRAGMA user_version = {self.version}")
            version = self.version
        #: whether its rows have checksums
        self.checked = version >= CHECKED

    def _upgrade(self) -> None:
        """Bring the tables of version 1 up to date; inside of a transaction."""
        raise NotImplementedError

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Whatever a damaged file makes Python's readers raise, as an error that says so."""
        try:
            yield
        except (OrthocalError, sqlite3.Error):
            raise
        except Exception as error:
            raise FileError(f"{self.path} is damaged ({type(error).__name__}: {error}): {self.cure}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN EXCLUSIVE" if self.alone else "BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # a failed COMMIT may or may not have ended the transaction
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """SQLite's errors in words that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise FileError(self._in_words(error)) from None
        except UnicodeDecodeError:  # what SQLite says about a damaged schema quotes it
            raise FileError(f"{self.path} is damaged: {self.cure}") from None

    def _in_words(self, error: sqlite3.Error) -> str:
        # extended codes have the primary one in their last byte
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return {
            sqlite3.SQLITE_BUSY: self._busy,
            sqlite3.SQLITE_NOTADB: f"{self.path} is not a {self.kind}: {self.cure}",
            sqlite3.SQLITE_CORRUPT: f"{self.path} is damaged ({error}): {self.cure}",
            sqlite3.SQLITE_FULL: f"cannot write {self.path}, the disk is full; {KEPT}",
            sqlite3.SQLITE_IOERR: f"cannot read or write {self.path} ({error}), is the disk full? {KEPT}",
            sqlite3.SQLITE_CANTOPEN: f"cannot open {self.path}: it or its folder cannot be written",
            sqlite3.SQLITE_READONLY: f"cannot write {self.path}: it is read-only",
        }.get(code, f"{self.path}: {error}")

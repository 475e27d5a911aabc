"""The results of studies on disk: an SQLite file with one row a replication, written as soon as it finishes.

A row is there whole or not at all, whatever ends the program. One run at a time has the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ..errors import FileError
from .replicate import Row, Task

FILE = "results.db"
#: marks the file as ours ("orst"), with the version of its tables
APPLICATION_ID, VERSION = 0x6F727374, 1
#: seconds to wait for another program that has the file for a moment
PATIENCE = 2.0

_TABLES = """
CREATE TABLE replications (
    study TEXT, method TEXT, replication INTEGER, seed INTEGER, draws INTEGER,
    parameters TEXT NOT NULL, cpu_seconds REAL NOT NULL, wall_seconds REAL NOT NULL, error TEXT, traceback TEXT,
    finished_at TEXT DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (study, method, replication, seed, draws)
) WITHOUT ROWID;
CREATE TABLE studies (
    study TEXT PRIMARY KEY, seed INTEGER, draws INTEGER, replications INTEGER, methods TEXT, machine TEXT,
    wall_seconds REAL
);
"""


@dataclass(frozen=True)
class Settings:
    """What was asked for last in a folder; ``draws`` of all chains together."""

    seed: int
    draws: int
    replications: int
    methods: tuple[str, ...]


class Results:
    """The results file of a folder, which is made where it does not exist."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {folder}: {error.strerror}") from None
        self.path = folder / FILE
        with _plain_errors(self.path):
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            with _plain_errors(self.path):
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _prepare(self) -> None:
        # the lock is kept until the connection closes, so a second run in this folder cannot do the same work
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        with self._transaction():
            if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
        marks = [
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
        if marks != [APPLICATION_ID, VERSION]:
            raise FileError(
                f"{self.path} was not written by `orthocal study`, or by another version of it: give another --out"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN EXCLUSIVE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # a failed COMMIT may or may not have ended the transaction
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def settings(self, study: str) -> Settings | None:
        """What was asked for last; None for a study that is new here."""
        with _plain_errors(self.path):
            row = self._connection.execute(
                "SELECT seed, draws, replications, methods FROM studies WHERE study = ?", (study,)
            ).fetchone()
        return None if row is None else Settings(row[0], row[1], row[2], tuple(json.loads(row[3])))

    def set_settings(self, study: str, settings: Settings) -> None:
        values = (settings.seed, settings.draws, settings.replications, json.dumps(settings.methods))
        with _plain_errors(self.path), self._transaction():
            self._connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?, NULL, 0) ON CONFLICT (study) DO UPDATE SET "
                "seed = excluded.seed, draws = excluded.draws, replications = excluded.replications, "
                "methods = excluded.methods",
                (study, *values),
            )

    def add(self, study: str, task: Task, row: Row, machine: str, seconds: float) -> None:
        """Keep a row, and the ``seconds`` of the run since the last one; only a failed row is replaced."""
        with _plain_errors(self.path), self._transaction():
            self._connection.execute(
                "INSERT INTO replications (study, method, replication, seed, draws, parameters, cpu_seconds, "
                "wall_seconds, error, traceback) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET parameters = excluded.parameters, cpu_seconds = excluded.cpu_seconds, "
                "wall_seconds = excluded.wall_seconds, error = excluded.error, traceback = excluded.traceback, "
                "finished_at = CURRENT_TIMESTAMP WHERE error IS NOT NULL",
                (
                    study,
                    task.column,
                    task.replication,
                    task.seed,
                    task.draws,
                    json.dumps(row["parameters"]),
                    row["cpu_seconds"],
                    row["wall_seconds"],
                    row["error"],
                    row["traceback"],
                ),
            )
            self._connection.execute(
                "UPDATE studies SET machine = ?, wall_seconds = wall_seconds + ? WHERE study = ?",
                (machine, seconds, study),
            )

    def rows(self, study: str) -> list[Row]:
        """All rows of a study, by method and replication."""
        with _plain_errors(self.path):
            found = self._connection.execute(
                "SELECT method, replication, parameters, cpu_seconds, wall_seconds, error, traceback "
                "FROM replications WHERE study = ? ORDER BY method, replication",
                (study,),
            ).fetchall()
        return [
            Row(
                column=column,
                replication=replication,
                parameters=json.loads(parameters),
                cpu_seconds=cpu,
                wall_seconds=wall,
                error=error,
                traceback=trace,
            )
            for column, replication, parameters, cpu, wall, error, trace in found
        ]

    def work(self, study: str) -> tuple[str, float]:
        """The machine that did the last replication, and the wall seconds of all runs."""
        with _plain_errors(self.path):
            machine, seconds = self._connection.execute(
                "SELECT machine, wall_seconds FROM studies WHERE study = ?", (study,)
            ).fetchone()
        return machine or "", seconds


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """SQLite's errors in words that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        # extended codes have the primary one in their last byte
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kept = "what had finished is kept: the same command goes on from there"
        message = {
            sqlite3.SQLITE_BUSY: f"{path} is in use by another run: wait for its end, or give another --out",
            sqlite3.SQLITE_NOTADB: f"{path} is not a results file of `orthocal study`: give another --out",
            sqlite3.SQLITE_CORRUPT: f"{path} is damaged ({error}): give another --out",
            sqlite3.SQLITE_FULL: f"cannot write {path}, the disk is full; {kept}",
            sqlite3.SQLITE_IOERR: f"cannot read or write {path} ({error}), is the disk full? {kept}",
            sqlite3.SQLITE_CANTOPEN: f"cannot open {path}: it or its folder cannot be written",
            sqlite3.SQLITE_READONLY: f"cannot write {path}: it is read-only",
        }.get(code, f"{path}: {error}")
        raise FileError(message) from None

"""The results of studies on disk: an SQLite file with one row a replication, written as soon as it finishes.

A row is there whole or not at all, whatever ends the program. One run at a time has the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..errors import FileError
from ..execution.sqlite_file import SqliteFile
from .replicate import Row, Task

FILE = "results.db"
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


class Results(SqliteFile):
    """The results file of a folder, which is made where it does not exist."""

    mark, version, tables = b"orst", 1, _TABLES
    kind, cure = "results file of `orthocal study`", "give another --out"
    foreign = "was not written by `orthocal study`, or by another version of it"
    # a second run in this folder would do the same work
    alone = True

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {folder}: {error.strerror}") from None
        path = folder / FILE
        super().__init__(path, PATIENCE, f"{path} is in use by another run: wait for its end, or {self.cure}")

    def settings(self, study: str) -> Settings | None:
        """What was asked for last; None for a study that is new here."""
        with self._plain_errors():
            row = self._connection.execute(
                "SELECT seed, draws, replications, methods FROM studies WHERE study = ?", (study,)
            ).fetchone()
        return None if row is None else Settings(row[0], row[1], row[2], tuple(json.loads(row[3])))

    def set_settings(self, study: str, settings: Settings) -> None:
        values = (settings.seed, settings.draws, settings.replications, json.dumps(settings.methods))
        with self._plain_errors(), self._transaction():
            self._connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?, NULL, 0) ON CONFLICT (study) DO UPDATE SET "
                "seed = excluded.seed, draws = excluded.draws, replications = excluded.replications, "
                "methods = excluded.methods",
                (study, *values),
            )

    def add(self, study: str, task: Task, row: Row, machine: str, seconds: float) -> None:
        """Keep a row, and the ``seconds`` of the run since the last one; only a failed row is replaced."""
        with self._plain_errors(), self._transaction():
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
        with self._plain_errors():
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
        with self._plain_errors():
            machine, seconds = self._connection.execute(
                "SELECT machine, wall_seconds FROM studies WHERE study = ?", (study,)
            ).fetchone()
        return machine or "", seconds

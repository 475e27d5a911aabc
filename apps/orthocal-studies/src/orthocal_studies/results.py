"""The results of studies on disk: an SQLite file with one row a replication, written as soon as it finishes.

A row is there whole or not at all, whatever ends the program. One run at a time has the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orthocal.applications import SqliteFile, checksum
from orthocal.errors import FileError

from .replicate import Row, Task

FILE = "results.db"
#: the version of the tables since which every row has a checksum
CHECKED = 2
#: seconds to wait for another program that has the file for a moment
PATIENCE = 2.0

_TABLES = """
CREATE TABLE replications (
    study TEXT, method TEXT, replication INTEGER, seed INTEGER, draws INTEGER,
    parameters TEXT NOT NULL, cpu_seconds REAL NOT NULL, wall_seconds REAL NOT NULL, error TEXT, traceback TEXT,
    finished_at TEXT DEFAULT CURRENT_TIMESTAMP, checksum TEXT, problems TEXT,
    PRIMARY KEY (study, method, replication, seed, draws)
) WITHOUT ROWID;
CREATE TABLE studies (
    study TEXT PRIMARY KEY, seed INTEGER, draws INTEGER, replications INTEGER, methods TEXT, machine TEXT,
    wall_seconds REAL, kept INTEGER, checksum TEXT
);
"""
#: what the checksums of a study and of a replication are made of
_STUDY = "study, seed, draws, replications, methods, machine, wall_seconds, kept"
_ROW = "study, method, replication, seed, draws, parameters, cpu_seconds, wall_seconds, error, traceback"
_KEY = "study = ? AND method = ? AND replication = ? AND seed = ? AND draws = ?"


@dataclass(frozen=True)
class Settings:
    """What was asked for last in a folder; ``draws`` of all chains together."""

    seed: int
    draws: int
    replications: int
    methods: tuple[str, ...]


class Results(SqliteFile):
    """The results file of a folder, which is made where it does not exist."""

    mark, version, tables = b"orst", 3, _TABLES
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
        with self._plain_errors(), self._damage():
            row = self._study(study)
            if (
                row is None
                and self._connection.execute("SELECT 1 FROM replications WHERE study = ?", (study,)).fetchone()
            ):
                raise FileError(f"{self.path} is damaged: it holds {study} without its settings; {self.cure}")
            return None if row is None else Settings(row[1], row[2], row[3], tuple(json.loads(row[4])))

    def set_settings(self, study: str, settings: Settings) -> None:
        values = (settings.seed, settings.draws, settings.replications, json.dumps(settings.methods))
        with self._plain_errors(), self._transaction():
            before = self._study(study)
            self._set_study((study, *values, *(before[5:] if before else (None, 0.0, 0))))

    def _study(self, study: str) -> tuple[Any, ...] | None:
        """The row of a study as it was written."""
        query = f"SELECT {_STUDY}, checksum FROM studies WHERE study = ?"
        row: tuple[Any, ...] | None = self._connection.execute(query, (study,)).fetchone()
        if row is None:
            self._refuse_lost()
            return None
        if row[-1] != checksum(*row[:-1]):
            raise FileError(f"{self.path} is damaged: what it says about {study} has changed; {self.cure}")
        return row[:-1]

    def _set_study(self, row: tuple[Any, ...]) -> None:
        values = (*row, checksum(*row))
        self._connection.execute(
            f"INSERT OR REPLACE INTO studies ({_STUDY}, checksum) VALUES ({_marks(values)})", values
        )

    def _upgrade(self) -> None:
        if self._connection.execute("PRAGMA user_version").fetchone()[0] < CHECKED:
            self._add_checksums()
        self._connection.execute("ALTER TABLE replications ADD COLUMN problems TEXT")

    def _add_checksums(self) -> None:
        self._connection.execute("ALTER TABLE studies ADD COLUMN kept INTEGER")
        self._connection.execute(
            "UPDATE studies SET kept = (SELECT count(*) FROM replications WHERE replications.study = studies.study)"
        )
        for table, columns, names, key in (("studies", _STUDY, "study = ?", 1), ("replications", _ROW, _KEY, 5)):
            self._connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT")
            rows = self._connection.execute(f"SELECT {columns} FROM {table}").fetchall()
            self._connection.executemany(
                f"UPDATE {table} SET checksum = ? WHERE {names}", [(checksum(*row), *row[:key]) for row in rows]
            )

    def add(self, study: str, task: Task, row: Row, machine: str, seconds: float) -> None:
        """Keep a row, and the ``seconds`` of the run since the last one; only a failed row is replaced."""
        kept = (
            *(study, task.column, task.replication, task.seed, task.draws, json.dumps(row["parameters"])),
            *(row["cpu_seconds"], row["wall_seconds"], row["error"], row["traceback"]),
        )
        found = row.get("problems")
        problems = None if found is None else json.dumps(found)
        with self._plain_errors(), self._transaction():
            before = self._study(study)
            new = self._connection.execute(f"SELECT 1 FROM replications WHERE {_KEY}", kept[:5]).fetchone() is None
            values = (*kept, _checksum(kept, problems), problems)
            self._connection.execute(
                f"INSERT INTO replications ({_ROW}, checksum, problems) VALUES ({_marks(values)}) "
                "ON CONFLICT DO UPDATE SET parameters = excluded.parameters, cpu_seconds = excluded.cpu_seconds, "
                "wall_seconds = excluded.wall_seconds, error = excluded.error, traceback = excluded.traceback, "
                "finished_at = CURRENT_TIMESTAMP, checksum = excluded.checksum, problems = excluded.problems "
                "WHERE error IS NOT NULL",
                values,
            )
            if before is not None:
                self._set_study((*before[:5], machine, before[6] + seconds, before[7] + new))

    def rows(self, study: str) -> list[Row]:
        """All rows of a study, by method and replication."""
        with self._plain_errors(), self._damage():
            found = self._connection.execute(
                f"SELECT {_ROW}, problems, checksum FROM replications WHERE study = ? ORDER BY method, replication",
                (study,),
            ).fetchall()
            study_row = self._study(study)
            if study_row is not None and study_row[7] != len(found):
                said = f"{len(found)} replications of {study} are there, and {study_row[7]} were kept"
                raise FileError(f"{self.path} is damaged: {said}; {self.cure}")
            for row in found:
                if row[-1] != _checksum(row[:-2], row[-2]):
                    raise FileError(
                        f"{self.path} is damaged: replication {row[2]} of {row[1]} has changed since it was written; "
                        f"{self.cure}"
                    )
            return [
                Row(
                    column=column,
                    replication=replication,
                    parameters=json.loads(parameters),
                    cpu_seconds=cpu,
                    wall_seconds=wall,
                    error=error,
                    traceback=trace,
                    problems=None if problems is None else json.loads(problems),
                )
                for _, column, replication, _, _, parameters, cpu, wall, error, trace, problems, _ in found
            ]

    def studies(self) -> list[str]:
        """The studies whose settings are here."""
        with self._plain_errors():
            return [name for (name,) in self._connection.execute("SELECT study FROM studies ORDER BY study")]

    def work(self, study: str) -> tuple[str, float]:
        """The machine that did the last replication, and the wall seconds of all runs."""
        with self._plain_errors():
            row = self._study(study)
        return ("", 0.0) if row is None else (row[5] or "", row[6])


def _checksum(row: tuple[Any, ...], problems: str | None) -> str:
    """Of rows without problems it is that of files that had no room for them."""
    return checksum(*row) if problems is None else checksum(*row, problems)


def _marks(values: tuple[Any, ...]) -> str:
    """Placeholders of a query."""
    return ", ".join("?" * len(values))

"""The runs of a campaign on disk: an SQLite file with one row a run, written as soon as the run has finished.

A row is there whole or not at all, whatever ends the program. One campaign at a time writes; anybody may read.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, Names
from ..errors import KEPT, FileError, InputError
from ..execution.simulation import RunResult, RunTask
from ..execution.sqlite_file import SqliteFile
from .identity import Identity
from .table import RunTable

#: seconds to wait for another program that reads or writes for a moment
PATIENCE = 30.0

_TABLES = """
CREATE TABLE campaign (
    parameters TEXT NOT NULL, inputs TEXT NOT NULL, x BLOB NOT NULL, simulator TEXT NOT NULL, digest TEXT NOT NULL,
    outcomes INTEGER
);
CREATE TABLE runs (
    theta BLOB, copy INTEGER, number INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'missing', output BLOB, error TEXT,
    seconds REAL, started TEXT, finished TEXT, attempts INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (theta, copy)
);
CREATE INDEX by_number ON runs (number);
"""


@dataclass(frozen=True)
class Plan:
    """What a campaign runs: a store belongs to one plan."""

    theta: Array
    x: Array
    parameter_names: tuple[str, ...]
    input_names: tuple[str, ...]
    simulator: Identity

    @property
    def keys(self) -> list[tuple[bytes, int]]:
        """What identifies each run: its theta, bit for bit, and which of several runs with this theta it is."""
        seen: Counter[bytes] = Counter()
        keys = []
        # -0.0 is 0.0
        for row in np.asarray(self.theta + 0.0, dtype="<f8"):
            theta = row.tobytes()
            keys.append((theta, seen[theta]))
            seen[theta] += 1
        return keys


class Status(NamedTuple):
    """How far a campaign is; ``errors`` are (number of the run, text)."""

    done: int
    failed: int
    missing: int
    mean_seconds: float | None
    errors: list[tuple[int, str]]


class RunStore(SqliteFile):
    """The store of a campaign; ``write`` makes it where it does not exist, and keeps other campaigns away."""

    mark, version, tables = b"orru", 1, _TABLES
    kind, cure = "store of runs", "give another file"
    foreign = "is not a store of runs, or one of another version"
    alone = False

    def __init__(self, path: str | Path, write: bool = False) -> None:
        self.path = Path(path)
        if not write and not self.path.is_file():
            raise FileError(f"there is no file {self.path}: nothing has been run yet")
        if not self.path.parent.is_dir():
            raise FileError(f"cannot make {self.path}: its folder does not exist")
        busy = f"{self.path} is locked by another program for more than {PATIENCE:g} s; {KEPT}"
        with ExitStack() as held:
            if write:
                held.enter_context(_Lock(self.path))
            super().__init__(self.path, PATIENCE, busy, create=write)
            self._held = held.pop_all()

    def close(self) -> None:
        super().close()
        self._held.close()

    def _one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        if row is None:
            raise FileError(f"{self.path} holds no campaign yet")
        return row

    def adopt(self, plan: Plan, accept_changed: bool = False) -> None:
        """Enter the runs of a plan that are not there yet; refuse a plan that is not the store's.

        A plan with more runs extends the store. Of an earlier plan only runs that went well are kept: failures of
        another simulator say nothing about this one.
        """
        keys = plan.keys
        described = (json.dumps(plan.parameter_names), json.dumps(plan.input_names), _packed(plan.x), *plan.simulator)
        with self._plain_errors(), self._transaction():
            stored = self._connection.execute(
                "SELECT parameters, inputs, x, simulator, digest, outcomes FROM campaign"
            ).fetchone()
            done = self._connection.execute("SELECT theta, copy FROM runs WHERE status = 'done'").fetchall()
            if stored and done:
                self._compare(plan, stored, accept_changed)
                self._compare_design(plan, set(keys), done)
            kept = "'done', 'failed'" if stored and stored[:5] == described else "'done'"
            self._connection.execute(f"DELETE FROM runs WHERE status NOT IN ({kept})")
            self._connection.execute("DELETE FROM campaign")
            outcomes = stored[5] if stored and done else None
            self._connection.execute("INSERT INTO campaign VALUES (?, ?, ?, ?, ?, ?)", (*described, outcomes))
            self._connection.execute("UPDATE runs SET number = -1")
            self._connection.executemany(
                "INSERT INTO runs (theta, copy, number) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET number = excluded.number",
                [(*key, number) for number, key in enumerate(keys)],
            )
            # failed runs that are not in this design
            self._connection.execute("DELETE FROM runs WHERE number = -1")

    def _compare(self, plan: Plan, stored: tuple[Any, ...], accept_changed: bool) -> None:
        names, columns, x = json.loads(stored[0]), json.loads(stored[1]), _unpacked(stored[2])
        simulator = Identity(stored[3], stored[4])
        if names != list(plan.parameter_names):
            self._refuse("parameters", ", ".join(names), ", ".join(plan.parameter_names))
        if columns != list(plan.input_names):
            self._refuse("inputs", ", ".join(columns), ", ".join(plan.input_names))
        if x.shape != plan.x.shape:
            self._refuse("points x", f"{len(x)} of them", str(len(plan.x)))
        if not np.array_equal(x, plan.x):
            row = int(np.flatnonzero((x != plan.x).any(axis=1))[0])
            self._refuse("points x", f"{x[row].tolist()} in row {row}", str(plan.x[row].tolist()))
        if accept_changed:
            return
        if simulator.name != plan.simulator.name:
            cure = "accept_changed=True (--accept-changed) if it is the same"
            self._refuse("simulators", simulator.name, plan.simulator.name, cure)
        if simulator.digest != plan.simulator.digest:
            raise InputError(
                f"{self.path}: the code of {simulator.name} has changed since its runs were made. Give another store, "
                "or accept_changed=True (--accept-changed) if the change does not matter"
            )

    def _compare_design(self, plan: Plan, keys: set[tuple[bytes, int]], done: list[tuple[bytes, int]]) -> None:
        other = [theta for theta, copy in done if (theta, copy) not in keys]
        if other:
            first = zip(plan.parameter_names, np.frombuffer(other[0], dtype="<f8"), strict=True)
            where = ", ".join(f"{name} = {value:.6g}" for name, value in first)
            raise InputError(
                f"{self.path} was made for another design: {len(other)} of its {len(done)} finished runs are not in "
                f"this one, the first at {where}. Give the same design, one that contains it, or another store"
            )

    def _refuse(self, what: str, stored: str, given: str, cure: str | None = None) -> None:
        other = "Give another store" + (f", or {cure}" if cure else "")
        raise InputError(f"{self.path} was made for other {what}: {stored}; now {given}. {other}")

    def missing(self, plan: Plan, attempts: int, retry: bool) -> list[tuple[RunTask, int]]:
        """The runs to make and how often they were tried; failed ones with attempts left, or all with ``retry``."""
        with self._plain_errors():
            if retry:
                with self._transaction():
                    self._connection.execute("UPDATE runs SET attempts = 0 WHERE status = 'failed'")
            rows = self._connection.execute(
                "SELECT number, attempts FROM runs "
                "WHERE status = 'missing' OR (status = 'failed' AND attempts < ?) ORDER BY attempts, number",
                (attempts,),
            ).fetchall()
        return [(RunTask(number, tuple(map(float, plan.theta[number]))), tried) for number, tried in rows]

    def add(self, number: int, result: RunResult, attempts: int) -> str | None:
        """Keep a run that has finished; its error, or None if it went well."""
        error = result.error
        with self._plain_errors(), self._transaction():
            if result.output is not None:
                q = result.output.shape[1]
                expected = self._one("SELECT outcomes FROM campaign")[0]
                if expected is None:
                    self._connection.execute("UPDATE campaign SET outcomes = ?", (q,))
                elif expected != q:
                    error = f"the simulator returned {q} outcomes, in the runs before {expected}"
            blob = None if error is not None or result.output is None else _packed(result.output)
            self._connection.execute(
                "UPDATE runs SET status = ?, output = ?, error = ?, seconds = ?, started = ?, finished = ?, "
                "attempts = ? WHERE number = ?",
                (
                    "done" if blob is not None else "failed",
                    blob,
                    error,
                    result.seconds,
                    result.started,
                    result.finished,
                    attempts,
                    number,
                ),
            )
        return error

    def status(self) -> Status:
        """How far the campaign is."""
        with self._plain_errors():
            counts = dict(self._connection.execute("SELECT status, count(*) FROM runs GROUP BY status").fetchall())
            seconds = self._connection.execute("SELECT avg(seconds) FROM runs WHERE status = 'done'").fetchone()[0]
            errors = self._connection.execute(
                "SELECT number, error FROM runs WHERE status = 'failed' ORDER BY number"
            ).fetchall()
        return Status(counts.get("done", 0), counts.get("failed", 0), counts.get("missing", 0), seconds, errors)

    def table(self, outcome_names: Names = None, units: dict[str, str] | None = None) -> RunTable:
        """The runs that were made, in the order of the design; failed ones are all NaN."""
        with self._plain_errors():
            parameters, inputs, packed, outcomes = self._one("SELECT parameters, inputs, x, outcomes FROM campaign")
            rows = self._connection.execute(
                "SELECT theta, output FROM runs WHERE status != 'missing' ORDER BY number"
            ).fetchall()
        if outcomes is None:
            raise FileError(f"{self.path} has no run that went well yet")
        x = _unpacked(packed)
        gap = np.full((len(x), outcomes), np.nan)
        return RunTable(
            np.stack([np.frombuffer(theta, dtype="<f8") for theta, _ in rows]),
            np.stack([gap if output is None else _unpacked(output) for _, output in rows]),
            x,
            json.loads(parameters),
            json.loads(inputs),
            outcome_names,
            units,
        )


class _Lock(SqliteFile):
    """Held by one campaign at a time; the system frees it when the process ends, however that happens.

    It is a file beside the store: a lock on the store itself would keep away those who only want to read.
    """

    kind, cure = RunStore.kind, RunStore.cure

    def __init__(self, path: Path) -> None:
        busy = f"{path} is in use by another campaign: wait for its end, or give another store"
        super().__init__(path.with_name(path.name + ".lock"), 0, busy)

    def _prepare(self, create: bool) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")

    def close(self) -> None:
        # removed while it is still ours
        self.path.unlink(missing_ok=True)
        super().close()


def _packed(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array, dtype="<f8"), allow_pickle=False)
    return buffer.getvalue()


def _unpacked(blob: bytes) -> Array:
    try:
        return np.asarray(np.load(io.BytesIO(blob), allow_pickle=False), dtype=np.float64)
    except (ValueError, EOFError, TypeError) as error:
        raise FileError(f"a run of the store is damaged: {error}") from None

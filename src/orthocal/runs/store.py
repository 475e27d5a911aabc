"""The runs of a campaign on disk: an SQLite file with one row a run, written as soon as the run has finished.

A row is there whole or not at all, whatever ends the program. One campaign at a time writes; anybody may read.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import io
import json
import textwrap
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, Names
from ..errors import KEPT, FileError, InputError
from ..execution.work.simulation import Chance, RunResult, RunTask
from ..files import checksum, is_file
from ..files.sqlite_file import SqliteFile
from ..problem.simulator.simulator_function import Simulator
from .table import RunTable

# Which simulator it is: runs that are kept must not be mixed with those of another one.


class Identity(NamedTuple):
    """Which simulator it is: a name for people, and a digest of its code."""

    name: str
    digest: str


def simulator_identity(simulator: object) -> Identity:
    """Which simulator it is: what its ``identity()`` says, or else its code, without what that calls elsewhere."""
    identity = getattr(simulator, "identity", None)
    if callable(identity):
        return Identity(*identity())
    if isinstance(simulator, Simulator):
        return simulator_identity(simulator.function)
    if isinstance(simulator, functools.partial):
        inner = simulator_identity(simulator.func)
        bound = [*simulator.args, *sorted(simulator.keywords.items())]
        return Identity(inner.name, _digest(inner.digest, *map(_value, bound)))
    code: Any = simulator if inspect.isroutine(simulator) or inspect.isclass(simulator) else type(simulator)
    name = f"{getattr(code, '__module__', '')}.{getattr(code, '__qualname__', type(simulator).__name__)}"
    held: list[object] = [*(getattr(code, "__defaults__", None) or ())]
    for cell in getattr(code, "__closure__", None) or ():
        with suppress(ValueError):  # a cell that is still empty
            held.append(cell.cell_contents)
    # a script is `__main__` when it is run, and has its own name when it is imported
    return Identity(name.removeprefix("__main__."), _digest(_source(code), *map(_value, held)))


def _source(code: Any) -> str:
    """The code without comments and layout, so that only a change of what it does is a change."""
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(code))))
    except (OSError, TypeError, SyntaxError):
        # typed at a prompt, compiled, or a lambda in the middle of a line
        own = getattr(code, "__code__", None)
        return _bytecode(own) if isinstance(own, types.CodeType) else ""


def _bytecode(code: types.CodeType) -> str:
    constants = [_bytecode(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code.hex(), constants, code.co_names))


def _value(held: object) -> str:
    """A value that a function carries with it; objects are known by their type only."""
    if isinstance(held, np.ndarray) and held.dtype != object:
        return f"{held.dtype}{held.shape}{hashlib.sha256(np.ascontiguousarray(held).tobytes()).hexdigest()}"
    if isinstance(held, tuple | list):
        return f"[{','.join(map(_value, held))}]"
    if inspect.isfunction(held):
        return _source(held)
    return repr(held) if isinstance(held, int | float | str | bytes | None) else type(held).__qualname__


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


#: seconds to wait for another program that reads or writes for a moment
PATIENCE = 30.0
#: what to do about runs that are not what was written
DAMAGED = "retry=True (--retry) makes damaged runs again; or give another store"

_TABLES = """
CREATE TABLE campaign (
    parameters TEXT NOT NULL, inputs TEXT NOT NULL, x BLOB NOT NULL, simulator TEXT NOT NULL, digest TEXT NOT NULL,
    outcomes INTEGER, runs INTEGER, checksum TEXT
);
CREATE TABLE runs (
    theta BLOB, copy INTEGER, number INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'missing', output BLOB, error TEXT,
    seconds REAL, started TEXT, finished TEXT, attempts INTEGER NOT NULL DEFAULT 0,
    checksum TEXT,
    PRIMARY KEY (theta, copy)
);
CREATE INDEX by_number ON runs (number);
"""
#: what a campaign's checksum and a run's are made of
_CAMPAIGN = "parameters, inputs, x, simulator, digest, outcomes, runs"
_RUN = "theta, copy, status, output, error, seconds"


@dataclass(frozen=True)
class CampaignPlan:
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

    mark, version, tables = b"orru", 2, _TABLES
    kind, cure = "store of runs", "give another file"
    foreign = "is not a store of runs, or one of another version"
    alone = False

    def __init__(self, path: str | Path, write: bool = False) -> None:
        self.path = Path(path)
        if not write and not is_file(self.path):
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

    def adopt(self, plan: CampaignPlan, accept_changed: bool = False, retry: bool = False) -> None:
        """Enter the runs of a plan that are not there yet; refuse a plan that is not the store's.

        A plan with more runs extends the store. Of an earlier plan only runs that went well are kept: failures of
        another simulator say nothing about this one. With ``retry``, runs that are damaged are made again.
        """
        keys = plan.keys
        described = (json.dumps(plan.parameter_names), json.dumps(plan.input_names), _packed(plan.x), *plan.simulator)
        with self._plain_errors(), self._damage(), self._transaction():
            stored = self._campaign()
            if stored:
                self._leave_out_damaged(retry)
            done = self._connection.execute("SELECT theta, copy FROM runs WHERE status = 'done'").fetchall()
            if stored and done:
                self._compare(plan, stored, accept_changed)
                self._compare_design(plan, set(keys), done)
            kept = "'done', 'failed'" if stored and stored[:5] == described else "'done'"
            self._connection.execute(f"DELETE FROM runs WHERE status NOT IN ({kept})")
            self._connection.execute("UPDATE runs SET number = -1")
            self._connection.executemany(
                "INSERT INTO runs (theta, copy, number, checksum) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET number = excluded.number",
                [(*key, number, checksum(*key, "missing", None, None, None)) for number, key in enumerate(keys)],
            )
            # failed runs that are not in this design
            self._connection.execute("DELETE FROM runs WHERE number = -1")
            self._describe((*described, stored[5] if stored and done else None, len(keys)))

    def _describe(self, row: tuple[Any, ...]) -> None:
        """Write the one row of the campaign."""
        self._connection.execute("DELETE FROM campaign")
        self._connection.execute(
            f"INSERT INTO campaign ({_CAMPAIGN}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, checksum(*row))
        )

    def _campaign(self) -> tuple[Any, ...] | None:
        """The row of the campaign as it was written, or None where there is none yet."""
        columns = f"{_CAMPAIGN}, checksum" if self.checked else _CAMPAIGN.removesuffix(", runs")
        row: tuple[Any, ...] | None = self._connection.execute(f"SELECT {columns} FROM campaign").fetchone()
        if row is None:
            self._refuse_lost()
        if row is None or not self.checked:
            return row
        if row[-1] != checksum(*row[:-1]):
            raise FileError(f"{self.path} is damaged: what it says about its campaign has changed; {self.cure}")
        return row[:-1]

    def _rows(self) -> Iterator[tuple[tuple[Any, ...], bool]]:
        """Every run by its number: rowid, number and what its checksum is made of; and whether that is whole."""
        columns = f"{_RUN}, checksum" if self.checked else _RUN
        for row in self._connection.execute(f"SELECT rowid, number, {columns} FROM runs ORDER BY number"):
            yield (row[:-1], row[-1] == checksum(*row[2:-1])) if self.checked else (row, True)

    def _whole_rows(self, count: int | None) -> Iterator[tuple[Any, ...]]:
        """Number, theta, copy, status, output, error and seconds of ``count`` runs, or an error that names the first
        that is not what was written."""
        following = 0
        for row, whole in self._rows():
            if not whole or (count is not None and row[1] != following):
                raise FileError(f"{self.path}: run {following} is damaged, or gone; {DAMAGED}")
            following += 1
            yield row[1:]
        if count not in (None, following):
            raise FileError(f"{self.path}: run {following} is gone; {DAMAGED}")

    def _leave_out_damaged(self, retry: bool) -> None:
        damaged = [row[:2] for row, whole in self._rows() if not whole]
        if damaged and not retry:
            others = f" and {len(damaged) - 1} others are" if len(damaged) > 1 else " is"
            raise FileError(f"{self.path}: run {damaged[0][1]}{others} damaged; {DAMAGED}")
        self._connection.executemany("DELETE FROM runs WHERE rowid = ?", [row[:1] for row in damaged])

    def _upgrade(self) -> None:
        for column in ("campaign ADD COLUMN runs INTEGER", "campaign ADD COLUMN checksum TEXT"):
            self._connection.execute(f"ALTER TABLE {column}")
        self._connection.execute("ALTER TABLE runs ADD COLUMN checksum TEXT")
        rows = self._connection.execute(f"SELECT rowid, {_RUN} FROM runs").fetchall()
        self._connection.executemany(
            "UPDATE runs SET checksum = ? WHERE rowid = ?", [(checksum(*row[1:]), row[0]) for row in rows]
        )
        stored = self._connection.execute(f"SELECT {_CAMPAIGN} FROM campaign").fetchone()
        if stored:
            self._describe((*stored[:6], len(rows)))

    def _compare(self, plan: CampaignPlan, stored: tuple[Any, ...], accept_changed: bool) -> None:
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

    def _compare_design(self, plan: CampaignPlan, keys: set[tuple[bytes, int]], done: list[tuple[bytes, int]]) -> None:
        other = [theta for theta, copy in done if (theta, copy) not in keys]
        if other:
            first = zip(plan.parameter_names, np.frombuffer(other[0], dtype="<f8"), strict=True)
            where = ", ".join(f"{name} = {value:.6g}" for name, value in first)
            if other[0] in {theta for theta, _ in keys}:
                raise InputError(
                    f"{self.path} has more replicates, {max(copy for _, copy in done) + 1} at a theta, than this "
                    "campaign: give at least as many, or another store"
                )
            raise InputError(
                f"{self.path} was made for another design: {len(other)} of its {len(done)} finished runs are not in "
                f"this one, the first at {where}. Give the same design, one that contains it, or another store"
            )

    def _refuse(self, what: str, stored: str, given: str, cure: str | None = None) -> None:
        other = "Give another store" + (f", or {cure}" if cure else "")
        raise InputError(f"{self.path} was made for other {what}: {stored}; now {given}. {other}")

    def missing(self, plan: CampaignPlan, attempts: int, retry: bool) -> list[tuple[RunTask, int]]:
        """The runs to make and how often they were tried; failed ones with attempts left, or all with ``retry``."""
        with self._plain_errors():
            if retry:
                with self._transaction():
                    self._connection.execute("UPDATE runs SET attempts = 0 WHERE status = 'failed'")
            rows = self._connection.execute(
                "SELECT number, attempts FROM runs "
                # the whole design once before any of it is repeated
                "WHERE status = 'missing' OR (status = 'failed' AND attempts < ?) ORDER BY attempts, copy, number",
                (attempts,),
            ).fetchall()
        keys = plan.keys
        return [
            (RunTask(number, tuple(map(float, plan.theta[number])), _chance(*keys[number])), tried)
            for number, tried in rows
        ]

    def add(self, number: int, result: RunResult, attempts: int) -> str | None:
        """Keep a run that has finished; its error, or None if it went well."""
        error = result.error
        with self._plain_errors(), self._transaction():
            if result.output is not None:
                q = result.output.shape[1]
                stored = self._required_campaign()
                expected = stored[5]
                if expected is None:
                    self._describe((*stored[:5], q, stored[6]))
                elif expected != q:
                    error = f"the simulator returned {q} outcomes, in the runs before {expected}"
            blob = None if error is not None or result.output is None else _packed(result.output)
            kept = ("done" if blob is not None else "failed", blob, error, result.seconds)
            key = self._connection.execute("SELECT theta, copy FROM runs WHERE number = ?", (number,)).fetchone()
            self._connection.execute(
                "UPDATE runs SET status = ?, output = ?, error = ?, seconds = ?, checksum = ?, started = ?, "
                "finished = ?, attempts = ? WHERE number = ?",
                (*kept, checksum(*key, *kept), result.started, result.finished, attempts, number),
            )
        return error

    def status(self) -> Status:
        """How far the campaign is."""
        with self._plain_errors(), self._damage():
            stored = self._campaign()
            rows = [] if stored is None else [(one[0], *one[3:]) for one in self._whole_rows(self._count(stored))]
            # a store of version 1 has no checksums: what should be a number may be text
            seconds = [float(one[-1]) for one in rows if one[1] == "done" and one[-1] is not None]
        counts = Counter(status for _, status, *_ in rows)
        return Status(
            counts["done"],
            counts["failed"],
            counts["missing"],
            sum(seconds) / len(seconds) if seconds else None,
            [(number, error) for number, status, _, error, _ in rows if status == "failed"],
        )

    def table(self, outcome_names: Names = None, units: dict[str, str] | None = None) -> RunTable:
        """The runs that were made, in the order of the design; failed ones are all NaN."""
        with self._plain_errors(), self._damage():
            stored = self._required_campaign()
            if stored[5] is None:
                raise FileError(f"{self.path} has no run that went well yet")
            rows = [one for one in self._whole_rows(self._count(stored)) if one[3] != "missing"]
            x = _unpacked(stored[2])
            gap = np.full((len(x), stored[5]), np.nan)
            theta = np.stack([np.frombuffer(one[1], dtype="<f8") for one in rows])
            output = np.stack([gap if one[4] is None else _unpacked(one[4]) for one in rows])
            names = json.loads(stored[0]), json.loads(stored[1])
        return RunTable(theta, output, x, *names, outcome_names, units)

    def _count(self, stored: tuple[Any, ...]) -> int | None:
        """How many runs the campaign has, where the store says so."""
        return stored[6] if self.checked else None

    def _required_campaign(self) -> tuple[Any, ...]:
        stored = self._campaign()
        if stored is None:
            raise FileError(f"{self.path} holds no campaign yet")
        return stored


class _Lock(SqliteFile):
    """Held by one campaign at a time; the system frees it when the process ends, however that happens.

    It is a file beside the store: a lock on the store itself would keep away those who only want to read. It stays
    there: whoever had opened it before it was removed could hold it beside another who makes a new one.
    """

    kind, cure = RunStore.kind, RunStore.cure

    def __init__(self, path: Path) -> None:
        busy = f"{path} is in use by another campaign: wait for its end, or give another store"
        super().__init__(path.with_name(path.name + ".lock"), 0, busy)

    def _prepare(self, create: bool) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")


def _chance(theta: bytes, copy: int) -> Chance:
    """Of a run of this theta: the replicate, and a seed that nothing but these decides."""
    digest = hashlib.sha256(theta + copy.to_bytes(8, "little")).digest()
    return Chance(copy, int.from_bytes(digest[:4], "little") >> 1)


def _packed(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array, dtype="<f8"), allow_pickle=False)
    return buffer.getvalue()


def _unpacked(blob: bytes) -> Array:
    try:
        return np.asarray(np.load(io.BytesIO(blob), allow_pickle=False), dtype=np.float64)
    except (ValueError, EOFError, TypeError) as error:
        raise FileError(f"a run of the store is damaged: {error}") from None

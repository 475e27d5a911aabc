"""A calibration on disk, so that it can go on after whatever ended it: one SQLite file.

It holds which work it is, where each loop of iterations stands, the kept draws in chunks that are written once, and
what slow calls of the simulator gave. Nothing in it is run.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import FileError, OrthocalWarning
from .keeping import Keeper, Standing, kept_by
from .packing import UnpackableError, Values, pack, unpack
from .sqlite_file import SqliteFile

#: seconds between two writings, and how many times the last one's own seconds lie between them: at most 1 % is spent
EVERY, SPARED = 1.0, 100.0
#: a call of the simulator is kept if it takes so many seconds, and as many more as its bytes by this rate
LEAST_SECONDS, BYTES_A_SECOND = 0.01, 2e6
#: bytes of calls that wait in memory to be written
MOST_WAITING = 50_000_000

Work = dict[str, str]


class Checkpoint(NamedTuple):
    """A file for a run, made after so many seconds; ``origin`` is what the command line needs to begin it again."""

    path: Path
    after: float = 0.0
    origin: str = ""


class _File(SqliteFile):
    mark, version = b"ocCK", 1
    page = 65536
    tables = """
        CREATE TABLE work (name TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE loop (number INTEGER PRIMARY KEY, iteration INTEGER NOT NULL, draws INTEGER NOT NULL,
            calls INTEGER NOT NULL, state BLOB NOT NULL);
        CREATE TABLE chunk (loop INTEGER NOT NULL, start INTEGER NOT NULL, draws BLOB NOT NULL,
            PRIMARY KEY (loop, start));
        CREATE TABLE call (number INTEGER PRIMARY KEY, key BLOB NOT NULL, output BLOB NOT NULL)"""
    kind, foreign = "checkpoint", "is no checkpoint of orthocal, or one of another version"
    cure = "give another name, or delete it to begin again"
    alone = True

    def write(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        """All of them, or none."""
        with self._plain_errors(), self._transaction():
            for statement, values in statements:
                self._connection.execute(statement, values)

    def rows(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._plain_errors():
            return list(self._connection.execute(question, values))


class CheckpointFile(Keeper):
    """A run that is kept in a file.

    Parameters
    ----------
    where
        The file; one that is there is gone on from.
    work
        Which work it is, name -> digest or words: asked for when the file is opened or made. A file of other work is
        an error that names what differs.
    seed
        What all draws come from; where it is not ``given``, that of the file.
    """

    def __init__(self, where: Checkpoint, work: Callable[[], Work], seed: int, given: bool) -> None:
        super().__init__()
        self.path, self._work, self._origin, self.seed = where.path, work, where.origin, seed
        self._file: _File | None = None
        self._failed = False
        self._starts: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._calls: dict[bytes, int] = {}
        self._waiting: list[tuple[int, bytes, bytes]] = []
        self._last = 0
        self._next = monotonic() + max(where.after, EVERY)
        if self.path.exists():
            self._file = _open(self.path)
            self._opened(self._file, given)
        elif not where.after:
            self._make()

    def close(self) -> None:
        """Let others have the file."""
        if self._file is not None:
            self._file.close()

    @property
    def kept(self) -> str:
        """What is kept, in words; nothing where nothing is."""
        if self._file is None or self._failed:
            return ""
        done = self._file.rows("SELECT iteration FROM loop ORDER BY number DESC LIMIT 1")
        if not done and not self._file.rows("SELECT number FROM call LIMIT 1"):
            return ""
        return f"the first {done[0][0]} iterations" if done else "what slow calls of the simulator gave"

    def _opened(self, file: _File, given: bool) -> None:
        """Of a file that is there: is it this work?"""
        stored = dict(file.rows("SELECT name, value FROM work"))
        if not stored:
            # its run was ended before it could say so
            self._make()
            return
        own = {**self._work(), **({"seed": str(self.seed)} if given else {})}
        other = [name for name, value in own.items() if stored.get(name) != value]
        if other:
            raise FileError(
                f"{self.path} is a checkpoint of other work: {_differences(other, stored, own)}; {_File.cure}"
            )
        self.seed = int(stored["seed"])
        self._calls = {key: number for number, key in file.rows("SELECT number, key FROM call")}
        self._last = max(self._calls.values(), default=0)
        for number, draws, calls in file.rows("SELECT number, draws, calls FROM loop"):
            self._written[number], self._starts[number] = draws, calls

    def _make(self) -> None:
        self._file = self._file or _open(self.path)
        own = {**self._work(), "seed": str(self.seed), "origin": self._origin}
        self._file.write([("INSERT INTO work VALUES (?, ?)", pair) for pair in own.items()])

    def begun(self) -> tuple[int, Standing | None]:
        self._loops += 1
        loop = self._loops
        row = [] if self._file is None else self._file.rows("SELECT iteration, state FROM loop WHERE number = ?", loop)
        if self._file is None or not row:
            self._starts[loop], self._written[loop] = self._last, 0
            return loop, None
        chunks = self._file.rows("SELECT draws FROM chunk WHERE loop = ? ORDER BY start", loop)
        try:
            ((iteration, state),) = row
            draws = [draw for (chunk,) in chunks for draw in unpack(chunk)]
            standing = Standing(iteration, unpack(state), draws)
        except FileError as error:
            raise FileError(f"{self.path} is damaged, {error}: {_File.cure}") from None
        if len(draws) != self._written[loop]:
            raise FileError(f"{self.path} is damaged, draws are missing: {_File.cure}")
        return loop, standing

    def offered(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        if monotonic() >= self._next:
            self._write(loop, iteration, state, draws)

    def ended(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        if self._file is not None:
            self._write(loop, iteration, state, draws)

    def _write(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        if self._failed:
            return
        began, written = monotonic(), self._written[loop]
        try:
            packed, chunk = pack(state()), pack(draws[written:])
        except UnpackableError as error:
            self._give_up(f"its state holds {error}, which cannot be written")
            return
        start = self._starts[loop]
        statements: list[tuple[str, tuple[Any, ...]]] = [
            ("REPLACE INTO loop VALUES (?, ?, ?, ?, ?)", (loop, iteration, len(draws), start, packed)),
            # what led there is needed no longer
            ("DELETE FROM call WHERE number > ?", (start,)),
        ]
        if len(draws) > written:
            statements.append(("INSERT INTO chunk VALUES (?, ?, ?)", (loop, written, chunk)))
        self._calls = {key: number for key, number in self._calls.items() if number <= start}
        self._waiting = [one for one in self._waiting if one[0] <= start]
        if self._flush(statements, began):
            self._written[loop] = len(draws)

    def _flush(self, statements: list[tuple[str, tuple[Any, ...]]], began: float) -> bool:
        """Write these and the calls that wait; a file that cannot be written is no reason to end the run."""
        try:
            if self._file is None:
                self._make()
            assert self._file is not None
            self._file.write([*statements, *(("REPLACE INTO call VALUES (?, ?, ?)", one) for one in self._waiting)])
        except (FileError, OSError, sqlite3.Error) as error:
            self._give_up(str(error))
            return False
        # only a second run looks for them
        self._waiting.clear()
        now = monotonic()
        self._next = now + max(EVERY, SPARED * (now - began))
        return True

    def _give_up(self, why: str) -> None:
        self._failed = True
        self._waiting.clear()
        warnings.warn(
            f"no more is kept in the checkpoint {self.path}, the run goes on: {why}", OrthocalWarning, stacklevel=2
        )

    def known(self, label: str, x: Array, theta: Array) -> Values | None:
        # a run that is not a second one has nothing to look for
        if self._file is None or not self._calls:
            return None
        number = self._calls.get(_key(label, x, theta))
        row = [] if number is None else self._file.rows("SELECT output FROM call WHERE number = ?", number)
        try:
            return np.asarray(unpack(row[0][0])) if row else None
        except FileError:
            # it is called again
            return None

    def record(self, label: str, x: Array, theta: Array, output: Any, seconds: float) -> None:
        if self._failed or seconds < LEAST_SECONDS:
            return
        values = np.asarray(output)
        if seconds < LEAST_SECONDS + values.nbytes / BYTES_A_SECOND:
            return
        try:
            packed = pack(values)
        except UnpackableError:
            return
        self._last += 1
        self._waiting.append((self._last, _key(label, x, theta), packed))
        if monotonic() >= self._next:
            self._flush([], monotonic())
        elif self._file is None and sum(len(one) for _, _, one in self._waiting) > MOST_WAITING:
            self._waiting.clear()


@contextmanager
def kept_in(
    where: Checkpoint, work: Callable[[], Work], seed: int, given: bool, words: str | None = None
) -> Iterator[CheckpointFile]:
    """What runs in this block is kept in a file; an interrupt says what is kept there, in ``words`` if given."""
    file = CheckpointFile(where, work, seed, given)
    try:
        with kept_by(file):
            yield file
    except KeyboardInterrupt as stop:
        kept = file.kept
        if not kept:
            raise
        kept = words or kept
        raise type(stop)(f"interrupted: {file.path} keeps {kept}, and the same command goes on from there") from None
    finally:
        file.close()


def origin_of(path: Path) -> dict[str, Any]:
    """What the command line wrote into a checkpoint to begin it again; an error where there is nothing."""
    if not path.is_file():
        raise FileError(f"there is no checkpoint {path}")
    with _open(path, create=False) as file:
        found = dict(file.rows("SELECT name, value FROM work WHERE name = 'origin'"))
    if not found.get("origin"):
        raise FileError(f"{path} was written by a program of your own: run that again, and it goes on")
    origin: dict[str, Any] = json.loads(found["origin"])
    return origin


def _open(path: Path, create: bool = True) -> _File:
    busy = f"another program works on {path}: wait until it has ended, or give another name"
    return _File(path, 1.0, busy, create)


def _key(label: str, x: Array, theta: Array) -> bytes:
    total = hashlib.blake2b(f"{label} {x.shape} {theta.shape}".encode(), digest_size=16)
    total.update(np.ascontiguousarray(x).tobytes())
    total.update(np.ascontiguousarray(theta).tobytes())
    return total.digest()


def _differences(names: list[str], stored: Work, own: Work) -> str:
    """Short values in full, digests by their names alone."""
    each = []
    for name in names:
        there, here = stored.get(name, "nothing"), own[name]
        short = max(len(there), len(here)) <= 40 and not here.startswith("#")
        each.append(f"{name} was {there} and is {here}" if short else f"the {name} is another one")
    return ", ".join(each)

"""A calibration on disk, so that it can go on after whatever ended it: one SQLite file.

It holds which work it is, where each loop of iterations stands, the kept draws in chunks that are written once, and
what slow calls of the simulator gave. Nothing in it is run.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import FileError, OrthocalWarning
from ...files.sqlite_file import SqliteFile
from .keeping import Keeper, Standing, UnpackableError, Values, kept_by, pack, pack_alike, size_of, unpack

# What writing a checkpoint may take: a share of the run's time, however fast its draws are made.

#: of the time since the run began, what writing may take
SHARE = 0.02
#: bytes that are written in any case, so that short runs are kept whole: some milliseconds
FREE = 2_000_000
#: a transaction takes as long as so many bytes more: its journal, and the pages that it changes
EACH = 250_000
#: what is known of the disk before anything is written: bytes, and their seconds
FIRST_BYTES, FIRST_SECONDS = 10_000_000, 0.02


class Budget:
    """The seconds that a file has taken so far, all its loops together, and what more of it would take."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._spent = 0.0
        # of this, what writing took: how fast the disk is, says nothing of what a file took to be made
        self._bytes, self._seconds = FIRST_BYTES, FIRST_SECONDS
        self._free = FREE

    def allows(self, size: int) -> bool:
        """Whether so many bytes can be written now."""
        size += EACH
        expected = size * self._seconds / self._bytes
        return size <= self._free or self._spent + expected <= SHARE * (monotonic() - self._began)

    @contextmanager
    def spent(self, size: int = 0) -> Iterator[None]:
        """This block writes so many bytes in a transaction, or none."""
        began = monotonic()
        try:
            yield
        finally:
            seconds = monotonic() - began
            self._spent += seconds
            if size:
                self._bytes, self._seconds = self._bytes + size + EACH, self._seconds + seconds
                self._free -= size + EACH


#: seconds between two writings
EVERY = 1.0
#: bytes of draws in a row: memory that a row took is taken again by the next
ROW = 4_000_000
#: where a loop stands is remembered when its draws have grown by so many times the bytes of its state
APART = 10
#: a call of the simulator is kept if it takes so many seconds, and as many more as its bytes by this rate
LEAST_SECONDS, BYTES_A_SECOND = 0.01, 2e6
#: bytes of calls that wait in memory to be written
MOST_WAITING = 50_000_000

Work = dict[str, str]
Statement = tuple[str, tuple[Any, ...]]


class Checkpoint(NamedTuple):
    """A file for a run, made after so many seconds; ``origin`` is what the command line needs to begin it again."""

    path: Path
    after: float = 0.0
    origin: str = ""


class _Place(NamedTuple):
    """Where a loop stood: iterations and draws done, the last call of the simulator, and its state, packed."""

    iteration: int
    draws: int
    call: int
    state: bytearray


class _File(SqliteFile):
    mark, version = b"ocCK", 2
    page = 65536
    tables = """
        CREATE TABLE work (name TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE loop (number INTEGER PRIMARY KEY, iteration INTEGER NOT NULL, draws INTEGER NOT NULL,
            state BLOB NOT NULL);
        CREATE TABLE chunk (loop INTEGER NOT NULL, start INTEGER NOT NULL, draws BLOB NOT NULL,
            PRIMARY KEY (loop, start));
        CREATE TABLE call (number INTEGER PRIMARY KEY, key BLOB NOT NULL, output BLOB NOT NULL)"""
    kind, foreign = "checkpoint", "is no checkpoint of orthocal, or one of another version"
    cure = "give another name, or delete it to begin again"
    alone = True

    def _upgrade(self) -> None:
        raise FileError(f"{self.path} {self.foreign}: {self.cure}")

    def write(self, statements: Iterable[Statement]) -> None:
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
        self._budget = Budget()
        self.path, self._work, self._origin, self.seed = where.path, work, where.origin, seed
        self._file: _File | None = None
        self._failed = False
        self._starts: dict[int, int] = {}
        #: loop -> iterations and draws that are in the file
        self._written: dict[int, tuple[int, int]] = {}
        #: of the loop that runs, what was too much to be written at once; and the bytes of its last state
        self._places: list[_Place] = []
        self._standing: tuple[int, list[Any]] = 0, []
        self._state_size = 0
        self._calls: dict[bytes, int] = {}
        self._waiting: list[tuple[int, bytes, bytearray]] = []
        self._last = 0
        self._next = monotonic() + max(where.after, EVERY)
        try:
            with self._budget.spent():
                if self.path.exists():
                    self._file = _open(self.path)
                    self._opened(self._file, given)
                elif not where.after:
                    self._make()
        except BaseException:
            self.close()
            raise

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
        self._written = {row[0]: (row[1], row[2]) for row in file.rows("SELECT number, iteration, draws FROM loop")}

    def _make(self) -> None:
        self._file = self._file or _open(self.path)
        own = {**self._work(), "seed": str(self.seed), "origin": self._origin}
        self._file.write([("INSERT INTO work VALUES (?, ?)", pair) for pair in own.items()])

    def begun(self) -> tuple[int, Standing | None]:
        self._loops += 1
        loop = self._loops
        # calls that are known already may be of what comes after the loop; places, of one that an error ended
        self._starts[loop] = self._last
        self._places.clear()
        row = [] if self._file is None else self._file.rows("SELECT iteration, state FROM loop WHERE number = ?", loop)
        if self._file is None or not row:
            self._written[loop] = 0, 0
            return loop, None
        chunks = self._file.rows("SELECT draws FROM chunk WHERE loop = ? ORDER BY start", loop)
        try:
            ((iteration, state),) = row
            draws = [draw for (chunk,) in chunks for draw in unpack(chunk)]
            standing = Standing(iteration, unpack(state), draws)
        except FileError as error:
            raise FileError(f"{self.path} is damaged, {error}: {_File.cure}") from None
        if len(draws) != self._written[loop][1]:
            raise FileError(f"{self.path} is damaged, draws are missing: {_File.cure}")
        return loop, standing

    def offered(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + EVERY
            self._keep(loop, iteration, state, draws)

    def ended(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        if self._file is not None and self._written[loop][0] < iteration:
            self._keep(loop, iteration, state, draws)
        self._places.clear()

    def _keep(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        """Write where the loop stands, or the last place before that is within the budget.

        Draws that are made faster than they can be written are kept as far as the budget goes: the others are cheaper
        to make again.
        """
        if self._failed:
            return
        # before anything is remembered: an interrupt may come at any place
        self._standing = loop, draws
        done, each = self._written[loop][1], size_of(draws[-1]) if draws else 0
        if self._budget.allows((len(draws) - done) * each + self._state_size):
            self._write(loop, iteration, state, draws)
            return
        last = self._places[-1].draws if self._places else done
        if (len(draws) - last) * each > APART * self._state_size:
            self._remember(iteration, state, draws)
        within = [one for one in self._places if self._budget.allows((one.draws - done) * each + len(one.state))]
        if within:
            self._write_place(loop, within[-1], draws)

    def interrupted(self) -> None:
        """Write the last place that is remembered, whatever that takes: no run is left to be slowed down."""
        if self._places and not self._failed:
            loop, draws = self._standing
            self._write_place(loop, self._places[-1], draws)

    def _write(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        """Write where the loop stands, whatever that takes."""
        if not self._failed and self._remember(iteration, state, draws):
            self._write_place(loop, self._places[-1], draws)

    def _remember(self, iteration: int, state: Callable[[], Any], draws: list[Any]) -> bool:
        try:
            with self._budget.spent():
                packed = pack(state())
        except UnpackableError as error:
            self._give_up(f"its state holds {error}, which cannot be written")
            return False
        self._state_size = len(packed)
        self._places.append(_Place(iteration, len(draws), self._last, packed))
        return True

    def _write_place(self, loop: int, place: _Place, draws: list[Any]) -> None:
        done, start = self._written[loop][1], self._starts[loop]
        each = size_of(draws[-1]) if draws else 0

        def statements() -> Iterator[Statement]:
            yield "REPLACE INTO loop VALUES (?, ?, ?, ?)", (loop, place.iteration, place.draws, place.state)
            # what led there is needed no longer
            yield "DELETE FROM call WHERE number > ? AND number <= ?", (start, place.call)
            rows = max(1, ROW // max(each, 1))
            for first in range(done, place.draws, rows):
                chunk = draws[first : min(first + rows, place.draws)]
                yield "REPLACE INTO chunk VALUES (?, ?, ?)", (loop, first, pack_alike(chunk))

        self._calls = {key: number for key, number in self._calls.items() if not start < number <= place.call}
        self._waiting = [one for one in self._waiting if not start < one[0] <= place.call]
        if self._flush(statements(), (place.draws - done) * each + len(place.state)):
            self._written[loop] = place.iteration, place.draws
            self._places = [one for one in self._places if one.iteration > place.iteration]

    def _flush(self, statements: Iterable[Statement], size: int) -> bool:
        """Write these and the calls that wait; a file that cannot be written is no reason to end the run."""
        calls = [("REPLACE INTO call VALUES (?, ?, ?)", one) for one in self._waiting]
        try:
            with self._budget.spent(size + self._waiting_size()):
                if self._file is None:
                    self._make()
                assert self._file is not None
                self._file.write(chain(statements, calls))
        except (FileError, OSError, sqlite3.Error) as error:
            self._give_up(str(error))
            return False
        except UnpackableError as error:
            self._give_up(f"a draw holds {error}, which cannot be written")
            return False
        # only a second run looks for them
        self._waiting.clear()
        self._next = monotonic() + EVERY
        return True

    def _waiting_size(self) -> int:
        return sum(len(one) for _, _, one in self._waiting)

    def _give_up(self, why: str) -> None:
        self._failed = True
        self._waiting.clear()
        self._places.clear()
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
        if monotonic() >= self._next and self._budget.allows(self._waiting_size()):
            self._flush([], 0)
        elif self._file is None and self._waiting_size() > MOST_WAITING:
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
        file.interrupted()
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

"""What a command says: words for people, or with --json one document for programs and words beside it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..findings import Findings
    from ..results.posterior import Posterior


class _Asked:
    """How the command of this process was asked to speak; its options set it before the command begins."""

    document = quiet = given = False


def _json_asked(wanted: bool) -> bool:
    _Asked.document, _Asked.given = wanted, False
    return wanted


def _quiet_asked(wanted: bool) -> bool:
    _Asked.quiet = wanted
    return wanted


Json = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=_json_asked,
        is_eager=True,
        help="Print one JSON document, and all words to standard error.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=_quiet_asked,
        is_eager=True,
        help="No progress and no summary; notes and errors stay.",
    ),
]


def speak_plainly() -> None:
    """As if no option had been given."""
    _Asked.document = _Asked.quiet = _Asked.given = False


def document_asked() -> bool:
    """Whether standard output belongs to a JSON document."""
    return _Asked.document


def say(words: str) -> None:
    """Words of a result: to standard output, beside a document to standard error, not at all where quiet is asked."""
    if not _Asked.quiet:
        typer.echo(words, err=_Asked.document)


def give(document: Mapping[str, Any]) -> None:
    """The result for programs, where it is asked for: one document, once."""
    if _Asked.document and not _Asked.given:
        _Asked.given = True
        typer.echo(json.dumps(plain(document), allow_nan=False, ensure_ascii=False))


def give_error(message: str) -> None:
    """A command that fails gives a document, too."""
    give({"error": message})


@contextmanager
def quietly() -> Iterator[None]:
    """No bars inside of this block, where quiet is asked for."""
    from ..progress import silenced

    with silenced(_Asked.quiet):
        yield


def plain(value: object) -> Any:
    """What JSON can hold: numbers that are none are null, tables lists of their rows, files their names."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def found_document(found: Findings) -> list[dict[str, str]]:
    """Findings for programs."""
    return [one._asdict() for one in found]


def recorded_changes(posterior: Posterior) -> list[str]:
    """Settings of the problem file that the command changed, each ``key=value``."""
    return [str(one) for one in json.loads(posterior.record.data.attrs.get("changed_settings", "[]"))]


def fit_document(posterior: Posterior, found: Findings, files: Mapping[str, Path | str]) -> dict[str, Any]:
    """A fit for programs: its parameters, findings and files."""
    table = posterior.summary()
    lower, upper = (column for column in table.columns if str(column).startswith("eti"))
    named = table.rename(columns={lower: "lower", upper: "upper"})
    return {
        "ok": found.ok,
        "parameters": {str(name): row.to_dict() for name, row in named.iterrows()},
        "findings": found_document(found),
        "draws": posterior.record.draws,
        "chains": posterior.record.chains,
        "seed": posterior.record.seed,
        "settings": recorded_changes(posterior),
        "version": posterior.record.version,
        "files": dict(files),
    }


# What the user's simulator prints: left out of the output of a command, counted, and shown where it is asked for.

Prints = Annotated[bool, typer.Option("--prints", help="Show what the simulator prints.")]

#: a file of prints that has grown beyond this is counted and emptied, bytes
MOST_KEPT = 2**24


@contextmanager
def prints_left_out(shown: bool) -> Iterator[None]:
    """Standard output of Python, of compiled code and of other processes goes to a file inside of this block.

    At its end a note says how many lines there were. A pipe would be simpler, but a compiled simulator that prints much
    and holds Python's lock would wait for ever for a reader that needs this lock.
    """
    if shown:
        # standard output belongs to the document, where one is asked for
        with _output_into(2) if document_asked() else nullcontext():
            yield
        return
    with _file_of_prints() as number:
        counted = _Counted(number)
        try:
            with counted, _output_into(number):
                yield
        finally:
            if counted.lines:
                plural = "s" if counted.lines > 1 else ""
                typer.echo(f"note: the simulator printed {counted.lines} line{plural}: --prints shows them", err=True)


@contextmanager
def _file_of_prints() -> Iterator[int]:
    """The number of an open file; where no temporary one can be made, prints go nowhere and are not counted."""
    with ExitStack() as stack:
        try:
            place = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="orthocal-")), "prints")
        except OSError:
            place = os.devnull
        # "a": writers go on at the end, also after the file was emptied
        yield stack.enter_context(open(place, "a+b")).fileno()


@contextmanager
def _output_into(number: int) -> Iterator[None]:
    """Standard output goes to the open file of this number."""
    sys.stdout.flush()
    # what the block shows by itself, such as bars, goes to standard error
    kept = os.dup(1)
    try:
        os.dup2(number, 1)
        with open(number, "w", closefd=False, errors="backslashreplace") as text, redirect_stdout(text):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


class _Counted:
    """The lines of an open file that others write to, which is emptied before it fills the disk."""

    def __init__(self, number: int) -> None:
        self._number, self._end, self.lines = number, Event(), 0
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._count()

    def _watch(self) -> None:
        while not self._end.wait(0.5):
            if os.fstat(self._number).st_size > MOST_KEPT:
                self._count()

    def _count(self) -> None:
        place, last = 0, b"\n"
        while block := os.pread(self._number, 2**20, place):
            self.lines += block.count(b"\n")
            place, last = place + len(block), block[-1:]
        if self._end.is_set() and last != b"\n":
            self.lines += 1
        if place:
            os.ftruncate(self._number, 0)

"""What the user's simulator prints: left out of the output of a command, counted, and shown where it is asked for."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from threading import Event, Thread
from typing import Annotated

import typer

from .documents import document_asked

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

"""Standard output and error that may go away: a closed pipe or a full disk loses words, never work.

It needs the standard library only, because an interrupt while all else is loaded is answered through it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, TextIO, cast

#: said of a command that was ended
ENDED = "interrupted; files that had been written are complete"


class LastingStream:
    """A stream that drops what can no longer be written; ``error`` says why."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        if self.error is None:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.error = error
        # what waits in buffers goes nowhere: Python would try it again at the end, and fail
        with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())
            self._stream.flush()

    @property
    def lost(self) -> str | None:
        """Why something was lost that somebody wanted; a reader who has gone, as ``head``, has all it wanted."""
        if self.error is None or self.error.errno == errno.EPIPE:
            return None
        return self.error.strerror or str(self.error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_streams() -> Iterator[LastingStream]:
    """Standard output and error are lasting ones inside of this block; the first is returned."""
    _open_what_is_closed()
    before = sys.stdout, sys.stderr
    for stream in before:
        # a letter that the terminal does not know is no reason to end
        with suppress(AttributeError, OSError, ValueError):
            cast(TextIOWrapper, stream).reconfigure(errors="backslashreplace")
    output, error = LastingStream(before[0]), LastingStream(before[1])
    sys.stdout, sys.stderr = output, error
    try:
        yield output
    finally:
        output.flush()
        error.flush()
        sys.stdout, sys.stderr = before


def _open_what_is_closed() -> None:
    """Where a program is started without them, the first files that it opens would be its standard streams."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115

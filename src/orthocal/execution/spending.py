"""What writing a checkpoint may take: a share of the run's time, however fast its draws are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

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

"""One BLAS thread: sums in another order would change the last digits of a result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

#: a library, and its number of threads before
Before = tuple[Any, int]


class _Limit:
    """Blocks that are inside, in whichever threads, and the numbers of BLAS threads before the first of them.

    The number of BLAS threads belongs to the process. Where each block put back what it had found, one that began
    inside of another and ended after it would leave one thread for good, or the other would go on with several.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._before: dict[str, Before] = {}

    def enter(self) -> list[Before]:
        """Set the limit; what belongs to this thread alone, and is to be put back by it, is returned."""
        own = []
        with self._lock:
            # at every block, as libraries may have been loaded since the last one
            for library in ThreadpoolController().select(user_api="blas").lib_controllers:
                before = (library, library.num_threads)
                if _is_per_thread(library):
                    own.append(before)
                else:
                    self._before.setdefault(library.filepath, before)
                _set(library, 1)
            self._inside += 1
        return own

    def leave(self, own: list[Before]) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                own = [*own, *self._before.values()]
                self._before = {}
            for library, threads in own:
                _set(library, threads)


def _is_per_thread(library: Any) -> bool:
    """Whether each thread has a number of its own, which threadpoolctl knows from 3.8 on."""
    return hasattr(library, "clear_controlling_thread") and library.threading_layer == "openmp"


def _set(library: Any, threads: int) -> None:
    # from 3.8 on threadpoolctl obeys one Python thread alone, and does nothing, silently, for others
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    # the lock of a copy could be held by a thread that it does not have
    os.register_at_fork(after_in_child=_LIMIT.renew)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS has one thread inside of this block; the last block to end, in any thread, puts back what there was."""
    own = _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave(own)


def limit_blas_for_good() -> None:
    """BLAS has one thread in this process from now on, that of libraries which are loaded later aside."""
    _LIMIT.enter()

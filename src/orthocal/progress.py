"""Progress bars: only on work longer than a second, only on a terminal, and only where they were asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Timer
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

# a context, so that the code in between need not hand the wish down
_wanted: ContextVar[bool] = ContextVar("progress wanted", default=False)
_silenced: ContextVar[bool] = ContextVar("progress silenced", default=False)


@contextmanager
def progress_shown(wanted: bool) -> Iterator[None]:
    """Show progress inside this block, or not."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def silenced(quiet: bool) -> Iterator[None]:
    """No progress inside this block, whoever asks for it there; or as it was."""
    token = _silenced.set(quiet or _silenced.get())
    try:
        yield
    finally:
        _silenced.reset(token)


def progress_bar(items: Iterable[Item], label: str) -> Iterable[Item]:
    """``items``, with a bar on the terminal if they take longer than a second; their number may be unknown."""
    if not _shown():
        return items
    return tqdm(items, desc=label, delay=1.0, leave=False)


@contextmanager
def announced(message: str) -> Iterator[None]:
    """Say ``message`` on the terminal if this block takes longer than a second."""
    if not _shown():
        yield
        return
    timer = Timer(1.0, lambda: print(message, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shown() -> bool:
    return _wanted.get() and not _silenced.get() and sys.stderr.isatty()

"""Progress bars: only on work longer than a second, only on a terminal or in a notebook, only where asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from threading import Timer
from typing import Any, TypeVar

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
    """``items``, with a bar if they take longer than a second; their number may be unknown."""
    if _wanted.get() and not _silenced.get() and _in_notebook():
        return NotebookBar(items, desc=label, delay=1.0, leave=False, mininterval=0.3)
    if not _shown():
        return items
    return tqdm(items, desc=label, delay=1.0, leave=False)


class NotebookBar(tqdm):  # type: ignore[type-arg]
    """A bar in the output of a notebook's cell, which is empty again at the end; no widgets are needed."""

    _place: Any = None

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        # by its name: who has no notebooks has no such library
        notebook = import_module("IPython.display")
        words = escape(str(self)) if msg is None else ""
        share = f'<progress value="{self.n}" max="{self.total}"></progress> ' if self.total else ""
        shown = notebook.HTML(f"<div>{share}<code>{words}</code></div>" if words else "")
        if self._place is None:
            self._place = notebook.display(shown, display_id=True)
        else:
            self._place.update(shown)


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


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this; a terminal's IPython has none."""
    loaded = sys.modules.get("IPython")
    shell = None if loaded is None else loaded.get_ipython()
    return hasattr(shell, "kernel")

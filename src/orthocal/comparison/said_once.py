"""Warnings of many fits: each kind is said once, with the number of fits that it holds for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import OrthocalWarning


@contextmanager
def said_once() -> Iterator[None]:
    """Keep the warnings of what is done inside, and give them at its end; those that differ in numbers are one kind."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OrthocalWarning)
            yield
    finally:
        kinds: dict[str, list[str]] = {}
        for one in caught:
            if issubclass(one.category, OrthocalWarning):
                text = str(one.message)
                kinds.setdefault(re.sub(r"[\d.]*\d", "#", text), []).append(text)
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        for texts in kinds.values():
            more = f" (and the same in {len(texts) - 1} more of the fits)" if len(texts) > 1 else ""
            warnings.warn(texts[0] + more, OrthocalWarning, stacklevel=4)

"""Progress bars: only on work longer than a second, and only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress_bar(items: Iterable[Item], label: str, enabled: bool) -> Iterable[Item]:
    """``items``, with a bar on the terminal if they take longer than a second."""
    if not enabled or not sys.stderr.isatty():
        return items
    return tqdm(items, desc=label, delay=1.0, leave=False)

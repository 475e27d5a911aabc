"""The command line. ``main`` loads what it needs itself, so that Ctrl-C is one sentence while it does."""

from typing import Any

from .entry import main as main


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .commands import app

    return app

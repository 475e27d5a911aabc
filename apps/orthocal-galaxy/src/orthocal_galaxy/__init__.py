"""A galaxy as a calibration problem: the orbit-superposition model of Schwarzschild (1979), and a mock galaxy."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from .public import *  # noqa: F403


def __getattr__(name: str) -> object:
    # only when asked for: the command line describes its commands without them
    public = _import_module(".public", __name__)
    if name not in ("__all__", *public.__all__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(public, name)
    return value

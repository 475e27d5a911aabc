"""The studies that compare methods on the paper's test problems, our figures beside the paper's."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from .base import Column as Column, Study as Study
    from .printed import Printed as Printed
    from .registry import STUDIES as STUDIES

_PLACES = {"Column": "base", "Printed": "printed", "STUDIES": "registry", "Study": "base"}
__all__ = list(_PLACES)


def __getattr__(name: str) -> object:
    # only when asked for: the command line describes its commands without them
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_PLACES[name]}", __name__), name)

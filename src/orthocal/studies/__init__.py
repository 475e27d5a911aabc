"""The studies that compare methods on the paper's test problems, our figures beside the paper's."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from .printed import Printed
    from .registry import STUDIES, Column, Study

__all__ = ["STUDIES", "Column", "Printed", "Study"]


def __getattr__(name: str) -> object:
    # only when asked for: the command line describes its commands without them
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(".printed" if name == "Printed" else ".registry", __name__), name)

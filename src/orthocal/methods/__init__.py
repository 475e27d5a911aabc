"""Ways to calibrate: by name or as an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..bias import BART, BMARS, BNN, GP, SoftBART
from ..errors import InputError
from .base import Draws, Method, Plan
from .projected import Projected

__all__ = ["Draws", "Method", "Plan", "Projected", "method_by_name"]

_METHODS: dict[str, Callable[[], Method]] = {
    "pgp": lambda: Projected(GP()),
    "pbart": lambda: Projected(BART()),
    "psoftbart": lambda: Projected(SoftBART()),
    "pbmars": lambda: Projected(BMARS()),
    "pbnn": lambda: Projected(BNN()),
}


def method_by_name(method: Any) -> Method:
    """A method from its name; an object that is a method is itself."""
    if isinstance(method, str):
        if method not in _METHODS:
            raise InputError(f"there is no method {method!r}: choose one of {', '.join(_METHODS)}")
        return _METHODS[method]()
    if not hasattr(method, "run") or isinstance(method, type):
        raise InputError(f"method={method!r}: give a name ({', '.join(_METHODS)}) or an object of oc.methods")
    chosen: Method = method
    return chosen

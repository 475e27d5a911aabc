"""Ways to calibrate: by name or as an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..bias import BART, BMARS, BNN, GP, SoftBART
from ..errors import InputError
from .base import Draws, Method, Plan
from .ko import KO
from .no_bias import NoBias
from .ogp import OGP
from .pcal import PCAL
from .projected import Projected
from .sgasp import SGaSP

__all__ = ["KO", "OGP", "PCAL", "Draws", "Method", "NoBias", "Plan", "Projected", "SGaSP", "method_by_name"]

_METHODS: dict[str, Callable[[], Method]] = {
    "pgp": lambda: Projected(GP()),
    "pbart": lambda: Projected(BART()),
    "psoftbart": lambda: Projected(SoftBART()),
    "pbmars": lambda: Projected(BMARS()),
    "pbnn": lambda: Projected(BNN()),
    "ko": KO,
    "ogp": OGP,
    "sgasp": SGaSP,
    "pcal": PCAL,
    "none": NoBias,
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

"""Which simulator it is: runs that are kept must not be mixed with those of another one."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
import types
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..problem.simulator.simulator_function import Simulator


class Identity(NamedTuple):
    """Which simulator it is: a name for people, and a digest of its code."""

    name: str
    digest: str


@runtime_checkable
class Identified(Protocol):
    """A simulator that says itself which one it is, as ``oc.Program`` does."""

    def identity(self) -> tuple[str, str]:
        """Its name, and a digest of all that decides what it computes."""


def simulator_identity(simulator: object) -> Identity:
    """Which simulator it is. Code that it calls in other places is not looked at."""
    if isinstance(simulator, Identified):
        return Identity(*simulator.identity())
    if isinstance(simulator, Simulator):
        return simulator_identity(simulator.function)
    if isinstance(simulator, functools.partial):
        inner = simulator_identity(simulator.func)
        bound = [*simulator.args, *sorted(simulator.keywords.items())]
        return Identity(inner.name, _digest(inner.digest, *map(_value, bound)))
    code: Any = simulator if inspect.isroutine(simulator) or inspect.isclass(simulator) else type(simulator)
    name = f"{getattr(code, '__module__', '')}.{getattr(code, '__qualname__', type(simulator).__name__)}"
    held: list[object] = [*(getattr(code, "__defaults__", None) or ())]
    for cell in getattr(code, "__closure__", None) or ():
        with suppress(ValueError):  # a cell that is still empty
            held.append(cell.cell_contents)
    # a script is `__main__` when it is run, and has its own name when it is imported
    return Identity(name.removeprefix("__main__."), _digest(_source(code), *map(_value, held)))


def _source(code: Any) -> str:
    """The code without comments and layout, so that only a change of what it does is a change."""
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(code))))
    except (OSError, TypeError, SyntaxError):
        # typed at a prompt, compiled, or a lambda in the middle of a line
        own = getattr(code, "__code__", None)
        return _bytecode(own) if isinstance(own, types.CodeType) else ""


def _bytecode(code: types.CodeType) -> str:
    constants = [_bytecode(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code.hex(), constants, code.co_names))


def _value(held: object) -> str:
    """A value that a function carries with it; objects are known by their type only."""
    if isinstance(held, np.ndarray) and held.dtype != object:
        return f"{held.dtype}{held.shape}{hashlib.sha256(np.ascontiguousarray(held).tobytes()).hexdigest()}"
    if isinstance(held, tuple | list):
        return f"[{','.join(map(_value, held))}]"
    if inspect.isfunction(held):
        return _source(held)
    return repr(held) if isinstance(held, int | float | str | bytes | None) else type(held).__qualname__


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

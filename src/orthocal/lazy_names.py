"""Public names that are loaded when they are asked for: the stub beside a module says which, and where they are.

The stub is what type checkers read, so there is one list. It has ``from .module import name as name``.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path


def names_of_stub(module: str, file: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of the module in ``file``."""
    places = {alias.name: (node.level, node.module) for node in stub_imports(file) for alias in node.names}

    def get(name: str) -> object:
        if (name, module) == ("__version__", __package__):
            return version(module)
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        level, place = places[name]
        owner = import_module("." * level + place, module) if place else None
        value: object = getattr(owner, name, None)
        if value is None:
            # a module is no attribute before it is loaded
            value = import_module("." * level + (f"{place}.{name}" if place else name), module)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *places, "__version__"})

    return list(places), get, names


def stub_imports(file: str) -> list[ast.ImportFrom]:
    """What the stub beside a module imports."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    return [node for node in stub.body if isinstance(node, ast.ImportFrom)]

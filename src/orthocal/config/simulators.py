"""Simulators that problem and campaign files may name: functions, models of servers, FMUs."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from ..arrays import Array
from ..errors import ConfigError
from ..execution.fmu import FMU, TOLERANCE
from ..execution.servers.umbridge import Derivative, UMBridge
from ..files import is_file
from ..sections import Names, Section
from .tables import TableSection, read_columns


class UMBridgeSection(TableSection):
    """A model of UM-Bridge servers; the keys are the arguments of ``oc.UMBridge``."""

    url: Names
    model: str = "forward"
    points: str | None = None
    x_block: int | None = None
    x_config: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    fixed: dict[int, list[float]] = Field(default_factory=dict)
    outputs: list[int] | None = None
    by: Literal["point", "outcome"] = "point"
    derivative: Derivative = "auto"
    timeout: float | None = None
    wait: float = 600.0
    retries: int = 2
    each: int = 1
    seed_config: str | None = None

    def simulator(self, folder: Path, x: pd.DataFrame | None) -> UMBridge:
        """The model; where it takes no x its own points are those of a table, or of the data."""
        settings = self.model_dump(exclude={"points", "separator", "decimal"})
        takes_x = self.x_block is not None or self.x_config is not None
        points = None if takes_x else x
        if self.points is not None and x is not None:
            points = read_columns(folder / self.points, list(x.columns), self)
        return UMBridge(**settings, points=points)


class FMUSection(Section):
    """An FMU; the keys are the arguments of ``oc.FMU``."""

    file: str
    parameters: dict[str, str] | Names
    outputs: Names
    inputs: dict[str, str] | Names = Field(default=["time"])
    start: float | None = None
    stop: float | None = None
    step: float | None = None
    fixed: dict[str, float] = Field(default_factory=dict)
    kind: Literal["auto", "co-simulation", "model-exchange"] = "auto"
    solver: Literal["CVode", "Euler"] = "CVode"
    tolerance: float = TOLERANCE
    timeout: float | None = None

    def simulator(self, folder: Path, names: list[str], x: pd.DataFrame | None) -> FMU:
        """The FMU with the parameters and the inputs of the file, matched by their names."""
        own = FMU(folder / self.file, **self.model_dump(exclude={"file"})).for_parameters(names)
        return own if x is None else own.for_inputs([str(one) for one in x.columns])


class FunctionSection(Section):
    """Of a campaign: a function to call, the model of a server, or an FMU."""

    function: str | None = None
    batched: bool | int = False
    umbridge: UMBridgeSection | None = None
    fmu: FMUSection | None = None


# Functions of the user's Python files, which may import their neighbours, at first and whenever they are called.


@dataclass(frozen=True, eq=False)
class FileFunction:
    """The function of ``file.py:function``, relative to ``folder``, which each process loads for itself."""

    reference: str
    folder: Path

    def __call__(self, *given: Array, **settings: Any) -> Any:
        """f(x, theta), or f(theta) of outputs without inputs; settings, a seed or a replicate by their names."""
        function = self._function
        with _NEIGHBOURS.of(self._beside):
            return function(*given, **settings)

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the function, for those who want to know what it takes."""
        return inspect.signature(self._function)

    def __reduce__(self) -> tuple[type[FileFunction], tuple[str, Path]]:
        # without the function itself: another process does not know its module
        return FileFunction, (self.reference, self.folder)

    def loaded(self) -> FileFunction:
        """Itself, so that a mistake in the file shows now, and not in every run."""
        _ = self._function
        return self

    def identity(self) -> tuple[str, str]:
        """The reference, and a digest of the whole file, without its comments and layout."""
        text = self.loaded()._path.read_text(encoding="utf-8")
        return self.reference, hashlib.sha256(ast.unparse(ast.parse(text)).encode()).hexdigest()

    @cached_property
    def _path(self) -> Path:
        return (self.folder / self.reference.rpartition(":")[0]).resolve()

    @cached_property
    def _beside(self) -> str:
        return str(self._path.parent)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        file, colon, name = self.reference.rpartition(":")
        if not colon or not file or not name:
            raise ConfigError(f'simulator {self.reference!r}: give it as "file.py:function"')
        if not is_file(self._path):
            raise ConfigError(f"the simulator's file {self.folder / file} does not exist")
        function = getattr(_module(self._path, file), name, None)
        if not callable(function):
            raise ConfigError(f"there is no function {name!r} in {file}")
        loaded: Callable[..., Any] = function
        return loaded


def _module(path: Path, file: str) -> ModuleType:
    """The file as a module, under a name that no other file has; messages call it ``file``."""
    name = f"orthocal_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ConfigError(f"the simulator's file {file} is not a Python file")
    # dataclasses and pickle look their module up
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    try:
        with _NEIGHBOURS.of(str(path.parent)):
            specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        del sys.modules[name]
        raise ConfigError(f"the simulator's file {file} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


class _Neighbours:
    """Modules beside the user's files, which are imported by their plain names.

    Python knows one module of a name. So that ``import helpers`` means the file of the folder whose code runs, the
    modules of the folder that was entered last are known, and those of others are set aside until theirs is entered.
    Only where code of two such folders runs at the same time, in two threads, may a first import find the other's.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._modules: dict[str, dict[str, ModuleType]] = {}
        self._entered: str | None = None

    @contextmanager
    def of(self, folder: str) -> Iterator[None]:
        """While this block runs, imports look in ``folder`` first."""
        self._enter(folder)
        count = len(sys.modules)
        # each call that is under way adds and removes one entry
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            with suppress(ValueError):  # the user's code may have removed it
                sys.path.remove(folder)
            if len(sys.modules) != count:
                self._note(folder, list(sys.modules.items())[count:])

    def _enter(self, folder: str) -> None:
        with self._lock:
            if folder == self._entered:
                return
            if self._entered is not None:
                for name in self._modules[self._entered]:
                    sys.modules.pop(name, None)
            sys.modules.update(self._modules.setdefault(folder, {}))
            self._entered = folder

    def _note(self, folder: str, new: list[tuple[str, ModuleType]]) -> None:
        """Of new modules, those of the folder itself: below it there may be all that is installed."""
        with self._lock:
            known = self._modules[folder]
            known |= {name: module for name, module in new if "." not in name and _lies_in(module, folder)}
            known |= {name: module for name, module in new if name.partition(".")[0] in known}


def _lies_in(module: ModuleType, folder: str) -> bool:
    """Whether a module, or the folder of a package, is an entry of ``folder``."""
    # programs put all sorts of objects among the modules
    found = getattr(module, "__spec__", None)
    places = [*(found.submodule_search_locations or ()), found.origin] if isinstance(found, ModuleSpec) else []
    return bool(places and places[0]) and os.path.dirname(places[0]) == folder


_NEIGHBOURS = _Neighbours()

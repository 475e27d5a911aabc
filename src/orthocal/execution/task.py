"""One run of a campaign, wherever it happens: the simulator is called, and whatever it does becomes a result."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import SimulatorError
from ..problem.simulator import Simulator
from .program import Program

#: characters of an error text that are kept
LONGEST_ERROR = 4000


class Task(NamedTuple):
    """A run that is to be made: its number in the design and its theta (p,)."""

    number: int
    theta: tuple[float, ...]


class RunResult(NamedTuple):
    """What a run left: its output (m, q) or an error, seconds, and when it started and finished (UTC)."""

    output: Array | None
    error: str | None
    seconds: float
    started: str
    finished: str


Finished = list[tuple[Task, RunResult]]


class Identity(NamedTuple):
    """Which simulator it is: a name for people, and a digest of its code."""

    name: str
    digest: str


@dataclass(frozen=True)
class Work:
    """What all runs of a campaign share; calling it with a task makes the run.

    ``campaign`` is a name that no other campaign has: programs can be stopped by it.
    """

    simulator: Callable[[Array, Array], Any] | Program
    x: Array
    flat_x: bool
    parameter_names: tuple[str, ...]
    input_names: tuple[str, ...]
    timeout: float | None
    campaign: str

    def __call__(self, task: Task) -> RunResult:
        started, clock = now(), perf_counter()
        output, error = None, None
        try:
            output = shaped_output(self._raw(task), len(self.x))
        except (Exception, SystemExit) as problem:  # whatever the user's code raises: the other runs go on
            error = _in_words(problem)[-LONGEST_ERROR:]
        return RunResult(output, error, perf_counter() - clock, started, now())

    def _raw(self, task: Task) -> Any:
        if isinstance(self.simulator, Program):
            theta = dict(zip(self.parameter_names, task.theta, strict=True))
            label = f"run-{task.number:05d}"
            return self.simulator.run(self.x, theta, self.input_names, self.timeout, label, self.campaign)
        # copies: the user's code must not be able to change ours
        return self.simulator((self.x[:, 0] if self.flat_x else self.x).copy(), np.array(task.theta))


def shaped_output(raw: Any, m: int) -> Array:
    """The simulator's output as (m, q); a value that is not finite becomes NaN."""
    try:
        array = np.array(raw, dtype=np.float64) if not np.iscomplexobj(raw) else None
    except (TypeError, ValueError):
        array = None
    if array is None:
        raise SimulatorError(f"the simulator returned {type(raw).__name__}: expected an array of real numbers")
    matrix = array[:, None] if array.ndim == 1 else array.reshape(1, 1) if array.ndim == 0 else array
    if matrix.ndim != 2 or len(matrix) != m or not matrix.size:
        raise SimulatorError(
            f"the simulator returned an array of shape {array.shape} for {m} points: expected ({m},) or ({m}, q)"
        )
    return np.where(np.isfinite(matrix), matrix, np.nan)


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def failed_result(error: str, seconds: float = 0.0, started: str = "") -> RunResult:
    """The result of a run that could not even say that it failed."""
    return RunResult(None, error[-LONGEST_ERROR:], seconds, started or now(), now())


def simulator_identity(simulator: Any) -> Identity:
    """Which simulator it is. Code that it calls in other places is not looked at."""
    if hasattr(simulator, "identity"):
        return Identity(*simulator.identity())
    if isinstance(simulator, Simulator):
        return simulator_identity(simulator.function)
    if isinstance(simulator, functools.partial):
        inner = simulator_identity(simulator.func)
        bound = [*simulator.args, *sorted(simulator.keywords.items())]
        return Identity(inner.name, _digest(inner.digest, *map(_value, bound)))
    code: Any = simulator if inspect.isroutine(simulator) or inspect.isclass(simulator) else type(simulator)
    name = f"{getattr(code, '__module__', '')}.{getattr(code, '__qualname__', type(simulator).__name__)}"
    held: list[Any] = [*(getattr(code, "__defaults__", None) or ())]
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


def _value(held: Any) -> str:
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


def _in_words(error: BaseException) -> str:
    if isinstance(error, SimulatorError):
        return str(error)
    place = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"

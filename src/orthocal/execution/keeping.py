"""Where a calibration stands, so that it can go on: in memory, for more draws; ``checkpoint_file`` does it on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from .packing import UnpackableError, Values, pack, unpack

#: bytes of kept draws beyond which memory does not hold them twice
MOST_HELD = 200_000_000
#: what is called: f, or its gradient
VALUES, GRADIENT = "f", "gradient"


class Standing(NamedTuple):
    """Where a loop stands: iterations done, all that an iteration changes, and the draws that it has kept."""

    iteration: int
    state: Any
    draws: list[Any]


class Keeper:
    """What a run may go on from. This one holds where its loops ended, if that is not too much."""

    def __init__(self) -> None:
        self._ended: dict[int, tuple[int, bytearray, list[Any]]] = {}
        self._loops = 0

    def again(self) -> Keeper:
        """For the same run with more draws: it goes on where these loops ended."""
        other = Keeper()
        other._ended = dict(self._ended)
        return other

    def begun(self) -> tuple[int, Standing | None]:
        """The number of the loop that begins, and where it stood."""
        self._loops += 1
        known = self._ended.get(self._loops)
        if known is None:
            return self._loops, None
        iteration, state, draws = known
        return self._loops, Standing(iteration, unpack(state), list(draws))

    def offered(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        """Where a loop stands after an iteration, to be kept if it is time."""

    def ended(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        """Where a loop has ended."""
        if draws and len(draws) * size_of(draws[-1]) > MOST_HELD:
            return
        # a sampler of the user's may hold anything in its state: then all begins again
        try:
            self._ended[loop] = (iteration, pack(state()), draws)
        except UnpackableError:
            self._ended.pop(loop, None)

    def known(self, label: str, x: Array, theta: Array) -> Values | None:
        """What a call of the simulator, or of its gradient, gave before the run was ended."""
        return None

    def record(self, label: str, x: Array, theta: Array, output: Any, seconds: float) -> None:
        """What a call gave, and how long it took."""


def size_of(value: object) -> int:
    """Bytes of the arrays in nested tuples and dicts."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    each = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return sum(size_of(one) for one in each)


# a context, so that the code in between need not hand it down
_current: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def kept_by(keeper: Keeper | None) -> Iterator[None]:
    """What runs in this block is kept there."""
    token = _current.set(keeper)
    try:
        yield
    finally:
        _current.reset(token)


def keeper_around() -> Keeper | None:
    """Of the run that is under way, if there is one."""
    return _current.get()


def keeper() -> Keeper:
    """Of the run that is under way; one that is forgotten where there is none."""
    return keeper_around() or Keeper()


def kept_call(label: str, x: Array, theta: Array, made: Callable[[], Any]) -> Any:
    """What a call of the simulator gives: what is known of it, or what ``made`` returns; that, without a label."""
    current = _current.get()
    if current is None or not label:
        return made()
    output = current.known(label, x, theta)
    if output is None:
        started = perf_counter()
        output = made()
        current.record(label, x, theta, output, perf_counter() - started)
    return output

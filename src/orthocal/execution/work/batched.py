"""Calls of a function that takes many theta itself: f(x, theta (c, p)) -> (c, m) or (c, m, q)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...arrays import Array
from ...errors import SimulatorError, where_raised
from ..checkpoints.keeping import VALUES, keeper
from .calls import Answer, ParallelCalls
from .simulation import RunResult, RunTask, Simulation, finite_output, plain
from .workers import Lost, now

#: theta at a time where the user does not say: enough for a GPU, few enough for the memory
MOST_TOGETHER = 256


@dataclass(frozen=True)
class OneOfBatch:
    """f(x, theta) for a single theta, by a function that takes many; it can be traced and differentiated by JAX."""

    function: Callable[[Array, Array], Any]

    def __call__(self, x: Array, theta: Array) -> Any:
        output = self.function(x, theta[None])
        _check(output, len(x), 1)
        return output[0]


class BatchedCalls:
    """The function for as many theta at a time as it takes.

    Attributes
    ----------
    function
        What is called; where JAX has compiled it, ``padded`` is True.
    padded
        Whether only powers of two theta are given at a time, the last one repeated: to compile takes a while, once for
        every number of them.
    """

    def __init__(self, function: Callable[[Array, Array], Any], batched: bool | int) -> None:
        self.function, self.padded = function, False
        self.most = MOST_TOGETHER if batched is True else int(batched)

    def answers(self, x: Array, theta: Array) -> _Batches:
        return _Batches(self, x, theta)

    def pays(self, count: int) -> bool:
        return True

    @property
    def long(self) -> bool:
        return True

    def took(self, seconds: float, label: str) -> None:
        """Nothing depends on it."""

    def close(self) -> None:
        """Nothing was started."""

    def outputs(self, x: Array, theta: Array) -> Any:
        """f(x, theta) for theta (c, p)."""
        count = len(theta)
        size = min(self.most, 1 << (count - 1).bit_length()) if self.padded else count
        given = theta if size <= count else np.vstack([theta, np.repeat(theta[-1:], size - count, axis=0)])
        # copies: the user's code must not be able to change our state
        output = self.function(x.copy(), given.copy())
        _check(output, len(x), len(given))
        return output[:count]

    def each(self, x: Array, theta: Array) -> list[Answer]:
        """The answers of theta (c, p), whichever of them the function raises for."""
        began = perf_counter()
        try:
            outputs = self.outputs(x, theta)
        except SimulatorError:
            # our own words about what the function returned
            raise
        except Exception as error:  # whatever the user's code raises
            if len(theta) == 1:
                return [Answer(None, (type(error).__name__, f"{error} ({where_raised(error)})"))]
            half = len(theta) // 2
            return [*self.each(x, theta[:half]), *self.each(x, theta[half:])]
        wall = (perf_counter() - began) / len(theta)
        return [Answer(np.asarray(output), wall=wall) for output in outputs]


#: where many theta are asked for
ManyCalls = ParallelCalls | BatchedCalls


class _Batches:
    """The answers, batch by batch."""

    def __init__(self, calls: BatchedCalls, x: Array, theta: Array) -> None:
        self._calls, self._x, self._theta = calls, x, theta

    def __len__(self) -> int:
        return len(self._theta)

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        for start in range(0, len(self._theta), self._calls.most):
            for place, answer in enumerate(self._of(self._theta[start : start + self._calls.most])):
                yield start + place, answer

    def _of(self, theta: Array) -> list[Answer]:
        """What is kept of a batch, if that is all of it: in another company the last digits might be others."""
        kept = keeper()
        known = [kept.known(VALUES, self._x, one) for one in theta]
        if all(one is not None for one in known):
            return [Answer(one) for one in known]
        answers = self._calls.each(self._x, theta)
        for one, answer in zip(theta, answers, strict=True):
            if answer.error is None:
                kept.record(VALUES, self._x, one, answer.output, answer.wall)
        return answers


def _check(output: Any, points: int, count: int) -> None:
    shape = np.shape(output)
    if shape[:2] != (count, points):
        raise SimulatorError(
            f"the simulator returned {f'an array of shape {shape}' if shape else type(output).__name__} for {count} "
            f"theta and {points} points: with batched, f(x, theta) must return ({count}, {points}) or ({count}, "
            f"{points}, q)"
        )


# Runs of a simulator that takes many theta at a time: they are made in this process, batch by batch.


class BatchedRuns:
    """Workers of a campaign. What is submitted waits until somebody asks for results, and is then one batch."""

    words = "batches in this process"

    def __init__(self, calls: BatchedCalls, simulation: Simulation) -> None:
        self.width, self._calls, self._waiting = calls.most, calls, list[RunTask]()
        self._x = simulation.x[:, 0] if simulation.flat_x else simulation.x

    def submit(self, task: RunTask) -> None:
        self._waiting.append(task)

    def finished(self) -> list[tuple[RunTask, RunResult | Lost]]:
        tasks, self._waiting = self._waiting, []
        started = now()
        try:
            answers = self._calls.each(self._x, np.array([task.theta for task in tasks]))
        except SimulatorError as error:
            return [(task, RunResult(None, plain(str(error)), 0.0, started, now())) for task in tasks]
        return [(task, self._result(answer, started)) for task, answer in zip(tasks, answers, strict=True)]

    def _result(self, answer: Answer, started: str) -> RunResult:
        """Of one run; its seconds are its share of the batch's."""
        output, error = None, None
        try:
            if answer.error is not None:
                raise SimulatorError("{}: {}".format(*answer.error))
            output = finite_output(answer.output, len(self._x))
        except SimulatorError as problem:
            error = plain(str(problem))
        return RunResult(output, error, answer.wall, started, now())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was started."""

"""Calls of one function for many theta, in several processes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple
from weakref import finalize

from ..arrays import Array
from ..errors import SimulatorError, where_raised
from .clock import cpu_seconds
from .keeping import VALUES, keeper
from .processes import ProcessWorkers
from .work import Lost, Settled, Work

#: what to do where processes cannot be started
CURE = (
    'A script that gives oc.Simulator(f, jobs=...) must work below `if __name__ == "__main__":`, with the simulator '
    "in a module that can be imported"
)


class Call(NamedTuple):
    """f(x, theta) that is to be computed, and its place among the others."""

    number: int
    x: Array
    theta: Array


class Answer(NamedTuple):
    """What a call gave: whatever the function returned, or the kind and the text of its error; CPU and wall seconds."""

    output: Any
    error: tuple[str, str] | None = None
    cpu: float = 0.0
    wall: float = 0.0


@dataclass(frozen=True)
class _Caller:
    function: Callable[[Array, Array], Any]

    def __call__(self, call: Call) -> Answer:
        started, began = cpu_seconds(), perf_counter()
        try:
            answer = Answer(self.function(call.x, call.theta))
        except Exception as error:  # whatever the user's code raises is said where the call was asked for
            answer = Answer(None, (type(error).__name__, f"{error} ({where_raised(error)})"))
        return answer._replace(cpu=cpu_seconds() - started, wall=perf_counter() - began)


class ParallelCalls:
    """A function in ``jobs`` processes, which are kept from one call to the next: starting one may take a second."""

    def __init__(self, function: Callable[[Array, Array], Any], jobs: int) -> None:
        self._work: Work[Call, Answer] = Work(_Caller(function), cure=CURE)
        self._jobs = jobs
        self._workers: ProcessWorkers[Call, Answer] | None = None

    def answers(self, x: Array, theta: Array) -> Answers:
        """What the function gives for each theta."""
        return Answers(self, [Call(number, x, one) for number, one in enumerate(theta)])

    def open(self) -> ProcessWorkers[Call, Answer]:
        """The processes."""
        if self._workers is None:
            self._workers = ProcessWorkers(self._work, self._jobs)
            self._end = finalize(self, self._workers.__exit__, None, None, None)
        return self._workers

    def close(self) -> None:
        """End the processes, whatever they do."""
        if self._workers is not None:
            self._end()
            self._workers = None


class Answers:
    """(number, answer) of every call as they come; it has a length for progress bars."""

    def __init__(self, calls: ParallelCalls, tasks: list[Call]) -> None:
        self._calls, self._tasks = calls, tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        answers: dict[int, Answer] = {}
        kept = keeper()

        def keep(task: Call, result: Answer | Lost) -> bool:
            if isinstance(result, Lost):
                raise SimulatorError(f"a call of the simulator at theta = {task.theta.tolist()}: {result.error}")
            answers[task.number] = result
            if result.error is None:
                kept.record(VALUES, task.x, task.theta, result.output, result.wall)
            return True

        done, left = False, list[Call]()
        try:
            for task in self._tasks:
                known = kept.known(VALUES, task.x, task.theta)
                if known is None:
                    left.append(task)
                else:
                    yield task.number, Answer(known)
            for task in Settled(left, self._calls.open(), keep):
                yield task.number, answers.pop(task.number)
            done = True
        finally:
            if not done:
                # answers that are still to come belong to nobody
                self._calls.close()

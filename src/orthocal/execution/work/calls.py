"""CallGroup of one function for many theta at a time: in several processes, or in threads.

``ParallelCalls`` has processes, or threads where the function is ``Elsewhere``. For a function that takes many theta
itself there is ``batched.BatchedCalls``, with the same methods. What a run keeps of slow calls is neither made again
nor lost.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple, Protocol, runtime_checkable
from weakref import finalize

from ...arrays import Array
from ...errors import NonFiniteError, SimulatorError, where_raised
from ...machine.threads import limit_blas_for_good
from ..checkpoints.keeping import GRADIENT, VALUES, keeper
from .processes import ProcessWorkers, starts_afresh
from .workers import Lost, ThreadWorkers, Work, Workers

#: what to do where processes cannot be started
CURE = (
    'A script that gives oc.Simulator(f, jobs=...) must work below `if __name__ == "__main__":`, with the simulator '
    "in a module that can be imported"
)
#: seconds of calls that go to a process together: to send them takes about 0.2 ms
TOGETHER = 0.02
#: calls that would take less together are not worth sending, and fewer seconds than this not worth the start of
#: processes, which takes about as long; nor is what threads wait for less
WORTH, WORTH_A_START, WORTH_A_THREAD = 0.002, 0.5, 0.001
#: the same for processes that are copies of this one
WORTH_A_COPY = 0.05
#: calls that take longer are worth waiting for others, which costs about 0.1 ms
LONG = 0.0003
#: calls whose seconds are remembered, to know how long the next ones will take
REMEMBERED = 15
#: how often a call is tried whose process died: somebody may have ended the process, not the call
ATTEMPTS = 2


@runtime_checkable
class Elsewhere(Protocol):
    """A function f(x, theta) whose work is done elsewhere, by a program or a server: threads are enough to wait for it.

    It may be called from several threads at a time, and may have ``end_calls()``, which ends those that are under way.
    """

    @property
    def at_a_time(self) -> int:
        """How many calls it takes at a time: the threads that there are, where the user does not say."""


class Spent(NamedTuple):
    """What a stage takes: seconds of wall time and of all CPUs, those waiting for the simulator, and its calls."""

    wall: float = 0.0
    cpu: float = 0.0
    simulator: float = 0.0
    calls: int = 0

    def less(self, other: Spent) -> Spent:
        """Without what another one took."""
        return Spent(
            self.wall - other.wall, self.cpu - other.cpu, self.simulator - other.simulator, self.calls - other.calls
        )

    def plus(self, other: Spent) -> Spent:
        """Together with what another one took."""
        return self.less(Spent().less(other))


def cpu_seconds() -> float:
    """Of this process and of the processes that it has started and that have ended."""
    # the times of the system count hundredths of a second
    return process_time() + sum(os.times()[2:4])


class Answer(NamedTuple):
    """What a call gave: whatever the function returned, or the kind and the text of its error; CPU and wall seconds.

    ``lost`` says how a call ended that gave nothing at all, ``fatal`` why no other will give anything either.
    """

    output: Any
    error: tuple[str, str] | None = None
    cpu: float = 0.0
    wall: float = 0.0
    lost: str | None = None
    fatal: str | None = None


class Call(NamedTuple):
    """f(x, theta) that is to be computed, its place among the others, and how often it was tried.

    ``alone`` is one that was with others when their process died: which of them did it is not known.
    """

    number: int
    theta: Array
    tried: int = 0
    alone: bool = False


class CallGroup(NamedTuple):
    """Some calls that are made together, of the function or of its gradient."""

    label: str
    x: Array
    each: list[Call]


@dataclass(frozen=True)
class _Caller:
    """Of a worker: makes calls of functions by their labels. ``own`` is whether it has a process of its own."""

    functions: dict[str, Callable[[Array, Array], Any]]
    own: bool

    def __call__(self, calls: CallGroup) -> list[Answer]:
        if self.own:
            _one_blas_thread_here()
        function = self.functions[calls.label]
        return [self._answer(function, calls.x, call.theta) for call in calls.each]

    def _answer(self, function: Callable[[Array, Array], Any], x: Array, theta: Array) -> Answer:
        started, began = cpu_seconds() if self.own else 0.0, perf_counter()
        try:
            # copies: threads share them, and the user's code may change what it is given
            answer = Answer(function(x.copy(), theta.copy()))
        except SimulatorError as error:
            # our own words: about this theta, or about a server that is gone
            own = isinstance(error, NonFiniteError)
            answer = Answer(None, (type(error).__name__, str(error))) if own else Answer(None, fatal=str(error))
        except Exception as error:  # whatever the user's code raises is said where the call was asked for
            answer = Answer(None, (type(error).__name__, f"{error} ({where_raised(error)})"))
        # that of threads is this process's own
        cpu = cpu_seconds() - started if self.own else 0.0
        return answer._replace(cpu=cpu, wall=perf_counter() - began)


_modules_before = 0


def _one_blas_thread_here() -> None:
    """As in the process that asks: other sums would change the last digits. Again when libraries have been loaded."""
    global _modules_before
    if len(sys.modules) != _modules_before:
        limit_blas_for_good()
        _modules_before = len(sys.modules)


class ParallelCalls:
    """A function and its gradient in ``jobs`` processes or threads, which are kept from one call to the next.

    To start a process may take a second. So calls that take less are made where they are asked for, until as much has
    been spent on these; and short ones are sent several together.

    Attributes
    ----------
    worked
        Whether a call has ever come back.
    """

    def __init__(
        self,
        function: Callable[[Array, Array], Any],
        jobs: int,
        timeout: float | None = None,
        gradient: Callable[[Array, Array], Any] | None = None,
    ) -> None:
        self.threads = isinstance(function, Elsewhere)
        self._function = function
        self.jobs, self.timeout = jobs, timeout
        functions = {VALUES: function} if gradient is None else {VALUES: function, GRADIENT: gradient}
        self._work: Work[CallGroup, list[Answer]] = Work(_Caller(functions, not self.threads), timeout, CURE)
        self._workers: Workers[CallGroup, list[Answer]] | None = None
        self._seconds = {label: deque[float](maxlen=REMEMBERED) for label in (VALUES, GRADIENT)}
        self._declined = 0.0
        self.worked = False

    def answers(self, x: Array, theta: Array, label: str = VALUES) -> _Sent:
        """What the function gives for each of theta (c, p), at x as the user takes it: (number, answer), as they come.

        ``label`` says whether the function is called, or its gradient.
        """
        return _Sent(self, label, x, [Call(number, one) for number, one in enumerate(theta)])

    def one(self, x: Array, theta: Array) -> Answer:
        """The same of a single call, of which nothing is kept here."""
        ((_, answer),) = _Sent(self, VALUES, x, []).made(deque([Call(0, theta)]))
        return answer

    def pays(self, count: int, label: str = VALUES) -> bool:
        """Whether so many calls are better made here than one after the other."""
        if self.timeout is not None:
            return True
        expected = count * self.seconds(label)
        if self.threads:
            return expected > WORTH_A_THREAD
        if self._workers is None and self._declined + expected <= self._start_seconds:
            self._declined += expected
            return False
        return expected > WORTH

    @property
    def long(self) -> bool:
        """Whether a call takes so long that those who ask may wait for each other."""
        return self.timeout is not None or self.seconds(VALUES) > LONG

    def took(self, seconds: float, label: str = VALUES) -> None:
        """A call that was made one after the other took so long."""
        self._seconds[label].append(seconds)

    @property
    def _start_seconds(self) -> float:
        """What calls must take to be worth the start of processes."""
        return WORTH_A_START if self._afresh else WORTH_A_COPY

    @cached_property
    def _afresh(self) -> bool:
        return starts_afresh(self._work)

    def seconds(self, label: str) -> float:
        """Seconds that a call takes; not their mean, because the first one may have compiled something."""
        known = self._seconds[label]
        return median(known) if known else 0.0

    def group_size(self, waiting: int, label: str) -> int:
        """How many of the calls that wait go to a worker together: fewer towards their end."""
        if self.threads or self.timeout is not None:
            return 1
        short = round(TOGETHER / max(self.seconds(label), 1e-9))
        return max(1, min(short, -(-waiting // self.jobs)))

    def open(self) -> Workers[CallGroup, list[Answer]]:
        """The workers."""
        if self._workers is None:
            workers: Workers[CallGroup, list[Answer]]
            workers = ThreadWorkers(self._work, self.jobs) if self.threads else ProcessWorkers(self._work, self.jobs)
            self._workers = workers
            self._end = finalize(self, workers.__exit__, None, None, None)
        return self._workers

    def close(self) -> None:
        """End what was started for it, whatever it does."""
        if self._workers is not None:
            # threads cannot be ended, and would be waited for
            getattr(self._function, "end_calls", lambda: None)()
            self._end()
            self._workers = None


class _Sent:
    """The answers of calls that are sent to workers; it has a length for progress bars."""

    def __init__(self, calls: ParallelCalls, label: str, x: Array, tasks: list[Call]) -> None:
        self._calls, self._label, self._x, self._tasks = calls, label, x, tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        kept, left = keeper(), deque[Call]()
        for call in self._tasks:
            known = kept.known(self._label, self._x, call.theta)
            if known is None:
                left.append(call)
            else:
                yield call.number, Answer(known)
        for call, answer in self.made(left):
            if answer.error is None and answer.lost is None:
                kept.record(self._label, self._x, call.theta, answer.output, answer.wall)
            yield call.number, answer

    def made(self, waiting: deque[Call]) -> Iterator[tuple[Call, Answer]]:
        """The calls with their answers; those that were lost come last."""
        done = False
        try:
            yield from self._made(waiting)
            done = True
        finally:
            if not done:
                # answers that are still to come belong to nobody
                self._calls.close()

    def _made(self, waiting: deque[Call]) -> Iterator[tuple[Call, Answer]]:
        workers, in_flight, lost = self._calls.open(), 0, list[tuple[Call, str]]()
        while waiting or in_flight:
            while waiting and in_flight < workers.width:
                workers.submit(CallGroup(self._label, self._x, self._next(waiting)))
                in_flight += 1
            for sent, result in workers.finished():
                in_flight -= 1
                if isinstance(result, Lost):
                    lost += self._again(sent, result, waiting)
                    continue
                self._calls.worked = True
                for call, answer in zip(sent.each, result, strict=True):
                    if answer.fatal is not None:
                        raise SimulatorError(answer.fatal)
                    self._calls.took(answer.wall, self._label)
                    yield call, answer
        if lost and not self._calls.worked:
            call, error = lost[0]
            raise SimulatorError(f"a call of the simulator at theta = {call.theta.tolist()}: {error}")
        for call, error in lost:
            yield call, Answer(None, lost=error)

    def _next(self, waiting: deque[Call]) -> list[Call]:
        """What goes to a worker together."""
        taken = [waiting.popleft()]
        for _ in range(0 if taken[0].alone else self._calls.group_size(len(waiting) + 1, self._label) - 1):
            if waiting[0].alone:
                break
            taken.append(waiting.popleft())
        return taken

    def _again(self, sent: CallGroup, lost: Lost, waiting: deque[Call]) -> list[tuple[Call, str]]:
        """What is tried once more waits again; the rest is returned, with how it ended."""
        alone = len(sent.each) == 1
        if alone and (not lost.died or sent.each[0].tried + 1 >= ATTEMPTS):
            return [(sent.each[0], lost.error)]
        waiting.extend(call._replace(tried=call.tried + alone, alone=True) for call in sent.each)
        return []

"""Work to be done: tasks go out, each comes back with a result or as lost, and none is forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Work(Generic[Task, Result]):
    """What is done with every task.

    Attributes
    ----------
    run
        Task -> result, never None. It may be sent to other processes, and never raises: an error is a result too.
    timeout
        Seconds after which a process of our own that is busy with one task is ended; None waits for ever.
    cure
        What a user can do whose processes cannot be started.
    """

    run: Callable[[Task], Result]
    timeout: float | None = None
    cure: str = 'A script must start the work below `if __name__ == "__main__":`'


@dataclass(frozen=True)
class Lost:
    """What is left of a task without a result: the error, its seconds, when it started (UTC), if its process died."""

    error: str
    seconds: float = 0.0
    started: str = field(default_factory=now)
    died: bool = False


class Workers(Protocol[Task, Result]):
    """Where tasks are done."""

    @property
    def width(self) -> int:
        """Number of tasks to have in flight."""

    def submit(self, task: Task) -> None:
        """Start a task, or have it started as soon as a worker is free."""

    def finished(self) -> list[tuple[Task, Result | Lost]]:
        """Wait until something has happened; the tasks that have finished, perhaps none."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Settled(Generic[Task, Result]):
    """The tasks, each when it is settled; it has a length for progress bars.

    A task is handed out only when a worker is free, so that work of any length can be stopped. ``settle`` keeps a
    result and says whether that settles its task.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        workers: Workers[Task, Result],
        settle: Callable[[Task, Result | Lost], bool],
    ) -> None:
        self._tasks, self._workers, self._settle = tasks, workers, settle

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        waiting = deque(self._tasks)
        in_flight = 0
        while waiting or in_flight:
            while waiting and in_flight < self._workers.width:
                self._workers.submit(waiting.popleft())
                in_flight += 1
            for task, result in self._workers.finished():
                in_flight -= 1
                if self._settle(task, result):
                    yield task
                else:
                    # last: what made it fail may be over by then
                    waiting.append(task)

"""Where replications run: processes on this machine, or a Dask cluster.

Both are a ``concurrent.futures.Executor``; few tasks are in flight at a time, so a run of any length can be stopped.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from multiprocessing.connection import Connection
from threading import Thread
from types import TracebackType
from typing import Protocol, Self

from .. import __version__
from ..errors import InputError, OrthocalError
from ..execution.dask_cluster import GONE, DaskCluster
from .replicate import Row, Task, failed_row, run_task

#: a task whose worker process died so often is given up
MOST_DEATHS = 3

Run = Callable[[Task], Row]


class Workers(Protocol):
    """An executor that can be replaced when its processes die."""

    executor: Executor

    @property
    def width(self) -> int:
        """Number of tasks to keep in flight."""

    @property
    def words(self) -> str:
        """Where the tasks run, in words."""

    def renew(self) -> None:
        """Start again after a process died."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ProcessWorkers:
    """Processes on this machine."""

    executor: Executor

    def __init__(self, jobs: int) -> None:
        self.width = jobs
        self.words = f"{jobs} process{'es' if jobs > 1 else ''}"
        self.renew()

    def renew(self) -> None:
        # spawned: a fork would share the open results file and the threads of the numerical libraries
        context = multiprocessing.get_context("spawn")
        self._reader, self._alive = context.Pipe(duplex=False)
        self.executor = ProcessPoolExecutor(self.width, context, _prepare, (self._reader,))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # what runs now may take long, and nobody waits for it
            self._alive.close()
        self.executor.shutdown(wait=True, cancel_futures=True)


def _prepare(alive: Connection) -> None:
    """Of a worker process: leave Ctrl-C to the parent, and end with it, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        # the other end is the parent's alone: it closes when the parent ends
        alive.poll(None)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


class DaskWorkers:
    """The workers of a Dask cluster, which must have this version of orthocal."""

    def __init__(self, address: str) -> None:
        self._cluster = DaskCluster(address, option=True)
        try:
            self._check(address)
        except BaseException:
            self._cluster.close()
            raise
        self.renew()

    def _check(self, address: str) -> None:
        try:
            versions = set(self._cluster.client.run(_version).values())
        except ImportError:
            versions = {"none"}
        if versions != {__version__}:
            raise InputError(
                f"--cluster {address}: the workers have orthocal {', '.join(sorted(versions))}, this is {__version__}: "
                "install the same version on all"
            )

    @property
    def width(self) -> int:
        return self._cluster.width

    @property
    def words(self) -> str:
        threads = self._cluster.threads
        return f"Dask cluster of {len(threads)} workers with {sum(threads)} threads"

    def renew(self) -> None:
        self.executor = self._cluster.executor()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.close()


def _version() -> str:
    return __version__


class Replications:
    """The tasks as an iterable of (task, row), each as soon as it has finished; it has a length for progress bars."""

    def __init__(self, tasks: Sequence[Task], workers: Workers, run: Run = run_task) -> None:
        self._tasks, self._workers, self._run = tasks, workers, run

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[tuple[Task, Row]]:
        queue = _Queue(self._tasks)
        broken = False
        while queue.unfinished:
            if broken and not queue.in_flight:
                self._workers.renew()
                broken = False
            if not broken:
                broken = queue.submit(self._workers.executor, self._workers.width, self._run)
            for future in wait(queue.in_flight, return_when=FIRST_COMPLETED).done:
                task, row = queue.finish(future)
                if row is None:
                    broken = True
                else:
                    yield task, row


class _Queue:
    """Tasks that wait, are in flight, or were in flight when a process died.

    A broken pool does not say which task broke it, so all that were in flight run again, one at a time.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._waiting, self._suspects = deque(tasks), deque[Task]()
        self._deaths: Counter[Task] = Counter()
        self.in_flight: dict[Future[Row], Task] = {}

    @property
    def unfinished(self) -> bool:
        return bool(self._waiting or self._suspects or self.in_flight)

    def submit(self, executor: Executor, width: int, run: Run) -> bool:
        """Fill up to ``width`` tasks in flight; whether the executor turned out to be broken."""
        while self._waiting or self._suspects:
            alone = self._suspects or any(self._deaths[task] for task in self.in_flight.values())
            if len(self.in_flight) >= (1 if alone else width):
                break
            source = self._suspects or self._waiting
            try:
                future = executor.submit(run, source[0])
            except BrokenExecutor:
                return True
            self.in_flight[future] = source.popleft()
        return False

    def finish(self, future: Future[Row]) -> tuple[Task, Row | None]:
        """The task of a finished future with its row; None where its process died and it will run again."""
        task = self.in_flight.pop(future)
        try:
            return task, future.result()
        except BrokenExecutor:
            self._deaths[task] += 1
            if self._deaths[task] < MOST_DEATHS:
                self._suspects.append(task)
                return task, None
            return task, failed_row(task, f"its process died {MOST_DEATHS} times; was the memory too small?")
        except CancelledError:
            raise OrthocalError(GONE) from None
        except Exception as error:
            # Dask gives up a task that has killed several workers, and a worker may fail to load the task
            return task, failed_row(task, f"{type(error).__name__}: {error}")

"""Where tasks are done: any ``concurrent.futures.Executor``, threads, or a Dask cluster; beside ``processes``."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from types import TracebackType
from typing import Generic, Self
from warnings import warn

from ..errors import KEPT, InputError, OrthocalError, OrthocalWarning
from .dask_cluster import GONE, DaskCluster
from .work import Lost, Result, Task, Work, Workers


def cores() -> int:
    """The cores that this process may use, where the system says; else those there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ExecutorWorkers(Generic[Task, Result]):
    """Any executor; it stays open, it is its owner's.

    ``instead`` makes the workers that go on after a pool of processes broke: it does not say which task broke it,
    processes of our own do.
    """

    gone = f"the executor or cluster is gone; {KEPT}"

    def __init__(
        self,
        executor: Executor,
        work: Work[Task, Result],
        width: int,
        instead: Callable[[], Workers[Task, Result]] | None = None,
    ) -> None:
        self.executor, self._work, self._width = executor, work, width
        self._in_flight: dict[Future[Result], Task] = {}
        # tasks whose pool broke, and the workers that take them over
        self._lost: list[Task] = []
        self._start_instead = instead
        self._instead: Workers[Task, Result] | None = None

    @property
    def width(self) -> int:
        return self._width

    def submit(self, task: Task) -> None:
        if self._instead is not None:
            self._instead.submit(task)
            return
        try:
            self._in_flight[self.executor.submit(self._work.run, task)] = task
        except BrokenExecutor:
            self._lost.append(task)
        except RuntimeError as error:
            raise InputError(f"the executor takes no runs: {error}; {KEPT}") from None

    def finished(self) -> list[tuple[Task, Result | Lost]]:
        if self._instead is not None:
            return self._instead.finished()
        done: list[tuple[Task, Result | Lost]] = []
        # all futures of a broken pool are done soon, some of them well
        for future in wait(self._in_flight, return_when=ALL_COMPLETED if self._lost else FIRST_COMPLETED).done:
            task = self._in_flight.pop(future)
            try:
                done.append((task, future.result()))
            except BrokenExecutor:
                self._lost.append(task)
            except CancelledError:
                raise OrthocalError(self.gone) from None
            except Exception as error:
                # Dask gives up a task that has killed several workers, and a worker may fail to load the task
                done.append((task, Lost(f"{type(error).__name__}: {error}")))
        if self._lost and not self._in_flight:
            self._go_on()
        return done

    def _go_on(self) -> None:
        """Go on after a worker died."""
        if self._start_instead is None:
            raise OrthocalError(f"the executor is broken, a worker has died; {KEPT}")
        warn(
            "a process of the executor died, and with it all of them: the runs go on in processes of orthocal's own",
            OrthocalWarning,
            stacklevel=2,
        )
        self._instead = self._start_instead()
        for task in self._lost:
            self._instead.submit(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._in_flight:
            future.cancel()
        if self._instead is not None:
            self._instead.__exit__(kind, error, trace)


class ThreadWorkers(ExecutorWorkers[Task, Result]):
    """Threads of this process: enough for programs, which are processes themselves."""

    def __init__(self, work: Work[Task, Result], jobs: int) -> None:
        super().__init__(ThreadPoolExecutor(jobs, "orthocal-run"), work, jobs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.executor.shutdown(cancel_futures=True)


class DaskWorkers(ExecutorWorkers[Task, Result]):
    """The workers of a Dask cluster."""

    gone = GONE

    def __init__(self, cluster: DaskCluster, work: Work[Task, Result]) -> None:
        self._cluster = cluster
        super().__init__(cluster.executor(), work, 1)

    @property
    def width(self) -> int:
        return self._cluster.width

    @property
    def words(self) -> str:
        """Where the tasks are done."""
        threads = self._cluster.threads
        return f"Dask cluster of {len(threads)} workers with {sum(threads)} threads"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._cluster.close()

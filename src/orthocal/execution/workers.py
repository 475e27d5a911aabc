"""Where runs are made: processes of our own, threads, any ``concurrent.futures.Executor``, or a Dask cluster.

A run is handed out only when a worker is free, so that a campaign of any length can be stopped.
"""

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
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from types import TracebackType
from typing import Protocol, Self
from warnings import warn

from ..errors import KEPT, InputError, OrthocalError, OrthocalWarning
from .dask_cluster import DaskCluster
from .processes import ProcessWorkers
from .program import Program, stop_programs
from .task import Finished, RunResult, Task, Work, failed_result


class Workers(Protocol):
    """Where runs are made."""

    @property
    def width(self) -> int:
        """Number of runs to have in flight."""

    def submit(self, task: Task) -> None:
        """Start a run, or have it started as soon as a worker is free."""

    def finished(self) -> Finished:
        """Wait until something has happened; the runs that have finished, perhaps none."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ExecutorWorkers:
    """Any executor; it stays open, it is its owner's."""

    def __init__(self, executor: Executor, work: Work, width: int) -> None:
        self.executor, self._work, self._width = executor, work, width
        self._in_flight: dict[Future[RunResult], Task] = {}
        # runs whose pool broke, and the workers that take them over
        self._lost: list[Task] = []
        self._instead: Workers | None = None

    @property
    def width(self) -> int:
        return self._width

    def submit(self, task: Task) -> None:
        if self._instead is not None:
            self._instead.submit(task)
            return
        try:
            self._in_flight[self.executor.submit(self._work, task)] = task
        except BrokenExecutor:
            self._lost.append(task)
        except RuntimeError as error:
            raise InputError(f"the executor takes no runs: {error}; {KEPT}") from None

    def finished(self) -> Finished:
        if self._instead is not None:
            return self._instead.finished()
        done: Finished = []
        # all futures of a broken pool are done soon, some of them well
        for future in wait(self._in_flight, return_when=ALL_COMPLETED if self._lost else FIRST_COMPLETED).done:
            task = self._in_flight.pop(future)
            try:
                done.append((task, future.result()))
            except BrokenExecutor:
                self._lost.append(task)
            except CancelledError:
                raise OrthocalError(f"the executor or cluster is gone; {KEPT}") from None
            except Exception as error:
                # Dask gives up a run that has killed several workers, and a worker may fail to load the simulator
                done.append((task, failed_result(f"{type(error).__name__}: {error}")))
        if self._lost and not self._in_flight:
            self._go_on()
        return done

    def _go_on(self) -> None:
        """Go on after a worker died. A broken pool does not say which run broke it; processes of our own do."""
        if not isinstance(self.executor, ProcessPoolExecutor):
            raise OrthocalError(f"the executor is broken, a worker has died; {KEPT}")
        warn(
            "a process of the executor died, and with it all of them: the runs go on in processes of orthocal's own",
            OrthocalWarning,
            stacklevel=2,
        )
        program = isinstance(self._work.simulator, Program)
        self._instead = (ThreadWorkers if program else ProcessWorkers)(self._work, self._width)
        for task in self._lost:
            self._instead.submit(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._in_flight:
            future.cancel()
        stop_programs(self._work.campaign)
        if self._instead is not None:
            self._instead.__exit__(kind, error, trace)


class ThreadWorkers(ExecutorWorkers):
    """Threads of this process: enough for programs, which are processes themselves."""

    def __init__(self, work: Work, jobs: int) -> None:
        super().__init__(ThreadPoolExecutor(jobs, "orthocal-run"), work, jobs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.executor.shutdown(cancel_futures=True)


class DaskWorkers(ExecutorWorkers):
    """The workers of a Dask cluster."""

    def __init__(self, address: str, work: Work) -> None:
        self._cluster = DaskCluster(address)
        super().__init__(self._cluster.executor(), work, 1)

    @property
    def width(self) -> int:
        return self._cluster.width

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._cluster.close()


def start_workers(work: Work, executor: Executor | None, jobs: int | None, cluster: str | None) -> Workers:
    """The workers of a campaign: those that were given, or processes, or threads for a program."""
    if executor is not None and cluster is not None:
        raise InputError("executor and cluster both say where the runs are made: leave one of them out")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs={jobs}: give at least 1")
    program = isinstance(work.simulator, Program)
    if work.timeout is not None and not program and (executor is not None or cluster is not None):
        raise InputError(
            "timeout: a Python function can be ended only in processes of orthocal's own; leave executor and cluster "
            "out, or make the simulator an oc.Program"
        )
    if cluster is not None:
        return DaskWorkers(cluster, work)
    # the cores that this process may use, where the system says
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if executor is None:
        own: Callable[[Work, int], Workers] = ThreadWorkers if program else ProcessWorkers
        return own(work, jobs or cores)
    if not isinstance(executor, Executor):
        raise InputError(f"executor={executor!r}: give a concurrent.futures.Executor, or None")
    # the two standard pools know their size; for others the number of runs in flight is `jobs`
    size = getattr(executor, "_max_workers", None)
    return ExecutorWorkers(executor, work, jobs or (size if isinstance(size, int) else cores))

"""Where tasks are done: any ``concurrent.futures.Executor``, threads, or a Dask cluster; beside ``processes``."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar
from warnings import warn

from ...errors import KEPT, InputError, OrthocalError, OrthocalWarning

# Work to be done: tasks go out, each comes back with a result or as lost, and none is forgotten.

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


# A Dask cluster that the user has started: connected to with our errors, and left without noise.

#: seconds to wait for a cluster and its first worker
PATIENCE = 15

GONE = f"the Dask cluster is gone; {KEPT}"


class DaskCluster:
    """The client of a cluster; Dask itself runs the tasks of a killed worker again.

    ``option`` says that the address was given as --cluster, for the errors.
    """

    def __init__(self, address: str, option: bool = False) -> None:
        self._address = address
        needing, name, it = ("--cluster", "--cluster", "the cluster") if option else ("a cluster", "cluster", "it")
        try:
            # an extra, and without types
            distributed: Any = import_module("distributed")
        except ImportError:
            raise InputError(f"{needing} needs Dask: pip install 'orthocal[dask]'") from None
        try:
            # a client that is made for a wrong address complains again when the program ends
            distributed.comm.resolve_address(address)
            self.client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{name} {address}: there is no Dask scheduler ({error})") from None
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except BaseException as error:
            self.close()
            if not isinstance(error, TimeoutError):
                raise
            raise InputError(f"{name} {address}: {it} has no workers, start one with `dask worker`") from None

    def require_this_version(self, distribution: str = "orthocal") -> None:
        """Leave a cluster whose workers have another version of a distribution than this process, or none."""
        with ExitStack() as leaving:
            leaving.callback(self.close)
            try:
                versions = set(self.client.run(_version, distribution).values())
            except ImportError:
                versions = {"none"}
            if versions != {_version(distribution)}:
                raise InputError(
                    f"--cluster {self._address}: the workers have {distribution} {', '.join(sorted(versions))}, "
                    f"this is {_version(distribution)}: install the same version on all"
                )
            leaving.pop_all()

    def executor(self) -> Executor:
        # a task that runs again is another task for Dask, which would give back the first result
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    @property
    def threads(self) -> list[int]:
        """The number of threads of each worker; workers come and go."""
        try:
            return list(self.client.nthreads().values())
        except OSError:
            raise OrthocalError(GONE) from None

    @property
    def width(self) -> int:
        """Number of tasks to keep in flight: two a thread, so that none waits for the next task."""
        return 2 * max(1, sum(self.threads))

    def close(self) -> None:
        # a client that has lost its scheduler logs a traceback; our error says it in a line
        loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            self.client.close()
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _version(distribution: str) -> str:
    return version(distribution)


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

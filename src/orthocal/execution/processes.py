"""Processes that make the runs of a Python function, one run at a time each.

A pool of the standard library breaks as a whole when one of its processes dies, and cannot end a run that hangs. Here
each process is on its own: what happens to one run happens to no other.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.context import BaseContext
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

from ..errors import InputError, OrthocalError
from .program import end_group
from .task import Finished, RunResult, Task, Work, failed_result, now

#: seconds to wait for a process to end by itself
PATIENCE = 15


class ProcessWorkers:
    """Processes of our own; as many are started as are needed at a time."""

    def __init__(self, work: Work, jobs: int) -> None:
        self.width = jobs
        self._work, self._context = work, _context(work)
        self._idle: list[_Child] = []
        self._busy: dict[Any, _Child] = {}

    def submit(self, task: Task) -> None:
        child = self._idle.pop() if self._idle else _Child(self._context, self._work)
        # listed first: an interrupt must find every process
        self._busy[child.pipe] = child
        child.start(task)

    def finished(self) -> Finished:
        deadlines = [child.deadline for child in self._busy.values() if child.deadline is not None]
        patience = max(0.0, min(deadlines) - monotonic()) if deadlines else None
        done: Finished = []
        for pipe in connection.wait(list(self._busy), patience):
            child = self._busy[pipe]
            result = child.receive()
            if result is not None:
                done.append((child.task, result))
                del self._busy[pipe]
                if child.alive:
                    self._idle.append(child)
        for pipe, child in list(self._busy.items()):
            if child.deadline is not None and monotonic() >= child.deadline and not child.pipe.poll():
                done.append((child.task, child.time_out()))
                del self._busy[pipe]
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._busy.values():
            child.end()
        for child in self._idle:
            child.dismiss()


class _Child:
    """A process that makes one run after the other."""

    def __init__(self, context: BaseContext, work: Work) -> None:
        self._timeout = work.timeout
        self.pipe, far = context.Pipe()
        process: Any = context.Process  # type: ignore[attr-defined]
        self._process = process(target=_serve, args=(far, work), name="orthocal run")
        self._process.start()
        far.close()
        self._ready, self.alive = False, True
        self.deadline: float | None = None

    def start(self, task: Task) -> None:
        self.task, self._started, self._clock = task, now(), monotonic()
        try:
            self.pipe.send(task)
        except OSError:
            # it has died; `receive` will find that out
            return
        if self._ready:
            self._set_deadline()

    def receive(self) -> RunResult | None:
        """The result; None if the process has only said that it is there."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            return self._death()
        if isinstance(message, RunResult):
            self.deadline = None
            return message
        self._ready, self._clock = True, monotonic()
        self._set_deadline()
        return None

    def _set_deadline(self) -> None:
        self.deadline = None if self._timeout is None else monotonic() + self._timeout

    def time_out(self) -> RunResult:
        self.end()
        return failed_result(
            f"no result after {self._timeout:g} s (time-out)", monotonic() - self._clock, self._started
        )

    def _death(self) -> RunResult:
        self._process.join(PATIENCE)
        code = self._process.exitcode
        self.end()
        if not self._ready:
            raise OrthocalError(
                f"a process for the runs ended (code {code}) before it could start. Where a script calls oc.campaign, "
                'the call must stand below `if __name__ == "__main__":`, and the simulator in a module that can be '
                "imported; or give executor=concurrent.futures.ThreadPoolExecutor()"
            )
        how = f"by signal {-code}" if isinstance(code, int) and code < 0 else f"with code {code}"
        words = f"its process ended {how}: a crash, or not enough memory?"
        return failed_result(words, monotonic() - self._clock, self._started)

    def end(self) -> None:
        """Kill it, and what it has started."""
        self.alive = False
        if self._ready and self._process.is_alive():
            end_group(self._process.pid)
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def dismiss(self) -> None:
        """Let it end by itself."""
        with suppress(OSError):
            # closing the pipe would not do: a process that was copied later has it open too
            self.pipe.send(None)
        self._process.join(PATIENCE)
        self.end()


def _serve(pipe: Any, work: Work) -> None:
    """Of a process: make runs until the pipe closes."""
    # a group of its own: Ctrl-C is the campaign's business, and a time-out can end all that a run has started
    os.setsid()

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            end_group(os.getpid())

    Thread(target=end_with_parent, daemon=True).start()
    pipe.send("ready")
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        if task is None:
            return
        pipe.send(work(task))


def _context(work: Work) -> BaseContext:
    """How to start processes: afresh where the simulator can be sent to them, else as copies of this one."""
    try:
        sent = pickle.dumps(work)
    except Exception:  # a lambda, a closure
        sent = None
    if sent is not None and b"__main__" not in sent:
        # a copy would share the numerical libraries' threads, and could hang in them
        return multiprocessing.get_context("spawn")
    # what a script or a notebook defines cannot be imported elsewhere, but a copy has it already
    if sys.platform == "linux":
        return multiprocessing.get_context("fork")
    if sent is not None and getattr(sys.modules["__main__"], "__file__", None):
        return multiprocessing.get_context("spawn")
    raise InputError(
        "the simulator cannot be sent to other processes: define it by `def` in a module of its own, "
        "or give executor=concurrent.futures.ThreadPoolExecutor()"
    )

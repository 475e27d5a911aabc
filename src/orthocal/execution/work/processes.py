"""Processes of our own, one task at a time each.

A pool of the standard library breaks as a whole when one of its processes dies, and cannot end a task that hangs. Here
each process is on its own: what happens to one task happens to no other.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from pathlib import Path
from threading import Lock, Thread, current_thread, main_thread
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from ...errors import InputError, OrthocalError, SimulatorError
from .workers import Lost, Result, Task, Work, now

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkContext, SpawnContext


# Programs as processes: started under guard, waited for, ended with all that they started, here and elsewhere.

#: characters of a program's last words that are kept
LAST_WORDS = 2000
#: seconds that the command may take which ends what a program has left running elsewhere
SECONDS_TO_END = 30.0

#: of the launcher: what it says, before the reason, where there is no such program, and its exit code then
_NOT_STARTED, _CODE = "\0not started: ", 127
# Becomes the program, once it has left a guard in its group: a process that waits until the campaign ends the group, or
# is gone, even killed. No program may run on then beside its own repetition, nor have begun before it was guarded. The
# guard is nobody's child: a program may wait for all of its own. What the program runs elsewhere is ended by a command,
# whose words come first, after their number: from outside of the group, when that is gone.
_LAUNCHER = f"""
import os, signal, sys, time
words = 2 + int(sys.argv[1])
stop, command = sys.argv[2:words], sys.argv[words:]
if not (between := os.fork()):
    if not os.fork():
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        os.closerange(1, 3)
        os.read(0, 1)
        guard, (read, write) = os.getpid(), os.pipe()
        if stop and not os.fork():
            os.setsid()
            os.write(write, b"out of the group")
            while os.getppid() == guard:
                time.sleep(0.01)
            for number in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.execvp(stop[0], stop)
        if stop:
            os.read(read, 1)
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
os.waitpid(between, 0)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ", "SIGQUIT"):
    # which Python ignores for itself, or a shell in the background
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
try:
    os.execvp(command[0], command)
except OSError as error:
    os.write(2, ({_NOT_STARTED!r} + error.strerror).encode())
    os._exit({_CODE})
"""


def stop_programs(campaign: str) -> None:
    """End every program that this process runs for a campaign, and start no more."""
    with _lock:
        _stopped.add(campaign)
        for process in _running[campaign]:
            if process.returncode is None:
                end_group(process.pid)


def end_group(leader: int) -> None:
    """Kill a process and all that it started, but for what has left its group.

    It may have ended a moment ago: its number is not given away as long as any of the group lives.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


_lock = Lock()
_running: defaultdict[str, set[subprocess.Popen[bytes]]] = defaultdict(set)
_stopped: set[str] = set()


def run_program(arguments: list[str], stop: list[str], folder: Path, timeout: float | None, campaign: str) -> None:
    """Run a program in its folder, or an error with its last words; ``stop`` is given where it must be ended before."""
    # files, not pipes: a child that the program leaves behind could hold a pipe open for ever
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(len(stop)), *stop, *arguments],
                cwd=folder,
                # the guard's: it closes when this process goes
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise SimulatorError(
                f"cannot start {arguments[0]!r}: {getattr(error, 'strerror', None) or error}"
            ) from None
        with process, _listed(process, campaign):
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                end_group(process.pid)
                said = _ended_elsewhere(stop, folder)
                raise SimulatorError(f"no result after {timeout:g} s (time-out){said}{last_words(folder)}") from None
            except BaseException:
                end_group(process.pid)
                _ended_elsewhere(stop, folder)
                raise
            # with its guard; and what it has left behind writes no result any more
            end_group(process.pid)
            if code < 0:
                _ended_elsewhere(stop, folder)
    if code == _CODE and _NOT_STARTED in (reason := last_words(folder)):
        raise SimulatorError(f"cannot start {arguments[0]!r}: {reason.partition(_NOT_STARTED)[2]}")
    if code < 0:
        name = signal.strsignal(-code) or "unknown"
        raise SimulatorError(f"the program was ended by signal {-code} ({name}){last_words(folder)}")
    if code:
        raise SimulatorError(f"the program ended with code {code}{last_words(folder)}")


def _ended_elsewhere(stop: list[str], folder: Path) -> str:
    """End what the program has left running elsewhere; what went wrong with that, in words."""
    if not stop:
        return ""
    try:
        code = subprocess.run(
            stop,
            cwd=folder,
            timeout=SECONDS_TO_END,
            check=False,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"; it may still be running, because its stop command failed: {error}"
    return f"; it may still be running, because its stop command ended with code {code}" if code else ""


@contextmanager
def _listed(process: subprocess.Popen[bytes], campaign: str) -> Iterator[None]:
    """Known to ``stop_programs`` while it runs."""
    with _lock:
        _running[campaign].add(process)
        if campaign in _stopped:
            end_group(process.pid)
    try:
        yield
    finally:
        with _lock:
            _running[campaign].discard(process)


def last_words(folder: Path) -> str:
    """The end of what a program has said on standard error."""
    with (folder / "stderr.txt").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_WORDS))
        words = file.read().decode(errors="replace").strip()
    return f": {words}" if words else ", and said nothing on standard error"


#: seconds to wait for a process to end by itself
PATIENCE = 15
#: seconds after which processes that say nothing are looked at: a child of one that crashed may hold its pipe open
ROUND = 1.0
#: signals by which people and schedulers end a program
ENDING = (signal.SIGINT, signal.SIGTERM)
#: words of a process before its results: it has a group of its own and waits for its work; it waits for a task
HERE, READY = "here", "ready"


class ProcessWorkers(Generic[Task, Result]):
    """Processes of our own; as many are started as are needed at a time. ``words`` says where the tasks are done."""

    def __init__(self, work: Work[Task, Result], jobs: int) -> None:
        self.width, self.words = jobs, f"{jobs} process{'es' if jobs > 1 else ''}"
        self._work, self._context = work, _context(work)
        self._idle: list[_Child[Task, Result]] = []
        self._busy: list[_Child[Task, Result]] = []

    def submit(self, task: Task) -> None:
        child = self._idle[-1] if self._idle else _Child(self._context, self._work)
        # listed first, and for a moment twice: an interrupt must find every process
        self._busy.append(child)
        if self._idle:
            self._idle.pop()
        child.start(task)

    def finished(self) -> list[tuple[Task, Result | Lost]]:
        done: list[tuple[Task, Result | Lost]] = []
        # what a process says first is no result
        while not done:
            speaking = self._speaking()
            for child in list(self._busy):
                result = child.receive() if child.pipe in speaking else child.silence()
                if result is not None:
                    done.append((child.task, result))
                    if child.alive:
                        self._idle.append(child)
                    self._busy.remove(child)
        return done

    def _speaking(self) -> list[object]:
        """Wait; the pipes that have something to say, none if a process says nothing any more."""
        speaking: list[object] = []
        while not speaking and not any(child.silent_end for child in self._busy):
            deadlines = [child.deadline for child in self._busy if child.deadline is not None]
            patience = min([ROUND, *(deadline - monotonic() for deadline in deadlines)])
            speaking = list(connection.wait([child.pipe for child in self._busy], max(0.0, patience)))
        return speaking

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # a second Ctrl-C waits until all are ended
        try:
            with _signals_held():
                for child in self._busy:
                    child.end()
                for child in self._idle:
                    child.dismiss()
            for child in self._idle:
                child.wait()
        finally:
            with _signals_held():
                for child in self._idle:
                    child.end()


class _Child(Generic[Task, Result]):
    """A process that does one task after the other.

    It is sent only what it waits for, after it has said so: no send then waits for a process that loads, and a process
    whose parent is killed meanwhile has nothing half read. The work of a new process comes when it serves, because it
    may be more than a pipe holds, and Python's own start would print a traceback of what was cut.
    """

    def __init__(self, context: ForkContext | SpawnContext, work: Work[Task, Result]) -> None:
        self._work = work
        self._afresh = context.get_start_method() == "spawn"
        self.pipe, self._far = context.Pipe()
        given = None if self._afresh else work.run
        self._process = context.Process(target=_serve, args=(self._far, given), name="orthocal run")
        self._in_group, self._ready, self.alive, self._owner = False, False, True, os.getpid()
        self.deadline: float | None = None

    def start(self, task: Task) -> None:
        self.task, self._started, self._clock = task, now(), monotonic()
        if self._ready:
            self._send(task)
            self._set_deadline()
        else:
            self._start_process()

    def _start_process(self) -> None:
        if self._afresh:
            # started with the first process otherwise, it would let signals through to that one
            resource_tracker.ensure_running()
        with warnings.catch_warnings():
            # JAX, where the program has it, and Python from 3.12 on warn of every copy of a process with threads; the
            # copy is made only of what cannot be sent, and runs the user's function alone
            warnings.filterwarnings("ignore", message=".*fork", category=RuntimeWarning)
            warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
            with _signals_held():
                _left.add(self)
                self._process.start()
        self._far.close()

    def _send(self, given: object) -> None:
        """What it waits for: only a process that was stopped by hand keeps us waiting, and Ctrl-C ends that, too."""
        # if it has died, `receive` will find that out
        with suppress(OSError):
            self.pipe.send(given)

    def receive(self) -> Result | Lost | None:
        """The result; None if the process has only said what it waits for, and got it."""
        if self._process.exitcode is not None:
            # half a message would never end while a child holds the pipe open
            self._end_group()
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            return self._death()
        if self._ready:
            self.deadline = None
            result: Result = message
            return result
        self._in_group = True
        if message == HERE:
            self._send(self._work.run)
        else:
            self._ready, self._clock = True, monotonic()
            self._send(self.task)
            self._set_deadline()
        return None

    def end_at_exit(self) -> None:
        """End it, unless this is a copy of the process that started it."""
        if self._owner == os.getpid():
            self.end()

    def _set_deadline(self) -> None:
        self.deadline = None if self._work.timeout is None else monotonic() + self._work.timeout

    @property
    def silent_end(self) -> bool:
        """Whether it has died, or takes too long, and has nothing more to say."""
        late = self.deadline is not None and monotonic() >= self.deadline
        # in this order: what was said before the end is still to be read
        return (late or self._process.exitcode is not None) and not self.pipe.poll()

    def silence(self) -> Lost | None:
        """Nothing, or the end of a task whose process has died, or that takes too long."""
        if not self.silent_end:
            return None
        if self._process.exitcode is not None:
            return self._death()
        self.end()
        return self._lost(f"no result after {self._work.timeout:g} s (time-out)", died=False)

    def _death(self) -> Lost:
        self.wait()
        code = self._process.exitcode
        self.end()
        by = -code if code is not None and code < 0 else None
        # who kills a process does not mind whether it is ready
        if not self._ready and by is None:
            raise OrthocalError(f"a process for the runs ended (code {code}) before it could start. {self._work.cure}")
        how = f"with code {code}" if by is None else f"by signal {by}"
        return self._lost(f"its process ended {how}: a crash, or not enough memory?", died=True)

    def _lost(self, error: str, died: bool) -> Lost:
        return Lost(error, monotonic() - self._clock, self._started, died)

    def end(self) -> None:
        """Kill it, and what it has started, also where it has ended already."""
        if self._process.pid is not None:
            # first, so that it starts nothing more
            self._process.kill()
            if self.alive:
                self._end_group()
            self._process.join()
        self.alive = False
        self.pipe.close()
        self._far.close()
        _left.discard(self)

    def dismiss(self) -> None:
        """Say that there is no more to do, to one that waits for a task."""
        # closing the pipe would not do: a process that was copied later has it open too
        self._send(None)

    def wait(self) -> None:
        """Until the process has ended by itself, for a while; ``join`` would also wait for its children."""
        end = monotonic() + PATIENCE
        while self._process.exitcode is None and monotonic() < end:
            sleep(0.01)

    def _end_group(self) -> None:
        # as long as it has not been waited for, no other group can have its number; before it serves, there is none
        if self._process.pid is not None and (self._in_group or self._process.exitcode is None):
            end_group(self._process.pid)


#: processes that have not been ended: interrupts may come anywhere, and Python waits for each at its own end
_left: set[_Child[Any, Any]] = set()


@atexit.register
def _end_left() -> None:
    """Before Python waits for them: what is registered last comes first."""
    with _signals_held():
        for child in list(_left):
            child.end_at_exit()


def _serve(pipe: Connection, given: Callable[[Task], Result] | None) -> None:
    """Of a process: do tasks until the pipe closes; the work that is not given is the first that comes."""
    # before all else a group of its own: Ctrl-C is the parent's business, and what is started here can be ended
    os.setsid()
    for one, answer in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        # what came before is forgotten
        signal.signal(one, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {one})
        signal.signal(one, answer)

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            end_group(os.getpid())

    Thread(target=end_with_parent, daemon=True).start()
    # wherever a pipe fails, the parent has gone or has ended the work
    if given is None:
        try:
            pipe.send(HERE)
            sent = pipe.recv_bytes()
        except (EOFError, OSError):
            return
    # beside that: errors of what is loaded are errors
    run: Callable[[Task], Result] = pickle.loads(sent) if given is None else given
    said: Any = READY
    while True:
        try:
            pipe.send(said)
            task = pipe.recv()
        except (EOFError, OSError):
            return
        if task is None:
            return
        said = run(task)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until a process is started, and the process gets none until it serves.

    While it loads, each would print a traceback; and so would one whose parent stops in the middle of what it sends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    came: list[int] = []
    answers: dict[signal.Signals, Any] = {}
    if current_thread() is main_thread():
        # another thread of a library may take the signal, and the answer is then given here in spite of the mask
        answers = {one: signal.getsignal(one) for one in ENDING if signal.getsignal(one) is not None}
    for one in answers:
        signal.signal(one, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for one, answer in answers.items():
            signal.signal(one, answer)
        for number in came:
            signal.raise_signal(number)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def starts_afresh(work: Work[Task, Result]) -> bool:
    """Whether processes would load all that they need, which takes a while; copies have it already."""
    try:
        return _context(work).get_start_method() == "spawn"
    except InputError:
        # there can be none, and who starts one will hear of it
        return True


def _context(work: Work[Task, Result]) -> ForkContext | SpawnContext:
    """How to start processes: afresh where the work can be sent to them, else as copies of this one."""
    try:
        sent = pickle.dumps(work.run)
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
    raise InputError(f"the runs cannot be sent to other processes. {work.cure}")

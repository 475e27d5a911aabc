"""Programs as processes: started under guard, waited for, ended with all that they started, here and elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from ..errors import SimulatorError

#: characters of a program's last words that are kept
LAST_WORDS = 2000
#: seconds that the command may take which ends what a program has left running elsewhere
ENDING = 30.0

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
            timeout=ENDING,
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

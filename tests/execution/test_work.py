"""Work of any kind: a task comes back with its result or is said to be lost, and may be done again."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing.context import ForkProcess
from threading import Event, Thread, Timer

import numpy as np
import pytest
from test_campaigns import gone

from orthocal.errors import OrthocalError
from orthocal.execution.work.processes import ProcessWorkers
from orthocal.execution.work.workers import Lost, Settled, Work


def doubled(task):
    if task == 3:
        os._exit(7)
    return 2 * task


def sleeping(task):
    time.sleep(task)
    return task


class Here:
    """This process as the only worker."""

    width = 2

    def __init__(self, run):
        self._run, self._tasks = run, []

    def submit(self, task):
        assert len(self._tasks) < self.width
        self._tasks.append(task)

    def finished(self):
        done, self._tasks = [(task, self._run(task)) for task in self._tasks[:1]], self._tasks[1:]
        return done


def test_what_is_not_settled_comes_again_and_last():
    seen = []

    def settle(task, result):
        seen.append(task)
        return result < 20 or seen.count(task) == 3

    tasks = Settled([1, 10, 2, 4], Here(doubled), settle)
    assert len(tasks) == 4
    assert list(tasks) == [1, 2, 4, 10]
    assert seen == [1, 10, 2, 4, 10, 10]


def settled(workers, tasks):
    results = {}

    def settle(task, result):
        results[task] = result
        return True

    with workers:
        assert sorted(Settled(tasks, workers, settle)) == sorted(tasks)
    return results


def test_processes_give_results_and_say_what_was_lost():
    workers = ProcessWorkers(Work(doubled), 2)
    assert workers.words == "2 processes"
    results = settled(workers, [1, 2, 3, 4])
    lost = results.pop(3)
    assert results == {1: 2, 2: 4, 4: 8}
    assert isinstance(lost, Lost)
    assert lost.died
    assert lost.error == "its process ended with code 7: a crash, or not enough memory?"


@pytest.mark.slow
def test_a_time_out_is_no_death():
    results = settled(ProcessWorkers(Work(sleeping, timeout=0.5), 2), [0.0, 60.0])
    assert results[0.0] == 0.0
    assert (results[60.0].error, results[60.0].died) == ("no result after 0.5 s (time-out)", False)


def test_a_process_that_is_killed_while_it_starts_is_lost_like_any_other():
    with ProcessWorkers(Work(doubled), 1) as workers:
        workers.submit(1)
        os.kill(workers._busy[0]._process.pid, signal.SIGKILL)
        ((task, lost),) = workers.finished()
    assert task == 1
    assert (lost.died, lost.error[:30]) == (True, "its process ended by signal 9:")


def test_an_interrupt_waits_until_a_process_is_started(monkeypatch):
    """Another thread may take the signal: that only this one holds it back would not do."""
    from multiprocessing.context import SpawnProcess

    awake, started, whole = Event(), SpawnProcess.start, []
    thread = Thread(target=awake.wait)
    thread.start()

    def start(process):
        signal.pthread_kill(thread.ident, signal.SIGINT)
        for _ in range(100):
            time.sleep(0.001)
        started(process)
        whole.append(process)

    monkeypatch.setattr(SpawnProcess, "start", start)
    with ProcessWorkers(Work(doubled), 1) as workers, pytest.raises(KeyboardInterrupt):
        workers.submit(1)
    awake.set()
    thread.join()
    whole[0].join(10)
    assert whole[0].exitcode == -signal.SIGKILL


@pytest.mark.slow
def test_an_interrupt_while_a_process_loads_ends_it_and_what_it_has_started(tmp_path):
    """It has a group of its own before it loads its work."""
    child = tmp_path / "child"
    with ProcessWorkers(Work(Loading(str(child))), 1) as workers:
        workers.submit(1)
        Thread(target=interrupt_when_there, args=(child,)).start()
        with pytest.raises(KeyboardInterrupt):
            workers.finished()
    loading = workers._busy[0]
    assert loading._process.exitcode == -signal.SIGKILL
    assert not loading._ready
    assert gone(int(child.read_text()))


def interrupt_when_there(path):
    while not path.exists() or not path.read_text():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


class Loading:
    """Starts a child when it is loaded, and waits for it."""

    def __init__(self, path):
        self.path = path

    def __call__(self, task):
        return task

    def __setstate__(self, state):
        child = os.fork()
        if not child:
            time.sleep(300)
            os._exit(0)
        with open(state["path"], "w") as file:
            file.write(str(child))
        os.waitpid(child, 0)


@pytest.mark.slow
def test_work_that_is_more_than_a_pipe_holds():
    with ProcessWorkers(Work(partial(np.add, np.zeros(10**6))), 1) as workers:
        workers.submit(np.ones(10**6))
        ((_, sums),) = workers.finished()
    assert sums.sum() == 10**6


@pytest.mark.slow
def test_a_process_that_dies_before_it_takes_its_work_is_lost():
    """Half of the work has been sent: the rest waits for nobody."""
    with ProcessWorkers(Work(partial(np.add, np.zeros(10**6))), 1) as workers:
        workers.submit(1)
        child = workers._busy[0]
        assert child.pipe.poll(60)
        os.kill(child._process.pid, signal.SIGSTOP)
        timer = Timer(0.2, os.kill, (child._process.pid, signal.SIGKILL))
        timer.start()
        ((task, lost),) = workers.finished()
    assert task == 1
    assert (lost.died, lost.error[:30]) == (True, "its process ended by signal 9:")


@pytest.mark.slow
def test_an_interrupt_ends_a_send_to_a_process_that_was_stopped():
    with ProcessWorkers(Work(partial(np.add, np.zeros(10**6))), 1) as workers:
        workers.submit(1)
        child = workers._busy[0]
        assert child.pipe.poll(60)
        os.kill(child._process.pid, signal.SIGSTOP)
        Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            workers.finished()
    assert child._process.exitcode == -signal.SIGKILL


def test_a_second_interrupt_waits_until_all_processes_are_ended(monkeypatch):
    ended = []

    def join(process, *_, joined=ForkProcess.join):
        os.kill(os.getpid(), signal.SIGINT)
        ended.append(process)
        joined(process)

    workers = ProcessWorkers(Work(lambda task: time.sleep(task)), 2)
    workers.submit(60.0)
    workers.submit(60.0)
    monkeypatch.setattr(ForkProcess, "join", join)
    with pytest.raises(KeyboardInterrupt):
        workers.__exit__(None, None, None)
    assert [process.exitcode for process in ended] == [-signal.SIGKILL] * 2


LEFT = """
import os, time
from orthocal.execution.work.processes import ProcessWorkers
from orthocal.execution.work.workers import Work

workers = ProcessWorkers(Work(lambda task: time.sleep(task)), 2)
workers.submit(60.0)
print(workers._busy[0]._process.pid)
if not os.fork():
    # a copy of this process, which has no processes of its own
    raise SystemExit(0)
os.wait()
assert workers._busy[0]._process.exitcode is None
raise KeyboardInterrupt
"""


@pytest.mark.slow
def test_python_ends_though_nobody_has_ended_a_process():
    """It would wait for it otherwise."""
    run = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=30, check=False)
    assert run.stderr.rstrip().endswith("KeyboardInterrupt")
    assert gone(int(run.stdout.split()[0]))


class Unloadable:
    """Can be sent, and not be taken."""

    def __call__(self, task):
        return task

    def __reduce__(self):
        return int, ("no number",)


def test_a_process_that_cannot_start_says_what_to_do(capfd):
    with ProcessWorkers(Work(Unloadable(), cure="Do it otherwise"), 1) as workers:
        workers.submit(1)
        with pytest.raises(OrthocalError, match=r"ended \(code 1\) before it could start\. Do it otherwise"):
            workers.finished()
    assert "no number" in capfd.readouterr().err


KILLED = """
import os, signal, sys, threading, time
from functools import partial
import numpy as np
from orthocal.execution.work.processes import ProcessWorkers
from orthocal.execution.work.workers import Work

if __name__ == "__main__":
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
    with ProcessWorkers(Work(partial(np.add, np.zeros(10**6))), 1) as workers:
        workers.submit(1.0)
        workers.finished()
else:
    # a process that loads for longer than the other lives
    time.sleep(2.0)
"""


@pytest.mark.slow
def test_a_parent_that_is_killed_while_a_process_loads(tmp_path):
    """What the process does is more than a pipe holds, and must not be half read when the parent goes."""
    (tmp_path / "killed.py").write_text(KILLED)
    run = subprocess.run([sys.executable, tmp_path / "killed.py"], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL
    assert run.stderr == ""

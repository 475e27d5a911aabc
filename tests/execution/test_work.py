"""Work of any kind: a task comes back with its result or is said to be lost, and may be done again."""

import os
import signal
import time
from threading import Event, Thread

import pytest

from orthocal.errors import OrthocalError
from orthocal.execution.processes import ProcessWorkers
from orthocal.execution.work import Lost, Settled, Work


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

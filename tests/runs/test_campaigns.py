"""Campaigns: what has finished is never run again, and whatever goes wrong with one run costs no other."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import orthocal as oc
from orthocal.errors import FileError, InputError, OrthocalError, OrthocalWarning, SimulatorError
from orthocal.runs.store import RunStore, _Lock, simulator_identity

SIGNS = "ORTHOCAL_TEST_SIGNS"
X = np.array([0.0, 0.5, 1.0])
DESIGN = pd.DataFrame({"g": [1.0, 2.0, 3.0, 4.0]})


@pytest.fixture
def signs(tmp_path, monkeypatch):
    """Where simulators leave a line for each call, also from other processes."""
    folder = tmp_path / "signs"
    folder.mkdir()
    monkeypatch.setenv(SIGNS, str(folder))
    return folder


def leave(theta, text=""):
    with (Path(os.environ[SIGNS]) / f"{theta[0]:g}").open("a") as file:
        file.write(f"{os.getpid()} {text}\n")


def calls(signs):
    return {path.name: len(path.read_text().splitlines()) for path in sorted(signs.iterdir())}


def line(x, theta):
    leave(theta)
    return theta[0] * x


def line_failing_at_2(x, theta):
    leave(theta)
    if theta[0] == 2:
        raise ValueError("two is too much")
    return theta[0] * x


def trouble(x, theta):
    """Dies at 2, hangs with a child of its own at 3."""
    if theta[0] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if theta[0] == 3:
        leave(theta, str(subprocess.Popen(["sleep", "100"]).pid))
        time.sleep(100)
    leave(theta)
    return theta[0] * x


def run(simulator, tmp_path, design=DESIGN, x=X, **settings):
    settings = {"executor": ThreadPoolExecutor(2), "store": tmp_path / "runs.db", **settings}
    try:
        return oc.campaign(simulator, design, x, **settings)
    finally:
        if settings["executor"] is not None:
            settings["executor"].shutdown()


def gone(pid, seconds=5.0):
    """Whether a process ends within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_runs_come_back_and_are_not_made_again(tmp_path, signs):
    runs = run(line, tmp_path, outcome_names="height", units={"g": "m", "height": "km"})
    assert np.array_equal(runs.output[..., 0], np.outer([1, 2, 3, 4], X))
    assert (runs.parameter_names, runs.outcome_names) == (("g",), ("height",))
    assert runs.units == {"g": "m", "height": "km"}
    again = run(line, tmp_path)
    assert np.array_equal(again.output, runs.output)
    # a longer design in another order runs only what is new
    longer = run(line, tmp_path, pd.DataFrame({"g": [5.0, 4.0, 3.0, 2.0, 1.0]}))
    assert longer.theta[:, 0].tolist() == [5, 4, 3, 2, 1]
    assert np.array_equal(longer.output[1:, :, 0], np.outer([4, 3, 2, 1], X))
    assert calls(signs) == {"1": 1, "2": 1, "3": 1, "4": 1, "5": 1}
    assert (tmp_path / "runs.db.lock").exists()


def test_rows_of_the_store(tmp_path, signs):
    run(line, tmp_path)
    with sqlite3.connect(tmp_path / "runs.db") as store:
        rows = store.execute("SELECT status, error, seconds, started, finished, attempts FROM runs").fetchall()
    store.close()
    assert len(rows) == 4
    for status, error, seconds, started, finished, attempts in rows:
        assert (status, error, attempts) == ("done", None, 1)
        assert 0 <= seconds < 1
        assert pd.Timestamp(started) <= pd.Timestamp(finished)


def test_several_outcomes_missing_cells_and_infinite_values(tmp_path):
    def two(x, theta):
        output = np.outer(x, [theta[0], 1.0])
        output[0] = [np.nan, np.inf] if theta[0] == 2 else 0
        return output if theta[0] != 3 else np.array([[np.nan, np.inf]] * 3)

    with pytest.warns(OrthocalWarning, match="1 of 4 runs failed; run 2: the simulator returned no finite number"):
        runs = run(two, tmp_path)
    assert runs.q == 2
    assert np.isnan(runs.output[1, 0]).all()
    assert runs.complete.tolist() == [True, False, False, True]
    assert runs.failed.tolist() == [False, False, True, False]


def said(words):
    raise ValueError(words)


class Speechless:
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda x, theta: x[:2], r"returned an array of shape \(2,\) for 3 points: expected \(3,\) or \(3, q\)"),
        (lambda x, theta: 1j * x, "expected an array of real numbers"),
        (lambda x, theta: "no", "expected an array of real numbers"),
        (lambda x, theta: sys.exit("no licence"), "SystemExit: no licence"),
        (lambda x, theta: np.full(3, np.inf), "no finite number: all are NaN or infinite"),
        (lambda x, theta: said(b"not \xff text, \0".decode(errors="surrogateescape")), r"not \\udcff text, \\x00"),
        (lambda x, theta: said(Speechless()), "an error that cannot be put into words"),
    ],
)
def test_campaigns_whose_runs_all_fail(tmp_path, output, message):
    with pytest.raises(SimulatorError, match="all 4 runs failed; run 0: .*" + message):
        run(output, tmp_path, retries=0)


def test_another_number_of_outcomes_is_a_failed_run(tmp_path):
    with pytest.warns(OrthocalWarning, match="1 of 4 runs failed; run 3: the simulator returned 2 outcomes"):
        runs = run(
            lambda x, theta: x if theta[0] < 4 else np.stack([x, x], 1), tmp_path, executor=ThreadPoolExecutor(1)
        )
    assert runs.failed.tolist() == [False, False, False, True]


def test_failed_runs_are_kept_with_their_error(tmp_path, signs):
    with pytest.warns(OrthocalWarning, match=r"1 of 4 runs failed; run 1: ValueError: two is too much \(test_camp"):
        runs = run(line_failing_at_2, tmp_path, retries=2)
    assert runs.failed.tolist() == [False, True, False, False]
    assert calls(signs) == {"1": 1, "2": 3, "3": 1, "4": 1}
    with pytest.warns(OrthocalWarning, match="1 of 4 runs failed"):
        run(line_failing_at_2, tmp_path, retries=2)
    assert calls(signs)["2"] == 3
    with pytest.warns(OrthocalWarning, match="1 of 4 runs failed"):
        run(line_failing_at_2, tmp_path, retries=0, retry=True)
    assert calls(signs) == {"1": 1, "2": 4, "3": 1, "4": 1}
    with RunStore(tmp_path / "runs.db") as store:
        status = store.status()
    assert (status.done, status.failed, status.missing) == (3, 1, 0)
    assert 0 <= status.mean_seconds < 60


def scaled(factor):
    return lambda x, theta: factor * theta[0] * x


def test_another_campaign_is_refused(tmp_path, signs):
    run(line, tmp_path)
    other_x = X.copy()
    other_x[1] = 0.6
    for changes, message in [
        ({"design": pd.DataFrame({"g": [1.0, 2.0, 3.0, 4.5]})}, "1 of its 4 finished runs are not in this one, the fi"),
        ({"design": DESIGN[:2]}, "another design: 2 of its 4 finished runs .* the first at g = "),
        ({"design": DESIGN.rename(columns={"g": "h"})}, "other parameters: g; now h"),
        ({"x": X[:2]}, "other points x: 3 of them; now 2"),
        ({"x": other_x}, r"other points x: \[0.5\] in row 1; now \[0.6\]"),
        ({"input_names": "z"}, "other inputs: x; now z"),
    ]:
        with pytest.raises(InputError, match=message):
            run(line, tmp_path, **changes)
    with pytest.raises(InputError, match=r"other simulators: test_campaigns.line; now .*line_failing_at_2"):
        run(line_failing_at_2, tmp_path)
    assert calls(signs) == {"1": 1, "2": 1, "3": 1, "4": 1}
    runs = run(line_failing_at_2, tmp_path, accept_changed=True)
    assert not runs.failed.any()


def test_a_changed_simulator_is_refused_unless_no_run_went_well(tmp_path):
    run(scaled(2.0), tmp_path)
    with pytest.raises(InputError, match=r"the code of .*scaled.* has changed since its runs were made"):
        run(scaled(3.0), tmp_path)
    assert run(scaled(2.0), tmp_path).s == 4
    bad = tmp_path / "bad"
    bad.mkdir()
    with pytest.raises(SimulatorError, match="all 4 runs failed"):
        run(line, bad, executor=ThreadPoolExecutor(1), retries=0)  # no folder for its signs
    assert not run(scaled(3.0), bad).failed.any()


def function_of(path, text):
    path.write_text(text)
    namespace = {"__name__": "module"}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["f"]


def test_what_makes_a_simulator_another_one(tmp_path):
    plain = function_of(tmp_path / "a.py", "def f(x, theta):\n    return theta[0] * x\n")
    commented = function_of(tmp_path / "b.py", "def f(x,theta):\n    # why\n    return (theta[0]*x)\n")
    changed = function_of(tmp_path / "c.py", "def f(x, theta):\n    return theta[0] * x + 1\n")
    assert simulator_identity(plain) == simulator_identity(commented)
    assert simulator_identity(plain).digest != simulator_identity(changed).digest
    assert simulator_identity(partial(line)).name == "test_campaigns.line"
    assert simulator_identity(partial(line, 1)).digest != simulator_identity(partial(line, 2)).digest
    assert simulator_identity(oc.Simulator(line)) == simulator_identity(line)
    closures = [simulator_identity(scaled(value)).digest for value in (1.0, 1.0, np.ones(2), np.zeros(2))]
    assert closures[0] == closures[1]
    assert len(set(closures)) == 3


def test_repeated_theta_is_run_as_often_as_asked(tmp_path, signs):
    design = pd.DataFrame({"g": [1.0, 1.0, -0.0, 0.0]})
    assert run(line, tmp_path, design).s == 4
    assert run(line, tmp_path, design).s == 4
    assert sum(calls(signs).values()) == 4


SCRIPT = """
import os, sys, time
from pathlib import Path
import numpy as np
import orthocal as oc

def slow(x, theta):
    with open(Path({signs!r}) / f"{{theta[0]:g}}", "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    time.sleep(0.15)
    return theta[0] * x

# no guard by __name__: a function of the script itself needs none on Linux
runs = oc.campaign(slow, np.arange(24.0), np.array([0.0, 1.0]), store={store!r}, jobs=2, progress=False)
print(runs.output[:, 1, 0].tolist())
"""


@pytest.mark.slow
def test_killed_and_interrupted_campaigns_go_on_where_they_stopped(tmp_path, signs):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(signs=str(signs), store=str(tmp_path / "runs.db")))

    def done():
        with RunStore(tmp_path / "runs.db") as store:
            return {
                f"{theta:g}"
                for theta, failed in zip(store.table().theta[:, 0], store.table().failed, strict=True)
                if not failed
            }

    finished: list[set[str]] = []
    for way, enough in ((signal.SIGKILL, 5), (signal.SIGINT, 12)):
        process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE)
        while len(list(signs.iterdir())) < enough:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(way)
        process.communicate(timeout=20)
        assert process.returncode == -way
        workers = {int(pid) for path in signs.iterdir() for pid in path.read_text().split()}
        assert all(gone(pid) for pid in workers), "a worker outlived its campaign"
        finished.append(done())
        assert enough - 3 <= len(finished[-1]) < 24
    last = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert last.returncode == 0, last.stderr
    assert last.stdout.strip() == str([float(g) for g in range(24)])
    made = calls(signs)
    assert len(made) == 24
    # what was in the store before an end was not run after it
    assert all(made[g] == 1 for g in finished[0])
    again = Counter(made.values())
    # at each end two runs were in flight, and one may have waited to be written
    assert again[1] >= 24 - 2 * 3
    assert sum(made.values()) <= 24 + 2 * 3


@pytest.mark.slow
def test_a_dying_process_and_a_time_out_cost_no_other_run(tmp_path, signs):
    """In processes of our own: one run kills its process, another hangs with a child."""
    with pytest.warns(OrthocalWarning, match="2 of 4 runs failed; run 1: its process ended by signal 9"):
        runs = run(trouble, tmp_path, executor=None, jobs=2, timeout=1, retries=0)
    assert runs.failed.tolist() == [False, True, True, False]
    with RunStore(tmp_path / "runs.db") as store:
        assert dict(store.status().errors)[2] == "no result after 1 s (time-out)"
    pid, child = map(int, (signs / "3").read_text().split())
    assert gone(pid)
    assert gone(child)
    assert calls(signs) == {"1": 1, "3": 1, "4": 1}


def leaves_a_child(x, theta):
    """At 2 it crashes, at 3 it goes on, and both leave a copy that holds all that was open; at 4 in its own session."""
    if theta[0] > 1:
        child = os.fork()
        if not child:
            if theta[0] == 4:
                os.setsid()
            time.sleep(300)
            os._exit(0)
        leave(theta, str(child))
        if theta[0] in (2, 4):
            os._exit(3)
    return theta[0] * x


def test_a_child_of_a_run_hangs_nothing_and_ends_with_it(tmp_path, signs):
    """Unless it has a session of its own: that one lives, and the campaign does not wait for it."""
    with pytest.warns(OrthocalWarning, match="2 of 4 runs failed; run 1: its process ended with code 3"):
        # a lambda is run in copies of this process, which start at once
        runs = run(lambda x, theta: leaves_a_child(x, theta), tmp_path, executor=None, jobs=2, retries=0)
    assert runs.failed.tolist() == [False, True, False, True]
    children = {theta: int((signs / theta).read_text().split()[1]) for theta in "234"}
    assert gone(children["2"])
    assert gone(children["3"])
    assert not gone(children["4"], 0.1)
    os.kill(children["4"], signal.SIGKILL)


def dies_at_2(x, theta):
    leave(theta)
    if theta[0] == 2:
        os._exit(3)
    return theta[0] * x


@pytest.mark.slow
def test_a_broken_pool_of_the_user_does_not_end_the_campaign(tmp_path, signs):
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    with pytest.warns(OrthocalWarning) as caught:
        runs = run(dies_at_2, tmp_path, executor=pool, retries=0)
    messages = [str(one.message) for one in caught]
    assert any("go on in processes of orthocal's own" in one for one in messages)
    assert any("run 1: its process ended with code 3" in one for one in messages)
    assert runs.failed.tolist() == [False, True, False, False]
    assert calls(signs) == {"1": 1, "2": 2, "3": 1, "4": 1}


class BrokenForEver(Executor):
    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future


def test_executors_that_cannot_be_used(tmp_path):
    with pytest.raises(OrthocalError, match="the executor is broken, a worker has died; what had finished is kept"):
        run(scaled(1.0), tmp_path, executor=BrokenForEver())
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    with pytest.raises(InputError, match="the executor takes no runs"):
        run(scaled(1.0), tmp_path, executor=closed)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retries": -1}, "retries=-1"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": 5}, "a Python function can be ended only in processes of orthocal's own"),
        ({"jobs": 0}, "jobs=0"),
        ({"cluster": "tcp://127.0.0.1:1"}, "executor and cluster both"),
        ({"design": []}, "at least one row"),
        ({"design": [[np.nan]]}, "the design has a value that is not finite in row 0"),
        ({"x": [np.inf]}, "x has a value that is not finite in row 0"),
        ({"outcome_names": "g"}, "are named 'g'"),
        ({"units": {"x": 3}}, "printable"),
        ({"parameter_names": ("a", "b")}, "2 names but there are 1"),
        ({"store": "absent/runs.db"}, "its folder does not exist"),
    ],
)
def test_settings_that_are_refused_before_anything_runs(tmp_path, settings, message):
    with pytest.raises((InputError, FileError), match=message):
        run(lambda x, theta: pytest.fail("it was run"), tmp_path, **settings)


def test_no_simulator(tmp_path):
    with pytest.raises(InputError, match="the simulator is int: give a function"):
        run(3, tmp_path)


GUARDLESS = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, orthocal as oc, test_campaigns
oc.campaign(test_campaigns.line, np.arange(2.0), np.array([0.0, 1.0]), store={store!r}, jobs=1)
"""


@pytest.mark.slow
def test_a_script_without_guard_is_told_so(tmp_path, signs):
    (tmp_path / "script.py").write_text(
        GUARDLESS.format(tests=str(Path(__file__).parent), store=str(tmp_path / "r.db"))
    )
    ended = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert 'must stand below `if __name__ == "__main__":`' in ended.stderr.splitlines()[-1]
    assert calls(signs) == {}


def test_one_campaign_at_a_time_but_anybody_may_read(tmp_path, signs):
    run(line, tmp_path)
    with RunStore(tmp_path / "runs.db", write=True) as store, RunStore(tmp_path / "runs.db") as reader:
        assert reader.status().done == 4
        with pytest.raises(FileError, match=r"runs.db is in use by another campaign: wait for its end"):
            run(line, tmp_path)
        assert store.status() == reader.status()


def test_a_lock_has_one_holder_whoever_opened_it_when(tmp_path, monkeypatch):
    """The second opens the lock file while the first has it, and takes it when the first is gone; a third comes."""
    first, prepare = RunStore(tmp_path / "runs.db", write=True), _Lock._prepare

    def late(self, create):
        with suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA schema_version")
        monkeypatch.setattr(_Lock, "_prepare", prepare)
        first.close()
        prepare(self, create)

    monkeypatch.setattr(_Lock, "_prepare", late)
    with (
        RunStore(tmp_path / "runs.db", write=True),
        pytest.raises(FileError, match=r"runs.db is in use by another campaign"),
    ):
        RunStore(tmp_path / "runs.db", write=True)


def test_a_store_that_another_program_keeps_locked(tmp_path, signs, monkeypatch):
    run(line, tmp_path)
    monkeypatch.setattr("orthocal.runs.store.PATIENCE", 0.1)
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(FileError, match=r"is locked by another program for more than 0\.1 s"):
        run(line, tmp_path)
    other.close()


def test_files_that_are_not_stores(tmp_path):
    path = tmp_path / "runs.db"
    with pytest.raises(FileError, match="nothing has been run yet"):
        RunStore(path)
    path.write_text("this is not a database, but it is long enough to be taken for one" * 20)
    with pytest.raises(FileError, match="is not a store of runs"):
        run(line, tmp_path)
    path.unlink()
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE other (x)")
    foreign.close()
    with pytest.raises(FileError, match="is not a store of runs, or one of another version"):
        run(line, tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(FileError, match="cannot open"):
        run(line, tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {"runs.db", "runs.db.lock"}


def test_a_damaged_store(tmp_path):
    run(scaled(1.0), tmp_path, np.arange(100.0))
    content = bytearray((tmp_path / "runs.db").read_bytes())
    # the first page says what the file is, the others hold the tables
    content[4096:] = b"\xff" * (len(content) - 4096)
    (tmp_path / "runs.db").write_bytes(content)
    with pytest.raises(FileError, match="is damaged"):
        run(scaled(1.0), tmp_path, np.arange(100.0))


def test_a_full_disk_keeps_what_had_finished(tmp_path, signs, monkeypatch):
    """SQLite itself says that the file cannot grow: a limit on the file's pages has the code of a full disk."""
    adopt = RunStore.adopt

    def limited(self, *arguments):
        adopt(self, *arguments)
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        self._connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    x = np.linspace(0, 1, 300)
    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "adopt", limited)
        with pytest.raises(FileError, match=r"runs.db, the disk is full; what had finished is kept"):
            run(line, tmp_path, np.arange(30.0), x, executor=ThreadPoolExecutor(1))
    with RunStore(tmp_path / "runs.db") as store:
        kept = store.status().done
    assert 0 < kept < 30
    assert run(line, tmp_path, np.arange(30.0), x).s == 30
    # only the run that could not be written was made twice
    assert sum(calls(signs).values()) <= 30 + 2


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster(tmp_path, signs):
    distributed = pytest.importorskip("distributed", reason="needs Dask, the extra dask")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        runs = run(line, tmp_path, executor=None, cluster=cluster.scheduler_address)
    assert np.array_equal(runs.output[..., 0], np.outer([1, 2, 3, 4], X))
    assert calls(signs) == {"1": 1, "2": 1, "3": 1, "4": 1}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "not an address"])
def test_no_cluster_at_the_address(tmp_path, monkeypatch, address):
    pytest.importorskip("distributed", reason="needs Dask, the extra dask")
    monkeypatch.setattr("orthocal.execution.work.workers.PATIENCE", 1)
    with pytest.raises(InputError, match=f"cluster {address}: there is no Dask scheduler"):
        run(scaled(1.0), tmp_path, executor=None, cluster=address)


def test_without_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"a cluster needs Dask: pip install 'orthocal\[dask\]'"):
        run(scaled(1.0), tmp_path, executor=None, cluster="tcp://127.0.0.1:1")

"""Studies on a Dask cluster: a real scheduler with real workers, one of which is killed."""

import os
import signal
import sys
import threading
import time

import pytest

import fake_studies
from orthocal.errors import InputError, OrthocalError
from orthocal_studies.replicate import Task, run_task
from orthocal_studies.results import Results
from orthocal_studies.run import Request, run_study, study_workers

distributed = pytest.importorskip("distributed", reason="needs Dask, the extra dask")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def cluster(fake_folder):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        yield cluster


def figures(folder, name):
    with Results(folder) as results:
        return {row["replication"]: row["parameters"] for row in results.rows(name)}


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(cluster, tmp_path, fake_folder):
    request = Request(replications=30, draws=40)
    log = fake_folder / "log"

    def kill_one():
        while not log.exists() or len(log.read_text().splitlines()) < 6:
            time.sleep(0.02)
        os.kill(int(log.read_text().split()[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    said = []
    address = cluster.scheduler_address
    outcome = run_study(fake_studies.SLOW, request, tmp_path, lambda: study_workers(cluster=address), said.append)
    killer.join(10)
    assert not killer.is_alive()
    assert outcome.failures == []
    assert said == ["slow: 30 of 30 replications to run, Dask cluster of 2 workers with 2 threads"]
    killed = figures(tmp_path, "slow")
    assert len(killed) == 30
    # the two workers, and the one that took the killed one's place if it came in time
    assert len({line.split()[0] for line in log.read_text().splitlines()}) >= 2
    # this process gives the same rows
    for replication in (1, 7, 30):
        row = run_task(Task("fake_studies:SLOW", "cheap", replication, 1, 40))
        assert killed[replication] == row["parameters"]


@pytest.mark.slow
def test_a_cluster_that_goes_away(cluster, tmp_path, fake_folder):
    """What had finished is kept; the error says so. Dask's client tries to connect again for a while."""
    log = fake_folder / "log"

    def close():
        while not log.exists() or len(log.read_text().splitlines()) < 6:
            time.sleep(0.02)
        cluster.close()

    closer = threading.Thread(target=close, daemon=True)
    closer.start()
    address = cluster.scheduler_address
    with pytest.raises(OrthocalError, match="the Dask cluster is gone; what had finished is kept"):
        run_study(
            fake_studies.SLOW, Request(replications=300, draws=40), tmp_path, lambda: study_workers(cluster=address)
        )
    closer.join(30)
    assert len(figures(tmp_path, "slow")) >= 1


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere://x", "not an address"])
def test_no_cluster_at_the_address(monkeypatch, address):
    monkeypatch.setattr("orthocal.execution.work.workers.PATIENCE", 1)
    with pytest.raises(InputError, match=f"--cluster {address}: there is no Dask scheduler"):
        study_workers(cluster=address)


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr("orthocal.execution.work.workers.PATIENCE", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs="CRITICAL") as empty,
        pytest.raises(InputError, match="the cluster has no workers"),
    ):
        study_workers(cluster=empty.scheduler_address)


def test_workers_of_another_version(cluster, monkeypatch):
    monkeypatch.setattr("orthocal.execution.work.workers.version", lambda name: "99")
    with pytest.raises(InputError, match=r"the workers have orthocal .*, this is 99: install the same version"):
        study_workers(cluster=cluster.scheduler_address)


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"--cluster needs Dask: pip install 'orthocal\[dask\]'"):
        study_workers(cluster="tcp://127.0.0.1:1")

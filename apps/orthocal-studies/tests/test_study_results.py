"""The results file: rows are kept once, and whatever is wrong with the file is said in one sentence."""

import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import emptied
from orthocal.errors import FileError
from orthocal_studies.replicate import ParameterRow, Row, Task, failed_row
from orthocal_studies.results import FILE, Results, Settings

SETTINGS = Settings(seed=1, draws=400, replications=10, methods=("a", "b"))


def task(replication, column="a"):
    return Task("s", column, replication, 1, 400)


def row(replication, column="a", mean=1.0):
    parameter = ParameterRow(mean=mean, sd=0.1, low=0.8, high=1.2, covered=True, ess=300.0, rhat=float("nan"))
    return Row(
        column=column,
        replication=replication,
        parameters={"theta": parameter},
        cpu_seconds=0.5,
        wall_seconds=0.6,
        error=None,
        traceback=None,
    )


def test_rows_come_back(tmp_path):
    with Results(tmp_path / "new" / "folder") as results:
        assert results.settings("s") is None
        results.set_settings("s", SETTINGS)
        results.add("s", task(2), row(2), "a machine", 1.0)
        results.add("s", task(1), row(1), "a machine", 2.0)
        results.add("other", task(3), row(3), "a machine", 2.0)
    with Results(tmp_path / "new" / "folder") as results:
        assert results.settings("s") == SETTINGS
        assert [one["replication"] for one in results.rows("s")] == [1, 2]
        assert results.rows("s")[0]["parameters"]["theta"]["mean"] == 1.0
        assert results.work("s") == ("a machine", 3.0)


def test_only_failed_rows_are_replaced(tmp_path):
    with Results(tmp_path) as results:
        results.set_settings("s", SETTINGS)
        results.add("s", task(1), failed_row(task(1), "no"), "", 0.0)
        results.add("s", task(1), row(1, mean=1.0), "", 0.0)
        results.add("s", task(1), row(1, mean=2.0), "", 0.0)
        (only,) = results.rows("s")
    assert only["error"] is None
    assert only["parameters"]["theta"]["mean"] == 1.0


def test_a_row_is_there_whole_or_not_at_all(tmp_path):
    with Results(tmp_path) as results:
        results.set_settings("s", SETTINGS)
        # the row is in, the machine cannot be written
        with pytest.raises(FileError, match=r"results\.db: "):
            results.add("s", task(1), row(1), object(), 0.0)
        assert results.rows("s") == []
        results.add("s", task(1), row(1), "a machine", 0.0)
        assert len(results.rows("s")) == 1


def test_one_run_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("orthocal_studies.results.PATIENCE", 0.1)
    with Results(tmp_path) as first:
        first.set_settings("s", SETTINGS)
        with pytest.raises(FileError, match="in use by another run"):
            Results(tmp_path)
    with Results(tmp_path) as third:
        assert third.settings("s") == SETTINGS


def test_files_of_another_kind(tmp_path):
    (tmp_path / FILE).write_text("this is not a database, but it is long enough to be taken for one" * 20)
    with pytest.raises(FileError, match="not a results file of `orthocal study`"):
        Results(tmp_path)
    (tmp_path / FILE).unlink()
    with sqlite3.connect(tmp_path / FILE) as foreign:
        foreign.execute("CREATE TABLE other (x)")
    foreign.close()
    with pytest.raises(FileError, match="was not written by `orthocal study`"):
        Results(tmp_path)


def test_a_damaged_file(tmp_path):
    with Results(tmp_path) as results:
        results.set_settings("s", SETTINGS)
        for replication in range(40):
            results.add("s", task(replication), row(replication), "", 0.0)
    content = bytearray((tmp_path / FILE).read_bytes())
    # the first page says what the file is, the others hold the tables
    content[4096:] = b"\xff" * (len(content) - 4096)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(FileError, match="is damaged"), Results(tmp_path) as results:
        results.rows("s")


@pytest.mark.parametrize("lost", [["sqlite_autoindex_studies_1", "replications"], ["sqlite_master"]])
def test_a_file_that_looks_empty_by_damage(tmp_path, lost):
    """Before, a study was begun anew in it."""
    with Results(tmp_path) as results:
        results.set_settings("s", SETTINGS)
        for replication in range(40):
            results.add("s", task(replication), row(replication), "", 0.0)
    emptied(tmp_path / FILE, *lost)
    content = (tmp_path / FILE).read_bytes()
    with pytest.raises(FileError, match=r"results\.db is damaged, "), Results(tmp_path) as results:
        results.settings("s")
    assert (tmp_path / FILE).read_bytes() == content


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot make the folder"):
        Results(tmp_path / "file" / "below")
    (tmp_path / FILE).mkdir()
    with pytest.raises(FileError, match="cannot open"):
        Results(tmp_path)


def fill(results):
    for replication in range(1000):
        results.add("s", task(replication), row(replication), "", 0.0)


def test_a_full_disk_keeps_what_had_finished(tmp_path):
    """SQLite itself says that the file cannot grow: a limit on the file's pages has the code of a full disk."""
    with Results(tmp_path) as results:
        results.set_settings("s", SETTINGS)
        results._connection.execute("PRAGMA max_page_count = 8")
        with pytest.raises(FileError, match=r"the disk is full; what had finished is kept"):
            fill(results)
        kept = [one["replication"] for one in results.rows("s")]
    assert kept == list(range(len(kept)))
    assert len(kept) > 3


LIMITED = """
import resource, sys
from pathlib import Path
from orthocal.cli import main
# as a file system without room: every write beyond 25 kB fails
resource.setrlimit(resource.RLIMIT_FSIZE, (25_000, resource.RLIM_INFINITY))
sys.argv = ["orthocal", "study", "fake_studies:CHEAP", "--replications", "400", "--draws", "16", "--jobs", "1"]
main()
"""


@pytest.mark.slow
def test_the_program_on_a_full_disk(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", LIMITED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 1
    assert run.stderr.startswith("error: cannot ")
    assert run.stderr.count("\n") == 1
    assert "what had finished is kept" in run.stderr
    with Results(tmp_path / "study-cheap") as results:
        assert 10 < len(results.rows("cheap")) < 400


def test_changed_rows_are_named_and_older_files_get_checksums(tmp_path):
    with Results(tmp_path) as results:
        results.set_settings("s", SETTINGS)
        results.add("s", task(2), row(2), "a machine", 1.0)
        kept = results.rows("s")
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("ALTER TABLE replications DROP COLUMN checksum")
        file.execute("ALTER TABLE replications DROP COLUMN problems")
        file.execute("ALTER TABLE studies DROP COLUMN checksum")
        file.execute("ALTER TABLE studies DROP COLUMN kept")
        file.execute("PRAGMA user_version = 1")
    file.close()
    with Results(tmp_path) as results:
        assert str(results.rows("s")) == str(kept)
        assert results.settings("s") == SETTINGS
        assert results.work("s") == ("a machine", 1.0)
        results._connection.execute("UPDATE replications SET cpu_seconds = 9")
        with pytest.raises(FileError, match="replication 2 of a has changed since it was written"):
            results.rows("s")
        results._connection.execute("DELETE FROM replications")
        with pytest.raises(FileError, match="0 replications of s are there, and 1 were kept"):
            results.rows("s")
        results._connection.execute("UPDATE studies SET draws = 9")
        with pytest.raises(FileError, match="what it says about s has changed"):
            results.settings("s")

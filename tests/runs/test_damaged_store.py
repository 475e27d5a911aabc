"""Stores whose bytes have changed: a run is what was written, or it is named."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import orthocal as oc
from helpers import emptied
from orthocal.errors import FileError
from orthocal.runs.store import RunStore

DESIGN, X = np.arange(6.0)[:, None], np.array([0.0, 1.0])


def line(x, theta):
    return theta[0] * x


def made(path, **settings):
    with ThreadPoolExecutor(1) as executor:
        return oc.campaign(line, DESIGN, X, store=path, executor=executor, progress=False, **settings)


def change(path, *statements):
    with sqlite3.connect(path) as store:
        for statement in statements:
            store.execute(statement)
    store.close()


def older(path):
    """As version 1 wrote it."""
    columns = ("campaign DROP COLUMN runs", "campaign DROP COLUMN checksum", "runs DROP COLUMN checksum")
    change(path, *(f"ALTER TABLE {column}" for column in columns), "PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE runs SET output = zeroblob(144) WHERE number = 3", "run 3 is damaged"),
        ("UPDATE runs SET theta = zeroblob(8), copy = 7 WHERE number = 3", "run 3 is damaged"),
        ("UPDATE runs SET status = 'missing' WHERE number = 3", "run 3 is damaged"),
        ("UPDATE runs SET checksum = NULL WHERE number = 3", "run 3 is damaged"),
        ("UPDATE runs SET number = 9 WHERE number = 3", "run 3 is damaged, or gone"),
        ("DELETE FROM runs WHERE number = 5", "run 5 is gone"),
        ("UPDATE campaign SET x = zeroblob(144)", "what it says about its campaign has changed"),
        ("UPDATE campaign SET runs = 2", "what it says about its campaign has changed"),
    ],
)
def test_what_has_changed_is_named(tmp_path, statement, message):
    made(tmp_path / "runs.db")
    change(tmp_path / "runs.db", statement)
    with RunStore(tmp_path / "runs.db") as store:
        for read in (store.table, store.status):
            with pytest.raises(FileError, match=message):
                read()


@pytest.mark.parametrize("lost", [["campaign", "runs"], ["sqlite_master"]])
def test_a_store_that_looks_empty_by_damage(tmp_path, lost):
    """Before, the campaign was begun anew in it, over the runs that were there."""
    made(tmp_path / "runs.db")
    emptied(tmp_path / "runs.db", *lost)
    content = (tmp_path / "runs.db").read_bytes()
    with pytest.raises(FileError, match=r"runs\.db is damaged, "):
        made(tmp_path / "runs.db")
    assert (tmp_path / "runs.db").read_bytes() == content


def test_damaged_runs_are_made_again_when_asked_for(tmp_path):
    whole = made(tmp_path / "runs.db")
    change(tmp_path / "runs.db", "UPDATE runs SET output = zeroblob(144) WHERE number IN (2, 3)")
    with pytest.raises(
        FileError, match=r"run 2 and 1 others are damaged; retry=True \(--retry\) makes damaged runs again"
    ):
        made(tmp_path / "runs.db")
    np.testing.assert_array_equal(made(tmp_path / "runs.db", retry=True).output, whole.output)
    with RunStore(tmp_path / "runs.db") as store:
        assert store.status()[:3] == (6, 0, 0)


def test_stores_without_checksums_are_read_and_get_them(tmp_path):
    whole = made(tmp_path / "runs.db")
    older(tmp_path / "runs.db")
    with RunStore(tmp_path / "runs.db") as store:
        assert not store.checked
        np.testing.assert_array_equal(store.table().output, whole.output)
        assert store.status()[:3] == (6, 0, 0)
    np.testing.assert_array_equal(made(tmp_path / "runs.db").output, whole.output)
    with RunStore(tmp_path / "runs.db") as store:
        assert store.checked
        assert store.status()[:3] == (6, 0, 0)
    change(tmp_path / "runs.db", "UPDATE runs SET output = zeroblob(144) WHERE number = 1")
    with RunStore(tmp_path / "runs.db") as store, pytest.raises(FileError, match="run 1 is damaged"):
        store.table()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET theta = 'text' WHERE number = 1",
        "UPDATE runs SET theta = zeroblob(7) WHERE number = 1",
        "UPDATE runs SET output = 5 WHERE number = 1",
        "UPDATE runs SET output = zeroblob(3) WHERE number = 1",
        "UPDATE campaign SET parameters = '[['",
        "UPDATE campaign SET parameters = NULL",
        "UPDATE campaign SET outcomes = 'two'",
        "UPDATE campaign SET x = 'no'",
    ],
)
def test_damage_of_a_store_without_checksums_is_a_sentence(tmp_path, statement):
    made(tmp_path / "runs.db")
    older(tmp_path / "runs.db")
    if "NULL" in statement:
        change(tmp_path / "runs.db", "PRAGMA writable_schema = 1")
        statement = "UPDATE campaign SET parameters = x'ff'"
    change(tmp_path / "runs.db", statement)
    with RunStore(tmp_path / "runs.db") as store, pytest.raises(FileError, match=r"damaged|runs.db"):
        store.table()

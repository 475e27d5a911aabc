"""Runs of studies in processes: the same rows whatever the number of processes and whatever goes wrong."""

from collections import Counter

import pytest

import fake_studies
from orthocal.errors import InputError
from orthocal_studies.registry import STUDIES
from orthocal_studies.replicate import Task, data_set, run_task
from orthocal_studies.results import Results
from orthocal_studies.run import MOST_DEATHS, Request, run_study, study_workers

SMALL = Request(replications=6, draws=40)


def figures(folder, study):
    with Results(folder) as results:
        rows = results.rows(study.name)
    return {(row["column"], row["replication"]): row["parameters"] for row in rows if row["error"] is None}


def no_workers():
    raise AssertionError("there is nothing to run")


def small_x(study, replications, seed=1):
    """Replications whose data set makes the raising and dying methods do so."""
    return [r for r in range(1, replications + 1) if data_set(study.model, seed, r)[0][0, 0] < 0.5]


@pytest.mark.slow
def test_one_and_two_processes_give_the_same_rows(tmp_path):
    study = STUDIES["table1"]
    request = Request(replications=2, draws=40, methods=("pgp32", "pbart"))
    for jobs in (1, 2):
        run_study(study, request, tmp_path / str(jobs), lambda jobs=jobs: study_workers(jobs))
    one, two = (figures(tmp_path / name, study) for name in ("1", "2"))
    assert len(one) == 4
    assert one == two
    # and this process gives them too
    assert run_task(Task("table1", "pbart", 2, 1, 40))["parameters"] == one["pbart", 2]


@pytest.mark.slow
def test_a_finished_folder_runs_nothing_and_more_replications_only_the_new_ones(tmp_path, fake_folder):
    study = fake_studies.CHEAP
    said = []
    run_study(study, SMALL, tmp_path, lambda: study_workers(1), said.append)
    before = figures(tmp_path, study)
    outcome = run_study(study, Request(), tmp_path, no_workers, said.append)
    assert said == ["cheap: 6 of 6 replications to run, 1 process", "cheap: all 6 replications are there"]
    assert "| cheap" in outcome.page
    assert figures(tmp_path, study) == before
    run_study(study, Request(replications=8, methods=("cheap", "other")), tmp_path, lambda: study_workers(1))
    after = figures(tmp_path, study)
    assert len(after) == 16
    assert {key: after[key] for key in before} == before
    # a replication was computed once for each of the two methods
    executions = Counter(line.split()[1] for line in (fake_folder / "log").read_text().splitlines())
    assert set(executions.values()) == {2}
    assert len(executions) == 8


@pytest.mark.slow
def test_another_seed_or_number_of_draws_needs_another_folder(tmp_path):
    run_study(fake_studies.CHEAP, Request(replications=1, draws=40), tmp_path, lambda: study_workers(1))
    with pytest.raises(InputError, match=r"holds cheap with seed 1; leave the option out .* or give another --out"):
        run_study(fake_studies.CHEAP, Request(seed=2), tmp_path, no_workers)
    with pytest.raises(InputError, match="holds cheap with draws 40"):
        run_study(fake_studies.CHEAP, Request(draws=5000), tmp_path, no_workers)


@pytest.mark.parametrize("wrong", [{"replications": 0}, {"seed": -1}, {"draws": 41}, {"draws": 8}])
def test_impossible_requests(wrong):
    with pytest.raises(InputError, match=f"--{next(iter(wrong))} "):
        Request(**wrong)


@pytest.mark.slow
def test_a_replication_that_raises_does_not_stop_the_others(tmp_path, fake_folder):
    study = fake_studies.RAISING
    bad = small_x(study, 6)
    assert 0 < len(bad) < 6
    outcome = run_study(study, SMALL, tmp_path, lambda: study_workers(2))
    assert [row["replication"] for row in outcome.failures] == bad
    assert {row["error"] for row in outcome.failures} == {"RuntimeError: the first x is small"}
    assert "fake_studies.py" in outcome.failures[0]["traceback"]
    assert len(figures(tmp_path, study)) == 12 - len(bad)
    # what failed is a result: it runs again only where that is asked for
    assert len(run_study(study, Request(), tmp_path, no_workers).failures) == len(bad)
    (fake_folder / "mended").touch()
    assert run_study(study, Request(retry=True), tmp_path, lambda: study_workers(1)).failures == []
    assert len(figures(tmp_path, study)) == 12


@pytest.mark.slow
def test_a_process_that_dies_loses_nothing(tmp_path, fake_folder):
    study = fake_studies.DYING
    assert small_x(study, 6)
    outcome = run_study(study, SMALL, tmp_path, lambda: study_workers(2))
    assert outcome.failures == []
    found = figures(tmp_path, study)
    assert len(found) == 12
    # the fake methods draw alike
    assert all(found["dying", r] == found["cheap", r] for r in range(1, 7))


@pytest.mark.slow
def test_a_task_that_always_kills_its_process_is_given_up_and_the_others_are_not(tmp_path, fake_folder):
    """Every death costs a new process, about two seconds."""
    study = fake_studies.DEADLY
    bad = small_x(study, 4)
    assert 0 < len(bad) < 4
    outcome = run_study(study, Request(replications=4, draws=40), tmp_path, lambda: study_workers(2))
    assert [row["replication"] for row in outcome.failures] == bad
    assert all(f"died {MOST_DEATHS} times" in row["error"] for row in outcome.failures)
    assert len(figures(tmp_path, study)) == 8 - len(bad)

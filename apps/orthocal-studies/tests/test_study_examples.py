"""The study of the examples: what it runs, what it keeps, and its page."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli import app
from orthocal_studies.base import MEASURED
from orthocal_studies.example_run import run_examples
from orthocal_studies.example_studies import METHODS, example_study
from orthocal_studies.example_tables import coverage_grid, example_figures, found_grid, measured_grid, simulated_grid
from orthocal_studies.registry import study_by_name
from orthocal_studies.replicate import ParameterRow, Row, Task, data_set, failed_row, run_task
from orthocal_studies.results import FILE, Results
from orthocal_studies.run import Request, missing


def row(study, method, replication, problems=(), sd=0.1, covered=True):
    theta = [
        ParameterRow(mean=0.6 + 0.05 * replication, sd=sd, low=0.0, high=1.0, covered=covered, ess=900.0, rhat=1.0)
        for _ in study.model.parameters
    ]
    return Row(
        column=method,
        replication=replication,
        parameters=dict(zip(study.model.parameters, theta, strict=True)),
        cpu_seconds=0.5,
        wall_seconds=0.6,
        error=None,
        traceback=None,
        problems=list(problems),
    )


@pytest.mark.parametrize("name", oc.examples.names())
def test_every_example_is_a_study(name):
    study = study_by_name(f"examples/{name}")
    assert [column.key for column in study.columns if not column.extra] == list(METHODS)
    measured = [MEASURED] if study.model.file else []
    assert study.numbers(2) == measured + ([1, 2] if study.model.truth else [])
    assert all(hasattr(column.method(), "run") for column in study.columns)


def test_measured_data_are_their_own_replication():
    bayarri = example_study("bayarri").model
    np.testing.assert_array_equal(data_set(bayarri, 1, MEASURED)[1], bayarri.data[1])
    assert (data_set(bayarri, 1, 1)[1] != bayarri.data[1]).all()


def test_every_problem_has_noise_of_its_own():
    studies = [example_study(name) for name in oc.examples.names()]
    simulated = [study for study in studies if study.model.truth]
    noise = [one for study in simulated for one in (standard_noise(study, 1), standard_noise(study, 2))]
    # so many pairs of 15 values or more: a correlation of .97 by chance has a probability below 1e-6
    correlations = np.corrcoef([one[:15] for one in noise])
    assert np.abs(correlations[~np.eye(len(noise), dtype=bool)]).max() < 0.97


def standard_noise(study, replication):
    x, y = data_set(study.model, 1, replication, study.stream)
    noise = (y - study.model.truth(x)).reshape(len(x), -1)[:, 0]
    return noise / study.model.noise_sd


def test_a_stream_is_the_same_in_every_process():
    # recorded: NumPy keeps the numbers of a seed
    x, _ = data_set(example_study("model-1").model, 1, 1, "model-1")
    assert x[0, 0] == pytest.approx(0.8111272615)


def test_a_replication_keeps_what_check_found():
    done = run_task(Task("examples/ball-drop", "none", MEASURED, 1, 400))
    assert done["error"] is None
    assert done["parameters"]["g"]["covered"] is None
    assert done["parameters"]["g"]["mean"] == pytest.approx(8.16, abs=0.05)
    # the simulator without a bias misses the data by more than noise
    assert "noise" in done["problems"]


def test_the_tables():
    study = example_study("bayarri")
    rows = [row(study, "gp", r, ["noise", "noise"] if r == 1 else []) for r in (MEASURED, 1, 2, 3)]
    rows += [row(study, "ko", r, covered=False) for r in (1, 2, 3)]
    rows += [failed_row(Task(study.address, "none", r, 1, 40), "RuntimeError: no") for r in (MEASURED, 1)]
    table = example_figures(study, rows)
    gp, ko, none = (table[table["method"] == method].iloc[0] for method in ("gp", "ko", "none"))
    assert (gp["replications"], gp["with_problems"], gp["problems"]) == (3, 1, "noise 1")
    assert gp["mean"] == pytest.approx(0.7)
    assert gp["scatter"] == pytest.approx(0.05)
    assert gp["coverage"] == 1
    assert ko["coverage"] == 0
    assert pd.isna(ko["measured_mean"])
    assert none["failed"] == 1
    # none of three is too few, three of three is not
    assert coverage_grid(table).rows == [["bayarri", "1.00 · 2.0", "0.00 ↓ · 2.0", "failed"]]
    cells = simulated_grid(study, table).rows[0]
    assert cells == ["u", "0.640594", "gp", "0.70", "0.05", "0.10", "1.00", "0.50", "1 of 3", "noise 1"]
    measured = measured_grid([study], table).rows
    assert measured == [["bayarri", "u", "0.640594 (theta*)", "0.60 ± 0.10", "–", "failed: RuntimeError: no"]]


def test_published_figures_stand_beside():
    study = example_study("chaboche")
    table = example_figures(study, [row(study, "gp", MEASURED, ["mixing"])])
    grid = measured_grid([study], table)
    assert grid.rows[2][:3] == ["chaboche", "gamma", "7.78 ± 0.78 (OpenTURNS, Gaussian linear calibration)"]
    assert grid.rows[2][3] == "0.60 ± 0.10 !"
    assert grid.rows[0][2].startswith("(7.485 ± 0.053)e8 (OpenTURNS")
    assert found_grid(table).rows == [["chaboche", "mixing"]]
    assert coverage_grid(table).rows == []


def test_problems_are_kept_and_guarded(tmp_path):
    study = example_study("bayarri")
    with Results(tmp_path) as results:
        settings = Request(replications=1, methods=("gp",)).settings(study, None, tmp_path)
        results.set_settings(study.name, settings)
        assert [task.replication for task in missing(study, settings, [], False)] == [MEASURED, 1]
        results.add(study.name, Task(study.address, "gp", 1, 1, 40), row(study, "gp", 1, ["noise"]), "m", 1.0)
        (kept,) = results.rows(study.name)
        assert kept["problems"] == ["noise"]
        assert results.studies() == ["examples/bayarri"]
        assert [task.replication for task in missing(study, settings, [kept], False)] == [MEASURED]
    file = sqlite3.connect(tmp_path / FILE)
    file.execute("UPDATE replications SET problems = '[]'")
    file.commit()
    file.close()
    with Results(tmp_path) as results, pytest.raises(oc.errors.FileError, match="replication 1 of gp has changed"):
        results.rows(study.name)


class AtOnce:
    """Workers that do a task when it is submitted, in this process."""

    words, width = "this process", 1

    def __init__(self, most=None):
        self.most, self.done = most, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def submit(self, task):
        if self.most is not None and self.most == 0:
            raise KeyboardInterrupt
        self.most = None if self.most is None else self.most - 1
        self.done.append((task, run_task(task)))

    def finished(self):
        done, self.done = self.done, []
        return done


@pytest.mark.slow
def test_a_run_that_is_ended_goes_on_and_makes_one_page(tmp_path):
    request = Request(replications=2, methods=("none",), draws=40)
    names = ("bayarri", "ball-drop")
    with pytest.raises(KeyboardInterrupt):
        run_examples(names, request, tmp_path, lambda: AtOnce(2))
    said = []
    page, failed = run_examples(None, Request(), tmp_path, AtOnce, said.append)
    # of two simulated data sets and two measured ones, two were there
    assert said == ["examples: 2 of 4 replications to run, this process"]
    assert failed == []
    table = pd.read_csv(tmp_path / "examples.csv")
    assert list(table["example"]) == ["bayarri", "ball-drop"]
    assert list(table["replications"]) == [2, 0]
    assert table["measured_mean"].notna().all()
    for text in (page, (tmp_path / "examples.html").read_text(encoding="utf-8")):
        for said_there in (
            "8.16 ± 0.20 (surmise, without a bias)",
            "0.640594",
            "Technometrics 49",
            "problems in",
            "Sürer",
        ):
            assert said_there in text


def test_what_the_command_refuses(tmp_path):
    def refused(*arguments):
        done = CliRunner().invoke(app, ["study", *arguments, "--out", str(tmp_path)])
        assert isinstance(done.exception, oc.errors.InputError)
        return str(done.exception)

    assert "there is no example 'tuo'" in refused("examples", "--examples", "tuo-wu,tuo")
    assert "there is no example 'tuo'" in refused("examples/tuo")
    assert "--examples names none" in refused("examples", "--examples", ",")
    assert "has no method magic" in refused("examples", "--examples", "tuo-wu", "--methods", "magic")
    assert "only `orthocal study examples` takes it" in refused("table1", "--examples", "tuo-wu")

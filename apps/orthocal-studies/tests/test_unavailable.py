"""Model 2 known from a grid of runs only: the study, and whether its emulators are good enough for it."""

import numpy as np
import pytest

import fake_studies
from orthocal.examples import MODEL2, MODEL2_PART
from orthocal_studies.emulated import emulated
from orthocal_studies.registry import STUDIES
from orthocal_studies.replicate import Task, data_set, run_task
from orthocal_studies.results import Results
from orthocal_studies.run import Request, run_study

STUDY = STUDIES["unavailable"]
SEED = 1
DATA_SETS = range(1, 21)


class Here:
    """This process as the only worker."""

    width, words = 1, "this process"

    def submit(self, task):
        self._done = [(task, run_task(task))]

    def finished(self):
        return self._done

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def rows(folder):
    with Results(folder) as results:
        return {(row["column"], row["replication"]): row for row in results.rows(fake_studies.EMULATED.name)}


def test_the_simulator_is_known_at_the_data_points_and_on_a_grid_only():
    x, y = data_set(STUDY.model, SEED, 1)
    problem = STUDY.column("pgp-gp").problem(STUDY.model, x, y)
    runs = problem.simulator.emulator.runs
    assert problem.simulator.emulator.name == "gp"
    np.testing.assert_array_equal(runs.x, x)
    values = [np.unique(column) for column in runs.theta.T]
    assert runs.s == 49
    np.testing.assert_allclose(values, [np.arange(7) / 24, np.arange(7) / 12], atol=1e-15)
    np.testing.assert_allclose(runs.output[30, :, 0], MODEL2.simulator(x, runs.theta[30]))
    assert problem.parameters.upper.tolist() == [0.25, 0.5]
    # one minimum, where that of the simulator itself is
    (minimum,) = problem.minima
    np.testing.assert_allclose(minimum.theta, MODEL2.problem(x, y).theta_tilde, atol=1e-4)


def test_columns_say_which_emulator_they_have():
    for column in STUDY.columns:
        prior, emulator, *square = column.key.split("-")
        assert column.emulator == emulator
        assert column.label.startswith("PGP(3/2), " if prior == "pgp" else "PBART, ")
        assert f"{emulator.upper()} emulator" in column.label
        assert ("whole square" in column.label) == bool(square)
        assert ("parameters" in column.problem_options) == bool(square)
    x, y = data_set(STUDY.model, SEED, 1)
    square = STUDY.column("pgp-gp-square").problem(STUDY.model, x, y)
    assert square.simulator.emulator.runs.theta.max(axis=0).tolist() == [1.0, 1.0]
    assert square.parameters.upper.tolist() == [1.0, 1.0]


def test_the_study_has_its_own_number_of_draws(tmp_path):
    assert Request().settings(STUDY, None, tmp_path).draws == 4000
    assert Request().settings(STUDIES["table2"], None, tmp_path).draws == 5000
    assert Request(draws=800).settings(STUDY, None, tmp_path).draws == 800


@pytest.mark.slow
def test_a_small_study_is_resumed_and_stands_beside_the_paper(tmp_path):
    study = fake_studies.EMULATED
    run_study(study, Request(replications=1), tmp_path, Here)
    first = rows(tmp_path)
    assert [row["error"] for row in first.values()] == [None, None]
    # the time includes the fit of the emulator
    assert first["gp", 1]["wall_seconds"] > 0.5
    assert first["gp", 1]["parameters"]["theta1"]["mean"] == pytest.approx(0.2, abs=0.01)
    said = []
    page = run_study(study, Request(replications=2, methods=("gp",)), tmp_path, Here, said.append).page
    assert said == ["emulated: 1 of 2 replications to run, this process"]
    second = rows(tmp_path)
    assert len(second) == 3
    assert {key: second[key] for key in first} == first
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(("| GP", "| BART"))
    ]
    # two parameters: label, replications, and the paper's mean, sd, coverage and time
    assert [[line[i] for i in (0, 1, 3, 5, 7, 11)] for line in lines] == [
        ["GP emulator", "2", "0.21", "0.03", "–", "24 min"],
        ["BART emulator", "1", "0.22", "0.04", "–", "20 min"],
        ["GP emulator", "2", "0.33", "0.03", "–", "24 min"],
        ["BART emulator", "1", "0.34", "0.03", "–", "20 min"],
    ]


def test_the_gp_emulator_is_accurate_around_theta_star():
    """At the data points and at the nodes, one of which lies beyond the data: 0.02 is a tenth of the noise sd."""
    x, _ = data_set(MODEL2, SEED, 3)
    emulator = emulated(MODEL2_PART, x, "gp")
    nodes = (np.polynomial.legendre.leggauss(15)[0][:, None] + 1) / 2
    assert nodes.max() > x.max()
    for theta in np.array([0.2, 0.3]) + np.random.default_rng(0).uniform(-0.03, 0.03, (5, 2)):
        for points in (x, nodes):
            np.testing.assert_allclose(emulator(points, theta)[:, 0], MODEL2.simulator(points, theta), atol=0.02)
            # slopes are 20 and more
            np.testing.assert_allclose(
                emulator.gradient(points, theta)[:, 0], MODEL2.gradient(points, theta), atol=0.25
            )


@pytest.mark.slow
def test_the_gp_emulator_recovers_theta_star():
    """18 of 20 data sets with both means within 2 posterior sds of theta*, and sds below the paper's 0.03.

    Of exact posteriors .954^2 = .91 are within: another seed than this fixed one would fail with probability .27. So
    the same fit with the simulator itself is compared too, on every data set: the Monte Carlo error of a difference of
    means is 0.03 sds, and the limit 0.2 is not reached by chance.
    """
    theta_star = np.array(MODEL2.theta_star)
    good, apart = 0, []
    for replication in DATA_SETS:
        row = run_task(Task("unavailable", "pgp-gp", replication, SEED, 4000))
        exact = run_task(Task("table2", "pgp32", replication, SEED, 4000))
        assert row["error"] is None
        assert row["cpu_seconds"] < 20
        mean, sd = (np.array([one[name] for one in row["parameters"].values()]) for name in ("mean", "sd"))
        good += bool((np.abs(mean - theta_star) < 2 * sd).all() and (sd < 0.03).all())
        apart.append(np.max(np.abs(mean - [one["mean"] for one in exact["parameters"].values()]) / sd))
    assert np.max(apart) < 0.2, f"data sets {np.flatnonzero(np.array(apart) >= 0.2) + 1}"
    assert good >= 18


@pytest.mark.slow
def test_the_bart_emulator_takes_less_than_a_minute():
    """The first replication compiles; theta* is within 0.03, the paper's sd, as it is in all data sets of this seed."""
    run_task(Task("fake_studies:EMULATED", "bart", 1, SEED, 40))
    row = run_task(Task("unavailable", "pbart-bart", 1, SEED, 4000))
    assert row["cpu_seconds"] < 60
    mean = [one["mean"] for one in row["parameters"].values()]
    np.testing.assert_allclose(mean, MODEL2.theta_star, atol=0.03)

"""An emulator in the simulator's place: its posterior, its error, its parameters, draws outside of its runs."""

import numpy as np
import pandas as pd
import pytest
from emulator_cases import HIGH, LOW, QUICK, Nearest, one_outcome, problem_with, simulate, table
from scipy.stats import norm, uniform

import orthocal as oc
from orthocal.emulators.base import Choice
from orthocal.errors import InputError, OrthocalWarning


@pytest.mark.slow
def test_calibration_with_an_emulator_is_that_with_the_simulator():
    emulator = oc.emulate(one_outcome(table()), "gp")
    ours = oc.calibrate(problem_with(emulator), draws=500, seed=1, progress=False)
    exact = oc.calibrate(problem_with(lambda x, theta: simulate(x, theta)[:, 0]), draws=500, seed=1, progress=False)
    mean, sd = exact.theta.mean(axis=(0, 1)), exact.theta.std(axis=(0, 1))
    assert (np.abs(ours.theta.mean(axis=(0, 1)) - mean) < 0.2 * sd).all()
    assert np.allclose(ours.theta.std(axis=(0, 1)), sd, rtol=0.15)
    assert "all draws of theta have runs nearby" in str(ours.check())
    assert ours.emulator is emulator


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bart", pytest.param("forest", marks=pytest.mark.slow)])
def test_calibration_with_a_step_function(name):
    emulator = oc.emulate(one_outcome(table()), QUICK[name])
    posterior = oc.calibrate(problem_with(emulator), draws=200, seed=1, progress=False)
    assert (np.abs(posterior.theta.mean(axis=(0, 1)) - [1.4, 2.0]) < 0.25 * (HIGH - LOW)).all()
    assert not any(finding.topic == "gradient" for finding in posterior.check().problems)


@pytest.mark.slow
def test_the_emulators_error_widens_the_posterior():
    few = oc.emulate(one_outcome(table(12)), "gp")
    without, with_error = (problem_with(few, emulator_error=choice) for choice in (False, True))
    var = few.variance(with_error.data.x, with_error.theta_tilde)
    assert np.allclose(with_error.noise.by_point[:, 0, 0], 0.25 + var[:, 0])
    assert np.array_equal(with_error.theta_tilde, without.theta_tilde)
    assert np.array_equal(with_error.weight, without.weight)
    # the emulator's draws would widen the first
    sds = [
        oc.calibrate(one, draws=300, seed=1, progress=False, emulator_draws=0).theta.std(axis=(0, 1))
        for one in (without, with_error)
    ]
    assert (sds[1] >= sds[0] * 0.97).all()


def test_errors_that_cannot_be_carried():
    forest = oc.emulate(one_outcome(table()), QUICK["forest"])
    with pytest.raises(InputError, match="needs an emulator with a variance"):
        problem_with(forest, emulator_error=True)


def test_an_error_that_is_given_comes_to_an_estimate():
    problem = problem_with(oc.emulate(one_outcome(table(12)), "gp"), emulator_error=True, noise_cov="unknown")
    assert problem.noise.source == "estimated"


def test_parameters_in_another_order():
    emulator = oc.emulate(one_outcome(table()), Nearest())
    with pytest.raises(InputError, match="in this order"):
        problem_with(emulator, parameters={"b": uniform(-3, 8), "a": uniform(1, 1)})
    with pytest.raises(InputError, match="parameters a, b"):
        problem_with(emulator, parameters={"a": uniform(1, 1)})
    # of runs with names of their own, other names are other parameters
    for names in (("b", "c"), ("c", "d")):
        with pytest.raises(InputError, match="by these names"):
            problem_with(emulator, parameters={name: uniform(1, 1) for name in names})


@pytest.mark.slow
def test_draws_outside_of_the_runs_are_reported():
    runs = one_outcome(table())
    part = runs.subset(runs.theta[:, 0] > 1.6)
    with pytest.warns(OrthocalWarning, match="have no runs nearby"):
        posterior = oc.calibrate(problem_with(oc.emulate(part, "gp")), draws=100, seed=1, progress=False)
    assert any(finding.topic == "emulator" and finding.level != "fine" for finding in posterior.check())


@pytest.mark.parametrize(("end", "level"), [(1.0, None), (0.9, "note"), (0.7, "problem")])
def test_x_outside_of_the_runs_is_said(end, level):
    """The runs' points end before the data and the domain do."""
    x, theta = np.linspace(0, end, 30), np.linspace(0, 4, 12)
    runs = oc.RunTable(theta[:, None], theta[:, None] * x, x[:, None], parameter_names=["a"])
    data = np.linspace(0, 1, 40)
    y = 2 * data + 0.1 * np.random.default_rng(0).standard_normal(40)
    problem = oc.Problem(data, y, oc.emulate(runs, "gp"), {"a": norm(2, 0.5)}, oc.Box(0, 1, nodes=40), 0.01, starts=2)
    posterior = oc.calibrate(problem, "none", draws=20, chains=2, warmup=20, seed=1, progress=False)
    found = [one.level for one in posterior.check() if "no points x near" in one.message]
    assert found == ([level] if level else [])


def test_an_emulator_that_does_not_know_its_error_says_so():
    x, theta = np.linspace(0, 1, 10), np.linspace(0, 4, 12)
    runs = oc.RunTable(theta[:, None], theta[:, None] * x, x[:, None], parameter_names=["a"])
    problem = oc.Problem(
        x, 2 * x, oc.emulate(runs, "forest"), {"a": norm(2, 0.5)}, oc.Box(0, 1, nodes=10), 0.01, starts=2
    )
    posterior = oc.calibrate(problem, "none", draws=20, chains=2, warmup=20, seed=1, progress=False)
    assert any("does not know its own error" in one.message for one in posterior.check())


def test_columns_in_another_order_than_those_of_the_runs_are_refused():
    theta = np.linspace(0, 1, 8)[:, None]
    x = np.array([[0.0, 0.0], [1.0, 0.5], [0.5, 1.0]])
    table = oc.RunTable(theta, [one * x[:, 0] + x[:, 1] for one in theta], x, "a", ["t", "z"], "v")
    emulator = oc.emulate(table, "gp", progress=False)
    field = pd.DataFrame({"z": [0.1, 0.2, 0.4, 0.9], "t": [0.3, 0.1, 0.8, 0.5]})
    with pytest.raises(InputError, match=r"inputs in the order t, z, x has z, t: give x in the order of the runs"):
        oc.Problem(field, [1.0, 2.0, 3.0, 4.0], emulator, {"a": uniform(0, 1)}, noise_cov=0.1)


def test_how_it_was_chosen_stands_in_findings_and_file(tmp_path):
    emulator = oc.emulate(one_outcome(table(20)), "gp", progress=False)
    emulator.choice = Choice({"gp": 0.01, "forest": 0.4}, {"y": 0.2}, 20, ("forest",))
    posterior = oc.calibrate(problem_with(emulator, starts=2), "none", draws=20, chains=1, seed=1, progress=False)
    sentence = (
        "gp, the best at 20 held-out runs: its rms error is 0.01 of their spread (the others: forest 0.4 when it was"
    )
    assert sentence in str(posterior.check())
    posterior.save(tmp_path / "fit.nc")
    again = oc.load(tmp_path / "fit.nc")
    assert sentence in str(again.check())
    assert again.record.run_facts.held_out_errors == {"gp": 0.01, "forest": 0.4}

"""Seeds, chains, messages: the way from a problem to a posterior."""

import hashlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import largest_error, line
from orthocal.errors import IdentifiabilityError, InputError
from orthocal.examples import MODEL1, MODEL2

GP = oc.bias.GP(1.5, 1.0, 0.5)
QUICK = {"draws": 20, "warmup": 25, "chains": 2, "seed": 1}


THREADS = """
import hashlib, numpy as np, orthocal as oc
from orthocal.examples import MODEL2
x, y = MODEL2.simulate(np.random.default_rng(0), n=300)
posterior = oc.calibrate(MODEL2.problem(x, y), draws=20, warmup=25, seed=3)
print(hashlib.sha256(posterior.theta.tobytes() + posterior.data["bias"]["bias"].values.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_number_of_threads_does_not_matter():
    digests = set()
    for threads in ("1", "2", "4"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == len(hashlib.sha256().hexdigest())


def test_a_run_without_a_seed_keeps_the_one_it_took():
    x, y = MODEL1.simulate(np.random.default_rng(2), n=30)
    posterior = oc.calibrate(MODEL1.problem(x, y), oc.methods.Projected(GP), **{**QUICK, "seed": None})
    again = oc.calibrate(
        MODEL1.problem(x, y), oc.methods.Projected(GP), **{**QUICK, "seed": int(posterior.data.attrs["seed"])}
    )
    np.testing.assert_array_equal(posterior.theta, again.theta)


def test_model_2_mixes_and_lists_its_symmetric_minima():
    x, y = MODEL2.simulate(np.random.default_rng(1))
    problem = MODEL2.problem(x, y)
    posterior = oc.calibrate(problem, oc.methods.Projected(GP), seed=1)
    summary = posterior.summary()
    assert summary["ess_bulk"].min() > 0.5 * 4000
    assert summary["r_hat"].max() < 1.01
    assert len(problem.minima) == 8
    assert any("8 minima fit equally well" in finding.message for finding in posterior.check())


@pytest.mark.parametrize("projection", ["functional", "finite"])
def test_replicated_x_simply_work(projection):
    rng = np.random.default_rng(5)
    x = np.repeat(np.linspace(0.05, 0.95, 15), 4)[:, None]
    y = MODEL1.truth(x) + 0.2 * rng.standard_normal(60)
    posterior = oc.calibrate(
        MODEL1.problem(x, y, noise_cov="estimate"), oc.methods.Projected(oc.bias.GP(), projection), seed=1
    )
    assert posterior.check().ok
    noise_sd = np.sqrt(posterior.data["constant_data"]["noise_cov"].item())
    # 45 degrees of freedom: a relative error of 0.105; four of them are allowed
    assert noise_sd == pytest.approx(0.2, rel=0.42)
    bias = posterior.data["bias"]["bias"].values
    np.testing.assert_array_equal(bias[:, :, 0], bias[:, :, 1])


def test_x_as_a_vector_and_as_a_column_give_the_same():
    x, y = MODEL1.simulate(np.random.default_rng(2), n=40)
    column = oc.calibrate(MODEL1.problem(x, y), oc.methods.Projected(GP), **QUICK)
    flat = oc.Problem(
        x[:, 0], y, lambda x, t: t[0] * x, {"theta": stats.norm(0, 10)}, domain=oc.Box(0, 1, nodes=15), noise_cov=0.04
    )
    vector = oc.calibrate(flat, oc.methods.Projected(GP), **QUICK)
    np.testing.assert_allclose(column.theta, vector.theta, rtol=1e-9)
    for name in ("model", "bias"):
        drawn = [one.predict([0.2, 0.4])[name] for one in (column, vector)]
        np.testing.assert_allclose(*drawn, atol=1e-6)


def test_two_outcomes_with_a_known_covariance_run():
    rng = np.random.default_rng(3)
    x = rng.random((40, 1))
    cov = np.array([[0.04, 0.012], [0.012, 0.04]])
    y = np.column_stack([4 * x[:, 0], 2 * x[:, 0]]) + rng.multivariate_normal([0, 0], cov, size=40)

    def simulate(x, theta):
        return np.column_stack([theta[0] * x[:, 0], theta[0] * x[:, 0] / 2])

    for projection in ("functional", "finite"):
        problem = oc.Problem(x, y, simulate, {"t": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=cov)
        posterior = oc.calibrate(problem, oc.methods.Projected(GP, projection), **QUICK)
        assert largest_error(posterior) < 1e-10
        predicted = posterior.predict(x)
        np.testing.assert_allclose(predicted["bias"], posterior.data["bias"]["bias"], atol=1e-5)


CASES = {
    "NaN in x": ({"x": np.r_[np.nan, np.linspace(0, 1, 19)][:, None]}, InputError, "first is row 0"),
    "infinity in x": ({"x": np.r_[np.linspace(0, 1, 19), np.inf][:, None]}, InputError, "first is row 19"),
    "x and y of different lengths": ({"x": np.linspace(0, 1, 19)[:, None]}, InputError, "19 rows but y has 20"),
    "a covariance that is not positive definite": (
        {"y": np.zeros((20, 2)), "noise_cov": [[1, 2], [2, 1]]},
        InputError,
        "not positive definite",
    ),
    "a negative variance": ({"noise_cov": -1}, InputError, "must be positive"),
    "fewer observations than parameters": (
        {"x": np.array([[0.5]]), "y": np.array([1.0]), "parameters": ("a", "b")},
        IdentifiabilityError,
        "1 observations cannot determine 2 parameters",
    ),
    "x outside the domain": ({"domain": oc.Box(0, 0.5)}, InputError, "outside the domain"),
    "a prior of the wrong length": (
        {"parameters": {"a": stats.norm([0, 0], [1, 1])}},
        InputError,
        "prior of 'a' has length 2",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_in_one_message(case):
    changes, error, message = CASES[case]
    x = np.linspace(0, 1, 20)[:, None]
    settings = {"x": x, "y": np.sin(x[:, 0]), "simulator": line, "parameters": ("a",), "domain": oc.Box(0, 1)}
    settings |= {"noise_cov": 0.01, **changes}
    if isinstance(settings["parameters"], tuple):
        settings["parameters"] = {name: stats.norm(0, 10) for name in settings["parameters"]}
    with pytest.raises(error, match=message) as raised:
        oc.calibrate(oc.Problem(**settings), oc.methods.Projected(GP), **QUICK)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws=0"),
        ({"chains": 0}, "chains=0"),
        ({"warmup": -1}, "warmup=-1"),
        ({"draws": 10.5}, "draws=10.5"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"seed": [1, 2]}, "seed="),
        ({"method": "nonsense"}, "no method 'nonsense': choose one of gp, bart"),
        ({"method": oc.methods.Projected}, "method="),
        ({"problem": "problem"}, "give an oc.Problem"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    x, y = MODEL1.simulate(np.random.default_rng(0), n=20)
    arguments = {"problem": MODEL1.problem(x, y), "method": "pgp", **QUICK, **options}
    with pytest.raises(InputError, match=message):
        oc.calibrate(**arguments)


def test_a_simulator_that_fails_for_some_theta_is_reported():
    x, y = MODEL1.simulate(np.random.default_rng(1))

    def fragile(x, theta):
        return theta[0] * x[:, 0] if -1 < theta[0] < 3.58 else np.full(len(x), np.nan)

    posterior = oc.calibrate(_problem(x, y, fragile), "pgp", seed=1)
    assert posterior.theta.max() < 3.58
    assert any("count as impossible" in finding.message for finding in posterior.check())


def test_failures_are_those_of_one_calibration():
    """A problem that is calibrated twice has not failed twice as often."""
    x, y = MODEL1.simulate(np.random.default_rng(1))

    def fragile(x, theta):
        return theta[0] * x[:, 0] if -1 < theta[0] < 3.58 else np.full(len(x), np.nan)

    problem = _problem(x, y, fragile)
    _ = problem.theta_tilde
    counts = [oc.calibrate(problem, "pgp", seed=1, draws=100).record.run_facts.simulator_failures for _ in range(3)]
    assert counts[0] > 0
    # the first one also works out gradients and curvature, which the problem keeps
    assert counts[1] == counts[2] <= counts[0]


def _problem(x, y, simulator):
    return oc.Problem(x, y, simulator, MODEL1.parameters, domain=oc.Box(0, 1), noise_cov=0.04)


def test_slow_simulators_are_pointed_to_emulators(monkeypatch):
    """The clock is moved by the simulator, not waited for."""
    now = [0.0]

    def slow(x, theta):
        now[0] += 1.0
        return theta[0] * x[:, 0]

    monkeypatch.setattr("orthocal.problem.simulator.simulator.perf_counter", lambda: now[0])
    x, y = MODEL1.simulate(np.random.default_rng(0), n=20)
    with pytest.warns(oc.OrthocalWarning, match="calls of the simulator .* emulator"):
        posterior = oc.calibrate(_problem(x, y, slow), oc.methods.Projected(GP), **QUICK)
    assert any("emulator" in finding.advice for finding in posterior.check())


def test_simulator_calls_are_counted_and_timed():
    def slow(x, theta):
        counted.append(1)
        time.sleep(1e-4)
        return theta[0] * x[:, 0]

    counted: list[int] = []
    x, y = MODEL1.simulate(np.random.default_rng(0), n=20)
    problem = _problem(x, y, oc.Simulator(slow, gradient="difference"))
    oc.calibrate(problem, oc.methods.Projected(GP), **QUICK)
    assert problem.simulator.calls == len(counted)
    assert problem.simulator.seconds > 1e-4 * len(counted)


def test_the_finite_projection_needs_the_simulator_at_the_data_points_only():
    x, y = MODEL1.simulate(np.random.default_rng(0), n=30)

    def only_there(points, theta):
        if points.shape != x.shape or not np.array_equal(points, x):
            raise ValueError("unknown point")
        return theta[0] * points[:, 0]

    posterior = oc.calibrate(_problem(x, y, only_there), oc.methods.Projected(GP, "finite"), **QUICK)
    assert posterior.curves is None


def test_a_simulator_that_fails_beside_the_mode_still_has_a_gradient():
    x, y = MODEL1.simulate(np.random.default_rng(1))
    tilde = MODEL1.problem(x, y).theta_tilde[0]

    def fragile(x, theta):
        return theta[0] * x[:, 0] if theta[0] <= tilde + 1e-9 else np.full(len(x), np.nan)

    problem = oc.Problem(
        x, y, fragile, MODEL1.parameters, domain=oc.Box(0, 1), noise_cov=0.04, starts=[[tilde - 1.0], [tilde - 0.1]]
    )
    posterior = oc.calibrate(problem, oc.methods.Projected(GP), **QUICK)
    assert posterior.theta.max() <= tilde + 1e-9

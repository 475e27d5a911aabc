"""Posteriors whose simulator was an emulator with draws: predictions, files, what is refused, what check() says."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.results.checks.simulator_findings import emulator_share

X = np.linspace(0, 1, 6)
PRIORS = {"a": stats.uniform(0, 1), "b": stats.norm(0.5, 0.05)}
SHORT = {"draws": 20, "chains": 2, "seed": 3, "progress": False}


def simulate(x, theta):
    return np.sin(3 * theta[0] * x + 2 * theta[1]) + theta[1] * x


def emulator_of(count=8, seed=1):
    theta = oc.design({"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}, count, seed=seed)
    return oc.emulate(
        oc.RunTable(theta, np.stack([simulate(X, one) for one in theta.to_numpy()]), X), oc.emulators.GP(nu=2.5)
    )


@pytest.fixture(scope="module")
def emulator():
    return emulator_of()


def problem_of(simulator, **options):
    y = simulate(X, np.array([0.4, 0.55])) + 0.05 * np.random.default_rng(0).standard_normal(len(X))
    domain = oc.Points(X, np.ones(len(X)))
    return oc.Problem(X, y, simulator, PRIORS, domain=domain, noise_cov=0.0025, starts=4, **options)


@pytest.fixture(scope="module")
def posterior(emulator):
    return oc.calibrate(problem_of(emulator), emulator_draws=8, **SHORT)


def test_each_draw_has_a_function_of_its_own(posterior, emulator):
    """f + b* is the draw of y_R, at new points as at the data, and f the emulator's draw with its tilt."""
    stored = {name: posterior.data[name][name] for name in ("model", "bias")}
    assert posterior.data["projection"]["emulator_tilt"].shape == (2, 20, 2)
    predicted = posterior.predict(X)
    np.testing.assert_allclose(predicted["model"], stored["model"], atol=1e-10)
    np.testing.assert_allclose(predicted["mean"], stored["model"] + stored["bias"], atol=1e-6)
    mean = np.stack([emulator(X, one) for one in posterior.theta.reshape(-1, 2)]).reshape(stored["model"].shape)
    assert not np.allclose(mean, stored["model"], atol=1e-6)


@pytest.mark.slow
def test_the_same_from_a_file(posterior, emulator, tmp_path):
    path = posterior.save(tmp_path / "fit.nc")
    new = np.array([0.31, 0.77])
    loaded = oc.load(path, simulator=emulator_of())
    for name in ("model", "bias", "mean"):
        np.testing.assert_allclose(loaded.predict(new)[name], posterior.predict(new)[name], atol=1e-10)
    assert str(loaded.check()) == str(posterior.check())
    with pytest.raises(InputError, match="not the emulator that the posterior was made with"):
        oc.load(path, simulator=emulator_of(seed=2)).predict(new)
    with pytest.raises(InputError, match="8 draws of an emulator stood for the simulator"):
        oc.load(path, simulator=simulate).predict(new)


def test_without_draws_the_emulator_is_a_simulator(emulator):
    """Bit for bit what a function that has no draws gives."""
    alone = oc.Simulator(lambda x, theta: emulator(x, theta), lambda x, theta: emulator.gradient(x, theta))
    found = oc.calibrate(problem_of(emulator), emulator_draws=0, **SHORT)
    np.testing.assert_array_equal(found.theta, oc.calibrate(problem_of(alone), **SHORT).theta)
    assert "emulator_number" not in found.data["projection"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws_and_more_of_them(posterior, emulator):
    again = oc.calibrate(problem_of(emulator), emulator_draws=8, **SHORT)
    np.testing.assert_array_equal(again.theta, posterior.theta)
    longer = oc.calibrate(problem_of(emulator), emulator_draws=8, **{**SHORT, "draws": 30})
    np.testing.assert_array_equal(posterior.extend(10).theta, longer.theta)


def test_a_checkpoint_knows_the_number_of_draws(emulator, tmp_path):
    path = tmp_path / "fit.ckpt"
    first = oc.calibrate(problem_of(emulator), emulator_draws=4, checkpoint=path, **SHORT)
    again = oc.calibrate(problem_of(emulator), emulator_draws=4, checkpoint=path, **SHORT)
    np.testing.assert_array_equal(first.theta, again.theta)
    with pytest.raises(oc.errors.OrthocalError, match="draws of the emulator"):
        oc.calibrate(problem_of(emulator), emulator_draws=5, checkpoint=path, **SHORT)


@pytest.mark.slow
def test_the_default(emulator):
    assert oc.calibrate(problem_of(emulator), **SHORT).record.emulator_draws == 64
    assert oc.calibrate(problem_of(emulator), "pgp", **SHORT).record.emulator_draws == 0
    counted = oc.calibrate(problem_of(emulator, emulator_error=True), **SHORT)
    assert counted.record.emulator_draws == 0


def test_refused(emulator):
    with pytest.raises(InputError, match="emulator_draws=-1"):
        oc.calibrate(problem_of(emulator), emulator_draws=-1)
    with pytest.raises(InputError, match="no emulator that has draws"):
        oc.calibrate(problem_of(simulate), emulator_draws=8)
    with pytest.raises(InputError, match="go with the joint projection"):
        oc.calibrate(problem_of(emulator), "pgp", emulator_draws=8)
    with pytest.raises(InputError, match="twice"):
        oc.calibrate(problem_of(emulator, emulator_error=True), emulator_draws=8)


def test_the_share_is_that_of_random_effects():
    """theta = u_k + w_s with variances 3 and 1: 3/4 and, without the first, nothing; to 4 standard errors."""
    rng = np.random.default_rng(0)
    numbers = np.arange(8000) % 200
    noise = rng.standard_normal((8000, 2))
    effects = np.sqrt(3) * rng.standard_normal(200)
    theta = noise + np.stack([effects[numbers], np.zeros(8000)], axis=1)
    share = emulator_share(theta, numbers)
    assert share[0] == pytest.approx(0.75, abs=4 * 0.25 * 0.75 * np.sqrt(2 / 199))
    assert share[1] < 4 / np.sqrt(8000)


def test_check_says_the_emulators_part_and_how_many_runs_would_halve_it(posterior):
    (found,) = [one for one in posterior.check() if "part of the variance" in one.message]
    assert "from 8 draws of it" in found.message
    assert "would halve it" in found.message
    assert "oc.next_runs" in found.advice


@pytest.mark.filterwarnings("ignore::orthocal.OrthocalWarning")
def test_the_mean_of_trees_has_no_minimum_on_a_step_and_its_draws_do():
    theta = oc.design({"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}, 25, seed=1)
    runs = oc.RunTable(theta, np.stack([simulate(X, one) for one in theta.to_numpy()]), X)
    problem = problem_of(oc.emulate(runs, oc.emulators.BART(trees=50, draws=100, burn=100), progress=False))
    stuck = {}
    for count in (0, 8):
        posterior = oc.calibrate(problem, emulator_draws=count, **SHORT)
        stuck[count] = posterior.data["sample_stats"]["stuck"].values.mean()
        if not count:
            (finding,) = [one for one in posterior.check() if "no clear minimum" in one.message]
            assert "(emulator_draws)" in finding.advice
    assert stuck[0] > 0.5 > 5 * stuck[8]

"""What an emulator misses of its own runs, and how its draws are stretched by it."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

import orthocal as oc
from orthocal.methods.joint.emulator_draws import MOST, StretchedDraws
from orthocal.problem.simulator.emulator import LeftOut
from orthocal.regression.gaussian_process import correlation

X = np.linspace(0, 1, 6)
#: of differences of numbers that are up to 1e3 times as large
TOLERANCE = 1e-7
PRIORS = {"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}


def simulate(x, theta):
    u = np.ravel(x)
    return np.sin(3 * theta[0] * u + 2 * theta[1]) + theta[1] * u**2


@pytest.fixture
def emulator():
    theta = qmc.Sobol(2, seed=3).random(16)
    runs = oc.RunTable(theta, np.stack([simulate(X, one) for one in theta]), X, ["a", "b"])
    return oc.emulate(runs, "gp", progress=False)


@pytest.fixture
def problem(emulator):
    y = simulate(X, [0.4, 0.6]) + 0.01 * np.random.default_rng(2).standard_normal(6)
    domain = oc.Points(X[:, None], np.ones(6))
    return oc.Problem(X, y, emulator, PRIORS, domain, noise_cov=1e-4, starts=2)


def fitted(problem):
    return oc.calibrate(problem, "gp", draws=40, chains=2, seed=3, progress=False, emulator_draws=8)


@pytest.mark.parametrize("nu", [2.5, np.inf])
def test_errors_at_rows_that_are_left_out_are_those_of_kriging_without_them(nu):
    """Universal kriging from all other rows, written out with the hyperparameters that were found."""
    rng = np.random.default_rng(1)
    # so many that the hyperparameters count as known
    inputs = rng.random((44, 2))
    targets = np.stack([np.sin(20 * inputs[:, 0]) + inputs[:, 1], np.cos(15 * inputs[:, 1])], axis=1)
    targets += 0.1 * rng.standard_normal(targets.shape)
    learnt, rows = oc.emulators.GP(nu=nu).fit(inputs, targets), np.array([3, 0, 11])
    errors, variances = learnt.left_out(rows)
    for process in learnt.processes:
        (k,) = process.members
        # with what was added to make it invertible
        K = process.lower @ process.lower.T
        np.testing.assert_allclose(
            K,
            process.sd**2 * correlation(inputs, inputs, process.lengthscale, nu) + process.noise_var * np.eye(44),
            rtol=1e-4,
            # rounding, beside variances of one
            atol=1e-12,
        )
        H = np.column_stack([np.ones(44), inputs])[:, : len(process.trend)]
        for place, i in enumerate(rows):
            rest = np.delete(np.arange(44), i)
            inner, cross = np.linalg.inv(K[np.ix_(rest, rest)]), K[rest, i]
            trend_cov = np.linalg.inv(H[rest].T @ inner @ H[rest])
            trend = trend_cov @ H[rest].T @ inner @ targets[rest, k]
            mean = H[i] @ trend + cross @ inner @ (targets[rest, k] - H[rest] @ trend)
            left = H[i] - H[rest].T @ inner @ cross
            var = K[i, i] - cross @ inner @ cross + left @ trend_cov @ left
            assert errors[place, k] == pytest.approx(targets[i, k] - mean, rel=TOLERANCE)
            assert variances[place, k] == pytest.approx(var, rel=TOLERANCE)


def test_left_out_runs_of_an_emulator_are_the_nearest_ones(emulator):
    """The errors are of its outputs: scores that were left out, times the functions."""
    found = emulator.left_out(X[:, None], np.array([0.4, 0.6]), 5)
    assert found.errors.shape == (5, 6, 1)
    scores, variances = emulator.fitted[0].left_out(
        np.argsort(np.sum((emulator.fitted[0].inputs - emulator.unit.apply(np.array([0.4, 0.6]))) ** 2, axis=1))[:5]
    )
    functions = emulator.scores[0].scale[:, None] * emulator.functions(X[:, None])[0].functions
    np.testing.assert_allclose(found.errors[:, :, 0], scores @ functions, rtol=1e-12)
    np.testing.assert_allclose(found.functions[:, :, 0], functions, rtol=1e-12)
    np.testing.assert_array_equal(found.variances, variances)
    distances = np.sum((emulator.runs.theta - [0.4, 0.6]) ** 2 / np.ptp(emulator.runs.theta, axis=0) ** 2, axis=1)
    np.testing.assert_allclose(found.theta, emulator.runs.theta[np.argsort(distances)[:5]], rtol=1e-12)


def missed(size):
    """An emulator's method that says that its runs were missed by so many of the sds that it expects."""

    def left_out(x, theta, count):
        functions = np.eye(6)[:, :, None]
        rng = np.random.default_rng(1)
        signs, where = rng.choice([-1.0, 1.0], (count, 6)), rng.random((count, 2))
        return LeftOut(where, size * 0.02 * signs[:, :, None], functions, np.full((count, 6), 0.02**2))

    return left_out


def test_draws_are_stretched_as_the_largest_of_the_parameters_asks_for(problem, emulator):
    """Errors of random signs, each s sds: what they do to a parameter is about s of its sds."""
    emulator.left_out = missed(1e-3)
    narrow = fitted(problem)
    assert narrow.record.run_facts.emulator_stretch == 1
    emulator.left_out = missed(3.0)
    wide = fitted(problem)
    stretch = wide.record.run_facts.emulator_stretch
    said = missed(3.0)(None, None, 60)
    ratios = []
    for theta, errors in zip(said.theta, said.errors[:, :, 0], strict=True):
        G = emulator.gradient(X[:, None], theta)[:, 0]
        A = np.linalg.solve(G.T @ G, G.T)
        ratios.append((A @ errors) ** 2 / (0.02**2 * np.sum(A**2, axis=1)))
    assert stretch == pytest.approx(np.sqrt(np.mean(ratios, axis=0).max()), rel=1e-6)
    assert stretch > 2
    shifts = [one.data["constant_data"]["emulator_shift"].values for one in (narrow, wide)]
    np.testing.assert_allclose(shifts[1], stretch * shifts[0], rtol=1e-6, atol=1e-9)
    emulator.left_out = missed(100.0)
    assert fitted(problem).record.run_facts.emulator_stretch == MOST


def test_what_is_missed_of_runs_stretches_values_at_the_best_fit_and_no_slopes(problem, emulator):
    theta, tilde, (draw,) = np.array([0.3, 0.7]), problem.theta_tilde, emulator.draws(1, 5)
    (stretched,) = StretchedDraws(emulator, [draw], 2.5, tilde)[:1]
    x = X[:, None]
    missed_at_best = draw(x, tilde) - emulator(x, tilde)
    np.testing.assert_allclose(stretched(x, tilde) - emulator(x, tilde), 2.5 * missed_at_best, rtol=1e-9)
    np.testing.assert_allclose(stretched(x, theta), draw(x, theta) + 1.5 * missed_at_best, rtol=1e-9)
    np.testing.assert_array_equal(stretched.gradient(x, theta), draw.gradient(x, theta))
    # at other points than those of the last call
    assert stretched(x[:2], theta).shape == (2, 1)


def test_an_emulator_without_such_errors_is_taken_at_its_word(problem, emulator):
    emulator.left_out = lambda x, theta, count: None
    assert fitted(problem).record.run_facts.emulator_stretch == 1


def test_a_stretched_posterior_is_saved_checked_and_predicts_from_its_file(problem, emulator, tmp_path):
    emulator.left_out = missed(3.0)
    posterior = fitted(problem)
    words = str(posterior.check())
    assert f"{posterior.record.run_facts.emulator_stretch:.2g} times as far from it as it says" in words
    again = oc.load(posterior.save(tmp_path / "fit.nc"), simulator=emulator)
    new = np.array([[0.1], [0.55]])
    there, here = again.predict(new, warn=False), posterior.predict(new, warn=False)
    np.testing.assert_allclose(there["model"], here["model"], rtol=1e-9)

"""Runs repeated at one theta: the Gaussian process of all rows, at the cost of the distinct ones."""

import numpy as np
import pytest
from closed_form import matern
from scipy import stats

import orthocal as oc
from orthocal.emulators.components import _principal, without_common_noise
from orthocal.emulators.gp_hyperparameters import _deviance
from orthocal.emulators.replicates import bartlett, merged_runs, pure_var, trend_basis
from orthocal.regression.gaussian_process import restricted_deviance


def replicated(rng, distinct=14, most=5, sd=lambda u: 0.2):
    """Inputs (N, 2) of which most repeat, in any order, and targets (N, 1)."""
    inputs = np.repeat(rng.random((distinct, 2)), rng.integers(1, most + 1, distinct), axis=0)
    inputs = rng.permutation(inputs)
    scatter = sd(inputs[:, :1]) * rng.standard_normal((len(inputs), 1))
    return inputs, np.sin(4 * inputs[:, :1]) + 2 * inputs[:, 1:] + scatter


def test_predictions_are_those_of_universal_kriging_with_all_rows():
    rng = np.random.default_rng(0)
    inputs, targets = replicated(rng)
    new = rng.uniform(-0.2, 1.2, (6, 2))
    fitted = oc.emulators.GP(nu=2.5).fit(inputs, targets)
    (process,) = fitted.processes
    assert len(fitted.inputs) == 14 < len(inputs)
    assert process.scatter_known
    assert process.runs.uneven is None

    def k(a, b):
        return matern(a / process.lengthscale, b / process.lengthscale, 2.5, process.sd, 1.0)

    K = k(inputs, inputs) + process.noise_var * np.eye(len(inputs))
    F, f = (np.column_stack([np.ones(len(one)), one]) for one in (inputs, new))
    solved, cross = np.linalg.inv(K), k(new, inputs)
    beta = np.linalg.solve(F.T @ solved @ F, F.T @ solved @ targets)
    left = f - cross @ solved @ F
    cov = k(new, new) - cross @ solved @ cross.T + left @ np.linalg.inv(F.T @ solved @ F) @ left.T
    np.testing.assert_allclose(fitted.predict(new), f @ beta + cross @ solved @ (targets - F @ beta), atol=1e-9)
    # of the mean function: the scatter of a run is known apart
    np.testing.assert_allclose(fitted.variance(new)[:, 0], np.diag(cov), rtol=1e-8)
    np.testing.assert_allclose(fitted.scatter_var(new), process.noise_var)


@pytest.mark.parametrize("columns", [1, 3])
def test_the_likelihood_is_that_of_all_rows(columns):
    rng = np.random.default_rng(1)
    inputs, _ = replicated(rng)
    targets = rng.standard_normal((len(inputs), columns))
    merged = merged_runs(inputs, targets)
    for values in rng.normal(-0.5, 0.7, (3, 4)):
        one, slope = _deviance(values, merged.values, 2.5, trend_basis(merged.values.x, 3))
        rows = np.ones(len(inputs))
        other, other_slope = restricted_deviance(values, inputs, targets, 2.5, trend_basis(inputs, 3), rows)
        assert one == pytest.approx(other, rel=1e-10)
        np.testing.assert_allclose(slope, other_slope, rtol=1e-8, atol=1e-8)


def test_copies_of_one_run_are_one_run():
    """A deterministic simulator: the noise is what the process leaves of it, and counts for its error as ever."""
    rng = np.random.default_rng(2)
    inputs = rng.random((20, 2))
    targets = np.sin(4 * inputs[:, :1]) + np.round(3 * inputs[:, 1:]) / 3
    # one, two or four of a kind, whose mean is exact: a search would enlarge its last bit
    rows = [*range(20), *range(7), *range(3), *range(3)]
    once = oc.emulators.GP(nu=2.5).fit(inputs, targets)
    again = oc.emulators.GP(nu=2.5).fit(inputs[rows], targets[rows])
    new = rng.random((9, 2))
    assert not again.scatter_known
    np.testing.assert_allclose(again.predict(new), once.predict(new), atol=1e-9)
    np.testing.assert_allclose(again.variance(new), once.variance(new), rtol=1e-9)


def test_uneven_scatter_is_learnt():
    """The sd grows twelvefold along one input: stated within a factor 1.6 throughout, and precise runs weigh more."""
    rng = np.random.default_rng(3)

    def sd(u):
        return 0.05 * np.exp(2.5 * u)

    inputs = np.repeat(rng.random((60, 2)), 5, axis=0)
    targets = np.sin(4 * inputs[:, :1]) + sd(inputs[:, :1]) * rng.standard_normal((300, 1))
    (process,) = (fitted := oc.emulators.GP().fit(inputs, targets)).processes
    assert process.runs.uneven is not None
    new = np.column_stack([np.linspace(0.05, 0.95, 10), rng.random(10)])
    ratio = np.sqrt(fitted.scatter_var(new)[:, 0]) / sd(new[:, 0])
    assert np.all((ratio > 1 / 1.6) & (ratio < 1.6))
    even = merged_runs(inputs, rng.standard_normal((300, 1)))
    assert even.uneven is None
    np.testing.assert_array_equal(even.values.relative_var, 0.2)


def test_bartlett_is_that_of_scipy():
    rng = np.random.default_rng(4)
    sets = [rng.normal(0, sd, n) for sd, n in ((1, 4), (2, 7), (0.5, 3))]
    freedom = np.array([len(one) - 1.0 for one in sets])
    squares = np.array([np.sum((one - one.mean()) ** 2) for one in sets])
    assert bartlett(freedom, squares) == pytest.approx(stats.bartlett(*sets)[1], rel=1e-10)


def test_pure_variance_is_that_within_replicates():
    rng = np.random.default_rng(5)
    inputs = np.repeat(rng.random((4, 2)), 3, axis=0)
    targets = rng.standard_normal((12, 2))
    own = targets.reshape(4, 3, 2)
    expected = own.var(axis=1, ddof=1).mean(axis=0)
    np.testing.assert_allclose(pure_var(inputs, targets), expected)
    assert pure_var(rng.random((5, 2)), targets[:5]) is None


X = np.linspace(0, 1, 8)


def noisy_runs(rng, distinct=12, replicates=4, sd=0.1):
    """Runs of a random simulator at common points, whose noise is the same at all points of a run."""
    theta = np.repeat(rng.random((distinct, 2)), replicates, axis=0)
    output = np.stack([np.sin(3 * X * one[0]) + one[1] + sd * rng.standard_normal() for one in theta])
    return oc.RunTable(theta, output, X, ["a", "b"])


def test_an_emulator_tells_the_scatter_of_a_run_from_its_own_error():
    emulator = oc.emulate(noisy_runs(np.random.default_rng(6)), "gp", progress=False)
    theta = np.array([0.4, 0.6])
    assert emulator.has_scatter
    # 36 degrees of freedom: within a factor of two at every point, and the error of the mean of 48 runs is less
    scatter = emulator.scatter_var(X, theta)[:, 0]
    assert np.all((scatter > 0.005) & (scatter < 0.02))
    assert np.all(emulator.variance(X, theta)[:, 0] < scatter / 2)


def test_without_replicates_the_scatter_is_not_known():
    rng = np.random.default_rng(7)
    emulator = oc.emulate(noisy_runs(rng, distinct=20, replicates=1), "gp", progress=False)
    assert not emulator.has_scatter
    with pytest.raises(oc.errors.InputError, match=r"oc\.campaign\(\.\.\., replicates=5\)"):
        emulator.scatter_var(X, [0.5, 0.5])


def test_replicates_fill_no_gaps():
    """Which theta have runs nearby does not depend on how often each was run."""
    rng = np.random.default_rng(8)
    runs = noisy_runs(rng, distinct=9, replicates=1)
    again = runs.subset(np.repeat(np.arange(9), 40))
    new = rng.uniform(-0.3, 1.3, (300, 2))
    one, other = (oc.emulate(table, "gp", progress=False) for table in (runs, again))
    np.testing.assert_array_equal(one.outside(new), other.outside(new))


def test_replicates_of_one_theta_need_others():
    runs = noisy_runs(np.random.default_rng(9), distinct=2, replicates=5)
    with pytest.raises(oc.errors.InputError, match="2 distinct theta"):
        oc.emulate(runs, "gp", progress=False)


@pytest.mark.parametrize(
    "regressor",
    [oc.emulators.BART(trees=20, draws=50, burn=100), oc.emulators.BMARS(draws=50, burn=100)],
    ids=["bart", "bmars"],
)
def test_samplers_know_the_scatter_of_replicates(regressor):
    rng = np.random.default_rng(10)
    inputs = np.repeat(rng.random((30, 2)), 4, axis=0)
    targets = 2 * inputs[:, :1] + 0.3 * rng.standard_normal((120, 1))
    fitted = regressor.fit(inputs, targets)
    assert fitted.scatter_known
    np.testing.assert_allclose(fitted.scatter_var(inputs[:3]), np.tile(pure_var(inputs, targets), (3, 1)))
    assert np.all(fitted.variance(inputs) < fitted.noise_var + 0.05)
    alone = regressor.fit(inputs[::4], targets[::4])
    assert not alone.scatter_known
    assert np.all(alone.variance(inputs) >= alone.noise_var)


def test_components_are_turned_until_their_noise_is_uncorrelated():
    runs = noisy_runs(np.random.default_rng(11))
    before = _principal(np.asarray(runs.output)[:, :, 0], None)
    basis = without_common_noise(before, runs.theta)
    np.testing.assert_allclose(basis.scores @ basis.functions, before.scores @ before.functions, atol=1e-10)
    unit = basis.scores / basis.scores.std(axis=0)
    within = (unit.reshape(12, 4, -1) - unit.reshape(12, 4, -1).mean(axis=1, keepdims=True)).reshape(48, -1)
    for matrix in (unit.T @ unit, within.T @ within):
        np.testing.assert_allclose(matrix - np.diag(np.diag(matrix)), 0, atol=1e-8)
    # so the noise of a point is that of the replicates there, but for what was truncated, 1e-12 of the variance
    own = np.asarray(runs.output)[:, :, 0].reshape(12, 4, -1).var(axis=1, ddof=1).mean(axis=0)
    scatter = (within.T @ within).diagonal() / 36
    np.testing.assert_allclose((scatter * basis.scores.var(axis=0)) @ basis.functions**2, own, rtol=1e-5)

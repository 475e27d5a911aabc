"""BMARS as an emulator: the mean is that of the draws, its gradient is its derivative, it learns smooth functions."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.emulators.bmars import BMARS
from orthocal.emulators.stacked import StackedEmulator
from orthocal.errors import InputError
from orthocal.regression.bmars_kernels import evaluate

SMALL = {"draws": 20, "burn": 30, "thin": 1, "moves": 20, "most": 20, "order": 3}


def standard(targets):
    return (targets - targets.mean(axis=0)) / targets.std(axis=0)


def friedman(u):
    return 10 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4]


def rows_and_targets(k=4, rows=120):
    rng = np.random.default_rng(0)
    inputs = rng.random((rows, k))
    inputs[0], inputs[1] = 0.0, 1.0
    first = np.sin(4 * inputs @ rng.uniform(0.3, 1.0, k))
    return inputs, standard(np.column_stack([first, np.prod(inputs + 0.5, axis=1)]))


@pytest.fixture(scope="module", params=[1, 2])
def fitted(request):
    return BMARS(**SMALL, degree=request.param).fit(*rows_and_targets())


def test_the_mean_is_that_of_the_draws(fitted):
    rows = np.random.default_rng(1).uniform(-0.2, 1.2, (30, 4))
    clipped = np.ascontiguousarray(np.clip(rows, 0, 1).T)
    for k, draws in enumerate(fitted._draws):
        values = np.zeros((len(draws), len(rows)))
        for basis, value in zip(draws, values, strict=True):
            evaluate(*basis, clipped, fitted.settings.degree, value)
        np.testing.assert_allclose(fitted.predict(rows)[:, k], values.mean(axis=0) + fitted.offset[k], atol=1e-10)
        variance = values.var(axis=0) + fitted.noise_var[k]
        np.testing.assert_allclose(fitted.variance(rows)[:, k], variance, rtol=1e-10)
    assert sum(len(basis.coefficients) for basis in fitted.bases) < sum(
        len(basis.coefficients) for draws in fitted._draws for basis in draws
    )


@pytest.mark.parametrize("d", [0, 1, 2, 3])
def test_at_fixed_points_mean_and_gradient_are_the_same(fitted, d):
    rng = np.random.default_rng(2)
    points = rng.uniform(-0.1, 1.1, (7, d))
    function = fitted.at(points)
    for theta in rng.uniform(-0.2, 1.2, (10, 4 - d)):
        rows = np.hstack([points, np.tile(theta, (7, 1))])
        np.testing.assert_allclose(function(theta), fitted.predict(rows), atol=1e-10)
        np.testing.assert_allclose(function.gradient(theta), fitted.gradient(rows)[:, :, d:], atol=1e-9)


def test_the_gradient_is_the_derivative(fitted):
    """Away from the knots, where it jumps if the hinges are linear; one row in a hundred may be near one."""
    rows = np.random.default_rng(3).uniform(0.01, 0.99, (100, 4))
    gradient = fitted.gradient(rows)
    step = 1e-7
    for v in range(4):
        moved = np.zeros(4)
        moved[v] = step
        difference = (fitted.predict(rows + moved) - fitted.predict(rows - moved)) / (2 * step)
        near = np.abs(difference - gradient[:, :, v]) < 1e-5
        assert near.mean() > (0.99 if fitted.settings.degree == 1 else 0.9999)
    assert np.abs(gradient).max() > 0.5


def test_beyond_the_range_it_is_constant(fitted):
    inside = np.array([[0.3, 0.0, 1.0, 0.6]])
    outside = np.array([[0.3, -0.4, 1.7, 0.6]])
    np.testing.assert_array_equal(fitted.predict(inside), fitted.predict(outside))
    assert not fitted.gradient(outside)[:, :, 1:3].any()
    np.testing.assert_allclose(fitted.gradient(outside)[:, :, [0, 3]], fitted.gradient(inside)[:, :, [0, 3]])
    assert fitted.gradient(inside)[:, :, 1:3].any()


def test_the_scale_of_the_inputs_does_not_matter():
    inputs, targets = rows_and_targets()
    scale = np.array([2.0, 0.5, 10.0, 1.0])
    plain = BMARS(**SMALL).fit(inputs, targets)
    other = BMARS(**SMALL).fit(inputs * scale + 1, targets)
    rows = inputs[:20]
    np.testing.assert_allclose(other.predict(rows * scale + 1), plain.predict(rows), atol=1e-6)
    np.testing.assert_allclose(other.gradient(rows[5:] * scale + 1) * scale, plain.gradient(rows[5:]), atol=1e-5)


def test_it_learns_the_friedman_function():
    """Trees leave a tenth of the spread with as many rows."""
    rng = np.random.default_rng(4)
    inputs, new = rng.random((400, 6)), rng.random((300, 6))
    values, truth = friedman(inputs), friedman(new)
    fitted = BMARS().fit(inputs, standard(values)[:, None])
    error = fitted.predict(new)[:, 0] * values.std() + values.mean() - truth
    assert np.sqrt(np.mean(error**2)) < 0.02 * truth.std()
    sd = values.std() * np.sqrt(fitted.variance(new)[:, 0])
    assert np.mean(np.abs(error) < 1.96 * sd) > 0.85
    assert np.mean(sd) < 0.05 * truth.std()


def test_many_targets_with_few_runs():
    """As with the scores of components: each target is learnt, those without structure are not followed."""
    rng = np.random.default_rng(5)
    theta = rng.random((60, 2))
    targets = np.column_stack([np.sin((1 + k / 8) * theta[:, 0] + theta[:, 1]) for k in range(20)])
    targets = np.column_stack([standard(targets), standard(rng.standard_normal(60))])
    fitted = BMARS(draws=100, burn=100).fit(theta[:40], targets[:40])
    error = np.sqrt(np.mean((fitted.predict(theta[40:]) - targets[40:]) ** 2, axis=0))
    assert np.median(error[:20]) < 0.1
    assert np.all(error[:20] < 0.4)
    assert fitted.noise_var[20] > 0.2


def test_the_same_seed_gives_the_same_and_a_target_does_not_depend_on_others():
    inputs, targets = rows_and_targets()
    first, again = (BMARS(**SMALL, seed=4).fit(inputs, targets).predict(inputs) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    alone = BMARS(**SMALL, seed=4).fit(inputs, targets[:, :1]).predict(inputs)
    np.testing.assert_array_equal(alone[:, 0], first[:, 0])
    assert np.abs(BMARS(**SMALL, seed=5).fit(inputs, targets).predict(inputs) - first).max() > 1e-4


def test_constant_targets_and_inputs():
    inputs, targets = rows_and_targets(3)
    inputs[:, 2] = 0.0
    targets[:, 1] = 0.7
    fitted = BMARS(**SMALL).fit(inputs, targets)
    elsewhere = np.array([[0.2, 0.4, 3.0], [0.2, 0.4, 0.0]])
    found = fitted.predict(elsewhere)
    np.testing.assert_allclose(found[:, 1], 0.7, atol=1e-14)
    np.testing.assert_array_equal(found[0], found[1])
    assert not fitted.gradient(elsewhere)[:, :, 2].any()
    assert not fitted.gradient(elsewhere)[:, 1].any()
    np.testing.assert_allclose(fitted.at(elsewhere[:, :1])(elsewhere[0, 1:]), found, atol=1e-12)


def test_the_stacked_emulator_has_its_gradient():
    x = np.linspace(0, 1, 8)
    theta = np.random.default_rng(6).uniform(1, 3, (25, 2))
    runs = oc.RunTable(theta, [a * np.sin(3 * x) + b**2 * x for a, b in theta], x)
    emulator = StackedEmulator("bmars", runs, BMARS(draws=100, burn=100, thin=1))
    assert emulator.smooth
    at = np.array([2.1, 1.7])
    np.testing.assert_allclose(emulator(x, at)[:, 0], at[0] * np.sin(3 * x) + at[1] ** 2 * x, atol=0.05)
    expected = np.column_stack([np.sin(3 * x), 2 * at[1] * x])
    np.testing.assert_allclose(emulator.gradient(x, at)[:, 0], expected, atol=0.25)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": 0}, "BMARS has draws=0: give a whole number of at least 1"),
        ({"burn": -1}, "BMARS has burn=-1"),
        ({"thin": True}, "BMARS has thin=True"),
        ({"degree": 1.5}, "BMARS has degree=1.5"),
        ({"seed": "a"}, "BMARS has seed='a'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        BMARS(**settings)


def test_bad_rows():
    with pytest.raises(InputError, match="do not go together"):
        BMARS().fit(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(InputError, match="have not been fitted"):
        BMARS().predict(np.zeros((3, 1)))

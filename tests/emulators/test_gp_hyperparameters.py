"""Hyperparameters of an emulator's process, drawn where the rows are few."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.emulators.gp_hyperparameters import HIGHEST, KEPT, LOWEST, few, likeliest, likely, log_prior
from orthocal.emulators.replicates import merged_runs, trend_basis, trend_size
from orthocal.regression.gaussian_process import RestrictedDensity

#: standard errors that a moment may be off: by chance in 5e-5 of the cases
LIMIT = 4.0
WALKS = 12
INPUTS = np.linspace(0, 1, 12)[:, None]
TARGETS = np.sin(7 * INPUTS) + 0.2 * np.random.default_rng(4).standard_normal((12, 1))
NEW = np.array([[0.03], [0.31], [0.77]])


@pytest.mark.parametrize("every", [1, 2], ids=["twelve rows", "six rows"])
def test_draws_have_the_moments_of_the_posterior(every):
    """By a grid over sd, length-scale and noise variance; walks are independent of each other, their draws are not.

    With noise that is never drawn, or whose steps are tuned as those of the others, this fails: none crosses the
    plateau of small noise variances.
    """
    inputs, targets = INPUTS[::every], TARGETS[::every]
    runs, size = merged_runs(inputs, targets), trend_size(inputs)
    nu, best = likeliest(runs, (2.5,), size)
    walks = np.array([likely(runs, nu, best, size, np.random.default_rng(seed)) for seed in range(WALKS)])
    assert walks.shape == (WALKS, KEPT, 3)
    # a length-scale is at least the rows' distance
    lower = np.log([LOWEST[0], np.diff(inputs[:, 0]).mean(), LOWEST[2]])
    axes = [np.linspace(low, high, 22) for low, high in zip(lower, np.log(HIGHEST), strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    density = RestrictedDensity(inputs, targets, nu, trend_basis(inputs, size), np.ones(len(inputs)))
    weights = np.exp([density(one) + log_prior(one, False) for one in grid])
    # the trapezium rule: half of a cell lies beyond each bound
    for axis, column in zip(axes, grid.T, strict=True):
        weights[(column == axis[0]) | (column == axis[-1])] /= 2
    weights /= weights.sum()
    for power in (1, 2):
        found, exact = (walks**power).mean(axis=1), weights @ grid**power
        error = found.std(axis=0, ddof=1) / np.sqrt(WALKS)
        assert (np.abs(found.mean(axis=0) - exact) < LIMIT * error).all()


def test_short_lengths_and_noise_are_improbable_on_one_side():
    """Half a normal density of sds .5 and 2 below .5 and above .001; where replicates tell the noise, none of it."""
    smooth, noisier = np.log([1.0, 0.5, 3.0, 1e-3]), np.array([0, 0, 0, 4.0])
    assert log_prior(smooth, False) == 0 == log_prior(np.log([30.0, 9.0, 0.6, 1e-9]), False)
    assert log_prior(smooth - np.array([0, 1.0, 0, 0]), False) == pytest.approx(-2)
    assert log_prior(smooth + noisier, False) == pytest.approx(-2)
    assert log_prior(smooth + noisier, True) == 0


def test_an_input_that_does_not_vary_keeps_its_length():
    runs = merged_runs(np.hstack([INPUTS, np.zeros((12, 1))]), TARGETS)
    drawn = likely(runs, 2.5, np.log([1.0, 0.4, HIGHEST[1], 0.05]), 1, np.random.default_rng(1))
    assert np.ptp(drawn[:, 2]) == 0
    assert (np.ptp(drawn[:, [0, 1, 3]], axis=0) > 0).all()


def test_rows_are_few_beside_the_inputs_they_fill():
    assert few(np.zeros((20, 1)))
    assert not few(np.zeros((21, 1)))
    assert few(np.zeros((200, 12)))
    assert not few(np.zeros((201, 12)))


def test_draws_of_few_rows_vary_as_the_hyperparameters_do_too():
    """Their variance is the mean of those with drawn hyperparameters and the variance of these means: 200 draws."""
    fitted = oc.emulators.GP(nu=2.5).fit(INPUTS, TARGETS)
    draws = np.stack([draw.predict(NEW)[:, 0] for draw in fitted.draws(200, np.random.default_rng(2))])
    rng = np.random.default_rng(3)
    others = [fitted.redrawn(rng) for _ in range(150)]
    means = np.stack([one.predict(NEW)[:, 0] for one in others])
    var = np.mean([one.variance(NEW)[:, 0] for one in others], axis=0) + means.var(axis=0)
    # heavier tails than a normal law has: its fourth moment is up to twice as large
    np.testing.assert_allclose(draws.var(axis=0), var, rtol=LIMIT * np.sqrt(5 / 200))
    assert (
        np.abs(draws.mean(axis=0) - means.mean(axis=0)) < LIMIT * np.sqrt(var / 200 + means.var(axis=0) / 150)
    ).all()
    # the negative control: with the likeliest ones it is another
    assert (np.abs(draws.var(axis=0) / fitted.variance(NEW)[:, 0] - 1) > 0.4).any()


def test_with_many_rows_they_are_the_likeliest():
    inputs = np.linspace(0, 1, 21)[:, None]
    fitted = oc.emulators.GP(nu=2.5).fit(inputs, np.sin(7 * inputs))
    assert fitted.redrawn(np.random.default_rng(1)) is fitted


def test_left_out_rows_are_missed_on_the_average_over_hyperparameters():
    fitted = oc.emulators.GP(nu=2.5).fit(INPUTS, TARGETS)
    rows = np.array([0, 5])
    errors, variances = fitted.left_out(rows)
    rng = np.random.default_rng(8)
    each = np.array([fitted.redrawn(rng).left_out_as_it_is(rows) for _ in range(150)])
    np.testing.assert_allclose(errors, each[:, 0].mean(axis=0), atol=5 * each[:, 0].std() / 4)
    np.testing.assert_allclose(variances, each[:, 1].mean(axis=0) + each[:, 0].var(axis=0), rtol=0.5)

"""Noise that is not given: judged by simulator, bias and noise together, never by a curve through y."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError

WIDE = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
TEN = np.linspace(0, 1, 10)


def line(x, theta):
    return theta[0] + theta[1] * x


def fitted(x, y, method="gp", simulator=line, parameters=WIDE, **settings):
    problem = oc.Problem(x, y, simulator, parameters, oc.Box(0, 1), **settings)
    return oc.calibrate(problem, method, draws=250, chains=2, seed=1, progress=False)


def topics(posterior, topic):
    return [one for one in posterior.check() if one.topic == topic]


@pytest.mark.parametrize("method", ["gp", "none", "bart", "ko", "ogp", "sgasp", "pcal"])
@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (TEN[:2], [1.0, 2.5], "2 values and theta 2 parameters"),
        (TEN, np.full(10, 3.0), "goes through every value"),
        (TEN, np.zeros(10), "goes through every value"),
        (TEN, 1 + 2 * TEN, "goes through every value"),
    ],
)
def test_where_nothing_is_left_to_tell_it_by_a_sentence_says_so(x, y, words, method):
    with pytest.raises(InputError, match=words):
        fitted(x, y, method)


@pytest.mark.parametrize("tau", [0.02, 0.04])
def test_a_steep_curve_that_the_simulator_follows_has_no_outlier(tau):
    x = np.linspace(0, 1, 30)
    y = 5 * np.exp(-x / tau) + 1 + 0.1 * np.random.default_rng(3).standard_normal(30)
    parameters = {"a": stats.norm(0, 20), "tau": stats.uniform(0.001, 1)}
    problem = oc.Problem(x, y, lambda x, t: t[0] * np.exp(-x / t[1]) + 1, parameters, oc.Box(0, 1))
    assert problem.noise.suspects == ()
    assert problem.noise.relative is None
    assert np.sqrt(problem.noise.cov[0, 0]) == pytest.approx(0.1, rel=0.4)


@pytest.mark.parametrize("method", ["gp", "none", "bart"])
@pytest.mark.parametrize("row", [0, 12])
def test_an_outlier_is_named_and_hardly_moves_theta(method, row):
    rng = np.random.default_rng(905)
    x = np.sort(rng.random(25))
    y = 1 + 2 * x + 0.3 * rng.standard_normal(25)
    y[row] += 3.6
    posterior = fitted(x, y, method)
    (found,) = topics(posterior, "outliers")
    assert f"row {row} " in found.message
    assert "NaN" not in found.advice
    assert np.abs(posterior.theta.mean(axis=(0, 1)) - [1, 2]).max() < 0.6


def test_check_says_how_much_comes_from_not_knowing_it():
    rng = np.random.default_rng(4)
    x = rng.random(6)
    said = [one.message for one in topics(fitted(x, line(x, [1, 2]) + 0.3 * rng.standard_normal(6)), "noise")]
    assert any("6 values of y and 2 parameters leave 4 to tell the noise by" in one for one in said)
    assert any("comes from not knowing the noise, and size and length-scales" in one for one in said)
    assert any("unknown and integrated over" in one for one in said)
    assert not any("sample" in one for one in said)


def test_replicates_at_two_points_and_an_outcome_of_three_cells_are_data():
    rng = np.random.default_rng(5)
    x = np.repeat([0.2, 0.8], 6)
    assert fitted(x, line(x, [1, 2]) + 0.1 * rng.standard_normal(12)).theta.std() > 0.02
    y = np.column_stack([line(TEN, [1, 2]), 2 - TEN]) + 0.1 * rng.standard_normal((10, 2))
    y[3:, 1] = np.nan
    two = fitted(TEN, y, simulator=lambda x, t: np.column_stack([t[0] + t[1] * x, 2 - t[1] * x / 2]))
    assert two.data["posterior"]["noise_cov"].shape == (2, 250, 2, 2)

"""Residuals that are not noise are found, by each of the three tests, and noise is not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.examples import FIN, MODEL1, fin_truth
from orthocal.problem.data.labels import LabelColumns
from orthocal.results.checks.residuals import FALSE_ALARM, misfits


def flat_fit(residual, x, noise_sd=1.0):
    """The words about a straight line without bias, whose residuals are nearly those given."""
    problem = oc.Problem(
        x, residual, lambda x, t: t[0] + 0 * x[:, 0], {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=noise_sd**2
    )
    return next(iter(misfits(short(problem, "none", draws=50).record)))


X1 = np.linspace(0, 1, 60)[:, None]


def test_noise_is_left_alone():
    """500 data sets of pure noise in one and in two inputs: alarms at most three binomial errors above the rate."""
    rng = np.random.default_rng(0)
    for d in (1, 2):
        alarms = 0
        for _ in range(250):
            x = rng.random((60, d))
            alarms += bool(record_of(x, rng.standard_normal(60)).words)
        assert alarms <= 250 * FALSE_ALARM + 3 * np.sqrt(250 * FALSE_ALARM)


class OneDraw:
    """As much of a record as the tests of residuals look at."""

    def __init__(self, x, y):
        self.x, self.y = x, y[:, None]
        self.noise_sds, self.without_inputs = np.ones(1), False
        self.row_correlation = None
        self.scale_names, self.input_names = ("y",), tuple(f"x{j}" for j in range(x.shape[1]))
        self.labels, self.span = LabelColumns(), np.ptp(x, axis=0)

    q = 1

    def at_data(self, name):
        return np.zeros((1, 1, *self.y.shape))

    def constant(self, name):
        return np.array([self.x.min(axis=0), self.x.max(axis=0)])


def record_of(x, y):
    return next(iter(misfits(OneDraw(x, y))))


@pytest.mark.parametrize(
    ("residual", "words"),
    [
        (lambda rng, x: 1.6 * rng.standard_normal(60), "times as large"),
        (lambda rng, x: 0.5 * rng.standard_normal(60) + 0.8 * np.sin(14 * x), "neighbouring points"),
        (lambda rng, x: 0.7 * rng.standard_normal(60) + 1.5 * (x - 0.5), "they go with x0"),
        (lambda rng, x: 0.7 * rng.standard_normal(60) + 8 * ((x - 0.5) ** 2 - 0.08), "the square of x0"),
    ],
    ids=["scatter", "neighbours", "trend", "square"],
)
def test_what_is_not_noise_is_named(residual, words):
    rng = np.random.default_rng(1)
    found = record_of(X1, residual(rng, X1[:, 0]))
    assert any(words in one for one in found.words)


def test_neighbours_in_several_inputs():
    rng = np.random.default_rng(2)
    x = rng.random((150, 2))
    pattern = 0.9 * np.sign(np.sin(9 * x[:, 0]) * np.sin(9 * x[:, 1]))
    found = record_of(x, 0.5 * rng.standard_normal(150) + pattern)
    assert any("neighbouring points" in one for one in found.words)


def test_the_fin_that_the_papers_algorithm_misses():
    """Scatter 1.66 and 1.02; the finding sends the user to the joint projection."""
    example = replace(FIN, truth=lambda x: fin_truth(x, 8.0), noise_sd=0.35)
    problem = example.problem(*example.simulate(np.random.default_rng(17)))
    missed, fitted = (oc.calibrate(problem, method, draws=300, seed=1, progress=False) for method in ("pgp", "gp"))
    problems = [one for one in missed.check().problems if one.topic == "noise"]
    assert len(problems) == 1
    assert "are not noise" in problems[0].message
    assert '"gp"' in problems[0].advice
    assert not [one for one in fitted.check().problems if one.topic == "noise"]


def test_a_simulator_without_its_bias_leaves_a_pattern():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    found = [one for one in short(MODEL1.problem(x, y), "none").check().problems if one.topic == "noise"]
    assert "neighbouring points are alike" in found[0].message


def test_few_points_have_no_pattern():
    assert not flat_fit(np.array([-0.5, 0.0, 0.5, 0.2]), np.linspace(0, 1, 4)[:, None]).words

"""Hyperparameters that end on a bound are named with their value, the end, and what it means."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.bias.gp import bound_findings, ends
from orthocal.regression.gaussian_process import Hyperparameters

RNG = np.random.default_rng(3)
X = np.linspace(0, 1, 40)


def found(y, noise_cov):
    problem = oc.Problem(
        X, y, lambda x, t: t[0] * x, {"a": stats.norm(0, 5)}, oc.Box(0, 1, nodes=20), noise_cov, starts=2
    )
    checked = oc.calibrate(problem, "pgp", draws=20, chains=2, seed=1, progress=False).check()
    return [one for one in checked if one.topic == "bias prior"]


def test_no_bias_is_the_smallest_sd():
    (one,) = found(2 * X + 0.05 * RNG.standard_normal(40), 0.01)
    assert "its sd ended at the smallest that is looked for" in one.message
    assert "the data show no bias" in one.message
    assert one.level == "note"


def test_noise_that_is_given_too_small_is_the_shortest_length():
    (one,) = found(2 * X + 0.3 * RNG.standard_normal(40), 1e-4)
    assert "length-scale along x ended at the shortest that is looked for, 0.02" in one.message
    assert "noise_cov may be too small" in one.advice


def test_a_straight_bias_is_nothing_to_worry_about():
    findings = {"at_bound": ["longest lengthscale 2"], "sd": 1.5, "lengthscale": [0.1, 20.0]}
    (one,) = bound_findings(findings)
    assert one.level == "fine"
    assert "along input 2 ended at the longest that is looked for, 20: along it the bias is constant" in one.message
    # of a bias without size no length-scale says anything
    both = {**findings, "at_bound": ["smallest sd", "longest lengthscale 2"]}
    assert ["its sd" in one.message for one in bound_findings(both)] == [True]


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_ends(size):
    residual, span = size * RNG.standard_normal(20), np.array([1e-3, 1e3])
    fit = Hyperparameters(1e-3 * size, np.array([2e-5, 2e4]), 1.0, ("sd", "lengthscale 1", "lengthscale 2"))
    assert ends(fit, residual, span) == ("smallest sd", "shortest lengthscale 1", "longest lengthscale 2")
    assert ends(fit._replace(sd=100 * size), residual, span)[0] == "largest sd"
    assert ends(fit, np.zeros(20), span)[0] == "smallest sd"


def test_a_file_of_an_older_version_knows_no_end():
    findings = {"at_bound": ["sd", "lengthscale 2"], "sd": 1.5, "lengthscale": [0.1, 0.25]}
    sd, length = (one.message for one in bound_findings(findings))
    assert sd == "the search for its sd ended at the last that is looked for, 1.5"
    assert length == "the search for its length-scale along input 2 ended at the last that is looked for, 0.25"

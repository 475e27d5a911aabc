"""Each outcome alone beside all together."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import two_outcomes
from orthocal.errors import InputError
from orthocal.examples import MODEL1, TWO_OUTCOMES


def test_outcomes_compared():
    x, y = two_outcomes()
    comparison = oc.compare_outcomes(TWO_OUTCOMES.problem(x, y), "pgp", draws=200, seed=1)
    table = comparison.summary()
    assert list(comparison.posteriors) == ["y1", "y2", "all together"]
    assert table.loc[("theta", "all together"), "width"] == 1.0
    assert table.loc[("theta", "y2"), "width"] > 3
    assert not comparison.failures
    axes = comparison.figure().axes
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["y1", "y2", "all together"]
    assert "all together" in str(comparison)


def test_an_outcome_that_says_nothing_alone_is_named_in_the_comparison():
    x, y = two_outcomes()

    def simulator(x, theta):
        return np.column_stack([theta[0] * x[:, 0] + theta[1], theta[1] * x[:, 0]])

    parameters = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    problem = oc.Problem(x, y, simulator, parameters, oc.Box(0, 1), noise_cov=TWO_OUTCOMES.noise_cov)
    comparison = oc.compare_outcomes(problem, draws=50, seed=1)
    assert list(comparison.posteriors) == ["y1", "all together"]
    assert "'a' has no effect" in comparison.failures["y2"]
    assert "y2: " in str(comparison)


def test_one_outcome_cannot_be_compared():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    with pytest.raises(InputError, match="nothing to compare"):
        oc.compare_outcomes(MODEL1.problem(x, y))
    with pytest.raises(InputError, match="give an oc"):
        oc.compare_outcomes("problem")

"""Warnings of many fits are given once, with a count."""

import warnings

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.comparison.fits import deduplicate_warnings


def warned(*texts, error=None):
    """All of these, inside."""
    with deduplicate_warnings():
        for text in texts:
            warnings.warn(text, oc.OrthocalWarning, stacklevel=1)
        if error:
            raise error


def test_a_kind_is_said_once_and_counted():
    shares = [f"{share:.0%} of the draws are outside" for share in (0.12, 0.3, 7)]
    with pytest.warns(oc.OrthocalWarning) as said:
        warned(*shares, "another thing")
    texts = [str(one.message) for one in said]
    assert texts == ["12% of the draws are outside (and the same in 2 more of the fits)", "another thing"]


def test_other_warnings_and_filters_stay():
    with pytest.warns(DeprecationWarning, match="old"), deduplicate_warnings():
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", oc.OrthocalWarning)
        with pytest.raises(oc.OrthocalWarning, match="first"):
            warned("first")


def test_an_error_does_not_lose_the_warnings():
    with pytest.warns(oc.OrthocalWarning, match="before"), pytest.raises(KeyError):
        warned("before", error=KeyError())


def test_folds_of_a_comparison():
    """An emulator far from its runs, in the fit to all data and in every fold: one warning."""
    rng = np.random.default_rng(0)
    x, theta = np.linspace(0, 1, 12), np.linspace(0, 1, 8)
    runs = oc.RunTable(theta[:, None], theta[:, None] * x, x[:, None], parameter_names=["a"])
    y = 3 * x + 0.1 * rng.standard_normal(12)
    problem = oc.Problem(x, y, oc.emulate(runs, "gp"), {"a": stats.norm(2, 2)}, oc.Box(0, 1, nodes=10), 0.01, starts=2)
    with pytest.warns(oc.OrthocalWarning) as said:
        oc.compare(problem, ["none"], folds=3, draws=10, chains=2, warmup=5, seed=1, progress=False)
    assert len(said) == 1
    assert "in 3 more of the fits" in str(said[0].message)

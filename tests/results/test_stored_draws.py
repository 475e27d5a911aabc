"""Model and bias at large data are kept of some draws, and what all say stands beside them."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError


def line(x, theta):
    return theta[0] * x[:, 0]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    x = rng.random((60, 1))
    y = 2 * x[:, 0] + 0.3 * np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(60)
    return oc.Problem(x, y, line, {"slope": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.01)


@pytest.fixture(scope="module")
def whole(problem):
    return oc.calibrate(problem, draws=300, chains=2, seed=1, progress=False)


@pytest.fixture(scope="module")
def some(problem):
    # 2 chains x 50 draws x 60 points x 2 arrays x 8 bytes
    return oc.calibrate(problem, draws=300, chains=2, seed=1, progress=False, keep_mb=0.096)


def test_theta_is_that_of_all_draws(whole, some):
    np.testing.assert_allclose(some.theta, whole.theta, rtol=1e-12)


def test_the_kept_draws_are_those_of_the_whole(whole, some):
    kept = some.record.stored_draws
    assert len(kept) == 50
    assert some.data["model"]["model"].sizes["kept_draw"] == 50
    for name in ("model", "bias"):
        np.testing.assert_allclose(some.record.at_data(name), whole.record.at_data(name, kept), atol=1e-9)


def test_statistics_are_those_of_the_kept_draws_where_these_are_many(some):
    mean = (some.record.at_data("model") + some.record.at_data("bias")).reshape(-1, 60, 1)
    found = some.data["at_data"]["mean"]
    np.testing.assert_allclose(found.sel(statistic="mean"), mean.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.sel(statistic="sd"), mean.std(axis=0, ddof=1), atol=1e-9)
    np.testing.assert_allclose(found.sel(statistic="q97.5"), np.quantile(mean, 0.975, axis=0), atol=1e-9)


def test_few_kept_draws_have_normal_quantiles_of_more(problem, whole):
    few = oc.calibrate(problem, draws=300, chains=2, seed=1, progress=False, keep_mb=0.01)
    assert len(few.record.stored_draws) == 5
    found, true = few.data["at_data"]["bias"], whole.record.at_data("bias").reshape(-1, 60, 1)
    # of 64 draws and more: sds to within four of their own errors, 1 / sqrt(128) each
    assert np.abs(found.sel(statistic="sd").values / true.std(axis=0) - 1).max() < 4 / np.sqrt(128)
    middle, upper = (found.sel(statistic=name).values for name in ("mean", "q97.5"))
    np.testing.assert_allclose(upper, middle + 1.959964 * found.sel(statistic="sd").values, rtol=1e-6)


def test_what_follows_works_with_kept_draws(some, tmp_path):
    assert some.check()
    assert "kept of 50 of 300 draws a chain" in str(some.check())
    assert some.predict().sizes["draw"] == 50
    assert some.predict(draws=3).sizes["draw"] == 3
    assert some.predict(np.array([[0.5]])).sizes["draw"] == 300
    loaded = oc.load(some.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(loaded.record.stored_draws, some.record.stored_draws)
    assert loaded.predict(draws=2).sizes["draw"] == 2
    loaded.report(tmp_path / "fit.html")
    with pytest.raises(InputError, match="larger keep_mb"):
        some.loo()


@pytest.mark.parametrize("wrong", [0, -1, np.inf, np.nan, "much", True])
def test_keep_mb_is_a_positive_number(problem, wrong):
    with pytest.raises(InputError, match="keep_mb"):
        oc.calibrate(problem, draws=10, keep_mb=wrong, progress=False)


def test_other_methods_keep_no_more_than_they_may(problem):
    """Their statistics are those of all draws."""
    whole, some = (
        oc.calibrate(problem, "pgp", draws=100, chains=2, seed=1, progress=False, keep_mb=mb) for mb in (256, 0.01)
    )
    np.testing.assert_array_equal(some.theta, whole.theta)
    assert len(some.record.stored_draws) == 5
    np.testing.assert_array_equal(some.record.at_data("bias"), whole.record.at_data("bias", some.record.stored_draws))
    every = whole.record.at_data("bias").reshape(-1, 60, 1)
    found = some.data["at_data"]["bias"]
    np.testing.assert_allclose(found.sel(statistic="q2.5"), np.quantile(every, 0.025, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.sel(statistic="sd"), every.std(axis=0, ddof=1), rtol=1e-9)

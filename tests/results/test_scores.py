"""Predictive scores: closed forms, an independent library, and controls that must fail."""

import functools
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.errors import InputError
from orthocal.examples import MODEL1, TWO_OUTCOMES
from orthocal.results.predict.likelihood import log_likelihood
from orthocal.results.predict.scores import CellScores, cell_scores, crps, loo, mean_and_error, score_table

short_run = functools.partial(short, draws=100, seed=3)


def gaussian_crps(y, mean=0.0, sd=1.0):
    """Gneiting and Raftery (2007), equation 5."""
    z = (y - mean) / sd
    return sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_the_crps_of_gaussian_draws_is_the_closed_form():
    y = np.array([-8.0, -1.0, 2.0, 3.7])
    draws = np.random.default_rng(0).normal(2.0, 3.0, (200_000, 1))
    np.testing.assert_allclose(crps(draws, y), gaussian_crps(y, 2.0, 3.0), atol=0.03)


def test_the_crps_is_the_mean_over_pairs():
    rng = np.random.default_rng(1)
    draws, y = rng.standard_normal((7, 3, 2)), rng.standard_normal((3, 2))
    pairs = np.abs(draws[:, None] - draws[None]).sum(axis=(0, 1)) / (7 * 6)
    np.testing.assert_allclose(crps(draws, y), np.abs(draws - y).mean(axis=0) - pairs / 2)


def test_few_draws_do_not_change_the_mean_crps():
    """The estimator with pairs of a draw and itself is wrong by a tenth here."""
    draws = np.random.default_rng(2).standard_normal((3, 20_000))
    scores = crps(draws, np.full(20_000, 0.5))
    error = scores.std() / np.sqrt(scores.size)
    assert abs(scores.mean() - gaussian_crps(0.5)) < 4 * error
    biased = scores + np.abs(draws[:, None] - draws[None]).mean(axis=(0, 1)) * (3 / 2 - 1) / 2
    assert abs(biased.mean() - gaussian_crps(0.5)) > 20 * error


def test_the_crps_does_not_depend_on_where_zero_is():
    draws, y = np.random.default_rng(3).standard_normal((50, 4)), np.arange(4.0)
    np.testing.assert_allclose(crps(draws + 1e6, y + 1e6), crps(draws, y), rtol=1e-8)
    np.testing.assert_allclose(crps(5 * draws, 5 * y), 5 * crps(draws, y))


def test_one_draw_is_refused():
    with pytest.raises(InputError, match="at least 2 draws, there are 1"):
        crps(np.zeros((1, 3)), np.zeros(3))


def test_intervals_of_the_right_distribution_cover_as_often_as_they_say():
    rng = np.random.default_rng(4)
    y = rng.standard_normal((4000, 1))
    table = score_table(cell_scores(rng.standard_normal((1000, 4000, 1)), y), ("y",))
    assert abs(table.loc["y", "coverage"] - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 4000)
    assert abs(table.loc["y", "rmse"] - 1) < 4 * table.loc["y", "rmse_se"]
    # E CRPS of N(0, 1) for observations from it
    assert abs(table.loc["y", "crps"] - 1 / np.sqrt(np.pi)) < 4 * table.loc["y", "crps_se"]
    # sd of the squared error of a Gaussian: sqrt(2)
    assert table.loc["y", "rmse_se"] == pytest.approx(np.sqrt(2 / 4000) / 2, rel=0.1)


def test_missing_cells_are_left_out():
    rng = np.random.default_rng(5)
    draws, y = rng.standard_normal((50, 20, 2)), rng.standard_normal((20, 2))
    holes = y.copy()
    holes[:5, 0] = np.nan
    part = score_table(cell_scores(draws, holes), ("a", "b"))
    alone = score_table(cell_scores(draws[:, 5:], y[5:]), ("a", "b"))
    np.testing.assert_allclose(part.loc["a"], alone.loc["a"])
    np.testing.assert_allclose(part.loc["b"], score_table(cell_scores(draws, y), ("a", "b")).loc["b"])


def test_known_scores():
    cells = CellScores(np.array([[3.0], [4.0]]), np.array([[1.0], [2.0]]), np.ones((2, 1)), np.ones((2, 1)))
    row = score_table(cells, ("y",)).loc["y"]
    assert row["rmse"] == pytest.approx(np.sqrt(12.5))
    assert row["rmse_se"] == pytest.approx(3.5 / (2 * np.sqrt(12.5)))
    assert row["crps"] == 1.5
    assert row["crps_se"] == pytest.approx(0.5)
    assert row["coverage"] == 1
    # four of six
    assert row["coverage_se"] == pytest.approx(np.sqrt(2 / 3 * 1 / 3 / 6))


def test_scores_without_any_cell_are_nan():
    nothing = np.full((3, 1), np.nan)
    assert score_table(CellScores(nothing, nothing, nothing, nothing), ("y",)).isna().all(axis=None)
    assert np.isnan(mean_and_error(nothing[:, 0])).all()


@pytest.mark.parametrize("noise", ["known", "by point", "sample"])
def test_the_log_likelihood_is_that_of_the_observed_cells(noise):
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(6), 12)
    y[0, 0] = y[1, 1] = y[2] = np.nan
    covs = TWO_OUTCOMES.noise_cov * np.linspace(0.5, 2, 12)[:, None, None]
    given = {"known": TWO_OUTCOMES.noise_cov, "by point": covs, "sample": "sample"}[noise]
    if noise == "sample":
        # the noise of 12 rows cannot be estimated well, but it can be drawn
        x, y = np.tile(x, (3, 1)), np.tile(y, (3, 1)) + 0.1 * np.random.default_rng(7).standard_normal((36, 2))
    method = "gp" if noise == "sample" else "pgp"
    posterior = short_run(TWO_OUTCOMES.problem(x, y, noise_cov=given), method, draws=5)
    # the third row has no observation: there is nothing to predict
    rows = np.flatnonzero((~np.isnan(y)).any(axis=1))
    found = log_likelihood(posterior.record)
    assert found.shape[2] == len(rows) == len(y) - np.isnan(y).all(axis=1).sum()
    drawn, fitted = posterior.data["posterior"], posterior.record.at_data("model") + posterior.record.at_data("bias")
    for c, s, i in [(0, 0, 0), (1, 4, 1), (0, 3, 3), (1, 2, 5)]:
        cov = {"known": given, "by point": covs[i], "sample": None}[noise]
        cov = drawn["noise_cov"].values[c, s] if cov is None else cov
        seen = ~np.isnan(y[i])
        mean = fitted[c, s, i]
        expected = stats.multivariate_normal(mean[seen], cov[np.ix_(seen, seen)]).logpdf(y[i, seen])
        assert found[c, s, np.searchsorted(rows, i)] == pytest.approx(expected)


def test_loo_is_that_of_arviz():
    from arviz_stats import loo as arviz_loo

    x, y = MODEL1.simulate(np.random.default_rng(8), 30)
    y[0] += 2.0
    posterior = short_run(MODEL1.problem(x, y), "pgp", draws=300)
    own = loo(posterior.record)
    density = log_likelihood(posterior.record)
    theta = posterior.data["posterior"].to_dataset()[["theta"]]
    tree = xr.DataTree.from_dict(
        {"posterior": theta, "log_likelihood": xr.Dataset({"y": (("chain", "draw", "point"), density)})}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = arviz_loo(tree, pointwise=True)
    assert own.elpd == pytest.approx(theirs.elpd, rel=1e-6)
    # theirs divides by n, or by n - 1, depending on its version
    assert own.se == pytest.approx(np.sqrt(30 * np.var(theirs.elpd_i.values)), rel=1e-6)
    assert own.p == pytest.approx(theirs.p, rel=1e-6)
    np.testing.assert_allclose(own.pareto_k, theirs.pareto_k.values, rtol=1e-6)


def test_loo_of_a_line_without_bias_is_the_closed_form():
    """y = theta x + e: leaving a row out gives a Gaussian of known mean and variance."""
    rng = np.random.default_rng(9)
    x = rng.random((25, 1))
    y = 3 * x[:, 0] + 0.2 * rng.standard_normal(25)
    problem = oc.Problem(x, y, MODEL1.simulator, {"theta": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.04)
    found = loo(short_run(problem, "none", draws=2000).record)
    exact = 0.0
    for i in range(25):
        kept = np.arange(25) != i
        precision = 1 / 100 + np.sum(x[kept] ** 2) / 0.04
        mean = np.sum(x[kept, 0] * y[kept]) / 0.04 / precision
        exact += stats.norm.logpdf(y[i], mean * x[i, 0], np.sqrt(0.04 + x[i, 0] ** 2 / precision))
    assert found.elpd == pytest.approx(exact, abs=0.1)
    # one parameter
    assert found.p == pytest.approx(1.0, abs=0.5)
    assert found.high_k == 0


def test_an_observation_that_the_fit_leans_on_has_a_high_k():
    """One point, far out, decides the slope: without it the posterior is another one."""
    x = np.append(np.full(20, 0.01), 1.0)[:, None]
    y = np.append(np.random.default_rng(10).normal(0, 0.2, 20), 5.0)
    problem = oc.Problem(x, y, MODEL1.simulator, {"theta": stats.norm(0, 100)}, oc.Box(0, 1), noise_cov=0.04)
    found = loo(short_run(problem, "none", draws=500).record)
    assert found.pareto_k.argmax() == 20
    assert found.high_k == 1


def test_rows_that_say_nothing_and_runs_that_are_too_short():
    x = np.linspace(0, 1, 10)[:, None]
    problem = MODEL1.problem(x, 3 * x[:, 0] + 0.1 * (-1.0) ** np.arange(10))
    found = loo(short_run(problem, "none", draws=100).record)
    # at x = 0 the line is 0 whatever theta
    assert found.pareto_k[0] == 0
    assert np.isfinite(found.elpd)
    # 8 draws have no tail: nothing is to be trusted, but at x = 0
    assert loo(short_run(problem, "none", draws=4).record).high_k == 9

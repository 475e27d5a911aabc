"""Gaussian processes with more than 3000 distinct points, and the same form for few: what is chosen, said and kept."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError

PRIORS = {"a": stats.norm(1, 10), "b": stats.norm(1, 10)}


def simulator(x, theta):
    x = x.reshape(len(x), -1)
    return theta[0] * np.sin(x[:, 0] + x[:, -1]) + np.exp(theta[1] * x[:, 0] / 3)


def problem(n, d=1, seed=0, outcomes=1, **given):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    y = simulator(x, [1.0, 1.5]) + 0.3 * np.sin(9 * x[:, 0]) * np.cos(4 * x[:, -1])
    y = np.stack([y] * outcomes, axis=1) + 0.2 * rng.standard_normal((n, outcomes))

    def of_outcomes(x, theta):
        return np.stack([simulator(x, theta)] * outcomes, axis=1)

    given = {"noise_cov": 0.04 * np.eye(outcomes), "domain": oc.Box(np.zeros(d), np.ones(d)), **given}
    return oc.Problem(x, y, of_outcomes, PRIORS, **given)


def fit(given, draws=250, **prior):
    return oc.calibrate(given, oc.methods.Joint(oc.bias.GP(**prior)), draws=draws, seed=1, progress=False)


def form(posterior):
    return posterior.record.run_facts.bias[0].get("form")


@pytest.mark.slow
def test_the_form_goes_by_the_number_of_points_and_inputs():
    assert form(fit(problem(300), draws=25)) is None
    assert form(fit(problem(3500), draws=25)) == "exact along one input"
    assert form(fit(problem(3500, d=2), draws=25)) == "values on a grid"
    assert form(fit(problem(300, d=4), draws=25, form="large")) == "values at inducing points"
    assert form(fit(problem(300), draws=25, form="large", nu=np.inf)) == "values on a grid"


@pytest.mark.parametrize(("d", "nu"), [(1, 1.5), (1, 2.5), (2, 1.5)])
def test_a_nonlinear_simulator_has_the_posterior_of_the_dense_form(d, nu):
    """500 independent draws of each: means within 4.5 standard errors (7 of a million), sds within 4.5 of theirs."""
    given = problem(400, d, seed=2)
    dense, large = (fit(given, nu=nu, sd=0.3, lengthscale=0.4, form=form) for form in ("dense", "large"))
    sd, count = dense.theta.std(axis=(0, 1)), 1000
    off = (large.theta.mean(axis=(0, 1)) - dense.theta.mean(axis=(0, 1))) / sd
    assert np.abs(off).max() < 4.5 * np.sqrt(2 / count) + 0.05
    assert np.abs(large.theta.std(axis=(0, 1)) / sd - 1).max() < 4.5 / np.sqrt(count) + 0.03
    assert large.data["sample_stats"]["orthogonality_error"].max() < 1e-3
    # the same bias at the data, and so the same fit
    means = [one.record.at_data("bias").mean(axis=(0, 1)) for one in (dense, large)]
    spread = dense.record.at_data("bias").std(axis=(0, 1))
    assert np.abs((means[0] - means[1]) / spread).max() < 4.5 * np.sqrt(2 / count) + 0.1


@pytest.mark.parametrize("d", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_file_predicts_as_the_posterior_does(d, tmp_path):
    posterior = fit(problem(300, d), draws=50, form="large")
    again = oc.load(posterior.save(tmp_path / "fit.nc"), simulator=lambda x, theta: simulator(x, theta)[:, None])
    x_new = np.random.default_rng(5).random((20, d))
    one, other = (each.predict(x_new, seed=3) for each in (posterior, again))
    for name in ("model", "bias", "observation"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_predictions_at_the_data_are_the_draws_at_the_data(d):
    given = problem(300, d)
    posterior = fit(given, draws=250, form="large")
    here, there = posterior.predict(), posterior.predict(given.data.x, warn=False)
    apart = here["mean"].mean(("chain", "draw")).values - there["mean"].mean(("chain", "draw")).values
    assert np.abs(apart).max() < 0.02
    ratio = here["mean"].std(("chain", "draw")) / there["mean"].std(("chain", "draw"))
    assert np.abs(ratio.values - 1).max() < 0.2


def test_check_says_what_was_done_and_how_good_it_is():
    text = str(fit(problem(400, d=2), draws=50, form="large").check())
    assert "large data: the Gaussian process is computed in one pass, values on a grid" in text
    assert "functions would move theta by" in text
    assert "nodes of the bias would move theta by" in text


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_missing_cells_and_replicates_are_those_of_the_dense_form(d):
    given = problem(300, d, outcomes=2)
    x, y = (np.vstack([values, values[50:80]]) for values in (given.data.x, given.data.y))
    y[:40, 0], y[35:90, 1] = np.nan, np.nan
    holes = oc.Problem(x, y, given.simulator.evaluate, PRIORS, given.domain, [0.04, 0.04])
    dense, large = (fit(holes, sd=0.3, lengthscale=0.4, form=form) for form in ("dense", "large"))
    off = (large.theta.mean(axis=(0, 1)) - dense.theta.mean(axis=(0, 1))) / dense.theta.std(axis=(0, 1))
    assert np.abs(off).max() < 4.5 * np.sqrt(2 / 1000) + 0.05


@pytest.mark.slow
def test_what_cannot_be_had_is_a_sentence():
    with pytest.raises(InputError, match='take "estimate"'):
        fit(problem(300, noise_cov="sample"), form="large")
    with pytest.raises(InputError, match="well known"):
        fit(problem(300), form="large")
    with pytest.raises(InputError, match="a longer lengthscale"):
        fit(problem(300, d=3), form="large", sd=0.3, lengthscale=0.01)
    coupled = problem(300, outcomes=2, noise_cov=[[0.04, 0.02], [0.02, 0.04]])
    y = coupled.data.y.copy()
    y[3, 1] = np.nan
    with pytest.raises(InputError, match="complete or uncorrelated"):
        fit(
            oc.Problem(coupled.data.x, y, coupled.simulator.evaluate, PRIORS, noise_cov=[[0.04, 0.02], [0.02, 0.04]]),
            form="large",
        )
    with pytest.raises(InputError, match='"auto", "dense" or "large"'):
        oc.bias.GP(form="huge")
    with pytest.raises(InputError, match="take the method gp"):
        oc.calibrate(problem(10_001), "pgp", draws=4, progress=False)


@pytest.mark.slow
def test_an_input_that_does_not_vary_and_one_repeated_point():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random(3200), np.full(3200, 0.5)])
    y = simulator(x, [1.0, 1.5]) + 0.2 * rng.standard_normal(3200)
    posterior = fit(oc.Problem(x, y, simulator, PRIORS, oc.Box([0, 0], [1, 1]), 0.04), draws=50)
    assert np.isfinite(posterior.theta).all()
    x[100:3000] = x[100]
    y[100:3000] = simulator(x[100:101], [1.0, 1.5])[0] + 0.2 * rng.standard_normal(2900)
    posterior = fit(oc.Problem(x, y, simulator, PRIORS, oc.Box([0, 0], [1, 1]), 0.04), draws=50, form="large")
    assert np.isfinite(posterior.theta).all()


def test_the_same_seed_gives_the_same_draws_and_more_of_them():
    given = problem(300)
    one, other = (fit(given, draws=50, form="large") for _ in range(2))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert one.extend(25).theta.shape[1] == 75

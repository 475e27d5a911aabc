"""The groups of ``posterior.data``: what is in them, and that what a file does not hold is drawn the same again."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import orthocal as oc
from helpers import two_outcomes, with_holes
from orthocal.examples import MODEL1, TWO_OUTCOMES
from orthocal.results.data_tree import PREDICTIVE
from orthocal.results.predict import predictive_data as predictive

RUN = {"draws": 60, "chains": 2, "seed": 3, "warmup": 20, "progress": False}


def line(x, theta):
    return theta[0] * x[:, 0] + theta[1]


def problem(**changes):
    x = np.linspace(0, 1, 30)[:, None]
    y = 2 * x[:, 0] + 0.3 + 0.1 * np.random.default_rng(0).standard_normal(30)
    priors = {("slope", "offset"): stats.multivariate_normal([1, 0], [[4, 1], [1, 4]])}
    return oc.Problem(x, y, line, priors, oc.Box(0, 1), noise_cov=0.01, starts=2, **changes)


@pytest.fixture(scope="module")
def posterior():
    return oc.calibrate(problem(), "gp", **RUN)


def test_the_posterior_group_has_the_parameters_only(posterior):
    assert set(posterior.data["posterior"].variables) == {"chain", "draw", "slope", "offset"}
    assert posterior.data["model"]["model"].dims == posterior.data["bias"]["bias"].dims


def test_the_density_of_the_prior_is_that_of_the_draws(posterior):
    given = stats.multivariate_normal([1, 0], [[4, 1], [1, 4]])
    np.testing.assert_allclose(posterior.data["log_prior"]["slope, offset"], given.logpdf(posterior.theta))


def test_the_prior_is_drawn_with_its_correlation(posterior):
    drawn = np.stack([posterior.data["prior"][name].values[0] for name in ("slope", "offset")])
    # five standard errors of 2000 draws
    np.testing.assert_allclose(np.cov(drawn), [[4, 1], [1, 4]], atol=5 * 4 * np.sqrt(2 / 2000))
    np.testing.assert_allclose(drawn.mean(axis=1), [1, 0], atol=5 * 2 / np.sqrt(2000))


def test_draws_of_a_constrained_prior_are_allowed():
    found = oc.calibrate(problem(constraint="slope > 2 * offset"), "none", **RUN).data["prior"]
    assert found.sizes["draw"] == 2000
    assert (found["slope"] > 2 * found["offset"]).all()


def test_pcal_takes_no_prior_and_so_has_no_density_of_it():
    found = oc.calibrate(problem(), "pcal", **RUN).data
    assert "prior" in found.children
    assert "log_prior" not in found.children


def test_observations_are_drawn_around_model_and_bias(posterior):
    drawn = posterior.data["posterior_predictive"]["y"]
    assert drawn.dims == ("chain", "draw", "point")
    noise = drawn.values - (posterior.record.at_data("model") + posterior.record.at_data("bias"))[..., 0]
    assert noise.std() == pytest.approx(0.1, rel=5 / np.sqrt(2 * noise.size))
    assert abs(noise.mean()) < 5 * 0.1 / np.sqrt(noise.size)


def test_cells_that_are_missing_are_not_predicted():
    x, y = two_outcomes(n=20)
    found = oc.calibrate(TWO_OUTCOMES.problem(x, with_holes(y), starts=2), "none", **RUN)
    seen = ~np.isnan(with_holes(y))
    for k, name in enumerate(found.outcome_names):
        observed, drawn = (found.data[group][name] for group in ("observed_data", "posterior_predictive"))
        assert observed.dims == drawn.dims[2:]
        np.testing.assert_array_equal(observed[observed.dims[0]], np.flatnonzero(seen[:, k]))
        np.testing.assert_array_equal(observed, y[seen[:, k], k])


def test_sampled_noise_has_its_own_in_every_draw(tmp_path):
    found = oc.calibrate(MODEL1.problem(*MODEL1.simulate(np.random.default_rng(1), 20), noise_cov="sample"), **RUN)
    # a flat prior has no draws
    assert "noise_cov" not in found.data["prior"]
    mean = (found.record.at_data("model") + found.record.at_data("bias"))[..., 0]
    sd = np.sqrt(found.data["posterior"]["noise_cov"].values[..., 0])
    scaled = (found.data["posterior_predictive"]["y"].values - mean) / sd
    assert scaled.std() == pytest.approx(1, rel=5 / np.sqrt(2 * scaled.size))


def test_files_do_not_hold_the_observations_but_give_them_again(posterior, tmp_path):
    drawn = posterior.data["posterior_predictive"].to_dataset()
    path = posterior.save(tmp_path / "fit.nc")
    with xr.open_datatree(path) as stored:
        assert PREDICTIVE not in stored.children
        assert {"prior", "log_prior", "log_likelihood", "model", "bias"} <= set(stored.children)
    xr.testing.assert_identical(oc.load(path).data["posterior_predictive"].to_dataset(), drawn)


def test_of_large_data_observations_of_some_draws_are_drawn(posterior, monkeypatch, tmp_path):
    monkeypatch.setattr(predictive, "MOST", 2 * 7 * 30)
    found = oc.load(posterior.save(tmp_path / "fit.nc")).data["posterior_predictive"]
    np.testing.assert_array_equal(found["draw"], np.linspace(0, 59, 7).round())


@pytest.mark.slow
def test_experiments_have_the_groups_of_all(tmp_path):
    x = np.linspace(0, 1, 12)[:, None]
    rng = np.random.default_rng(5)
    priors = {"slope": stats.norm(0, 5), "offset": stats.norm(0, 3)}
    each = {
        f"rig {name}": oc.Problem(x, 2 * x[:, 0] + k + 0.1 * rng.standard_normal(12), line, priors, oc.Box(0, 1), 0.01)
        for k, name in enumerate("AB")
    }
    made = oc.Experiments(each, private={"offset": oc.Pooled(sd=stats.halfnorm(scale=2.0))})
    found = oc.calibrate(made, "gp", **RUN)
    data = found.data
    assert set(data["observed_data"].data_vars) == {"y[rig A]", "y[rig B]"} == set(data["log_likelihood"].data_vars)
    own = found["rig B"]
    np.testing.assert_array_equal(data["log_likelihood"]["y[rig B]"], own.log_likelihood["y"])
    theta, log_prior = data["posterior"], data["log_prior"]
    pooled = stats.norm(theta["mu[offset]"], theta["tau[offset]"]).logpdf(theta["offset[rig B]"])
    np.testing.assert_allclose(log_prior["offset[rig B]"], pooled)
    np.testing.assert_allclose(own.data["log_prior"]["offset"], pooled)
    np.testing.assert_allclose(log_prior["tau[offset]"], stats.halfnorm(scale=2.0).logpdf(theta["tau[offset]"]))
    prior = data["prior"]
    # var = that of mu, and E tau^2; kurtosis of the mixture is below 7
    spread = prior["offset[rig A]"].values.std() / np.sqrt(9 + 4)
    assert spread == pytest.approx(1, abs=5 * np.sqrt(6 / 4 / 2000))
    shared = np.corrcoef(prior["offset[rig A]"].values[0], prior["offset[rig B]"].values[0])[0, 1]
    assert shared == pytest.approx(9 / 13, abs=5 / np.sqrt(2000))
    again = oc.load(found.save(tmp_path / "fit.nc"))
    assert again.record.data["observed_data"].to_dataset().equals(xr.Dataset())
    xr.testing.assert_identical(
        again.data["posterior_predictive"].to_dataset(), data["posterior_predictive"].to_dataset()
    )

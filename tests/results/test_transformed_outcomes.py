"""An outcome with a transform is the same problem as one whose logarithm the user took, but for the way back."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.errors import InputError
from orthocal.results.figures.figures import bias_drawing, fit_drawing
from orthocal.results.report.report import render

RNG = np.random.default_rng(5)
X = np.sort(RNG.uniform(0, 3, 30))
NEW = np.array([0.4, 1.7, 2.9])
PRIORS = {"a": stats.norm(40, 20), "scale": stats.norm(1, 0.5)}
SMALL = {"draws": 60, "chains": 2, "warmup": 50, "progress": False}


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x)


def rising(x, theta):
    return np.stack([decay(x, theta), theta[1] * x], axis=1)


Y = decay(X, [50, 1.2]) * np.exp(0.1 * np.sin(3 * X) + 0.15 * RNG.standard_normal(30))
TWO = np.stack([Y, 1.2 * X + 0.1 * RNG.standard_normal(30)], axis=1)
TWO[4, 0] = TWO[9, 1] = np.nan


def by_transform(**options):
    return oc.Problem(X, Y, decay, PRIORS, oc.Box(0, 3), transform="log", starts=4, **{"noise_cov": 0.02, **options})


def by_hand(**options):
    def logarithm(x, theta):
        values = decay(x, theta)
        return np.log(values) if values.min() > 0 else np.full_like(values, np.nan)

    return oc.Problem(X, np.log(Y), logarithm, PRIORS, oc.Box(0, 3), starts=4, **{"noise_cov": 0.02, **options})


@pytest.fixture(scope="module")
def pair():
    return short(by_transform(), "gp"), short(by_hand(), "gp")


def test_the_draws_are_those_of_the_logarithm(pair):
    one, other = pair
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(one.data["bias"]["bias"], other.data["bias"]["bias"])


@pytest.mark.parametrize("noise", ["estimate", pytest.param("sample", marks=pytest.mark.slow)])
def test_so_is_estimated_and_sampled_noise(noise):
    one, other = (short(make(noise_cov=noise), "pgp", draws=20) for make in (by_transform, by_hand))
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_allclose(one.predict(NEW)["observation"], np.exp(other.predict(NEW)["observation"]))


@pytest.mark.parametrize("x_new", [None, NEW], ids=["data", "new"])
def test_predictions_come_back(pair, x_new):
    one, other = (posterior.predict(x_new) for posterior in pair)
    for name in ("model", "mean", "observation"):
        np.testing.assert_allclose(one[name], np.exp(other[name]), rtol=1e-12)
    np.testing.assert_allclose(one["bias"], np.exp(other["mean"]) - np.exp(other["model"]), rtol=1e-9, atol=1e-12)
    assert list(one.data_vars) == list(other.data_vars)
    transformed = pair[0].predict(x_new, scale="transformed")
    for name in other.data_vars:
        np.testing.assert_array_equal(transformed[name], other[name])
    with pytest.raises(InputError, match="scale='log'"):
        pair[0].predict(x_new, scale="log")


def test_densities_are_those_of_y(pair):
    """p(y) = p(log y) / y."""
    one, other = pair
    np.testing.assert_allclose(one.log_likelihood["y"], other.log_likelihood["y"] - np.log(Y), rtol=1e-9)
    assert one.loo().elpd == pytest.approx(other.loo().elpd - np.log(Y).sum())


def test_what_is_stored(pair, tmp_path):
    one = pair[0]
    np.testing.assert_array_equal(one.data["observed_data"]["y"].values, Y)
    loaded = oc.load(one.save(tmp_path / "fit.nc"), simulator=decay)
    np.testing.assert_array_equal(loaded.record.y, one.record.y)
    assert loaded.data["bias"]["bias"].attrs["scale"] == "log y"
    xr_one, xr_loaded = one.predict(NEW, seed=3), loaded.predict(NEW, seed=3)
    for name in xr_one.data_vars:
        np.testing.assert_array_equal(xr_one[name], xr_loaded[name])
    np.testing.assert_array_equal(loaded.curves["mean"], one.curves["mean"])
    assert str(loaded.check()) == str(one.check())


def test_words_name_the_scale(pair):
    one, other = pair
    assert list(one.bias_size().index) == ["log y"]
    np.testing.assert_array_equal(one.bias_size(), other.bias_size())
    assert "the scatter of log y around" in str(one.check())
    page = render(one.record)
    for words in ("on the scale of log y", "bias of log y", "back on the scale of the observations"):
        assert words in page
    assert "log y" not in str(other.check())


def test_curves_are_on_both_scales(pair):
    """Quantiles come back exactly, means are those of what came back."""
    one, other = (posterior.curves for posterior in pair)
    np.testing.assert_array_equal(one["bias"], other["bias"])
    for name in ("model", "mean", "observation"):
        np.testing.assert_allclose(one[name][1:], np.exp(other[name][1:]), rtol=2e-3)
        assert (one[name][0] >= np.exp(other[name][0]) * (1 - 1e-12)).all()


def test_scores_are_on_the_scale_of_y():
    compared = oc.compare(by_transform(), ["none"], folds=3, seed=1, loo=True, **SMALL)
    error = compared.held_out["none"].with_bias.error[:, 0]
    own = oc.compare(by_hand(), ["none"], folds=3, seed=1, **SMALL).held_out["none"].with_bias.error[:, 0]
    # the error of a mean of exponentials is about y times that of the logarithm
    assert np.corrcoef(error / Y, own)[0, 1] > 0.98
    assert np.sqrt(np.mean(error**2)) > 2
    assert "elpd" in str(compared)


@pytest.mark.parametrize(
    "method", ["gp", *(pytest.param(name, marks=pytest.mark.slow) for name in ("bart", "pgp", "ko", "ogp", "none"))]
)
def test_several_outcomes_with_missing_cells(method):
    problem = oc.Problem(
        pd.DataFrame({"t": X}),
        pd.DataFrame(TWO, columns=["c", "v"]),
        rising,
        PRIORS,
        oc.Box(0, 3),
        [0.02, 0.01],
        transform={"c": "log"},
        starts=4,
    )
    posterior = short(problem, method, draws=20)
    predicted = posterior.predict(NEW)
    assert (predicted["observation"].sel(outcome="c") > 0).all()
    own = posterior.predict(NEW, scale="transformed")
    np.testing.assert_array_equal(predicted.sel(outcome="v")["bias"], own.sel(outcome="v")["bias"])
    np.testing.assert_allclose(predicted.sel(outcome="c")["mean"], np.exp(own.sel(outcome="c")["mean"]))
    np.testing.assert_allclose(predicted["model"].sel(outcome="v"), posterior.theta[:, :, 1:] * NEW)
    assert list(posterior.bias_size().index) == ["log c", "v"]
    labels = [
        axis.get_ylabel() for draw in (fit_drawing, bias_drawing) for axis in draw(posterior.record).figure().axes
    ]
    assert labels == ["c", "c", "v", "v", "bias of log c", "bias of v"]


def test_each_outcome_alone():
    problem = oc.Problem(X, TWO, rising, PRIORS, oc.Box(0, 3), [0.02, 0.01], transform=["log", None], starts=4)
    alone = short(problem.outcome(0), "none")
    np.testing.assert_allclose(alone.predict()["model"].values[0, 0, :, 0], decay(X, alone.theta[0, 0]), rtol=1e-9)
    np.testing.assert_array_equal(alone.record.native_y[:, 0], TWO[:, 0])


def test_zeros_have_no_density_on_the_scale_of_y():
    y = np.round(decay(X, [6, 2]))
    assert (y == 0).any()
    problem = oc.Problem(X, y, decay, PRIORS, oc.Box(0, 3), 0.25, transform="sqrt", starts=4)
    posterior = short(problem, "none")
    assert "log_likelihood" not in posterior.data.children
    assert (posterior.predict()["observation"] >= 0).all()
    for wrong in (posterior.loo, lambda: posterior.log_likelihood, lambda: oc.compare(problem, ["none"], loo=True)):
        with pytest.raises(InputError, match="y has zeros"):
            wrong()


def test_simulators_are_compared_on_one_scale():
    with pytest.raises(InputError, match="differ in their transform"):
        oc.compare_simulators({"A": by_transform(), "B": oc.Problem(X, Y, decay, PRIORS, oc.Box(0, 3), 0.02)})


def test_a_wide_range_has_a_logarithmic_axis():
    def scales(problem):
        return {axis.get_yscale() for axis in fit_drawing(short(problem, "none", draws=20).record).figure().axes}

    wide = Y * np.exp(2 * X - 4 * X)
    options = {"domain": oc.Box(0, 3), "noise_cov": 0.02, "starts": 4}
    priors = {"a": stats.norm(40, 20), "k": stats.norm(3, 0.5)}
    assert scales(oc.Problem(X, wide, decay, priors, transform="log", **options)) == {"log"}
    assert scales(by_transform()) == {"linear"}

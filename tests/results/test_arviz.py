"""The statistician's journey: ArviZ's functions on ``posterior.data``, and their numbers beside ours."""

import warnings

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

azs = pytest.importorskip("arviz_stats")
azp = pytest.importorskip("arviz_plots")

RUN = {"draws": 150, "chains": 4, "seed": 2, "progress": False}
X = np.linspace(0, 1, 30)[:, None]
PRIORS = {"a": stats.norm(0, 10), "b": stats.uniform(-3, 6)}


def two(x, theta):
    return np.column_stack([theta[0] * x[:, 0] + theta[1], theta[1] * x[:, 0]])


def line(x, theta):
    return theta[0] * x[:, 0] + theta[1]


def made(case):
    rng = np.random.default_rng(7)
    y = two(X, [2.0, 1.0]) + np.sin(6 * X) * [0.2, 0.1] + 0.1 * rng.standard_normal((30, 2))
    settings = {"domain": oc.Box(0, 1), "noise_cov": 0.01, "starts": 2}
    if case == "experiments":
        each = {f"rig {name}": oc.Problem(X, y[:, 0] + k, line, PRIORS, **settings) for k, name in enumerate("AB")}
        return oc.calibrate(oc.Experiments(each, private=["b"]), "gp", **RUN)
    if case in ("gp", "sampled noise"):
        settings |= {"noise_cov": "sample"} if case == "sampled noise" else {}
        return oc.calibrate(oc.Problem(X, y[:, 0], line, PRIORS, outcome_names="height", **settings), "gp", **RUN)
    if case != "several outcomes":
        y[4, 0], y[5] = np.nan, np.nan
    method = oc.methods.Joint(oc.bias.BART(trees=20)) if case == "bart" else "pgp" if case == "algorithm 1" else "gp"
    return oc.calibrate(oc.Problem(X, y, two, PRIORS, outcome_names=("v", "sigma"), **settings), method, **RUN)


CASES = ("gp", "sampled noise", "several outcomes", "missing cells", "bart", "experiments", "algorithm 1")


@pytest.fixture(
    scope="module",
    params=[one if one in ("gp", "missing cells") else pytest.param(one, marks=pytest.mark.slow) for one in CASES],
)
def fit(request):
    return request.param, made(request.param)


@pytest.fixture(autouse=True)
def no_window():
    import matplotlib.pyplot as plt

    before = plt.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


def panels(collection):
    """The names of what was drawn."""
    return set(collection.viz["plot"].data_vars)


def test_summary_is_ours(fit):
    _, posterior = fit
    theirs, ours = azs.summary(posterior.data, round_to="none"), posterior.summary()
    parameters = list(posterior.record.variables)
    np.testing.assert_allclose(theirs.loc[parameters, "mean"].astype(float), ours["mean"])
    np.testing.assert_allclose(theirs.loc[parameters, "ess_bulk"].astype(float), ours["ess_bulk"])
    others = [name for name in theirs.index if name not in parameters]
    assert all(name.startswith("noise_cov") for name in others)


def test_the_posterior_is_plotted(fit):
    case, posterior = fit
    names = {*posterior.record.variables, *(["noise_cov"] if case == "sampled noise" else [])}
    assert panels(azp.plot_dist(posterior.data)) == names
    azp.plot_forest(posterior.data)
    with warnings.catch_warnings():
        # of arviz-plots itself, where there are several panels
        warnings.simplefilter("ignore", FutureWarning)
        assert panels(azp.plot_prior_posterior(posterior.data)) == names


def test_predictive_checks_have_a_panel_an_outcome(fit):
    _, posterior = fit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        shown = panels(azp.plot_ppc_dist(posterior.data))
    assert shown == set(posterior.data["observed_data"].data_vars)
    assert len(shown) == {"gp": 1, "sampled noise": 1}.get(fit[0], 2)


def test_leave_one_out_is_ours(fit):
    case, posterior = fit
    if case == "algorithm 1":
        with pytest.raises(TypeError, match="log likelihood not found"):
            azs.loo(posterior.data)
        return
    names = [None] if case != "experiments" else ["y[rig A]", "y[rig B]"]
    for name in names:
        with warnings.catch_warnings():
            # of rows whose Pareto k is large: ours says so too
            warnings.simplefilter("ignore", UserWarning)
            theirs = azs.loo(posterior.data, var_name=name, pointwise=True)
        ours = (posterior if name is None else posterior[name[2:-1]]).loo()
        assert theirs.elpd == pytest.approx(ours.elpd, rel=1e-9, abs=1e-6 if name is None else 0.05)
        assert theirs.p == pytest.approx(ours.p, rel=1e-6 if name is None else 0.05)
        if name is None:
            np.testing.assert_allclose(theirs.pareto_k.values.ravel(), ours.pareto_k, atol=1e-9)


def test_power_scaling_knows_which_prior_matters(fit):
    """A prior far wider than the posterior says nothing; the likelihood says all."""
    case, posterior = fit
    if case == "algorithm 1":
        assert "log_prior" in posterior.data.children
        return
    table = azs.psense_summary(posterior.data, var_names=list(posterior.record.variables))
    assert (table["prior"].astype(float) < 0.05).all()
    assert (table["likelihood"].astype(float) > 0.03).all()


def test_power_scaling_finds_a_prior_that_contradicts_the_data():
    y = line(X, [2.0, 1.0]) + 0.1 * np.random.default_rng(3).standard_normal(30)
    priors = {"a": stats.norm(2, 10), "b": stats.norm(1.3, 0.04)}
    problem = oc.Problem(X, y, line, priors, oc.Box(0, 1), noise_cov=0.01, starts=2)
    table = azs.psense_summary(oc.calibrate(problem, "none", **RUN).data).astype({"prior": float})
    assert table.loc["b", "prior"] > 0.1
    by_prior = azs.psense_summary(oc.calibrate(problem, "none", **RUN).data, prior_var_names="a")
    assert (by_prior["prior"].astype(float) < 0.02).all()

"""Splines in several experiments: a slope that two experiments disagree about can stand in the bias of either."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

PRIORS = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
QUICK = {"draws": 30, "chains": 2, "warmup": 20, "seed": 1, "progress": False}


def f(x, theta):
    return theta[0] * x + theta[1]


def mirrored(noise_cov=0.01):
    """B has the data of A with the other sign: what is said about the two is the same."""
    x = np.linspace(0, 1, 20)
    y = x + 0.1 * np.random.default_rng(1).standard_normal(20)
    return oc.Experiments(
        {
            name: oc.Problem(x, sign * y, f, PRIORS, oc.Box(0, 1, nodes=12), noise_cov=noise_cov, starts=2)
            for name, sign in (("A", 1), ("B", -1))
        },
        private=["offset"],
    )


def has_functions(posterior):
    """Whether the bias has more than its intercept, (c, s)."""
    return (posterior.data["bias_state"]["value_0"].values[..., 1:] != 0).any(axis=-1)


@pytest.mark.parametrize("noise_cov", [0.01, "sample"])
def test_chains_go_from_one_explanation_to_the_other(noise_cov):
    """A slope in the bias of A alone is as probable as one in that of B, in every chain.

    The shares of a chain differ by .06 (sd of 80 chains; .08 with sampled noise), so that .35 is chance in 1
    of 5000 runs. With beta given the biases they differed by .4 to .8 in every chain: 2000 draws were worth 6 to say
    which, and R-hat of theta showed nothing.
    """
    posterior = oc.calibrate(mirrored(noise_cov), "bmars", draws=500, chains=4, seed=1, progress=False)
    a, b = (has_functions(posterior[name]) for name in "AB")
    assert (a | b).mean() > 0.95
    assert np.mean(a & ~b) > 0.1
    assert np.abs(np.mean(a.astype(float) - b, axis=1)).max() < 0.35


def test_draws_at_the_data_are_those_of_the_functions():
    """After the coefficients were drawn anew, values and functions belong together."""
    own = oc.calibrate(mirrored(), "bmars", **QUICK)["A"]
    there = own.predict(own.record.x, warn=False)
    np.testing.assert_allclose(there["bias"].values, own.record.at_data("bias"), atol=1e-8)


def test_labels_outcomes_and_missing_cells():
    """One experiment with a categorical input, one with two outcomes of which some are missing, one of correlated
    noise, whose beta is given its bias."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, 24)
    site = np.tile(["north", "south"], 12)
    y = np.stack([2 * x + 0.3 * (site == "south"), -x], axis=1) + 0.05 * rng.standard_normal((24, 2))
    y[::5, 1] = np.nan
    table = np.empty((24, 2), dtype=object)
    table[:, 0], table[:, 1] = x, site
    series = np.exp(-np.abs(x[:, None] - x) / 0.2)
    settings = {"noise_cov": 0.0025, "starts": 2}
    problems = {
        "sites": oc.Problem(
            table, y[:, 0], lambda x, t: t[0] * x[:, 0].astype(float) + t[1], PRIORS, categorical=["x2"], **settings
        ),
        "both": oc.Problem(x, y, lambda x, t: np.stack([t[0] * x + t[1], t[1] - x], axis=1), PRIORS, **settings),
        "series": oc.Problem(x, y[:, 0], f, PRIORS, noise_cov=0.0025 * series, starts=2),
    }
    posterior = oc.calibrate(oc.Experiments(problems, ["offset"]), "bmars", **QUICK)
    assert np.isfinite(posterior.theta).all()
    assert abs(posterior.theta[..., 0].mean() - 2) < 0.5

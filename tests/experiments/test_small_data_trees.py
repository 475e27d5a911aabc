"""Trees of experiments with few data: who has them, and what they leave open."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.experiments import regression
from orthocal.experiments.small_data import SmallDataBART, SmallDataSoftBART, small_data_prior


def f(x, theta):
    return theta[0] * x + theta[1]


def problem(n, seed, gap=0.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1 - gap, n)
    y = 2 * x + 0.3 * np.sin(5 * x) + 0.05 * rng.standard_normal(n)
    priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
    return oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=40), noise_cov=0.0025, starts=2)


def test_those_with_few_data_have_them():
    prior = oc.bias.BART(trees=70, cuts=9)
    few = small_data_prior(prior, problem(10, 1))
    assert isinstance(few, SmallDataBART)
    assert (few.trees, few.least, few.corners) == (70, 0, ((0.0, 1.0),))
    assert few.describe()["kind"] == "bart"
    assert small_data_prior(prior, problem(201, 1)) is prior
    smooth = small_data_prior(oc.bias.SoftBART(trees=7, bandwidth=0.3), problem(10, 1))
    assert isinstance(smooth, SmallDataSoftBART)
    assert (smooth.trees, smooth.bandwidth, smooth.corners) == (7, 0.3, ((0.0, 1.0),))
    assert smooth.describe()["kind"] == "softbart"
    assert small_data_prior(oc.bias.SoftBART(), problem(201, 1)).__class__ is oc.bias.SoftBART
    assert small_data_prior(oc.bias.BNN(), problem(10, 1)).__class__ is oc.bias.BNN


def test_cuts_are_anywhere_in_the_domain():
    one = problem(10, 1, gap=0.5)
    few, smooth = small_data_prior(oc.bias.BART(cuts=9), one), small_data_prior(oc.bias.SoftBART(), one)
    setting = oc.bias.Setting(
        np.zeros((2, 1)), np.zeros((0, 1)), np.ones(1), np.ones(2), np.ones(2), np.ones((2, 1)), 1.0
    )
    np.testing.assert_allclose(few.cut_points(setting)[0], np.arange(1, 10) / 10)
    np.testing.assert_array_equal(smooth.range_of_cuts(setting), [[0], [1]])


def g(x, theta):
    return theta[0] * x[:, 1].astype(float) + theta[1]


def with_labels(labels, seed):
    """A column of labels before a number, whose domain is wider than its data."""
    rng, x = np.random.default_rng(seed), np.empty((20, 2), dtype=object)
    x[:, 0], x[:, 1] = np.resize(labels, 20), rng.uniform(2, 3, 20)
    y = 2 * x[:, 1].astype(float) + 0.05 * rng.standard_normal(20)
    priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
    return oc.Problem(x, y, g, priors, oc.Labels(oc.Box(0, 4)), categorical=["x1"], noise_cov=0.0025)


# one label makes as many columns as there were before
@pytest.mark.parametrize(("labels", "cuts"), [(("north", "south"), [100, 1, 1]), (("north",), [100, 0])])
def test_numbers_are_cut_in_the_domain_and_labels_as_ever(labels, cuts):
    one = with_labels(labels, 1)
    few, smooth = small_data_prior(oc.bias.BART(), one), small_data_prior(oc.bias.SoftBART(), one)
    assert few.corners == smooth.corners == ((0.0, 4.0),)
    x = one.data.labels.one_hot(one.data.x)
    setting = oc.bias.Setting(x, x[:0], np.ones(2), np.ones(20), np.ones(20), x, 1.0)
    assert [len(own) for own in few.cut_points(setting)] == cuts
    np.testing.assert_allclose(few.cut_points(setting)[0][[0, -1]], [4 / 101, 400 / 101])
    low, width = smooth.range_of_cuts(setting)
    assert (low[0], width[0], *width[1:]) == (0, 4, *cuts[1:])


@pytest.mark.parametrize("method", ["bart", "softbart"])
def test_experiments_with_labels(method):
    both = {name: with_labels(("north", "south"), seed) for name, seed in (("A", 1), ("B", 2))}
    posterior = oc.calibrate(oc.Experiments(both), method, draws=10, chains=2, warmup=5, seed=1, progress=False)
    assert np.isfinite(posterior.theta).all()


@pytest.mark.parametrize("method", ["bart", "softbart"])
def test_a_gap_is_left_open(monkeypatch, method):
    """Half of the domain without data: the real process there is as uncertain as its prior, not flat as with a leaf
    that ends at the last point."""
    experiments = oc.Experiments({"few": problem(10, 1, gap=0.5), "more": problem(60, 2)}, private=["offset"])
    settings = {"draws": 200, "chains": 2, "warmup": 50, "seed": 1, "progress": False}
    x = np.array([[0.25], [0.9]])
    found = {}
    for name in ("open", "usual"):
        if name == "usual":
            monkeypatch.setattr(regression, "small_data_prior", lambda prior, problem: prior)
        posterior = oc.calibrate(experiments, method, **settings)
        with pytest.warns(oc.OrthocalWarning, match="far from the data"):
            found[name] = posterior["few"].predict(x)["mean"].std(dim=("chain", "draw")).values[:, 0]
    # between the data little changes, in the gap much
    assert found["open"][1] > 2 * found["usual"][1]
    assert found["open"][1] > 2 * found["open"][0]


def test_files_hold_smooth_trees_of_the_right_size(tmp_path):
    """Cuts stand among the values of smooth trees, and are not multiplied by their size."""
    experiments = oc.Experiments({"few": problem(10, 1), "more": problem(60, 2)}, private=["offset"])
    posterior = oc.calibrate(experiments, "softbart", draws=20, chains=2, warmup=10, seed=1, progress=False)
    posterior.save(tmp_path / "fit.nc")
    for one in (posterior, oc.load(tmp_path / "fit.nc", {"few": f, "more": f})):
        own = one["few"]
        there = own.predict(own.record.x, warn=False)["bias"].values
        np.testing.assert_allclose(there, own.record.at_data("bias"), atol=1e-6)

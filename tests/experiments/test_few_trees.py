"""Trees of experiments with few data: who has them, and what they leave open."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.experiments import regression
from orthocal.experiments.few_trees import FewTrees, for_few


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
    few = for_few(prior, problem(10, 1))
    assert isinstance(few, FewTrees)
    assert (few.trees, few.least, few.corners) == (70, 0, ((0.0, 1.0),))
    assert few.describe()["kind"] == "bart"
    assert for_few(prior, problem(201, 1)) is prior
    assert for_few(oc.bias.SoftBART(), problem(10, 1)).__class__ is oc.bias.SoftBART


def test_cuts_are_anywhere_in_the_domain():
    few = for_few(oc.bias.BART(cuts=9), problem(10, 1, gap=0.5))
    setting = oc.bias.Setting(
        np.zeros((2, 1)), np.zeros((0, 1)), np.ones(1), np.ones(2), np.ones(2), np.ones((2, 1)), 1.0
    )
    np.testing.assert_allclose(few.cut_points(setting)[0], np.arange(1, 10) / 10)


def test_labels_are_cut_as_ever():
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.uniform(0, 1, 20), np.repeat([0.0, 1.0], 10)])
    priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
    both = {}
    for name in "AB":
        y = 2 * x[:, 0] + 0.05 * rng.standard_normal(20)
        both[name] = oc.Problem(
            x, y, lambda x, t: t[0] * x[:, 0].astype(float) + t[1], priors, categorical=["x2"], noise_cov=0.0025
        )
    posterior = oc.calibrate(oc.Experiments(both), "bart", draws=10, chains=2, warmup=5, seed=1, progress=False)
    assert np.isfinite(posterior.theta).all()


def test_a_gap_is_left_open(monkeypatch):
    """Half of the domain without data: the real process there is as uncertain as its prior, not flat as with a leaf
    that ends at the last point."""
    experiments = oc.Experiments({"few": problem(10, 1, gap=0.5), "more": problem(60, 2)}, private=["offset"])
    settings = {"draws": 200, "chains": 2, "warmup": 50, "seed": 1, "progress": False}
    x = np.array([[0.25], [0.9]])
    found = {}
    for name in ("open", "usual"):
        if name == "usual":
            monkeypatch.setattr(regression, "for_few", lambda prior, problem: prior)
        posterior = oc.calibrate(experiments, "bart", **settings)
        with pytest.warns(oc.OrthocalWarning, match="far from the data"):
            found[name] = posterior["few"].predict(x)["mean"].std(dim=("chain", "draw")).values[:, 0]
    # between the data little changes, in the gap much
    assert found["open"][1] > 2 * found["usual"][1]
    assert found["open"][1] > 2 * found["open"][0]

"""oc.compare_experiments: who disagrees with whom, and what a fit says of an experiment that it has not seen."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

GP = oc.methods.Joint(oc.bias.GP(sd=0.5, lengthscale=0.5))


def experiments(slopes=(2.0, 2.0, 2.0), offset=True, seed=1):
    rng = np.random.default_rng(seed)
    problems = {}
    for name, slope in zip("ABC", slopes, strict=True):
        x = np.linspace(0, 1, 20)
        y = slope * x + (ord(name) - 66) * offset + 0.05 * np.sin(9 * x) + 0.05 * rng.standard_normal(20)

        def f(x, theta):
            return theta[0] * x + theta[1]

        priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
        problems[f"rig {name}"] = oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=15), noise_cov=0.0025, starts=2)
    return oc.Experiments(problems, private=["offset"])


def compared(given):
    return oc.compare_experiments(given, GP, draws=100, chains=2, seed=1, progress=False)


@pytest.fixture(scope="module")
def apart():
    return compared(experiments((2.0, 2.0, 4.0)))


def test_one_that_disagrees_is_named(apart):
    """rig C has twice the slope: it is far from the others, and without it the others agree."""
    table = apart.disagreements()
    assert table.index.tolist() == [("rig A", "a"), ("rig B", "a"), ("rig C", "a")]
    assert table.loc[("rig C", "a"), "p"] < 1e-4
    assert table["p"].idxmin() == ("rig C", "a")
    words = " ".join(apart.words())
    assert "rig C disagrees with the others about a" in words
    assert "experiments agree" not in words


def test_it_is_predicted_badly(apart):
    table = apart.predictions
    assert table.loc["rig C", "others"] > 3 * table.loc["rig C", "own"]
    # rig A and B are predicted by a mean of two slopes, each of which is off
    assert (table["others"] > table["own"]).all()


@pytest.mark.slow
def test_those_that_agree():
    found = compared(experiments())
    assert found.words()[0].startswith("The experiments agree about the parameters that they share")
    assert (found.predictions["others"] < 1.3 * found.predictions["own"]).all()
    assert found.disagreements()["p"].min() > 0.003


def test_figure_page_and_text(apart, tmp_path):
    page = apart.report(tmp_path / "experiments.html", "Rigs").read_text(encoding="utf-8")
    assert "kind joint, bias kind gp" in page
    for words in ("without rig A", "Where they disagree", "Predicted by a fit that has not seen it", "rig C disagrees"):
        assert words in page
    assert "rig C disagrees" in str(apart)


def test_what_cannot_be_compared():
    given = experiments()
    with pytest.raises(oc.errors.InputError, match="nothing to compare"):
        oc.compare_experiments(given.without(["rig A", "rig B"]))
    with pytest.raises(oc.errors.InputError, match=r"give oc\.Experiments"):
        oc.compare_experiments(given["rig A"])


def test_a_parameter_that_one_experiment_does_not_feel():
    """Alone, experiment 1 leaves b to its prior, and is calibrated all the same; in sentences it has more than a 1."""
    rng, x, problems = np.random.default_rng(3), np.linspace(0, 1, 20), {}
    priors = {"a": stats.norm(0, 10), "b": stats.norm(1.0, 2.0)}
    for name, slope, felt in (("1", 5.0, 0.0), ("2", 2.0, 1.0), ("3", 2.0, 1.0)):

        def f(x, theta, felt=felt):
            return theta[0] * x + felt * theta[1] * np.cos(3 * x)

        y = f(x, (slope, 0.5)) + 0.05 * rng.standard_normal(20)
        problems[name] = oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=15), noise_cov=0.0025, starts=2)
    found = compared(oc.Experiments(problems))
    assert not found.failures
    own = found.alone["1"]
    draws = own.data["posterior"]["b"].values.ravel()
    # 200 draws of N(1, 2): a false alarm in 1 of 15 000
    assert abs(draws.mean() - 1.0) < 4 * 2 / np.sqrt(200)
    assert abs(draws.std() / 2 - 1) < 4 / np.sqrt(400)
    assert float(own.data["sample_stats"]["orthogonality_error"].max()) < 1e-6
    assert found.disagreements().loc[("1", "a"), "p"] < 1e-4
    assert "Experiment 1 disagrees with the others about a" in found.words()[0]
    # what nobody else knows is still an error
    with pytest.raises(oc.errors.IdentifiabilityError, match="'b' has no effect"):
        oc.calibrate(problems["1"], GP, draws=20, chains=2, seed=1, progress=False)


def test_pooled_values_of_one_experiment_are_its_own():
    pooled = oc.Experiments(experiments().problems, {"offset": oc.Pooled()})
    assert pooled.without(["rig A", "rig B"]).pools == ()
    assert len(pooled.without(["rig A"]).pools) == 1

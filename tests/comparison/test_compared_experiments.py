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


def test_it_is_foretold_badly(apart):
    table = apart.predictions
    assert table.loc["rig C", "others"] > 3 * table.loc["rig C", "own"]
    # rig A and B are foretold by a mean of two slopes, each of which is off
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
    for words in ("without rig A", "Where they disagree", "Foretold by a fit that has not seen it", "rig C disagrees"):
        assert words in page
    assert "rig C disagrees" in str(apart)


def test_what_cannot_be_compared():
    given = experiments()
    with pytest.raises(oc.errors.InputError, match="nothing to compare"):
        oc.compare_experiments(given.without(["rig A", "rig B"]))
    with pytest.raises(oc.errors.InputError, match=r"give oc\.Experiments"):
        oc.compare_experiments(given["rig A"])


def test_pooled_values_of_one_experiment_are_its_own():
    pooled = oc.Experiments(experiments().problems, {"offset": oc.Pooled()})
    assert pooled.without(["rig A", "rig B"]).pools == ()
    assert len(pooled.without(["rig A"]).pools) == 1

"""Which simulator is closer to the real process: closed forms, calibration, and what is refused."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

X = np.linspace(0, 1, 60)
FLAT = {"a": stats.norm(0, 100)}


def real(x):
    return 4 * x + x * np.sin(5 * x)


def problem(simulator, y, parameters=FLAT, **changes):
    settings = {"domain": oc.Box(0, 1, nodes=40), "noise_cov": 0.04, "starts": 4, **changes}
    return oc.Problem(X, y, simulator, parameters, **settings)


def data(seed=0, noise=0.2):
    return real(X) + noise * np.random.default_rng(seed).standard_normal(len(X))


def line(x, t):
    return t[0] * x


def parabola(x, t):
    return t[0] * x * (1.6 - x)


def compared(**options):
    y = data()
    return oc.compare_simulators(
        {"line": problem(line, y), "parabola": problem(parabola, y)}, draws=200, seed=1, progress=False, **options
    )


def test_the_distances_are_those_of_the_true_process():
    """Both true distances lie in the 99.9 % intervals, and the closer one is found."""
    found = compared()
    fine = (np.arange(20000) + 0.5) / 20000
    for name, simulator in (("line", line), ("parabola", parabola)):
        shape = simulator(fine, [1.0])
        best = shape @ real(fine) / (shape @ shape)
        distance = np.sqrt(np.mean((real(fine) - best * shape) ** 2)) / 0.2
        row = found.summary(0.999).loc[name]
        assert row["lower"] < distance < row["upper"]
    assert found.probability("parabola", "line") > 0.999
    assert found.probability("line", "parabola") == pytest.approx(1 - found.probability("parabola", "line"))
    assert "parabola is closer to the real process than line (P > 0.999)" in found.words()
    assert found.summary()["closest"].sum() == pytest.approx(1)
    assert np.isnan(found.closer().loc["line", "line"])
    assert len(found.figure().axes) == 2
    assert "parabola" in str(found)


def test_a_simulator_that_contains_another_is_never_farther():
    y = data()
    wider = problem(lambda x, t: t[0] * x + t[1], y, {"a": stats.norm(0, 100), "b": stats.norm(0, 100)})
    found = oc.compare_simulators({"line": problem(line, y), "wider": wider}, draws=100, seed=1, progress=False)
    assert (found.losses["wider"] <= found.losses["line"] * (1 + 1e-9)).all()


def test_twins_cannot_be_told_apart():
    y = data()
    found = oc.compare_simulators(
        {"one": problem(line, y), "other": problem(line, y)}, draws=50, seed=1, progress=False
    )
    assert np.allclose(found.losses["one"], found.losses["other"], rtol=1e-8)
    assert "The data do not tell" in found.words()


def test_other_priors_and_losses():
    assert compared(method="bart", warmup=50).probability("parabola", "line") > 0.9
    absolute = compared(method=oc.methods.Joint(loss="absolute"))
    assert absolute.probability("parabola", "line") > 0.99
    assert not absolute.squared


def test_the_same_seed_gives_the_same_numbers():
    assert np.array_equal(compared().losses["line"], compared().losses["line"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"noise_cov": 0.05}, "noise"),
        ({"domain": oc.Box(0, 2, nodes=40)}, "domain"),
    ],
)
def test_problems_must_be_about_the_same_thing(change, words):
    y = data()
    with pytest.raises(oc.OrthocalError, match=f"differ in their {words}"):
        oc.compare_simulators({"a": problem(line, y), "b": problem(line, y, **change)}, progress=False)
    with pytest.raises(oc.OrthocalError, match="differ in their y"):
        oc.compare_simulators({"a": problem(line, y), "b": problem(line, y + 1)}, progress=False)


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ({}, {}, "at least two"),
        ({"a": 1, "b": 2}, {}, "give an oc.Problem"),
        (None, {"method": "pgp"}, "joint projection"),
        (None, {"draws": 1}, "draws=1"),
    ],
)
def test_what_cannot_be_compared_is_said(given, options, words):
    y = data()
    problems = {"a": problem(line, y), "b": problem(parabola, y)} if given is None else given
    with pytest.raises(oc.OrthocalError, match=words):
        oc.compare_simulators(problems, progress=False, **options)


def test_names_must_be_known():
    with pytest.raises(oc.OrthocalError, match="no simulator 'c'"):
        compared().probability("line", "c")
    with pytest.raises(oc.OrthocalError, match="closer than itself"):
        compared().probability("line", "line")

"""Every example: complete, its theta* from the definition by another minimiser and an own rule, its gradients."""

import tomllib
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import orthocal as oc
from orthocal.examples import (
    FIN,
    MODEL1,
    MODEL2,
    TWO_OUTCOMES,
    TWO_OUTCOMES_PRECISION,
    TWO_OUTCOMES_SECOND,
    curved,
    saturation,
)

ALL = oc.examples.all()
KNOWN = [example for example in ALL if example.truth is not None]
MEASURED = [example for example in ALL if example.file is not None]
#: Gauss–Legendre nodes for one input, two, and five, where the simulator is right and a few do
NODES = {1: 300, 2: 40, 5: 4}


def by_name(example):
    return example.name


def rule(example):
    u, w = np.polynomial.legendre.leggauss(NODES[example.d])
    unit = np.array(list(product((u + 1) / 2, repeat=example.d)))
    weights = np.prod(list(product(w / 2, repeat=example.d)), axis=1)
    lower, upper = (np.broadcast_to(corner, example.d) for corner in example.box)
    return lower + unit * (upper - lower), weights


def losses(example, W):
    """The loss of theta for the weight W, and theta's scale."""
    x, weights = rule(example)
    truth = example.truth(x).reshape(len(x), -1)
    scale = np.maximum(np.abs(example.theta_star), 1e-2) if any(example.theta_star) else np.ones(1)

    def loss(unit):
        left = truth - example.simulator(x, np.asarray(unit) * scale).reshape(len(x), -1)
        return float(np.einsum("nk,kl,nl,n->", left, W, left, weights))

    return loss, scale


def closest(example, W, start):
    """The minimiser next to ``start``, without derivatives: the library has least_squares."""
    loss, scale = losses(example, W)
    found = np.asarray(start) / scale
    # a simplex is started anew where it stopped: one alone may stop early
    for _ in range(2):
        options = {"xatol": 1e-9, "fatol": 1e-15 * loss(found), "maxiter": 4000, "maxfev": 4000}
        found = minimize(loss, found, method="Nelder-Mead", options=options).x
    return found * scale


def weight(example):
    return np.linalg.inv(example.noise_cov)


@pytest.mark.parametrize("example", KNOWN, ids=by_name)
def test_theta_star_by_another_minimiser(example):
    star = np.array(example.theta_star)
    found = closest(example, weight(example), star * 1.03 + 0.003 * (star == 0))
    np.testing.assert_allclose(found, star, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("example", KNOWN, ids=by_name)
def test_theta_star_is_the_best_minimum_in_the_prior(example):
    """Of 500 draws of the prior none has a smaller loss, and no minimum next to the best three of them."""
    loss, scale = losses(example, weight(example))
    rng = np.random.default_rng(1)
    draws = np.column_stack([prior.rvs(500, random_state=rng) for prior in example.parameters.values()])
    tried = np.array([loss(one / scale) for one in draws])
    least = loss(np.array(example.theta_star) / scale)
    assert tried.min() >= least
    if example.d < 3:
        for one in draws[np.argsort(tried)[:3]]:
            assert loss(closest(example, weight(example), one) / scale) >= least * (1 - 1e-9) - 1e-12


def test_theta_star_of_two_outcomes_depends_on_the_weight():
    for W, star in (
        (np.eye(2), TWO_OUTCOMES.theta_star[0]),
        (np.linalg.inv(TWO_OUTCOMES.noise_cov), TWO_OUTCOMES_PRECISION),
        (np.diag([0.0, 1.0]), TWO_OUTCOMES_SECOND),
    ):
        assert closest(TWO_OUTCOMES, W, [3.0])[0] == pytest.approx(star, abs=1e-6)
    assert oc.examples.get("two-outcomes").theta_star == (TWO_OUTCOMES_PRECISION,)


def test_the_minima_that_the_words_name():
    wang = oc.examples.get("gu-wang")
    loss, scale = losses(wang, np.eye(1))
    other = closest(wang, np.eye(1), [0.3])
    assert other[0] == pytest.approx(0.261756, abs=1e-6)
    assert loss(other / scale) / loss(np.ones(1)) == pytest.approx(1.29, abs=0.01)
    loss, scale = losses(MODEL2, np.eye(1))
    for theta in product((0.2, 0.3, 0.7, 0.8), (0.3, 0.7)):
        assert loss(theta / scale) < 1e-20


@pytest.mark.parametrize("example", [one for one in ALL if one.gradient], ids=by_name)
def test_gradients_agree_with_differences(example):
    x, _ = example.field_data()
    theta = np.array([prior.ppf(0.6) for prior in example.parameters.values()])
    got = example.gradient(x, theta).reshape(len(x), -1, len(theta))
    for j in range(len(theta)):
        h = 1e-5 * np.maximum(np.abs(theta[j]), 1e-3) * (np.arange(len(theta)) == j)
        slope = (example.simulator(x, theta + h) - example.simulator(x, theta - h)) / (2 * h[j])
        size = np.abs(slope).max()
        np.testing.assert_allclose(got[..., j], slope.reshape(len(x), -1), rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("example", ALL, ids=by_name)
def test_an_example_is_complete(example):
    assert oc.examples.get(example.name) is example
    assert example.title
    assert example.words.endswith(".")
    assert example.source
    assert example.licence
    assert example.name == example.name.lower().replace(" ", "-")
    # a truth with its theta*, or measured data, or both
    assert len(example.theta_star) == (len(example.parameters) if example.truth else 0)
    assert example.truth or "real" in example.tags
    assert ("real" in example.tags) <= (example.file is not None and example.published != ())
    assert ("several outcomes" in example.tags) == (example.q > 1)
    assert ("emulator" in example.tags) == (example.runs is not None)
    for one in example.published:
        assert set(one.values) <= set(example.parameters)


@pytest.mark.parametrize("example", ALL, ids=by_name)
def test_every_example_is_a_problem(example):
    x, y = example.field_data()
    assert x.shape == (len(x), example.d)
    assert y.shape == ((len(x),) if example.q == 1 else (len(x), example.q))
    fast = {"simulator": example.simulator, "starts": 1}
    problem = example.problem(x, y, **fast)
    assert problem.parameters.names == tuple(example.parameters)
    # field data of a seed, of no seed, and given ones
    same = example.problem(**fast)
    np.testing.assert_array_equal(same.data.y, problem.data.y)
    if example.truth is not None:
        np.testing.assert_array_equal(
            example.problem(seed=3, **fast).data.y.reshape(y.shape), example.simulate(np.random.default_rng(3))[1]
        )


def test_measured_data_and_their_terms():
    readme = (files("orthocal.examples") / "data" / "README.md").read_text(encoding="utf-8")
    for example in MEASURED:
        assert f"`{example.file}`" in readme
        x, y = example.data
        assert np.isfinite(x).all()
        assert np.isfinite(y).all()
    sizes = {example.name: len(example.data[0]) for example in MEASURED}
    assert sizes == {
        "bayarri": 30,
        "bayarri-2": 30,
        "ball-drop": 63,
        "chaboche": 10,
        "us-population": 22,
        "common-cold": 21,
    }


def test_the_wheel_has_the_data():
    """All files of the package are in the wheel, unless somebody excludes some."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    if not project.exists():
        pytest.skip("an installed package has no pyproject.toml")
    built = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert "wheel" not in built["targets"]
    assert "src" in built["targets"]["sdist"]["include"]


def test_what_an_example_does_not_have():
    with pytest.raises(oc.errors.InputError, match=r"there is no example 'tuowu': choose one of model-1, "):
        oc.examples.get("tuowu")
    with pytest.raises(oc.errors.InputError, match="ball-drop has no known truth: take its measured field data"):
        oc.examples.get("ball-drop").simulate(np.random.default_rng(0))
    with pytest.raises(oc.errors.InputError, match=r"model-1 has no measured field data: take simulate\(rng\)"):
        _ = MODEL1.data
    with pytest.raises(oc.errors.InputError, match="give the field data x and y, or a seed, or nothing"):
        MODEL1.problem(np.zeros((3, 1)))
    with pytest.raises(oc.errors.InputError, match="tuo-wu has no closed form"):
        oc.examples.get("tuo-wu").exact(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(oc.errors.InputError, match="two examples 'model-1'"):
        oc.examples.listed(MODEL1)


def test_uneven_points_come_from_their_distribution():
    x, y = saturation(1, 2).simulate(np.random.default_rng(0), 2000)
    assert x.shape == (2000, 1)
    assert y.shape == (2000,)
    # the mean of Beta(1, 2) is 1/3; five standard errors
    assert abs(x.mean() - 1 / 3) < 5 * x.std() / np.sqrt(2000)
    assert len(FIN.simulate(np.random.default_rng(0))[0]) == 30
    assert curved(0.3).name == "curved-0.3"


def test_the_noise_has_its_covariance():
    """20000 rows: the relative error of a covariance is about 0.01."""
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(
        np.cov(y - TWO_OUTCOMES.truth(x), rowvar=False), [[0.04, 0.012], [0.012, 0.04]], rtol=0.06
    )


def test_the_page_has_every_example_with_its_answer():
    page = Path(__file__).parents[2] / "docs" / "examples.md"
    if not page.exists():
        pytest.skip("an installed package has no pages")
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    cut = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = {name: cells for cells in cut for name in cells[0].split(", ")}
    for example in ALL:
        cells = rows.pop(f"`{example.name}`")
        if example.theta_star:
            # to the digits that stand there
            np.testing.assert_allclose([float(cell) for cell in cells[2].split(", ")], example.theta_star, 1e-6, 1e-6)
        assert cells[3] == ", ".join(example.tags)

"""Designs: where they lie, what they contain, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.prior.parameters import Parameters

PRIORS = {"g": stats.norm(5, 10), "b": stats.uniform(-1, 2), "c": stats.beta(2, 3)}


@pytest.mark.parametrize("kind", ["sobol", "lhs"])
@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_points_fill_the_supports(kind, n):
    points = oc.design(PRIORS, n, kind)
    assert list(points.columns) == ["g", "b", "c"]
    theta = np.asarray(points)
    assert theta.shape == (n, 3)
    low, high = stats.norm(5, 10).ppf([0.001, 0.999])
    assert ((theta[:, 0] >= low) & (theta[:, 0] <= high)).all()
    assert Parameters(PRIORS).inside(theta).all()
    if n == 100:
        # each tenth of the range has its share, which random points would not give
        for column, (lower, upper) in zip(theta.T, [(low, high), (-1, 1), (0, 1)], strict=True):
            counts = np.histogram(column, 10, (lower, upper))[0]
            assert counts.min() >= 7
            assert counts.max() <= 13


def test_the_seed_decides():
    first = oc.design(PRIORS, 20, seed=3)
    assert first.equals(oc.design(PRIORS, 20, seed=3))
    assert not first.equals(oc.design(PRIORS, 20, seed=4))
    assert not oc.design(PRIORS, 20, seed=None).equals(oc.design(PRIORS, 20, seed=None))


def test_a_longer_sobol_design_begins_with_the_shorter_one():
    pd.testing.assert_frame_equal(oc.design(PRIORS, 77).iloc[:20], oc.design(PRIORS, 20))


def test_grids_have_their_end_points_but_open_ends_are_a_hair_inside():
    grid = oc.design({"b": PRIORS["b"], "c": PRIORS["c"]}, (3, 4), "grid")
    assert grid.shape == (12, 2)
    assert sorted(set(grid["b"])) == [-1.0, 0.0, 1.0]
    ends = grid["c"].min(), grid["c"].max()
    assert 0 < ends[0] < 1e-5
    assert 1 - 1e-5 < ends[1] < 1
    assert oc.design({"b": PRIORS["b"], "c": PRIORS["c"]}, 7, "grid").shape == (49, 2)
    assert float(oc.design({"b": PRIORS["b"]}, 1, "grid")["b"].iloc[0]) == 0.0


def test_a_half_bounded_prior_has_its_central_range():
    column = oc.design({"k": stats.expon(0, 1)}, 2, "grid")["k"]
    assert list(column) == pytest.approx(stats.expon(0, 1).ppf([0.001, 0.999]))


def test_bounds_overrule_the_priors():
    points = oc.design(PRIORS, 50, bounds={"g": (1, 2)})
    assert points["g"].between(1, 2).all()
    assert points["b"].max() > 0.9


def test_problems_and_parameters_are_taken():
    x = np.linspace(0, 1, 10)
    problem = oc.Problem(x, x, lambda x, theta: theta[0] * x, {"g": PRIORS["g"]}, oc.Box(0, 1), 0.1)
    expected = oc.design({"g": PRIORS["g"]}, 5)
    assert oc.design(problem, 5).equals(expected)
    assert oc.design(problem.parameters, 5).equals(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0: give the number of points"),
        ({"n": 2.5}, "n=2.5"),
        ({"n": (3, 3)}, "n=\\(3, 3\\)"),
        ({"n": (3, 3), "kind": "grid"}, "or one number each \\(3\\)"),
        ({"n": 0, "kind": "grid"}, "n=0"),
        ({"n": 10_000, "kind": "grid"}, "too large"),
        ({"n": 5, "kind": "random"}, 'kind=\'random\': give "sobol", "lhs" or "grid"'),
        ({"n": 5, "seed": -1}, "seed=-1"),
        ({"n": 5, "bounds": {"z": (0, 1)}}, "bounds has no parameter z: there are g, b, c"),
        ({"n": 5, "bounds": {"g": (2, 1)}}, "low < high"),
        ({"n": 5, "bounds": {"g": 1}}, "low < high"),
        ({"n": 5, "bounds": {"b": (-2, 1)}}, "outside of the prior's support \\(-1, 1\\)"),
    ],
)
def test_mistakes_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        oc.design(PRIORS, **arguments)


@pytest.mark.parametrize("kind", ["sobol", "lhs"])
def test_a_constraint_is_filled_with_as_many_points(kind):
    priors = {"a": stats.uniform(0, 1), ("b", "c"): stats.multivariate_normal([0, 5], [[1, 0.5], [0.5, 4]])}
    table = oc.design(priors, 50, kind, constraint="a + b < 0.2")
    assert table.shape == (50, 3)
    assert (table["a"] + table["b"] < 0.2).all()
    assert table["c"].between(5 - 3.1 * 2, 5 + 3.1 * 2).all()
    assert table["c"].max() > 9


def test_a_longer_constrained_design_begins_with_the_shorter_one():
    priors, rule = {"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}, "b < a < 0.5"
    assert oc.design(priors, 40, constraint=rule)[:16].equals(oc.design(priors, 16, constraint=rule))


def test_a_constrained_grid_has_what_is_allowed_of_it():
    priors = {"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}
    table = oc.design(priors, 5, "grid", constraint=lambda theta: bool(theta[0] <= theta[1]))
    assert len(table) == 15
    with pytest.raises(InputError, match="excludes every point of the grid"):
        oc.design(priors, 2, "grid", constraint="0.3 < a < 0.7")


def test_a_design_of_a_problem_has_its_constraint():
    x = np.linspace(0, 1, 10)
    priors = {"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}
    problem = oc.Problem(x, x, lambda x, t: t[0] + t[1] * x, priors, constraint="a < b")
    assert (oc.design(problem, 20)["a"] < oc.design(problem, 20)["b"]).all()
    with pytest.raises(InputError, match="has its constraint itself"):
        oc.design(problem, 20, constraint="a < b")
    with pytest.raises(InputError, match="give bounds closer to where it holds"):
        oc.design(problem, 20, bounds={"a": (0.6, 1), "b": (0, 0.5)})

"""From a table of runs to an emulator: failed runs and missing cells, models of a user's, components, runs nearby."""

import numpy as np
import pytest
from emulator_cases import QUICK, Nearest, X, simulate, table

import orthocal as oc
from orthocal.errors import InputError, OrthocalWarning


def test_variance_grows_beyond_the_runs():
    emulator = oc.emulate(table(), "gp")
    inside, outside = (emulator.variance(X, np.array(theta)) for theta in ([1.5, 1.0], [3.0, 9.0]))
    assert (outside > 10 * inside).all()


@pytest.mark.slow
def test_failed_runs_are_left_out():
    runs = table()
    output = np.array(runs.output)
    output[[3, 11]] = np.nan
    holey = oc.RunTable(runs.theta, output, X, ["a", "b"])
    kept = runs.subset(np.setdiff1d(np.arange(60), [3, 11]))
    theta = np.array([1.5, 1.0])
    ours = oc.emulate(holey, "gp")
    assert ours.runs.s == 58
    assert np.array_equal(ours(X, theta), oc.emulate(kept, "gp")(X, theta))


@pytest.mark.slow
def test_missing_cells():
    runs = table()
    output = np.array(runs.output)
    output[5, 3, 0] = np.nan
    with pytest.warns(OrthocalWarning, match="1 of 60 runs have missing cells"):
        oc.emulate(oc.RunTable(runs.theta, output, X), "gp")
    output[::2, 3, 0] = np.nan
    holey = oc.RunTable(runs.theta, output, X)
    with pytest.raises(InputError, match="take the stacked layout"):
        oc.emulate(holey, "gp", layout="components")
    stacked = oc.emulate(holey, QUICK["mlp"])
    theta = np.array([1.5, 1.0])
    error = stacked(X, theta) - simulate(X, theta)
    assert (np.abs(error) < 0.1 * np.std(runs.output, axis=(0, 1))).all()


def test_an_object_with_fit_and_predict():
    runs = table()
    for layout in ("components", "stacked"):
        emulator = oc.emulate(runs, Nearest(), layout=layout)
        assert emulator.name == "Nearest"
        assert np.allclose(emulator(X, runs.theta[7]), np.array(runs.output)[7])
        assert not emulator.smooth


def test_all_components_give_the_runs_back():
    emulator = oc.emulate(table(), Nearest())
    assert np.allclose(emulator(X, table().theta[3]), np.array(table().output)[3], rtol=1e-6)
    few = oc.emulate(table(), "gp", components=1)
    assert few.components == [1, 1]
    assert (few.variance(X, np.array([1.5, 1.0])) > oc.emulate(table(), "gp").variance(X, np.array([1.5, 1.0]))).all()


def test_very_many_rows():
    """An exact Gaussian process of 1e5 rows would need 80 GB."""
    rng = np.random.default_rng(0)
    theta = rng.uniform(size=(50_000, 2))
    x = [rng.uniform(size=(2, 1)) for _ in theta]
    runs = oc.RunTable(theta, [own * one.sum() for own, one in zip(x, theta, strict=True)], x)
    with pytest.raises(InputError, match=r"100000 rows is too large.*take another emulator"):
        oc.emulate(runs, "gp")


def test_where_runs_are_nearby():
    emulator = oc.emulate(table(), Nearest())
    assert emulator.outside(np.array([[1.5, 1.0], [2.5, 1.0], [1.5, -3.5]])).tolist() == [False, True, True]
    # a corner of the box that no run reaches
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])
    small = oc.emulate(oc.RunTable(triangle, np.arange(8.0).reshape(4, 2), [0.0, 1.0]), Nearest())
    assert small.outside(np.array([[0.9, 0.9], [0.3, 0.3], [1.0, 0.0]])).tolist() == [True, False, False]


@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_runs_nearby_in_several_dimensions(p):
    """Means of the runs have some nearby; what is further away than any run has not."""
    rng = np.random.default_rng(p)
    theta = rng.normal(size=(40, p))
    runs = oc.RunTable(theta, rng.normal(size=(40, 1)), [0.0])
    emulator = oc.emulate(runs, Nearest())
    mixtures = rng.dirichlet(np.ones(40), size=20) @ theta
    assert not emulator.outside(mixtures).any()
    assert emulator.outside(20 * theta / np.linalg.norm(theta, axis=1, keepdims=True)).all()

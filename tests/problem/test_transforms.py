import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError, NonFiniteError
from orthocal.problem.data.transforms import TRANSFORMS, Transforms, chosen_transforms
from orthocal.problem.prior.parameters import Parameters
from orthocal.problem.simulator.simulator import BoundSimulator
from orthocal.problem.simulator.simulator_function import Simulator

PRIORS = {"a": stats.norm(5, 3), "k": stats.norm(1, 1)}
X = np.linspace(0.1, 2, 12)
NATIVE = {"log": [1e-300, 0.3, 7.0, 1e200], "sqrt": [0.0, 0.3, 7.0, 1e200], "logit": [1e-300, 0.3, 0.7, 1 - 1e-9]}


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x)


def decay_gradient(x, theta):
    return np.stack([np.exp(-theta[1] * x), -theta[0] * x * np.exp(-theta[1] * x)], axis=1)


def share(x, theta):
    return np.stack([decay(x, theta) / 20, decay(x, theta), decay(x, theta)], axis=1)


def share_gradient(x, theta):
    return np.stack([decay_gradient(x, theta) / 20, decay_gradient(x, theta), decay_gradient(x, theta)], axis=1)


def bound(simulator, *names):
    transforms = Transforms(names)
    return BoundSimulator(simulator, Parameters(PRIORS).support, len(names), True, transforms)


def problem(y=None, **options):
    return oc.Problem(X, decay(X, [5, 1]) if y is None else y, decay, PRIORS, **{"noise_cov": 0.01, **options})


@pytest.mark.parametrize("name", TRANSFORMS)
def test_there_and_back(name):
    native = np.array(NATIVE[name] + [np.nan])[:, None]
    transforms = Transforms((name,))
    np.testing.assert_allclose(transforms.inverse(transforms.forward(native)), native, rtol=1e-12)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_slopes_are_those_of_differences(name):
    transforms, y, h = Transforms((name,)), np.array([[0.01], [0.3], [0.9]]), 1e-7
    differences = (transforms.forward(y + h) - transforms.forward(y - h)) / (2 * h)
    np.testing.assert_allclose(transforms.slope(y), differences, rtol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_quantiles_stay_quantiles(name):
    """What lies below zero on the scale of sqrt y is a zero, so that the order remains."""
    draws = np.sort(np.random.default_rng(1).normal(0, 2, (101, 1)), axis=0)
    back = Transforms((name,)).inverse(draws)
    assert (np.diff(back, axis=0) >= 0).all()
    np.testing.assert_array_equal(np.quantile(back, 0.25, axis=0, method="nearest"), back[25])


def test_outcomes_without_a_transform_stay_the_same_objects():
    values = np.ones((3, 2))
    assert Transforms().forward(values) is values
    both = Transforms((None, "log")).forward(np.full((3, 2), np.e))
    np.testing.assert_allclose(both, [[np.e, 1.0]] * 3)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, ()),
        ([None, None], ()),
        ({}, ()),
        ("log", ("log", "log")),
        (["sqrt", None], ("sqrt", None)),
        ({"v": "logit"}, (None, "logit")),
        ({"c": None, "v": "logit"}, (None, "logit")),
    ],
)
def test_forms_of_a_choice(given, names):
    transforms = chosen_transforms(given, ("c", "v"))
    assert transforms.names == names
    assert bool(transforms) == bool(names)


def test_labels():
    assert Transforms(("log", None)).labels(("c", "v")) == ("log c", "v")
    assert Transforms().labels(("c", "v")) == ("c", "v")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"transform": "cube"}, 'transform=\'cube\': give "log", "sqrt", "logit", or None'),
        ({"transform": 3}, 'transform=3: give "log"'),
        ({"transform": ["log", "log"]}, "for each of the 1 outcomes"),
        ({"transform": {"z": "log"}}, "names z, but the outcomes are y"),
        ({"transform": [2]}, "transform=2"),
        (
            {"y": np.r_[3.0, 0.0, -1.0, np.ones(9)], "transform": "log"},
            r"y is 0 in row 1 \(2 such cells\).*y > 0.*sqrt",
        ),
        ({"y": np.r_[3.0, 0.0, -1.0, np.ones(9)], "transform": "sqrt"}, r"y is -1 in row 2 \(1 such cell\).*y >= 0"),
        ({"y": np.r_[0.5, np.ones(11)], "transform": "logit"}, "y is 1 in row 1.*0 < y < 1.*inwards"),
        ({"y": np.zeros(12), "transform": "sqrt", "noise_cov": "estimate", "y_err": 0.1}, "y_err has no counterpart"),
        ({"transform": "log", "noise_cov": "estimate", "y_err": -0.1}, "y_err is -0.1 in row 0"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(InputError, match=words):
        problem(**options)


def test_missing_cells_and_pandas():
    y = pd.DataFrame({"c": decay(X, [5, 1]), "v": np.linspace(-1, 1, 12)})
    y.iloc[3, 0] = np.nan
    made = oc.Problem(
        pd.DataFrame({"t": X}), y, lambda x, t: np.ones((len(x), 2)), PRIORS, noise_cov=1.0, transform={"c": "log"}
    )
    np.testing.assert_array_equal(made.data.y[:, 0], np.log(y["c"]))
    np.testing.assert_array_equal(made.data.y[:, 1], y["v"])
    np.testing.assert_array_equal(made.data.native_y, y)
    assert not made.data.observed[3, 0]


def test_the_chain_rule():
    theta = np.array([5.0, 1.0])
    given = bound(Simulator(share, share_gradient), "logit", "log", None).gradient(X[:, None], theta)
    by_differences = bound(share, "logit", "log", None).difference_gradient(X[:, None], theta)
    np.testing.assert_allclose(given, by_differences, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(given[:, 2], decay_gradient(X, theta))
    np.testing.assert_allclose(given[:, 1], np.stack([np.full(12, 1 / 5), -X], axis=1), rtol=1e-12)


def test_a_slope_without_end_times_a_gradient_of_zero():
    """f = a x is 0 at x = 0 for every a, and so is its square root."""
    line = Simulator(lambda x, theta: theta[0] * x, lambda x, theta: np.stack([x, 0 * x], axis=1))
    gradient = bound(line, "sqrt").gradient(np.array([[0.0], [4.0]]), np.array([9.0, 1.0]))
    np.testing.assert_allclose(gradient[:, 0, 0], [0.0, 1 / 3])


def test_output_without_a_transform_is_an_impossible_theta():
    simulator = bound(decay, "log")
    simulator.evaluate(X[:, None], np.array([5.0, 1.0]))
    assert np.isnan(simulator.evaluate(X[:, None], np.array([-5.0, 1.0]))).all()
    with pytest.raises(NonFiniteError, match=r'returned -4.5.* at a = -5, k = 1 and x = 0.1, but transform="log"'):
        simulator.required(X[:, None], np.array([-5.0, 1.0]))
    assert simulator.failures == 2


def test_errors_of_y_are_carried_over():
    y = decay(X, [5, 1])
    y[2] = np.nan
    seen = ~np.isnan(y)
    errors = np.linspace(0.1, 0.2, 12)
    carried = problem(y, transform="log", noise_cov="estimate", y_err=errors).noise.by_point[seen, 0, 0]
    np.testing.assert_allclose(carried, (errors / y)[seen] ** 2)
    number = problem(y, transform="sqrt", noise_cov="estimate", y_err=0.2).noise.by_point[seen, 0, 0]
    np.testing.assert_allclose(number, 0.01 / y[seen])


def test_a_covariance_is_on_the_transformed_scale():
    assert problem(transform="log", noise_cov=0.3).noise.cov == 0.3


class Emulator:
    """Takes the simulator's place, and knows its error."""

    parameter_names = ("a", "k")
    has_variance = True

    def __call__(self, x, theta):
        return decay(x, theta)

    def gradient(self, x, theta):
        return decay_gradient(x, theta)

    def variance(self, x, theta):
        return np.full((len(x), 1), 0.04)

    def outside(self, theta):
        return np.zeros(len(theta), dtype=bool)


def test_an_emulators_error_is_carried_over():
    made = oc.Problem(X, decay(X, [5, 1]), Emulator(), PRIORS, noise_cov=0.3, transform="log", emulator_error=True)
    expected = 0.3 + 0.04 / decay(X, made.theta_tilde) ** 2
    np.testing.assert_allclose(made.noise.by_point[:, 0, 0], expected, rtol=1e-9)


def test_parts_of_a_problem_keep_their_transform():
    y = share(X, [5, 1])
    whole = oc.Problem(X, y, share, PRIORS, noise_cov=0.01, transform=["logit", "log", None], starts=4)
    rows = whole.subset(np.arange(8))
    assert rows.data.transforms == whole.data.transforms
    np.testing.assert_array_equal(rows.data.native_y, y[:8])
    np.testing.assert_array_equal(rows.data.y, whole.data.y[:8])
    for k, name in enumerate(whole.data.transforms.names):
        one = whole.outcome(k)
        assert one.data.transforms.names == (name,)
        np.testing.assert_array_equal(one.data.native_y, y[:, k : k + 1])
        np.testing.assert_array_equal(one.fit, whole.data.transforms.forward(share(X, one.theta_tilde))[:, k : k + 1])

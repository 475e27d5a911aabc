import sys
from time import perf_counter

import numpy as np
import pytest
from scipy import stats

from orthocal import Simulator
from orthocal.errors import InputError, NonFiniteError, SimulatorError
from orthocal.problem.prior.parameters import Parameters
from orthocal.problem.simulator.simulator import BoundSimulator

X = np.linspace(0.1, 1.0, 7)[:, None]
NORMAL = {"a": stats.norm(0, 2), "b": stats.norm(1, 0.5)}
THETA = np.array([1.3, 0.8])


def bound(simulator, priors=NORMAL, q=1, flat_x=False):
    return BoundSimulator(simulator, Parameters(priors).support, q, flat_x)


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x[:, 0])


def decay_gradient(x, theta):
    falling = np.exp(-theta[1] * x[:, 0])
    return np.stack([falling, -theta[0] * x[:, 0] * falling], axis=1)


def two_outcomes(x, theta):
    return np.stack([decay(x, theta), theta[0] ** 2 + theta[1] * x[:, 0]], axis=1)


def two_outcomes_gradient(x, theta):
    one = np.ones(len(x))
    return np.stack([decay_gradient(x, theta), np.stack([2 * theta[0] * one, x[:, 0]], axis=1)], axis=1)


class Recorder:
    """A simulator that keeps what it was called with."""

    def __init__(self, function):
        self.function = function
        self.x = []
        self.theta = []

    def __call__(self, x, theta):
        self.x.append(x)
        self.theta.append(theta)
        return self.function(x, theta)


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 1, 1)])
def test_shapes_accepted_for_one_outcome(shape):
    model = bound(lambda x, theta: decay(x, theta).reshape(shape)).evaluate(X, THETA)
    assert model.shape == (7, 1)
    np.testing.assert_array_equal(model[:, 0], decay(X, THETA))


def test_lists_and_integers_are_accepted():
    model = bound(lambda x, theta: list(range(7))).evaluate(X, THETA)
    assert model.dtype == np.float64
    np.testing.assert_array_equal(model[:, 0], np.arange(7))


def test_several_outcomes_keep_their_columns():
    model = bound(two_outcomes, q=2).evaluate(X, THETA)
    np.testing.assert_array_equal(model, two_outcomes(X, THETA))


@pytest.mark.parametrize(
    ("shape", "q", "expected"),
    [
        ((), 1, r"shape \(\) for 7 points: expected \(7,\) or \(7, 1\)"),
        ((6,), 1, r"shape \(6,\) for 7 points: expected \(7,\) or \(7, 1\)"),
        ((1, 7), 1, r"shape \(1, 7\) for 7 points"),
        ((7, 7), 1, r"shape \(7, 7\) for 7 points"),
        ((7, 2), 1, r"shape \(7, 2\) for 7 points"),
        ((7,), 2, r"shape \(7,\) for 7 points: expected \(7, 2\)"),
        ((2, 7), 2, r"shape \(2, 7\) for 7 points: expected \(7, 2\)"),
        ((14,), 2, r"shape \(14,\) for 7 points: expected \(7, 2\)"),
        ((7, 3), 2, r"shape \(7, 3\) for 7 points: expected \(7, 2\)"),
    ],
)
def test_other_shapes_are_refused_with_the_expected_ones(shape, q, expected):
    with pytest.raises(SimulatorError, match=f"the simulator returned an array of {expected}"):
        bound(lambda x, theta: np.zeros(shape), q=q).evaluate(X, THETA)


@pytest.mark.parametrize("flat_x", [True, False])
@pytest.mark.parametrize(
    "output",
    ["text", ["a"] * 7, {"y": 1.0}, [[1.0], [1.0, 2.0]], np.full(7, 1j)],
    ids=["text", "list of texts", "dictionary", "ragged", "complex"],
)
def test_outputs_that_are_no_real_numbers_are_errors_of_the_simulator(output, flat_x):
    with pytest.raises(SimulatorError, match="simulator returned"):
        bound(lambda x, theta: output, flat_x=flat_x).evaluate(X, THETA)


def test_a_wrong_shape_after_a_right_one_is_refused_too():
    simulator = bound(lambda x, theta: decay(x, theta)[: 7 if theta[0] < 2 else 6])
    simulator.evaluate(X, THETA)
    with pytest.raises(SimulatorError, match=r"shape \(6,\) for 7 points"):
        simulator.evaluate(X, np.array([3.0, 0.8]))


def test_an_exception_becomes_a_simulator_error_that_names_theta():
    def broken(x, theta):
        raise ZeroDivisionError("the mesh has no cells")

    simulator = bound(broken)
    with pytest.raises(SimulatorError, match=r"ZeroDivisionError at a = 1\.3, b = 0\.8: the mesh has no cells"):
        simulator.evaluate(X, THETA)


def test_the_message_names_the_line_that_raised():
    def solve():
        raise ZeroDivisionError

    line = solve.__code__.co_firstlineno + 1
    with pytest.raises(SimulatorError, match=rf"\(test_simulator\.py, line {line}\)"):
        bound(lambda x, theta: solve()).evaluate(X, THETA)


def test_the_cause_of_a_simulator_error_is_the_users_exception():
    simulator = bound(lambda x, theta: decay(x, theta) if theta[0] < 2 else {}["key"])
    simulator.evaluate(X, THETA)
    with pytest.raises(SimulatorError) as caught:
        simulator.required(X, np.array([3.0, 0.8]))
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_left_alone(signal):
    def interrupted(x, theta):
        raise signal

    with pytest.raises(signal):
        bound(interrupted).evaluate(X, THETA)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_makes_every_cell_nan_and_is_counted(bad):
    def sometimes(x, theta):
        model = two_outcomes(x, theta)
        if theta[0] > 2:
            model[4, 1] = bad
        return model

    simulator = bound(sometimes, q=2)
    assert np.isfinite(simulator.evaluate(X, THETA)).all()
    assert simulator.failures == 0
    assert np.isnan(simulator.evaluate(X, np.array([3.0, 0.8]))).all()
    assert simulator.failures == 1
    with pytest.raises(NonFiniteError, match=r"NaN or infinity at a = 3, b = 0\.8"):
        simulator.required(X, np.array([3.0, 0.8]))


def test_required_returns_the_finite_model():
    np.testing.assert_array_equal(bound(decay).required(X, THETA)[:, 0], decay(X, THETA))


@pytest.mark.parametrize("flat_x", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, theta: theta[0] * np.exp(-theta[1] * x[:, 0]),  # needs a column
        lambda x, theta: np.array([theta[0] * np.exp(-theta[1] * one) for (one,) in x]),  # needs a column
        lambda x, theta: theta[0] * np.exp(-theta[1] * x),  # takes both
        lambda x, theta: np.interp(x, X[:, 0], decay(X, theta)),  # takes both
        lambda x, theta: decay(X, theta) + 0 * x,  # needs a vector: a column broadcasts to (7, 7)
        lambda x, theta: [theta[0] * float(np.exp(-theta[1] * float(one))) for one in x.tolist()],  # needs a vector
    ],
    ids=["column", "rows", "both", "interpolation", "broadcast", "list"],
)
def test_functions_of_a_vector_and_of_a_column_both_work(function, flat_x):
    simulator = bound(function, flat_x=flat_x)
    for theta in (THETA, 2 * THETA):
        np.testing.assert_allclose(simulator.evaluate(X, theta)[:, 0], decay(X, theta), rtol=1e-14)
    np.testing.assert_allclose(simulator.difference_gradient(X, THETA)[:, 0], decay_gradient(X, THETA), rtol=1e-6)


@pytest.mark.parametrize(("flat_x", "shape"), [(True, (7,)), (False, (7, 1))])
def test_x_has_the_form_in_which_the_user_gave_it(flat_x, shape):
    recorder = Recorder(lambda x, theta: theta[0] * x)
    bound(recorder, flat_x=flat_x).batch(X, np.array([THETA, 2 * THETA]))
    assert [x.shape for x in recorder.x] == [shape, shape]


def test_the_form_of_x_is_tried_once_only():
    recorder = Recorder(decay)
    simulator = bound(recorder, flat_x=True)
    for _ in range(3):
        simulator.evaluate(X, THETA)
    assert [x.ndim for x in recorder.x] == [1, 2, 2, 2]


def test_several_inputs_are_never_flattened():
    recorder = Recorder(lambda x, theta: np.zeros(3))
    with pytest.raises(SimulatorError, match=r"shape \(3,\) for 7 points"):
        bound(recorder).evaluate(np.arange(14.0).reshape(7, 2), THETA)
    assert [x.shape for x in recorder.x] == [(7, 2)]


def test_the_error_shown_is_that_of_the_form_the_user_gave():
    def broken(x, theta):
        raise ValueError(f"x has {x.ndim} axes")

    with pytest.raises(SimulatorError, match="x has 1 axes"):
        bound(broken, flat_x=True).evaluate(X, THETA)


@pytest.mark.parametrize("flat_x", [True, False])
def test_a_failure_in_both_forms_leaves_the_form_of_x_as_it_was(flat_x):
    def fails_at_first(x, theta):
        if theta[0] > 2:
            raise ValueError("no solution")
        return theta[0] * x

    recorder = Recorder(fails_at_first)
    simulator = bound(recorder, flat_x=flat_x)
    with pytest.raises(SimulatorError, match="no solution"):
        simulator.evaluate(X, np.array([3.0, 0.8]))
    simulator.evaluate(X, THETA)
    assert recorder.x[-1].ndim == (1 if flat_x else 2)


def test_calls_are_counted_and_timed():
    started = perf_counter()
    simulator = bound(decay)
    simulator.evaluate(X, THETA)
    assert simulator.calls == 1
    simulator.batch(X, np.tile(THETA, (5, 1)))
    assert simulator.calls == 6
    simulator.difference_gradient(X, THETA)
    assert simulator.calls == 10
    assert 0 < simulator.seconds < perf_counter() - started


def test_failed_calls_are_counted():
    simulator = bound(lambda x, theta: 1 / 0)
    with pytest.raises(SimulatorError):
        simulator.evaluate(np.zeros((7, 2)), THETA)
    assert simulator.calls == 1


def test_batch_is_one_evaluation_a_theta():
    theta = np.array([[1.0, 0.5], [2.0, 0.1], [-1.0, 3.0]])
    models = bound(two_outcomes, q=2).batch(X, theta)
    assert models.shape == (3, 7, 2)
    for model, one in zip(models, theta, strict=True):
        np.testing.assert_array_equal(model, two_outcomes(X, one))


def test_the_users_function_cannot_modify_our_theta():
    def vandal(x, theta):
        model = decay(x, theta)
        theta[:] = -99.0
        return model

    def vandal_gradient(x, theta):
        gradient = decay_gradient(x, theta)
        theta[:] = -99.0
        return gradient

    theta = THETA.copy()
    simulator = bound(Simulator(vandal, vandal_gradient))
    simulator.evaluate(X, theta)
    simulator.gradient(X, theta)
    simulator.batch(X, theta[None])
    np.testing.assert_array_equal(theta, THETA)
    np.testing.assert_allclose(simulator.difference_gradient(X, theta)[:, 0], decay_gradient(X, THETA), rtol=1e-6)
    np.testing.assert_array_equal(theta, THETA)


@pytest.mark.parametrize("flat_x", [True, False])
def test_the_users_function_cannot_modify_our_x(flat_x):
    def vandal(x, theta):
        x *= 2
        return theta[0] * x

    x = X.copy()
    model = bound(vandal, flat_x=flat_x).evaluate(x, THETA)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(model, 2 * THETA[0] * X)


def test_a_function_that_fills_one_buffer_again_and_again():
    buffer = np.empty(7)

    def reuse(x, theta):
        buffer[:] = decay(x, theta)
        return buffer

    simulator = bound(Simulator(reuse, "difference"))
    first = simulator.evaluate(X, THETA)
    simulator.evaluate(X, 2 * THETA)
    np.testing.assert_array_equal(first[:, 0], decay(X, THETA))
    np.testing.assert_allclose(simulator.gradient(X, THETA)[:, 0], decay_gradient(X, THETA), rtol=1e-6)


@pytest.mark.parametrize("function", [None, 3, "decay", np.zeros(3)])
def test_a_simulator_must_be_callable(function):
    with pytest.raises(InputError, match=r"give a function f\(x, theta\)"):
        Simulator(function)
    with pytest.raises(InputError, match=r"give a function f\(x, theta\)"):
        bound(function)


@pytest.mark.parametrize("gradient", [None, "analytic", 3])
def test_an_unknown_gradient_is_refused(gradient):
    with pytest.raises(InputError, match="gradient="):
        Simulator(decay, gradient)


def test_a_simulator_is_called_as_its_function():
    np.testing.assert_array_equal(Simulator(decay)(X, THETA), decay(X, THETA))


@pytest.mark.parametrize(
    ("function", "gradient", "q"), [(decay, decay_gradient, 1), (two_outcomes, two_outcomes_gradient, 2)]
)
def test_a_given_gradient_is_used(function, gradient, q):
    simulator = bound(Simulator(function, gradient), q=q)
    assert simulator.gradient_kind == "given"
    value = simulator.gradient(X, THETA)
    assert value.shape == (7, q, 2)
    np.testing.assert_array_equal(value, gradient(X, THETA).reshape(7, q, 2))
    assert simulator.calls == 1


def test_the_gradient_of_an_emulator_like_object_is_used():
    class Emulator:
        def __call__(self, x, theta):
            return decay(x, theta)

        def gradient(self, x, theta):
            return decay_gradient(x, theta)

    simulator = bound(Emulator())
    assert simulator.gradient_kind == "given"
    np.testing.assert_array_equal(simulator.gradient(X, THETA)[:, 0], decay_gradient(X, THETA))


@pytest.mark.parametrize(
    ("attribute", "kind"), [(decay_gradient, "given"), ("difference", "difference"), ("steep", "auto"), (3, "auto")]
)
def test_the_gradient_of_a_plain_function_may_be_its_attribute(attribute, kind):
    def simulator(x, theta):
        return decay(x, theta)

    simulator.gradient = attribute
    assert bound(simulator).gradient_kind == kind


def test_an_emulator_is_told_by_all_that_it_can_do():
    class Emulator:
        parameter_names, has_variance = ("a", "b"), False

        def __call__(self, x, theta):
            return decay(x, theta)

        def gradient(self, x, theta):
            return decay_gradient(x, theta)

        def variance(self, x, theta):
            raise AssertionError

        def outside(self, theta):
            return theta[:, 0] > 1

    emulator = Emulator()
    simulator = bound(emulator)
    assert simulator.emulator is emulator
    assert simulator.outside(np.array([[0.5, 0.0], [2.0, 0.0]])).tolist() == [False, True]
    assert bound(decay).emulator is bound(decay).outside is None


def test_a_gradient_of_one_parameter_and_one_outcome_may_be_a_vector():
    simulator = bound(Simulator(lambda x, theta: theta[0] * x[:, 0], lambda x, theta: x[:, 0]), {"a": stats.norm(0, 1)})
    np.testing.assert_array_equal(simulator.gradient(X, np.array([2.0])), X[:, :, None])


@pytest.mark.parametrize("shape", [(7,), (2, 7), (7, 3), (7, 2, 2), (1, 7, 2)])
def test_a_gradient_of_another_shape_is_refused(shape):
    simulator = bound(Simulator(decay, lambda x, theta: np.zeros(shape)))
    with pytest.raises(SimulatorError, match=r"the gradient returned an array of shape .* \(7, 2\) or \(7, 1, 2\)"):
        simulator.gradient(X, THETA)


def test_a_gradient_that_is_not_finite_is_refused_with_theta():
    simulator = bound(Simulator(decay, lambda x, theta: decay_gradient(x, theta) / 0.0))
    with (
        np.errstate(all="ignore"),
        pytest.raises(NonFiniteError, match=r"gradient is NaN or infinite at a = 1\.3"),
    ):
        simulator.gradient(X, THETA)


def test_an_exception_of_the_gradient_becomes_a_simulator_error():
    simulator = bound(Simulator(decay, lambda x, theta: [][0]))
    with pytest.raises(SimulatorError, match=r"IndexError at a = 1\.3, b = 0\.8"):
        simulator.gradient(X, THETA)


@pytest.mark.parametrize("theta", [THETA, [0.0, 1.0], [-5.0, 0.01], [30.0, -0.7]])
@pytest.mark.parametrize(
    ("function", "gradient", "q"), [(decay, decay_gradient, 1), (two_outcomes, two_outcomes_gradient, 2)]
)
def test_differences_are_near_the_analytic_gradient(function, gradient, q, theta):
    theta = np.asarray(theta, dtype=float)
    simulator = bound(Simulator(function, "difference"), q=q)
    value = simulator.gradient(X, theta)
    assert value.shape == (7, q, 2)
    assert simulator.gradient_kind == "difference"
    np.testing.assert_allclose(value, gradient(X, theta).reshape(7, q, 2), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("value", [0.4, 0.0, -1e-5, 3.0])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e12])
def test_differences_do_not_depend_on_the_units_of_theta(scale, value):
    simulator = bound(
        Simulator(lambda x, theta: np.exp(theta[0] / scale * x[:, 0]), "difference"),
        {"a": stats.norm(0, scale)},
    )
    gradient = simulator.gradient(X, np.array([value * scale]))[:, 0, 0] * scale
    np.testing.assert_allclose(gradient, X[:, 0] * np.exp(value * X[:, 0]), rtol=1e-6)


def test_differences_divide_by_the_step_that_was_made():
    # a date in seconds: the step is a few hundred units in the last place of theta
    epoch = 1.7e9
    simulator = bound(
        Simulator(lambda x, theta: (theta[0] - epoch) * x[:, 0], "difference"), {"a": stats.norm(epoch, 10)}
    )
    np.testing.assert_allclose(simulator.gradient(X, np.array([epoch + 0.3]))[:, 0, 0], X[:, 0], rtol=1e-6)


BOUNDED = {"a": stats.uniform(1, 2), "b": stats.gamma(2.0)}


@pytest.mark.parametrize(
    "theta",
    [
        [1.0, 0.5],
        [3.0, 0.5],
        [1.0 + 1e-9, 0.5],
        [3.0 - 1e-9, 0.5],
        [3.0 - 5e-6, 0.5],
        [2.0, 0.0],
        [2.0, 1e-12],
        [2.0, 3e-7],
        [1.0, 0.0],
        [3.0, 1e-9],
    ],
)
def test_differences_beside_a_bound_stay_inside_the_support(theta):
    theta = np.asarray(theta)
    recorder = Recorder(decay)
    value = bound(Simulator(recorder, "difference"), BOUNDED).gradient(X, theta)
    np.testing.assert_allclose(value[:, 0], decay_gradient(X, theta), rtol=1e-6)
    seen = np.array(recorder.theta)
    assert len(seen) >= 4
    assert (seen[:, 0] >= 1).all()
    assert (seen[:, 0] <= 3).all()
    assert (seen[:, 1] >= 0).all()
    # one parameter moves at a time
    assert ((seen != theta).sum(axis=1) <= 1).all()


def test_differences_of_a_failing_simulator_are_an_error_that_names_theta():
    simulator = bound(Simulator(lambda x, theta: np.full(len(x), np.nan), "difference"))
    with pytest.raises(NonFiniteError, match=r"NaN or infinity at a = 1\.3"):
        simulator.gradient(X, THETA)


def test_auto_means_differences_where_jax_is_not_in_use(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    simulator = bound(lambda x, theta: theta[0] * x[:, 0] + theta[1])
    assert simulator.gradient_kind == "auto"
    simulator.gradient(X, THETA)
    assert simulator.gradient_kind == "difference"
    assert "jax" not in sys.modules


@pytest.fixture
def jnp():
    pytest.importorskip("jax", reason="needs jax, the extra jax")
    import jax.numpy

    return jax.numpy


@pytest.mark.parametrize("kind", ["auto", "jax"])
@pytest.mark.parametrize("flat_x", [True, False])
def test_gradient_by_jax_is_exact_in_double_precision(jnp, kind, flat_x):
    def function(x, theta):
        return theta[0] * jnp.exp(-theta[1] * x.ravel())

    simulator = bound(Simulator(function, kind), flat_x=flat_x)
    value = simulator.gradient(X, THETA)
    assert simulator.gradient_kind == "jax"
    assert value.dtype == np.float64
    np.testing.assert_allclose(value[:, 0], decay_gradient(X, THETA), rtol=1e-10)
    other = np.array([-0.4, 2.0])
    np.testing.assert_allclose(simulator.gradient(X[:3], other)[:, 0], decay_gradient(X[:3], other), rtol=1e-10)


def test_gradient_by_jax_of_several_outcomes(jnp):
    def function(x, theta):
        falling = theta[0] * jnp.exp(-theta[1] * x[:, 0])
        return jnp.stack([falling, theta[0] ** 2 + theta[1] * x[:, 0]], axis=1)

    value = bound(function, q=2).gradient(X, THETA)
    np.testing.assert_allclose(value, two_outcomes_gradient(X, THETA), rtol=1e-10)


def test_values_of_a_jax_function_have_double_precision(jnp):
    def function(x, theta):
        return theta[0] * jnp.exp(-theta[1] * x[:, 0])

    simulator = bound(Simulator(function, "jax"))
    np.testing.assert_allclose(simulator.evaluate(X, THETA)[:, 0], decay(X, THETA), rtol=1e-12)
    np.testing.assert_allclose(simulator.difference_gradient(X, THETA)[:, 0], decay_gradient(X, THETA), rtol=1e-6)


@pytest.mark.usefixtures("jnp")
def test_auto_means_differences_for_a_function_that_jax_cannot_trace():
    simulator = bound(decay)
    np.testing.assert_allclose(simulator.gradient(X, THETA)[:, 0], decay_gradient(X, THETA), rtol=1e-6)
    assert simulator.gradient_kind == "difference"


@pytest.mark.usefixtures("jnp")
def test_jax_on_demand_for_a_function_that_it_cannot_trace_is_an_error():
    with pytest.raises(SimulatorError, match=r"at a = 1\.3"):
        bound(Simulator(decay, "jax")).gradient(X, THETA)


def test_jax_on_demand_without_jax_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(InputError, match=r"install orthocal\[jax\]"):
        bound(Simulator(decay, "jax")).gradient(X, THETA)

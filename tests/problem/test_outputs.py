"""Outputs without inputs: what is taken, and what is refused in which words."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import IdentifiabilityError, InputError, SimulatorError

PRIORS = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
DESIGN = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
Y = np.array([1.0, 2.0, 3.5, -0.5])


def simulator(theta):
    return DESIGN @ theta


def problem(y=Y, f=simulator, **changes):
    return oc.Problem(None, y, f, PRIORS, **({"y_err": 0.5} | changes))


def test_outputs_are_outcomes_at_one_point():
    made = problem()
    assert (made.data.n, made.data.q, made.data.without_inputs) == (1, 4, True)
    assert made.data.outcome_names == ("y1", "y2", "y3", "y4")
    np.testing.assert_allclose(made.theta_tilde, np.linalg.lstsq(DESIGN, Y, rcond=None)[0], rtol=1e-2)
    np.testing.assert_allclose(made.gradient_at_data[0] * 0.5, DESIGN, atol=1e-8)
    assert repr(made.domain) == "the 4 outputs"


def test_names_come_from_pandas_and_order_what_has_them():
    names = ["p", "q", "r", "s"]
    y = pd.Series(Y, index=names)
    err = pd.Series([0.4, 0.3, 0.2, 0.1], index=names[::-1])
    made = problem(y, lambda theta: dict(zip(names[::-1], simulator(theta)[::-1], strict=True)), y_err=err)
    assert made.data.outcome_names == tuple(names)
    np.testing.assert_allclose(np.diag(made.noise.cov), np.array([0.1, 0.2, 0.3, 0.4]) ** 2)
    np.testing.assert_allclose(made.fit[0], DESIGN @ made.theta_tilde)
    assert problem(pd.DataFrame([Y, Y], columns=names)).data.outcome_names == tuple(names)
    assert problem(pd.Series(Y)).data.outcome_names == ("y1", "y2", "y3", "y4")
    with pytest.raises(InputError, match="y_err has p, q, r, x: give one for each of p, q, r, s"):
        problem(y, y_err=pd.Series(Y, index=["p", "q", "r", "x"]))


def test_a_matrix_of_noise_by_name():
    cov = pd.DataFrame(np.diag([1.0, 2.0, 3.0, 4.0]), index=list("srqp"), columns=list("srqp"))
    made = problem(pd.Series(Y, index=list("pqrs")), y_err=None, noise_cov=cov)
    np.testing.assert_array_equal(np.diag(made.noise.cov), [4.0, 3.0, 2.0, 1.0])


def test_correlated_noise_stays_in_the_likelihood_and_out_of_the_loss():
    cov = np.diag([1.0, 4.0, 9.0, 16.0])
    cov[0, 1] = cov[1, 0] = 1.2
    made = problem(y_err=None, noise_cov=cov)
    np.testing.assert_allclose(made.weight, np.diag(1 / np.diag(cov)))
    np.testing.assert_allclose(made.noise.by_point, cov[None])
    whitener = np.diag(1 / np.sqrt(np.diag(cov)))
    np.testing.assert_allclose(made.noise.precision[0], np.linalg.inv(whitener @ cov @ whitener), atol=1e-12)


def test_replicates_give_the_noise():
    rows = Y + np.random.default_rng(1).normal(size=(6, 4)) * [0.1, 1.0, 10.0, 100.0]
    rows[0, 1] = np.nan
    made = problem(rows, y_err=None)
    np.testing.assert_allclose(np.diag(made.noise.cov), np.nanvar(rows, axis=0, ddof=1))
    with pytest.raises(InputError, match=r"'y2' has 2 observations.*give noise_cov"):
        problem(rows[:3], y_err=None)
    with pytest.raises(InputError, match="all observations of 'y1' are 1"):
        problem(np.tile(Y, (3, 1)), y_err=None)


def test_replicates_have_errors_of_their_own():
    made = problem(np.tile(Y, (2, 1)), y_err=[[1.0] * 4, [2.0] * 4])
    np.testing.assert_allclose(np.einsum("nii->ni", made.noise.by_point), [[1.0] * 4, [4.0] * 4])
    np.testing.assert_allclose(np.diag(made.noise.cov), 2.0)


def test_a_missing_output_is_one_to_predict():
    y = Y.copy()
    y[3] = np.nan
    assert problem(y).data.observed.sum() == 3
    with pytest.raises(IdentifiabilityError, match="1 observations cannot determine 2 parameters"):
        problem([1.0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_err": None}, "'y1' has 1 observation, and from fewer than 3 its noise cannot be told from its bias"),
        ({"y_err": None, "noise_cov": "sample"}, "outputs without x take noise that is known"),
        ({"y_err": None, "noise_cov": oc.LowRankNoise(1)}, "outputs without x take noise that is known"),
        ({"y_err": None, "noise_cov": [1.0, 2.0]}, "y has 4 outcomes but noise_cov is 2"),
        ({"y_err": None, "noise_cov": [1.0, 2.0, -1.0, 1.0]}, "not positive definite"),
        ({"noise_cov": 1.0}, "both give the noise"),
        ({"y_err": [1.0, 2.0]}, "y_err has shape \\(2,\\): give one standard deviation an output, \\(4,\\)"),
        ({"y_err": [1.0, 0.0, 1.0, 1.0]}, "y_err of 'y2' is 0: an error must be positive"),
        ({"domain": oc.Box(0, 1)}, "outputs without x take no domain"),
        ({"input_names": "x"}, "outputs without x take no input_names"),
        ({"f": lambda x, theta: theta}, "called as f\\(theta\\).* but it takes x, theta"),
        ({"groups": [1]}, "outputs without x take no groups"),
        ({"transform": "log"}, "outputs without x take no transform"),
        ({"x_err": 0.1}, "outputs without x take no x_err"),
        ({"f": 3}, "the simulator is int: give a function f\\(theta\\)"),
        ({"y": np.zeros((2, 2, 2))}, "without x, give one number an output"),
        ({"loss_weight": np.ones((2, 2))}, "loss_weight has shape"),
    ],
)
def test_what_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        problem(**changes)


def test_a_simulator_with_the_wrong_number_of_outputs_is_named():
    with pytest.raises(SimulatorError, match=r"an array of shape \(3,\) for 4 outputs: f\(theta\) must return \(4,\)"):
        _ = problem(f=lambda theta: DESIGN[:3] @ theta).theta_tilde


def test_gradients_and_steps_of_the_user_are_used():
    calls = []

    def gradient(theta):
        calls.append(theta)
        return DESIGN

    made = problem(f=oc.Simulator(simulator, gradient))
    _ = made.theta_tilde
    assert calls
    assert made.simulator.gradient_kind == "given"
    assert made.gradient_error < 1e-8


def test_a_wrong_gradient_of_an_output_with_small_numbers_is_found():
    wrong = DESIGN.copy()
    wrong[3] *= 1.5
    scale = np.array([1e6, 1e6, 1e6, 1e-6])
    f = oc.Simulator(lambda theta: scale * simulator(theta), lambda theta: scale[:, None] * wrong)
    assert problem(scale * Y, f, y_err=0.1 * scale).gradient_error > 0.1


def test_the_weights_of_the_outputs_may_be_given():
    np.testing.assert_array_equal(problem(loss_weight=[1.0, 2.0, 3.0, 4.0]).weight, np.diag([1.0, 2.0, 3.0, 4.0]))


def test_parts_keep_what_they_are():
    rows = Y + np.random.default_rng(1).normal(size=(6, 4))
    made = problem(rows, y_err=None)
    part = made.subset(np.arange(4), hidden=np.array([False, False, True, False]))
    assert part.data.without_inputs
    assert part.data.y.shape == (4, 4)
    assert np.isnan(part.data.y[:, 2]).all()
    np.testing.assert_array_equal(part.noise.cov, made.noise.cov)
    one = oc.Problem(None, rows, lambda theta: DESIGN[:, 0] * theta[0], {"a": stats.norm(0, 10)}).outcome(2)
    assert one.data.without_inputs
    assert one.data.y.shape == (6, 1)
    assert one.theta_tilde[0] == pytest.approx(rows[:, 2].mean(), rel=1e-2)

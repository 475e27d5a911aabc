"""A simulator that takes many theta at a time: the same numbers, in few calls."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError, SimulatorError
from orthocal.execution.checkpoints.checkpoint_file import Checkpoint, kept_in

X = np.linspace(0, 1, 25)
PRIORS = {"a": stats.norm(0, 10), "b": stats.uniform(0.1, 4)}
THETA = np.array([[1.0, 1.0], [3.0, 2.0], [1.5, 0.5], [4.0, 1.0], [2.0, 2.0]])


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x)


class Batch:
    """decay for theta (c, p); keeps how many theta there were at a time."""

    def __init__(self):
        self.sizes = []

    def __call__(self, x, theta):
        self.sizes.append(len(theta))
        return theta[:, :1] * np.exp(-theta[:, 1:] * x)


def problem(simulator, **given):
    y = 2 * np.exp(-X) + 0.3 * X + 0.05 * np.random.default_rng(0).standard_normal(len(X))
    return oc.Problem(X, y, simulator, PRIORS, oc.Box(0, 1, nodes=20), noise_cov=0.05**2, starts=2, **given)


def settled(simulator):
    made = problem(simulator)
    made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))
    return made


def test_the_draws_are_those_of_single_calls():
    function = Batch()
    one, many = problem(decay), problem(oc.Simulator(function, batched=True))
    draws = [oc.calibrate(each, draws=20, chains=2, seed=1, progress=False).theta for each in (one, many)]
    np.testing.assert_array_equal(*draws)
    assert one.simulator.calls == many.simulator.calls == sum(function.sizes)
    # all draws of a round of the projection
    assert max(function.sizes) == 40


def test_a_largest_number_at_a_time():
    function = Batch()
    made = settled(oc.Simulator(function, batched=2))
    models = made.simulator.batch(made.data.x, THETA)
    np.testing.assert_array_equal(models[:, :, 0], [decay(X, one) for one in THETA])
    assert function.sizes == [1, 2, 2, 1]


def test_the_theta_for_which_it_raises_are_found():
    def fails(x, theta):
        if (theta[:, 0] == 4).any():
            raise FloatingPointError("lost its way")
        return theta[:, :1] * np.exp(-theta[:, 1:] * x)

    made = settled(oc.Simulator(fails, batched=True))
    models = made.simulator.batch(made.data.x, THETA)
    assert np.isnan(models).all(axis=(1, 2)).tolist() == [False, False, False, True, False]
    assert made.simulator.failures == 1
    assert made.simulator.failure.startswith("the simulator raised FloatingPointError at a = 4, b = 1: lost its way")


def test_a_theta_that_gives_nan_is_impossible_alone():
    def half(x, theta):
        return np.where(theta[:, :1] < 3, theta[:, :1] * np.exp(-theta[:, 1:] * x), np.nan)

    made = settled(oc.Simulator(half, batched=True))
    models = made.simulator.batch(made.data.x, THETA)
    assert np.isnan(models).all(axis=(1, 2)).tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("wrong", [np.ones(25), 1.0, np.ones((25, 1))])
def test_what_it_must_return_is_said(wrong):
    with pytest.raises(SimulatorError, match=r"for 1 theta and 25 points: with batched, .* must return \(1, 25\) or"):
        settled(oc.Simulator(lambda x, theta: wrong, batched=True))


def test_outputs_without_inputs():
    def outputs(theta):
        return np.stack([theta[:, 0], theta[:, 0] * theta[:, 1]], axis=1)

    made = oc.Problem(None, [2.0, 3.0], oc.Simulator(outputs, batched=True), PRIORS, y_err=[0.1, 0.1], starts=2)
    np.testing.assert_allclose(made.theta_tilde, [2.0, 1.5], rtol=1e-3)


def test_slow_batches_are_kept_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("orthocal.execution.checkpoints.checkpoint_file.LEAST_SECONDS", -1.0)
    monkeypatch.setattr("orthocal.execution.checkpoints.checkpoint_file.EVERY", 0.0)
    monkeypatch.setattr("orthocal.execution.checkpoints.checkpoint_file.SHARE", 1e9)
    monkeypatch.setattr("orthocal.execution.checkpoints.checkpoint_file.BYTES_A_SECOND", 1e12)
    found = []
    for count in (5, 6):
        function = Batch()
        made = settled(oc.Simulator(function, batched=2))
        function.sizes.clear()
        with kept_in(Checkpoint(tmp_path / "kept"), dict, 1, True):
            theta = np.vstack([THETA, [[1.0, 3.0]]])[:count]
            found.append(made.simulator.batch(made.data.x, theta))
        # the second time all but the last batch, which is another one now, is known
        assert function.sizes == ([2, 2, 1] if count == 5 else [2])
    np.testing.assert_array_equal(found[0], found[1][:5])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batched": True, "jobs": 2}, "jobs=2 and batched=True: .* leave one of them out"),
        ({"batched": -1}, "batched=-1: give True, or the largest number"),
        ({"batched": "yes"}, "batched='yes': give True"),
        ({"batched": True, "timeout": 1.0}, "timeout: a call can be ended only in a process of its own"),
        ({"timeout": 0}, "timeout=0: give seconds"),
    ],
)
def test_what_cannot_be(given, words):
    with pytest.raises(InputError, match=words):
        oc.Simulator(Batch(), **given)


def test_a_batch_of_jax_is_compiled_for_few_sizes():
    jax = pytest.importorskip("jax", reason="needs JAX, the extra jax")
    jnp, traced = jax.numpy, []

    def one(x, theta):
        return theta[0] * jnp.exp(-theta[1] * x)

    def many(x, theta):
        traced.append(len(theta))
        return jax.vmap(one, (None, 0))(x, theta)

    made = settled(oc.Simulator(many, batched=True))
    traced.clear()
    for count in (5, 3, 4, 2, 5):
        models = made.simulator.batch(made.data.x, THETA[:count])
        assert models.shape == (count, 25, 1)
        np.testing.assert_allclose(models[:, :, 0], [decay(X, each) for each in THETA[:count]], rtol=1e-14)
    assert traced == [8, 4, 2]
    gradient = made.simulator.gradient(made.data.x, THETA[1])
    assert made.simulator.gradient_kind == "jax"
    np.testing.assert_allclose(gradient[:, 0, 0], np.exp(-2 * X), rtol=1e-14)

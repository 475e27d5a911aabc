"""Calls of a simulator in several processes: the same numbers, the same words, and no process is left."""

import multiprocessing
import os
import re
import signal

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError, SimulatorError

X = np.linspace(0, 1, 25)
PRIORS = {"a": stats.norm(0, 10), "b": stats.uniform(0.1, 4)}


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x)


def raises(x, theta):
    if multiprocessing.parent_process() is not None:
        raise FloatingPointError("lost its way")
    return decay(x, theta)


def dies(x, theta):
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return decay(x, theta)


def half_fails(x, theta):
    return decay(x, theta) if theta[0] >= 2 else np.full(len(x), np.nan)


def problem(simulator, jobs=2):
    y = 2 * np.exp(-X) + 0.3 * X + 0.05 * np.random.default_rng(0).standard_normal(len(X))
    given = oc.Simulator(simulator, "difference", jobs=jobs)
    return oc.Problem(X, y, given, PRIORS, oc.Box(0, 1, nodes=20), noise_cov=0.05**2, starts=2)


@pytest.fixture
def first_call():
    """A problem whose simulator has been called once: from then on calls are shared out."""

    def of(simulator):
        # a closure goes to copies of this process, which start faster than new ones
        made = problem(lambda x, theta: simulator(x, theta))
        made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))
        return made

    return of


def children():
    return [child for child in multiprocessing.active_children() if child.name == "orthocal run"]


def test_the_draws_do_not_depend_on_the_number_of_processes():
    one, two = (problem(decay, jobs) for jobs in (1, 2))
    draws = [oc.calibrate(each, draws=20, chains=2, seed=1, progress=False).theta for each in (one, two)]
    np.testing.assert_array_equal(*draws)
    assert one.simulator.calls == two.simulator.calls
    assert children()
    del two
    assert not children()


def test_what_a_function_of_the_script_closes_over_is_there_too(first_call):
    factor = np.array(3.0)
    made = first_call(lambda x, theta: factor * theta[0] * x)
    theta = np.array([[1.0, 1.0], [2.0, 1.0], [5.0, 1.0]])
    np.testing.assert_allclose(made.simulator.batch(made.data.x, theta)[:, -1, 0], [3, 6, 15])


def test_failures_are_counted_and_go_on(first_call):
    made = first_call(half_fails)
    models = made.simulator.batch(made.data.x, np.array([[1.0, 1.0], [3.0, 1.0], [1.5, 1.0]]))
    assert np.isnan(models).all(axis=(1, 2)).tolist() == [True, False, True]
    assert made.simulator.failures == 2


def test_what_it_raises_is_kept_with_its_theta(first_call):
    made = first_call(raises)
    assert np.isnan(made.simulator.batch(made.data.x, np.ones((2, 2)))).all()
    assert made.simulator.failures == 2
    words = r"the simulator raised FloatingPointError at a = 1, b = 1: lost its way \(test_calls.py, line \d+\)"
    assert re.fullmatch(words, made.simulator.failure)


def test_a_death_is_an_error_and_leaves_no_process(first_call):
    made = first_call(dies)
    words = r"at theta = \[1.0, 1.0\]: its process ended by signal 9: a crash, or not enough memory\?"
    # it can be called again
    for _ in range(2):
        with pytest.raises(SimulatorError, match=words):
            made.simulator.batch(made.data.x, np.ones((2, 2)))
        assert not children()


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "two"])
def test_a_number_of_processes_that_is_none(jobs):
    with pytest.raises(InputError, match=r"jobs=.*: give the number of processes"):
        oc.Simulator(decay, jobs=jobs)


def test_a_simulator_of_jax_stays_in_this_process():
    jnp = pytest.importorskip("jax.numpy", reason="needs JAX, the extra jax")
    made = problem(lambda x, theta: theta[0] * jnp.exp(-theta[1] * x))
    with pytest.raises(InputError, match="leave jobs out"):
        made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))

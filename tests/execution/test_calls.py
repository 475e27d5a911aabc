"""Calls of a simulator in several processes: the same numbers, the same words, and no process is left."""

import multiprocessing
import os
import re
import signal
import threading
import time

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

import orthocal as oc
from orthocal.errors import InputError, SimulatorError
from orthocal.execution.checkpoints.checkpoint_file import Checkpoint, kept_in
from orthocal.execution.work import calls
from orthocal.execution.work.calls import ParallelCalls

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


@pytest.fixture(autouse=True)
def always_sent(monkeypatch):
    """Calls go to other processes however short they are."""
    for name in ("WORTH", "WORTH_A_START", "WORTH_A_COPY", "LONG"):
        monkeypatch.setattr(calls, name, -1.0)


@pytest.fixture
def first_call():
    """A problem whose simulator has been called once: from then on calls are shared out."""

    def of(simulator):
        # a closure goes to copies of this process, which start faster than new ones
        made = problem(lambda x, theta: simulator(x, theta))
        made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))
        return made

    return of


@pytest.fixture
def children():
    """The processes that this test has started and that run; those of an earlier one may end meanwhile."""

    def running():
        return {child for child in multiprocessing.active_children() if child.name == "orthocal run"}

    before = running()
    return lambda: running() - before


# on a busy machine the start of processes takes so long that the simulator is called slow
@pytest.mark.filterwarnings("ignore:.* calls of the simulator")
def test_the_draws_do_not_depend_on_the_number_of_processes(children):
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


def test_a_death_is_an_error_and_leaves_no_process(first_call, children):
    made = first_call(dies)
    words = r"at theta = \[1.0, 1.0\]: its process ended by signal 9: a crash, or not enough memory\?"
    # it can be called again
    for _ in range(2):
        with pytest.raises(SimulatorError, match=words):
            made.simulator.batch(made.data.x, np.ones((2, 2)))
        assert not children()


def test_a_theta_whose_process_dies_is_impossible_where_others_work(first_call):
    made = first_call(lambda x, theta: dies(x, theta) if theta[0] == 3 else decay(x, theta))
    theta = np.array([[1.0, 1.0], [3.0, 1.0], [1.5, 1.0], [4.0, 2.0]])
    # before it is known how long a call takes, all of them go to one process together
    models = made.simulator.batch(made.data.x, theta)
    assert np.isnan(models).all(axis=(1, 2)).tolist() == [False, True, False, False]
    np.testing.assert_array_equal(models[3, :, 0], decay(X, theta[3]))
    words = "the simulator gave nothing at a = 3, b = 1: its process ended by signal 9: a crash, or not enough memory?"
    assert (made.simulator.failures, made.simulator.failure) == (1, words)


def test_a_process_that_somebody_ends_loses_nothing(first_call, tmp_path):
    def ended_once(x, theta):
        if theta[0] == 3 and not (tmp_path / "ended").exists():
            (tmp_path / "ended").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return decay(x, theta)

    made = first_call(ended_once)
    models = made.simulator.batch(made.data.x, np.array([[1.0, 1.0], [3.0, 1.0]]))
    assert np.isfinite(models).all()
    assert (tmp_path / "ended").exists()
    assert made.simulator.failures == 0


def test_a_call_that_takes_too_long_is_ended_and_said():
    def slow(x, theta):
        time.sleep(60 if theta[0] == 3 else 0)
        return decay(x, theta)

    given = oc.Simulator(slow, "difference", timeout=0.2)
    made = oc.Problem(X, decay(X, [2.0, 1.0]), given, PRIORS, oc.Box(0, 1, nodes=20), noise_cov=0.05**2, starts=2)
    np.testing.assert_array_equal(
        made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))[:, 0], decay(X, [2.0, 1.0])
    )
    assert np.isnan(made.simulator.evaluate(made.data.x, np.array([3.0, 1.0]))).all()
    assert made.simulator.failure == "the simulator gave nothing at a = 3, b = 1: no result after 0.2 s (time-out)"
    assert np.isnan(made.simulator.batch(made.data.x, np.array([[3.0, 1.0], [1.0, 1.0]]))).all(
        axis=(1, 2)
    ).tolist() == [
        True,
        False,
    ]


def test_short_calls_stay_here_until_processes_would_have_paid(monkeypatch):
    monkeypatch.undo()
    shared = ParallelCalls(decay, 2)
    shared.took(1e-5, "f")
    assert not shared.pays(100)
    # 0.4 s, and 0.4 s that were spent here before
    for _ in range(2):
        shared.took(4e-3, "f")
    assert [shared.pays(100), shared.pays(100)] == [False, True]
    # a copy of this process is soon there
    copied = ParallelCalls(lambda x, theta: decay(x, theta), 2)
    copied.took(4e-3, "f")
    assert [copied.pays(10), copied.pays(10)] == [False, True]
    long = ParallelCalls(decay, 2)
    long.took(2.0, "f")
    assert long.pays(2)


@pytest.mark.parametrize(("seconds", "sizes"), [(1.0, [1, 1, 1, 1, 1, 1, 1]), (7e-3, [3, 2, 1, 1]), (1e-6, [4, 2, 1])])
def test_short_calls_go_together_and_fewer_towards_the_end(seconds, sizes):
    shared = ParallelCalls(decay, 2)
    shared.took(seconds, "f")
    waiting, found = 7, []
    while waiting:
        found.append(shared.group_size(waiting, "f"))
        waiting -= found[-1]
    assert found == sizes


class Server:
    """Waits for an answer from elsewhere."""

    at_a_time = 3

    def __init__(self):
        self.threads, self.together = set(), threading.Barrier(3, timeout=10)

    def __call__(self, x, theta):
        if theta[0] != 2:
            self.threads.add(threading.get_ident())
            # only with three calls at a time does any of them go on
            self.together.wait()
        return decay(x, theta)


def test_what_waits_for_work_elsewhere_has_threads(monkeypatch, children):
    monkeypatch.setattr(calls, "WORTH_A_THREAD", -1.0)
    server = Server()
    made = problem(server, jobs=None)
    made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))
    theta = np.array([[a, 1.0] for a in (1.0, 3.0, 4.0, 5.0, 6.0, 7.0)])
    models = made.simulator.batch(made.data.x, theta)
    np.testing.assert_array_equal(models[:, :, 0], [decay(X, one) for one in theta])
    assert len(server.threads) == 3
    assert threading.get_ident() not in server.threads
    assert not children()


def test_a_gradient_of_the_users_is_called_in_processes_too(first_call):
    def gradient(x, theta):
        falling = np.exp(-theta[1] * x)
        return np.stack([falling * os.getpid(), -theta[0] * x * falling], axis=1)

    given = oc.Simulator(decay, gradient, jobs=2)
    made = oc.Problem(X, decay(X, [2.0, 1.0]), given, PRIORS, oc.Box(0, 1, nodes=20), noise_cov=0.05**2, starts=2)
    made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))
    found = made.simulator.gradients(made.data.x, np.array([[2.0, 1.0], [3.0, 2.0]]))
    assert os.getpid() not in found[:, 0, 0, 0] * np.exp([X[0], 2 * X[0]])
    np.testing.assert_array_equal(found[1, :, 0, 1], -3 * X * np.exp(-2 * X))


def test_processes_have_one_blas_thread_each(first_call):
    def threads(x, theta):
        return np.full(len(x), max([one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]))

    # a copy of this process begins with what this one has
    with threadpool_limits(2, user_api="blas"):
        made = first_call(threads)
        models = made.simulator.batch(made.data.x, np.array([[1.0, 1.0], [3.0, 1.0]]))
    assert (models == 1).all()


def test_slow_calls_of_processes_are_kept(first_call, tmp_path, monkeypatch):
    monkeypatch.setattr("orthocal.execution.checkpoints.checkpoint_file.SHARE", 1e9)
    for name in ("EVERY", "LEAST_SECONDS"):
        monkeypatch.setattr(f"orthocal.execution.checkpoints.checkpoint_file.{name}", -1.0)
    monkeypatch.setattr("orthocal.execution.checkpoints.checkpoint_file.BYTES_A_SECOND", 1e12)
    theta, found = np.array([[1.0, 1.0], [3.0, 1.0], [1.5, 2.0]]), []
    for simulator in (decay, dies):
        made = first_call(simulator)
        with kept_in(Checkpoint(tmp_path / "kept"), dict, 1, True):
            # the second time no process is asked: it would die
            found.append(made.simulator.batch(made.data.x, theta))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "two"])
def test_a_number_of_processes_that_is_none(jobs):
    with pytest.raises(InputError, match=r"jobs=.*: give the number of processes"):
        oc.Simulator(decay, jobs=jobs)


def test_a_simulator_of_jax_stays_in_this_process():
    jnp = pytest.importorskip("jax.numpy", reason="needs JAX, the extra jax")
    made = problem(lambda x, theta: theta[0] * jnp.exp(-theta[1] * x))
    with pytest.raises(InputError, match="leave jobs out"):
        made.simulator.evaluate(made.data.x, np.array([2.0, 1.0]))

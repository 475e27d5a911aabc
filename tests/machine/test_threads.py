"""One BLAS thread inside, and afterwards as many as before, whoever else is at work."""

from threading import Barrier, Event, Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import orthocal as oc
from orthocal.examples import MODEL1
from orthocal.machine.threads import one_blas_thread


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def two():
    with threadpool_limits(2, "blas"):
        assert blas_threads() == {2}
        yield


def test_blocks_may_be_nested(two):
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_first_block_may_end_before_the_second(two):
    entered, left = Event(), Event()

    def later():
        with one_blas_thread():
            entered.set()
            left.wait(20)
            assert blas_threads() == {1}

    thread = Thread(target=later)
    with one_blas_thread():
        thread.start()
        assert entered.wait(20)
    assert blas_threads() == {1}, "the other block is still inside"
    left.set()
    thread.join()
    assert blas_threads() == {2}


def test_an_error_inside_leaves_the_number_as_it_was(two):
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == {2}


def test_two_threads_that_calibrate_leave_the_number_as_it_was(two):
    """The second begins while the first is at work, and ends after it."""
    x, y = MODEL1.simulate(np.random.default_rng(0), n=12)
    inside, first_done = Barrier(2, timeout=60), Event()
    seen, armed = {}, set()
    run = {"method": "none", "draws": 10, "warmup": 5, "chains": 1, "seed": 1}

    def prepared(last):
        def simulator(x, theta):
            if last in armed:
                armed.discard(last)
                inside.wait()
                if last:
                    first_done.wait(60)
                seen[last] = blas_threads()
            return theta[0] * x[:, 0]

        problem = oc.Problem(x, y, simulator, MODEL1.parameters, domain=oc.Box(0, 1), noise_cov=0.04)
        # its properties are known from here on: Python 3.11 computes those of a class in one thread at a time
        oc.calibrate(problem, **run)
        armed.add(last)
        return problem

    def calibrated(problem, last):
        oc.calibrate(problem, **run)
        if not last:
            first_done.set()

    threads = [Thread(target=calibrated, args=(prepared(last), last)) for last in (False, True)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seen == {False: {1}, True: {1}}
    assert blas_threads() == {2}


def test_predictions_do_not_depend_on_the_number_of_threads():
    """400 points, so many that BLAS does share the work."""
    x, y = MODEL1.simulate(np.random.default_rng(0), n=20)
    method = oc.methods.Joint(oc.bias.GP())
    posterior = oc.calibrate(MODEL1.problem(x, y), method, draws=8, warmup=2, chains=2, seed=3)
    predicted = []
    for threads in (1, 4):
        with threadpool_limits(threads, "blas"):
            predicted.append(posterior.predict(np.linspace(0, 1, 400), warn=False)["mean"].values)
    np.testing.assert_array_equal(*predicted)

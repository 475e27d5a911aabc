"""Searches side by side find what each would find alone, and their questions are asked together."""

import threading

import numpy as np
import pytest

from orthocal.errors import NonFiniteError
from orthocal.problem.search.batched_search import BatchedSearch

X = np.linspace(0, 1, 4)[:, None]


class Square:
    """f(x, theta) = theta^2 at every x; keeps what it was asked for."""

    def __init__(self):
        self.asked = []

    def batch(self, x, theta):
        self.asked.append(("f", theta[:, 0].tolist()))
        return np.repeat(theta[:, None] ** 2, len(x), axis=1)

    def gradients(self, x, theta):
        self.asked.append(("gradient", theta[:, 0].tolist()))
        slope = np.where(theta < 0, np.nan, 2 * theta)
        return np.repeat(slope[:, None, None], len(x), axis=1)


def newton(start, steps):
    def search(asked):
        theta = np.array([start])
        for _ in range(steps):
            theta = theta - (asked.evaluate(X, theta)[0] - 2) / asked.gradient(X, theta)[0, 0]
        return float(theta[0])

    return search


def test_each_finds_what_it_would_alone():
    works = [newton(1.0, 3), newton(2.0, 5), newton(3.0, 1)]
    simulator = Square()
    together = dict(BatchedSearch(simulator, works))
    alone = [dict(BatchedSearch(Square(), [work]))[0] for work in works]
    assert [together[number] for number in range(3)] == alone
    # three at a time, then two, then the one that goes on
    assert [len(theta) for _, theta in simulator.asked] == [3, 3, 2, 2, 2, 2, 1, 1, 1, 1]
    assert simulator.asked[0] == ("f", [1.0, 2.0, 3.0])


def test_different_questions_of_one_moment_are_apart():
    simulator = Square()

    def slope(asked):
        return float(asked.gradient(X, np.array([5.0]))[0, 0, 0])

    assert dict(BatchedSearch(simulator, [newton(1.0, 1), slope, newton(2.0, 1)]))[1] == 10.0
    assert simulator.asked[:2] == [("f", [1.0, 2.0]), ("gradient", [5.0])]


def test_a_gradient_that_cannot_be_had_is_an_error_of_that_search():
    def search(asked):
        try:
            asked.gradient(X, np.array([-1.0]))
        except NonFiniteError:
            return "none"

    assert dict(BatchedSearch(Square(), [search, newton(1.0, 2)]))[0] == "none"


def searching():
    return [thread for thread in threading.enumerate() if thread.name == "orthocal search"]


def test_an_error_ends_all_of_them():
    def fails(asked):
        asked.evaluate(X, np.ones(1))
        raise ZeroDivisionError("of a search")

    with pytest.raises(ZeroDivisionError, match="of a search"):
        dict(BatchedSearch(Square(), [newton(1.0, 1000), fails]))
    for thread in searching():
        thread.join(5)
    assert not searching()


def test_an_interrupt_ends_all_of_them():
    class Interrupted(Square):
        def batch(self, x, theta):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dict(BatchedSearch(Interrupted(), [newton(1.0, 3), newton(2.0, 3)]))
    for thread in searching():
        thread.join(5)
    assert not searching()

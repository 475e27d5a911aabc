"""What is found before a run and after it is judged once."""

import numpy as np
import pytest

from orthocal.advice import Advice
from orthocal.problem.shared_findings import (
    best_on_bound,
    emulator_error,
    level_of,
    misses_data,
    outside_x,
    quadrature_finding,
    rival_minimum,
    rows_depend,
    told_apart,
)


@pytest.mark.parametrize(
    ("value", "level"), [(0.1, "fine"), (0.3, "note"), (0.9, "note"), (1.0, "problem"), (np.nan, "problem")]
)
def test_levels(value, level):
    assert level_of(value, (0.3, 1.0)) == level
    assert emulator_error(value, "its error", "add runs") == (
        level,
        "emulator",
        "its error",
        "add runs" * (level != "fine"),
    )


@pytest.mark.parametrize(("weakest", "level"), [(0.2, "fine"), (0.05, "note"), (0.005, "problem"), (1e-12, "problem")])
def test_effects_that_are_nearly_collinear(weakest, level):
    found = told_apart(weakest, " where it fits best")
    assert found.level == level
    assert ("a combination of them only" in found.message) == (weakest == 1e-12)
    assert "where it fits best" in found.message


def test_the_best_fit():
    assert [*best_on_bound((), "there")] == []
    assert [one.message for one in best_on_bound(("a", "b"), "there")] == [
        "it lies on a bound of the prior of a, b, there"
    ]
    assert [*misses_data(199.0, "at best", Advice("give noise_cov"))] == []
    assert "by 20 noise" in next(misses_data(400.0, "at best", Advice("give noise_cov"))).message
    assert [rival_minimum(behind, "a = 1", "the best is a = 2").level for behind in (1.9, 2.1)] == ["problem", "note"]


def test_rows_that_depend_on_each_other():
    levels = [[one.level for one in rows_depend(error)] for error in (None, np.nan, 0.01, 0.05, 0.2, np.inf)]
    assert levels == [[], [], [], ["note"], ["problem"], ["problem"]]
    assert "its values fail" in next(rows_depend(np.inf)).message


def test_nodes_and_runs_over_x():
    assert [quadrature_finding(error, "nodes", "note").level for error in (0.01, 0.03)] == ["fine", "note"]
    assert quadrature_finding(0.03, "nodes", "problem").advice.files == "take more nodes in [domain]"
    assert [outside_x(*shares).level for shares in ((0, 0), (0.05, 0), (0, 0.1))] == ["fine", "note", "problem"]

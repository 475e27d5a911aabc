"""Whole groups held out: the folds, the scores by group, what is said where rows and groups differ, and the command."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.cli import main
from orthocal.comparison.fits import MOST_GROUP_FOLDS, held_groups, split_groups, split_rows
from orthocal.comparison.tables import group_grid
from orthocal.errors import InputError

SHORT = {"draws": 60, "warmup": 25, "chains": 2, "progress": False, "seed": 1}


def line(x, theta):
    return theta[0] * x[:, 0]


def curves(levels, rows=8, sd=0.05, seed=0, **options):
    """y = x + the curve's own level: rows of one curve tell all about each other, and nothing about another."""
    rng = np.random.default_rng(seed)
    curve = np.repeat(np.arange(len(levels)), rows)
    x = np.column_stack([np.tile(np.linspace(0, 1, rows), len(levels)), curve])
    y = x[:, 0] + np.asarray(levels)[curve] + sd * rng.standard_normal(len(x))
    groups = pd.Series([f"c{one}" for one in curve], name="curve")
    settings = {"noise_cov": sd**2, "groups": groups, "input_names": ["strain", "test"], **options}
    return oc.Problem(x, y, line, {"t": stats.norm(1, 50)}, oc.Points(x), **settings)


@pytest.fixture(scope="module")
def apart():
    """Levels far apart for a bias that knows nothing of the curves beside each other."""
    problem = curves([0, 3, -2, 4])
    bias = oc.bias.GP(1.5, 3.0, [1.0, 0.2])
    return oc.compare(problem, {"gp": oc.methods.Joint(bias), "none": "none"}, folds=3, groups="curve", **SHORT)


def test_each_group_is_left_out_alone(apart):
    np.testing.assert_array_equal(apart.fold_of_row, np.repeat(np.arange(4), 8))
    assert apart.groups.labels == ("c0", "c1", "c2", "c3")
    assert list(apart.row_wise) == list(apart.held_out) == ["gp", "none"]


def test_scores_by_group_are_those_of_its_cells(apart):
    table = apart.group_scores()
    assert table.index.names == ["curve", "outcome", "method"]
    assert (table["cells"] == 8).all()
    error = apart.held_out["gp"].with_bias.error[:, 0]
    for k in range(4):
        own = table.loc[(f"c{k}", "y", "gp")]
        assert own["rmse"] == pytest.approx(np.sqrt(np.mean(error[8 * k : 8 * k + 8] ** 2)))
    # the model alone is a line, so the error is the curve's own level
    assert table.loc[("c3", "y", "none"), "rmse"] == pytest.approx(4, abs=1.5)
    # sd 3: no curve is known to better than that, and the intervals say so
    assert table.xs("gp", level="method")["coverage"].min() > 0.9
    assert table.xs("gp", level="method")["interval_score"].median() == pytest.approx(2 * 1.96 * 3, rel=0.3)


def test_where_rows_are_easy_and_groups_are_not_it_says_which_is_honest(apart):
    text = " ".join(apart.remarks())
    # without a bias nothing is learnt from the rows of a curve, so it is not named
    assert re.search(r"held out row by row and by curve, the RMSE is gp 0\.\d+ and [23]\.\d+\. Rows of one curve", text)
    assert "too small for a new curve: there the second number is the honest one" in text


def test_the_text_and_the_page_have_the_groups(apart, tmp_path):
    html = apart.report(tmp_path / "compare.html").read_text(encoding="utf-8")
    for text in (str(apart), html):
        assert "Held out by curve" in text
        assert "honest one" in text
    assert "of whole groups (4, by curve)" in html
    assert len(group_grid(apart.group_scores(), apart.outcome_names, apart.groups).rows) == 8


def test_where_groups_are_alike_nothing_is_said():
    result = oc.compare(curves([0, 0, 0, 0], sd=0.3), "none", folds=4, groups="curve", **SHORT)
    assert not any("honest" in one for one in result.remarks())


def test_a_problem_with_groups_reminds_of_them():
    result = oc.compare(curves([0, 0, 0]), "none", folds=2, **SHORT)
    assert any('groups="curve"' in one.replace("'", '"') for one in result.remarks())
    assert result.groups is None
    assert result.group_scores().empty


def test_groups_by_array_input_and_name():
    data = curves([0, 1, 2]).data
    own = held_groups(data, "curve")
    for given in (data.groups.of_rows, np.repeat([5, 3, 9], 8), pd.Series(data.groups.of_rows), "test"):
        np.testing.assert_array_equal(held_groups(data, given).codes, own.codes)
    assert held_groups(data, "test").labels == ("0", "1", "2")
    assert held_groups(data, None) is None


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("rig", r"no groups 'rig': give labels \(n,\), or one of strain, test, curve"),
        ([1, 2], "groups has shape \\(2,\\) but there are 24 rows"),
        (np.ones(24), "groups 'group' has one group only, '1': at least 2"),
        ([None] * 24, "groups has no label in 24 of 24 rows"),
    ],
)
def test_mistakes_are_named_before_any_work(groups, message):
    problem = curves([0, 1, 2])
    with pytest.raises(InputError, match=message):
        oc.compare(problem, "none", groups=groups, **SHORT)
    assert problem.simulator.calls == 0


def test_many_groups_are_put_together():
    problem = curves(np.zeros(23), rows=3)
    groups = problem.data.groups
    split = split_groups(problem, groups, 1)
    assert len(split.folds) == MOST_GROUP_FOLDS
    for code in range(groups.count):
        assert len(set(split.fold_of_row[groups.codes == code])) == 1
    assert np.ptp(np.bincount(split.fold_of_row)) <= 3
    assert split.folds[0].name.startswith("curve c")


@pytest.mark.parametrize("folds", [2, 5, 12])
def test_equal_rows_of_x_stay_together_without_groups(folds):
    rng = np.random.default_rng(3)
    x = rng.random((9, 2))[rng.integers(9, size=60)]
    problem = oc.Problem(x, x[:, 0], line, {"t": stats.norm(1, 1)}, oc.Box(0, 1), noise_cov=1.0)
    split = split_rows(problem, folds, 1)
    distinct = np.unique(x, axis=0)
    # no more folds than different rows
    assert len(split.folds) == min(folds, len(distinct))
    for one in distinct:
        assert len(set(split.fold_of_row[(x == one).all(axis=1)])) == 1
    assert all(fold.rows.any() for fold in split.folds)


def test_one_x_cannot_be_split():
    problem = oc.Problem(np.ones((6, 1)), np.ones(6), line, {"t": stats.norm(1, 1)}, oc.Box(0, 2), noise_cov=1.0)
    with pytest.raises(InputError, match="all rows of x are the same"):
        oc.compare(problem, "none", **SHORT)


class FailsWithout:
    """A method that cannot do without a part of the data."""

    def __init__(self, level):
        self.level = level

    def run(self, problem, plan):
        if self.level not in problem.data.x[:, 1]:
            raise InputError("a parameter cannot be told from the others")
        return oc.methods.NoBias().run(problem, plan)

    def describe(self):
        return {"kind": "fails"}


def test_a_fold_that_fails_is_named_and_the_others_count():
    methods = {"half": FailsWithout(1), "none": "none"}
    result = oc.compare(curves([0, 0.5, 1]), methods, folds=0, groups="curve", **SHORT)
    assert result.missed == {"half": {"curve c1": "a parameter cannot be told from the others"}}
    assert not result.failures
    table = result.group_scores()["rmse"]
    assert np.isnan(table["c1", "y", "half"])
    assert table["c0", "y", "half"] == table["c0", "y", "none"]
    text = str(result)
    assert "half has no scores for some rows" in text
    assert "without curve c1: a parameter cannot be told from the others" in text
    # the best is found, and the gap measured, on the cells that both have
    assert result.scores()["crps_gap"].tolist() == [0.0, 0.0]


def test_a_group_that_no_problem_can_be_without():
    x = np.column_stack([np.tile(np.linspace(0, 1, 5), 3), np.repeat([0, 1, 2], 5)])
    y = np.column_stack([x[:, 0], np.where(x[:, 1] == 2, x[:, 0], np.nan)])
    problem = oc.Problem(
        x, y, lambda x, t: np.column_stack([t[0] * x[:, 0]] * 2), {"t": stats.norm(1, 1)}, oc.Points(x), noise_cov=0.01
    )
    result = oc.compare(problem, "none", folds=0, groups=x[:, 1], **SHORT)
    assert list(result.missed["none"]) == ["group 2"]
    assert "has no observation" in result.missed["none"]["group 2"]


def test_if_no_group_can_be_left_out_it_says_why():
    priors = {"a": stats.norm(0, 1), "b": stats.norm(0, 1)}
    problem = oc.Problem([0.0, 1.0], [0.0, 1.0], lambda x, t: t[0] + t[1] * x, priors, oc.Box(0, 1), noise_cov=1.0)
    with pytest.raises(
        InputError, match="no group can be left out: without group 0, 1 observations cannot determine 2"
    ):
        split_groups(problem, held_groups(problem.data, [0, 1]), 1)


def test_standard_errors_are_those_over_groups():
    from orthocal.results.predict.scores import mean_and_error

    values, groups = np.repeat([1.0, 2.0, 6.0], 10), np.repeat([0, 1, 2], 10)
    mean, error = mean_and_error(values, groups)
    assert mean == 3
    # three independent numbers, however often each is repeated
    assert error == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))
    assert mean_and_error(values)[1] < 0.6 * error


def test_a_problem_keeps_its_groups(tmp_path):
    problem = curves([0, 1, 2])
    assert problem.subset(np.arange(8, 24)).data.groups.labels == ("c1", "c2")
    posterior = oc.calibrate(problem, "none", draws=20, chains=1, warmup=5, seed=1, progress=False)
    stored = oc.load(posterior.save(tmp_path / "fit.nc")).record.groups
    assert (stored.name, stored.labels) == ("curve", ("c0", "c1", "c2"))
    np.testing.assert_array_equal(stored.codes, problem.data.groups.codes)


TOML = """
[data]
file = "data.csv"
x = ["strain", "test"]
y = "y"
groups = "curve"

[simulator]
function = "model.py:line"

[parameters]
t = { distribution = "norm", loc = 1, scale = 0.5 }

[domain]
file = "data.csv"
x = ["strain", "test"]

[noise]
cov = 0.0025

[sampling]
draws = 40
chains = 1
warmup = 10
seed = 1

[compare]
methods = "none"
folds = 0
"""


@pytest.mark.parametrize(("named", "groups"), [("curve", 3), ("rig", 2)])
def test_the_command_holds_out_groups(named, groups, tmp_path, monkeypatch, capsys):
    data = curves([0, 1, 2]).data
    table = pd.DataFrame(data.x, columns=["strain", "test"]).assign(y=data.y[:, 0], curve=data.groups.of_rows)
    table.assign(rig=np.where(data.x[:, 1] > 0, "old", "new")).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "problem.toml").write_text(TOML)
    (tmp_path / "model.py").write_text("def line(x, theta):\n    return theta[0] * x[:, 0]\n")
    monkeypatch.setattr(sys, "argv", ["orthocal", "compare", str(tmp_path / "problem.toml"), "--groups", named])
    with pytest.raises(SystemExit):
        main()
    assert f"Held out by {named}" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "compare-groups.csv")) == groups

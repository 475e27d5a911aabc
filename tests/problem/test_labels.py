"""Categorical inputs: how labels are recognised, stored, asked for and refused."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.data.field_data import chosen_groups, field_data, new_inputs
from orthocal.problem.data.labels import LabelColumn, LabelColumns

TABLE = pd.DataFrame({"t": [0.0, 1.0, 2.0, 3.0], "machine": ["B", "A", "B", "C"]})
Y = np.arange(4.0)


def data(x, categorical=None, names=None):
    return field_data(x, Y[: len(x)], names, None, categorical=categorical)


def column(x, categorical=None, names=None):
    (own,) = data(x, categorical, names).labels.each
    return own


def test_text_becomes_numbers_in_the_order_of_the_labels():
    found = data(TABLE)
    assert found.labels.each == (LabelColumn(1, "machine", ("A", "B", "C"), (0.0, 1.0, 2.0)),)
    np.testing.assert_array_equal(found.x, [[0, 1], [1, 0], [2, 1], [3, 2]])
    assert found.input_names == ("t", "machine")


@pytest.mark.parametrize(
    "x",
    [
        TABLE.to_numpy(dtype=object),
        TABLE.to_numpy().tolist(),
        TABLE.astype({"machine": "string"}),
        TABLE.astype({"machine": "category"}),
    ],
    ids=["objects", "lists", "string", "category"],
)
def test_every_form_of_the_same_table_is_the_same(x):
    found = data(x, names=["t", "machine"])
    assert found.labels == data(TABLE).labels
    np.testing.assert_array_equal(found.x, data(TABLE).x)


def test_categories_of_pandas_keep_their_order_and_those_without_data():
    frame = TABLE.assign(machine=pd.Categorical(TABLE["machine"], ["C", "B", "Z", "A"]))
    own = column(frame)
    assert own.labels == ("C", "B", "Z", "A")
    np.testing.assert_array_equal(data(frame).x[:, 1], [1, 3, 1, 0])


def test_labels_that_are_numbers_stay_numbers():
    frame = TABLE.assign(machine=[12, 7, 12, 30])
    assert not data(frame).labels
    own = column(frame, ["machine"])
    assert (own.labels, own.values) == (("7", "12", "30"), (7.0, 12.0, 30.0))
    np.testing.assert_array_equal(data(frame, ["machine"]).x, frame)
    as_array = column(frame.to_numpy(dtype=float), {"x2": [30, 7, 12, 99]})
    assert as_array.labels == ("30", "7", "12", "99")


def test_a_series_is_a_single_input():
    found = data(TABLE["machine"])
    assert found.flat_x
    assert found.d == 1
    assert found.labels.each[0].name == "machine"


def test_numbers_as_text_stay_numbers():
    found = data(TABLE.assign(machine=["1.5", "2", "3", "2"]))
    assert not found.labels
    np.testing.assert_array_equal(found.x[:, 1], [1.5, 2, 3, 2])


@pytest.mark.parametrize(
    ("x", "categorical", "words"),
    [
        (TABLE.assign(t=["0", "1", "n/a", "3"]), None, "column 't' of x has numbers, and 'n/a' in row 2: fix that"),
        (TABLE.assign(machine=["A", None, "B", "A"]), None, "column 'machine' of x has no label in 1 of 4 rows"),
        (TABLE, ["site"], "categorical names 'site', which is no input: x has t, machine"),
        (TABLE, {"machine": ["A", "B"]}, "column 'machine' of x has C, but categorical lists A, B: list every label"),
        (TABLE, {"machine": ["A", "B", "B", "C"]}, "labels that read the same, A, B, B, C"),
    ],
)
def test_what_is_no_column_of_labels_is_refused(x, categorical, words):
    with pytest.raises(InputError, match=words):
        data(x, categorical)


def test_a_text_in_every_row_is_hardly_a_label():
    frame = pd.DataFrame({"t": np.arange(60.0), "when": [f"2024-01-{day:02d}" for day in range(60)]})
    with pytest.raises(InputError, match="column 'when' of x has 60 different texts in 60 rows, '2024-01-00' is the"):
        field_data(frame, np.zeros(60), None, None)
    assert len(field_data(frame, np.zeros(60), None, None, categorical="when").labels.each[0].labels) == 60


@pytest.mark.parametrize(
    "x_new",
    [
        pd.DataFrame({"machine": ["C", "A"], "other": [1, 2], "t": [5.0, 6.0]}),
        [[5.0, "C"], [6.0, "A"]],
        np.array([[5.0, 2.0], [6.0, 0.0]]),
        pd.DataFrame({"t": [5.0, 6.0], "machine": pd.Categorical(["C", "A"])}),
    ],
    ids=["table", "lists", "numbers", "category"],
)
def test_new_inputs_are_labels_or_their_numbers(x_new):
    known = data(TABLE)
    np.testing.assert_array_equal(new_inputs(x_new, known.input_names, known.labels), [[5, 2], [6, 0]])


def test_a_label_that_is_not_known_is_refused_with_those_that_are():
    known = data(TABLE)
    with pytest.raises(InputError, match="x_new has machine = 'D' in row 1, which is none of its labels: give one"):
        new_inputs([[1.0, "A"], [1.0, "D"]], known.input_names, known.labels)
    with pytest.raises(InputError, match=r"machine = '0.5' in row 0"):
        new_inputs([[1.0, 0.5]], known.input_names, known.labels)
    with pytest.raises(InputError, match="x_new has shape"):
        new_inputs([[1.0, "A", 3]], known.input_names, known.labels)


def test_a_single_point_and_a_single_input():
    known = data(TABLE)
    np.testing.assert_array_equal(new_inputs([1.0, "B"], known.input_names, known.labels), [[1, 1]])
    alone = data(TABLE["machine"])
    np.testing.assert_array_equal(new_inputs(["B", "C"], alone.input_names, alone.labels), [[1], [2]])
    np.testing.assert_array_equal(new_inputs("C", alone.input_names, alone.labels), [[2]])


def test_labels_are_columns_of_ones_and_zeros_and_far_apart():
    known = data(TABLE)
    np.testing.assert_array_equal(
        known.labels.one_hot(known.x), [[0, 0, 1, 0], [1, 1, 0, 0], [2, 0, 1, 0], [3, 0, 0, 1]]
    )
    apart = known.labels.apart(known.x, np.array([3.0, 1.0]))
    distance = np.linalg.norm(apart[:, None] - apart, axis=2)
    assert distance[0, 2] == pytest.approx(2 / 3)
    assert distance[0, 1] > 10
    assert distance[0, 1] == pytest.approx(np.hypot(1 / 3, 20.0))


def test_labels_come_back_from_text():
    labels = data(TABLE.assign(site=[3.5, 1, 1, 3.5]), ["site"]).labels
    assert LabelColumns.from_text(json.loads(json.dumps(labels.written()))) == labels


def test_groups_by_a_categorical_input_have_its_labels():
    assert chosen_groups(data(TABLE), "machine").labels == ("B", "A", "C")


def line(x, theta):
    return theta[0] * x[:, 0]


def problem(x, y, **options):
    return oc.Problem(x, y, line, {"slope": stats.norm(0, 10)}, noise_cov=0.01, **options)


def test_the_simulator_sees_the_numbers_and_parts_keep_the_labels():
    seen = []

    def simulator(x, theta):
        seen.append(np.unique(x[:, 1]))
        return theta[0] * x[:, 0]

    made = oc.Problem(TABLE, Y, simulator, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
    assert made.theta_tilde.shape == (1,)
    assert set(np.concatenate(seen)) == {0.0, 1.0, 2.0}
    assert made.categories == {"machine": {"A": 0.0, "B": 1.0, "C": 2.0}}
    part = made.subset(np.array([0, 1]))
    assert part.data.labels == made.data.labels
    assert part.domain is made.domain
    assert made.merged.data.labels == made.data.labels


def test_errors_of_x_are_those_of_numbers():
    made = problem(TABLE, Y, x_err=0.1)
    np.testing.assert_array_equal(made._x_err, np.tile([0.1, 0.0], (4, 1)))
    with pytest.raises(InputError, match="x_err has a standard deviation of machine, which holds labels: give 0 there"):
        problem(TABLE, Y, x_err=[0.1, 0.1])


def test_estimated_noise_allows_for_levels_of_the_labels():
    rng = np.random.default_rng(5)
    x = pd.DataFrame({"t": rng.random(80), "machine": rng.choice(["A", "B", "C", "D"], 80)})
    levels = x["machine"].map({"A": 5.0, "B": -3.0, "C": 0.0, "D": 1.0})
    y = np.sin(4 * x["t"]) + levels + 0.1 * rng.standard_normal(80)
    made = oc.Problem(x, y, line, {"slope": stats.norm(0, 10)})
    # its relative error is about sqrt(1 / 2 / 65) = 9 %
    assert np.sqrt(made.noise.cov[0, 0]) == pytest.approx(0.1, rel=0.3)

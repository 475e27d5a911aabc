import numpy as np
import pandas as pd
import pytest

from orthocal.errors import InputError
from orthocal.problem.data.field_data import field_data, new_inputs

NAMES = ("a", "b")


@pytest.mark.parametrize(
    ("x", "y", "shape_x", "shape_y", "flat"),
    [
        ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], (3, 1), (3, 1), True),
        (np.zeros((3, 1)), np.ones((3, 1)), (3, 1), (3, 1), False),
        (np.arange(6).reshape(3, 2), np.ones(3, dtype=int), (3, 2), (3, 1), False),
        (pd.Series([0.0, 1.0, 2.0]), np.ones((3, 4)), (3, 1), (3, 4), True),
        (pd.DataFrame({"a": [0.0, 1.0, 2.0]}), np.ones((3, 2)), (3, 1), (3, 2), False),
    ],
)
def test_data_become_matrices_of_floats(x, y, shape_x, shape_y, flat):
    data = field_data(x, y, None, None)
    assert data.x.shape == shape_x
    assert data.y.shape == shape_y
    assert data.x.dtype == data.y.dtype == np.float64
    assert (data.n, data.d, data.q) == (3, shape_x[1], shape_y[1])
    assert data.flat_x is flat


def test_values_and_their_order_are_kept():
    data = field_data([[3, 4], [1, 2]], [[5, 6], [7, 8]], None, None)
    np.testing.assert_array_equal(data.x, [[3, 4], [1, 2]])
    np.testing.assert_array_equal(data.y, [[5, 6], [7, 8]])


def test_data_are_copies_of_what_the_user_gave():
    x, y = np.array([0.0, 1.0]), np.array([2.0, 3.0])
    data = field_data(x, y, None, None)
    x[0], y[0] = 9.0, 9.0
    assert data.x[0, 0] == 0.0
    assert data.y[0, 0] == 2.0


def test_names_without_pandas_are_numbered_only_where_there_are_several():
    one = field_data([0.0, 1.0], [2.0, 3.0], None, None)
    several = field_data(np.zeros((2, 2)), np.zeros((2, 3)), None, None)
    assert (one.input_names, one.outcome_names) == (("x",), ("y",))
    assert (several.input_names, several.outcome_names) == (("x1", "x2"), ("y1", "y2", "y3"))


def test_names_come_from_pandas():
    frame = pd.DataFrame({"radius": [1.0, 2.0], "angle": [0.0, 0.5]})
    series = pd.Series([3.0, 4.0], name="speed")
    data = field_data(frame, series, None, None)
    assert data.input_names == ("radius", "angle")
    assert data.outcome_names == ("speed",)


def test_given_names_go_before_those_of_pandas():
    frame = pd.DataFrame({"radius": [1.0, 2.0], "angle": [0.0, 0.5]})
    data = field_data(frame, pd.Series([3.0, 4.0], name="speed"), ["r", "phi"], "v")
    assert data.input_names == ("r", "phi")
    assert data.outcome_names == ("v",)


def test_columns_of_pandas_that_are_no_text_and_a_series_without_name():
    data = field_data(pd.DataFrame(np.zeros((2, 2))), pd.Series([3.0, 4.0]), None, None)
    assert data.input_names == ("0", "1")
    assert data.outcome_names == ("y",)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_input_that_is_not_finite_is_refused_with_its_row(bad):
    x = np.zeros((5, 2))
    x[3, 1] = x[4, 0] = bad
    with pytest.raises(InputError, match=r"x has NaN or infinite values in 2 of 5 rows.*row 3"):
        field_data(x, np.ones(5), None, None)


def test_missing_outcomes_are_kept_as_they_are():
    y = np.ones((5, 2))
    y[2, 1] = y[4] = np.nan
    data = field_data(np.zeros(5), y, None, None)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.observed, [[True, True], [True, True], [True, False], [True, True], [False] * 2])


def test_an_outcome_without_any_observation_is_refused_by_its_name():
    y = np.ones((5, 2))
    y[:, 1] = np.nan
    with pytest.raises(InputError, match="outcome 'speed' has no observation"):
        field_data(np.zeros(5), y, None, ["force", "speed"])


def test_an_infinite_outcome_is_refused_with_its_row():
    with pytest.raises(InputError, match=r"y is infinite in row 1: set a cell to NaN"):
        field_data(np.zeros(3), [0.0, np.inf, 1.0], None, None)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros(3), np.zeros(4), "x has 3 rows but y has 4"),
        ([], [], "no data"),
        (np.zeros((3, 0)), np.zeros(3), "no data"),
        (np.zeros((3, 0)), np.zeros((3, 0)), "no data"),
        (np.zeros((2, 2, 2)), np.zeros(2), "x has 3 dimensions"),
        (np.zeros(2), np.zeros((2, 2, 2)), "y has 3 dimensions"),
        (1.0, 2.0, "x has 0 dimensions"),
        ([0.5, "high"], np.zeros(2), "has numbers, and 'high' in row 1: fix that cell"),
        ([[1.0], [1.0, 2.0]], np.zeros(2), "x must be numbers"),
        (np.zeros(2), [None, {}], "y must be numbers"),
    ],
)
def test_data_that_do_not_fit_are_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        field_data(x, y, None, None)


def test_complex_outcomes_are_refused_rather_than_cut():
    with pytest.raises(InputError, match="y must be"):
        field_data(np.zeros(2), np.array([1j, 2.0]), None, None)


@pytest.mark.parametrize(
    ("input_names", "outcome_names", "message"),
    [
        (["a"], None, "input_names has 1 names but there are 2"),
        ("ab", None, "input_names has 1 names but there are 2"),
        (None, ["a", "b"], "outcome_names has 2 names but there are 1"),
        (["a", "a"], None, "input_names has a name twice"),
    ],
)
def test_names_that_do_not_fit_are_refused(input_names, outcome_names, message):
    with pytest.raises(InputError, match=message):
        field_data(np.zeros((3, 2)), np.ones(3), input_names, outcome_names)


@pytest.mark.parametrize(
    ("x_new", "expected"),
    [
        (0.5, [[0.5]]),
        (2, [[2.0]]),
        (np.array(0.5), [[0.5]]),
        ([0.5, 0.7], [[0.5], [0.7]]),
        ([[0.5], [0.7]], [[0.5], [0.7]]),
        (pd.Series([0.5, 0.7]), [[0.5], [0.7]]),
        (pd.DataFrame({"x": [0.5, 0.7]}), [[0.5], [0.7]]),
    ],
)
def test_new_inputs_of_one_dimension(x_new, expected):
    np.testing.assert_array_equal(new_inputs(x_new, NAMES[:1]), expected)


@pytest.mark.parametrize(
    ("x_new", "expected"),
    [
        ([0.5, 0.7], [[0.5, 0.7]]),
        ([[0.5, 0.7]], [[0.5, 0.7]]),
        ([[0.5, 0.7], [1.0, 2.0], [3.0, 4.0]], [[0.5, 0.7], [1.0, 2.0], [3.0, 4.0]]),
        (pd.DataFrame({"a": [0.5, 1.0], "b": [0.7, 2.0]}), [[0.5, 0.7], [1.0, 2.0]]),
    ],
)
def test_new_inputs_of_two_dimensions(x_new, expected):
    np.testing.assert_array_equal(new_inputs(x_new, NAMES[:2]), expected)


@pytest.mark.parametrize(
    ("x_new", "d"),
    [
        ([[0.5, 0.7]], 1),
        (np.zeros((2, 1, 1)), 1),
        (0.5, 2),
        ([0.5, 0.7, 0.9], 2),
        (np.zeros((2, 3)), 2),
        (np.zeros((2, 2, 2)), 2),
        ("near", 1),
        (["near", "far"], 2),
    ],
)
def test_new_inputs_of_another_shape_are_refused(x_new, d):
    with pytest.raises(InputError, match="x_new"):
        new_inputs(x_new, NAMES[:d])


@pytest.mark.parametrize(("x_new", "d"), [([0.0, np.nan], 1), ([[0.0, 1.0], [np.inf, 0.0]], 2)])
def test_new_inputs_that_are_not_finite_are_refused_with_their_row(x_new, d):
    with pytest.raises(InputError, match=r"x_new has NaN or infinite values in 1 of 2 rows.*row 1"):
        new_inputs(x_new, NAMES[:d])


def test_new_inputs_of_a_table_are_taken_by_name():
    table = pd.DataFrame({"other": [9.0], "b": [2.0], "a": [1.0]})
    np.testing.assert_array_equal(new_inputs(table, NAMES), [[1.0, 2.0]])
    with pytest.raises(InputError, match="columns"):
        new_inputs(table.rename(columns={"a": "c"}), NAMES)


def test_masked_cells_are_missing_ones():
    y = np.ma.masked_array([1.0, 1e3, 2.0], mask=[False, True, False])
    np.testing.assert_array_equal(field_data(np.arange(3.0), y, None, None).y[:, 0], [1.0, np.nan, 2.0])


def test_dates_are_not_numbers():
    with pytest.raises(InputError, match="x must be real numbers"):
        field_data(pd.date_range("2020-01-01", periods=3), np.zeros(3), None, None)

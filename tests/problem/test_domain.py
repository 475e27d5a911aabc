import numpy as np
import pytest

from orthocal import Box, Points
from orthocal.errors import InputError
from orthocal.problem.domain.domain import LEGENDRE_NODES, SOBOL_NODES


def mean_of_power(power, lower, upper):
    """E x^power for x uniform between lower and upper."""
    return (upper ** (power + 1) - lower ** (power + 1)) / ((power + 1) * (upper - lower))


@pytest.mark.parametrize("power", range(10))
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-1.0, 2.5), (3.0, 3.5)])
def test_legendre_rule_is_exact_for_polynomials_of_one_input(power, lower, upper):
    rule, _ = Box(lower, upper, nodes=5).rules(1)
    assert rule.nodes.shape == (5, 1)
    value = rule.weights @ rule.nodes[:, 0] ** power
    assert value == pytest.approx(mean_of_power(power, lower, upper), rel=1e-12)


def test_legendre_rule_is_not_exact_beyond_its_degree():
    rule, _ = Box(-1, 1, nodes=5).rules(1)
    assert abs(rule.weights @ rule.nodes[:, 0] ** 10 - mean_of_power(10, -1, 1)) > 1e-4


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (0, 3), (4, 5), (7, 7)])
def test_legendre_rule_is_exact_for_polynomials_of_two_inputs(a, b):
    rule, _ = Box([0, -2], [1, 3], nodes=4).rules(2)
    assert rule.nodes.shape == (16, 2)
    value = rule.weights @ (rule.nodes[:, 0] ** a * rule.nodes[:, 1] ** b)
    assert value == pytest.approx(mean_of_power(a, 0, 1) * mean_of_power(b, -2, 3), rel=1e-12)


@pytest.mark.parametrize(
    ("d", "nodes", "fine", "coarse"),
    [
        (1, None, LEGENDRE_NODES[1], (LEGENDRE_NODES[1] + 1) // 2),
        (2, None, LEGENDRE_NODES[2] ** 2, ((LEGENDRE_NODES[2] + 1) // 2) ** 2),
        (3, None, SOBOL_NODES, SOBOL_NODES // 2),
        (1, 2, 2, 1),
        (1, 7, 7, 4),
        (3, 100, 100, 50),
        (5, 33, 33, 17),
    ],
)
def test_number_of_nodes_of_a_rule_and_of_its_half(d, nodes, fine, coarse):
    rule, half = Box(0, 1, nodes=nodes).rules(d)
    assert rule.nodes.shape == (fine, d)
    assert half.nodes.shape == (coarse, d)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_weights_sum_to_one_and_nodes_lie_inside_the_box(d):
    lower, upper = np.arange(d) - 1.5, np.arange(d) + 2.0
    for rule in Box(lower, upper).rules(d):
        assert rule.weights.shape == (len(rule.nodes),)
        assert rule.weights.sum() == pytest.approx(1.0, abs=1e-13)
        assert (rule.weights > 0).all()
        assert (rule.nodes > lower).all()
        assert (rule.nodes < upper).all()
        # they fill the box, not a part of it
        np.testing.assert_allclose(rule.weights @ rule.nodes, (lower + upper) / 2, atol=0.02)


def test_sobol_rule_integrates_a_smooth_function():
    lower, upper = [0, -1, 2], [1, 1, 5]
    rule, half = Box(lower, upper).rules(3)
    exact = np.prod([mean_of_power(2, *pair) for pair in zip(lower, upper, strict=True)])
    assert rule.weights @ np.prod(rule.nodes**2, axis=1) == pytest.approx(exact, rel=0.01)
    assert half.weights @ np.prod(half.nodes**2, axis=1) == pytest.approx(exact, rel=0.02)


def test_sobol_rule_is_the_same_every_time_and_its_half_is_its_beginning():
    rule, half = Box(0, 1).rules(4)
    again, _ = Box(0, 1).rules(4)
    np.testing.assert_array_equal(rule.nodes, again.nodes)
    np.testing.assert_array_equal(half.nodes, rule.nodes[: SOBOL_NODES // 2])


def test_volumes_of_one_input_are_the_exact_lengths_in_the_order_of_x():
    x = np.array([[5.0], [1.0], [2.0], [4.5]])
    # cells of 1, 2, 4.5, 5 in [0, 6]: [0, 1.5], [1.5, 3.25], [3.25, 4.75], [4.75, 6]
    np.testing.assert_allclose(Box(0, 6).volumes(x), np.array([1.25, 1.5, 1.75, 1.5]) / 6, rtol=1e-14)


def test_one_point_has_the_whole_volume():
    np.testing.assert_allclose(Box(-1, 3).volumes(np.array([[2.0]])), [1.0])
    np.testing.assert_allclose(Box(-1, 3).volumes(np.array([[2.0, 0.0, 1.0]])), [1.0])


def test_replicates_share_the_length_of_their_cell():
    x = np.array([[0.8], [0.2], [0.8], [0.8]])
    np.testing.assert_allclose(Box(0, 1).volumes(x), [0.5 / 3, 0.5, 0.5 / 3, 0.5 / 3], rtol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_volumes_of_random_points_sum_to_one(d):
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 7, (30, d))
    x[5] = x[11] = x[29]
    volumes = Box(-2, 7).volumes(x)
    assert volumes.shape == (30,)
    assert volumes.sum() == pytest.approx(1.0, abs=1e-12)
    assert (volumes >= 0).all()
    assert volumes[5] == volumes[11] == volumes[29]


def test_counted_volumes_of_a_regular_grid_are_near_the_exact_ones():
    # centres of 4 x 5 equal cells of a box whose sides have different units
    first, second = (np.arange(4) + 0.5) / 4, 1000 * (np.arange(5) + 0.5) / 5 - 300
    x = np.stack([axis.ravel() for axis in np.meshgrid(first, second)], axis=1)
    np.testing.assert_allclose(Box([0, -300], [1, 700]).volumes(x), 1 / 20, rtol=0.02)


def test_counted_volumes_of_an_uneven_grid_with_replicates():
    # cells of 0.2 and 0.6 in [0, 1]: [0, 0.4] and [0.4, 1]
    corners = np.array([[0.2, 0.2], [0.2, 0.6], [0.6, 0.2], [0.6, 0.6]])
    x = np.concatenate([corners, corners[3:]])
    np.testing.assert_allclose(Box(0, 1).volumes(x), [0.16, 0.24, 0.24, 0.18, 0.18], rtol=0.02)


def test_bounds_of_a_box_repeat_a_number_for_every_input():
    lower, upper = Box(0, [1, 2, 3]).bounds(3)
    np.testing.assert_array_equal(lower, [0, 0, 0])
    np.testing.assert_array_equal(upper, [1, 2, 3])


def test_x_on_the_faces_of_the_box_lies_in_it():
    Box([0, 0], [1, 2]).check(np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 2.0]]))


def test_x_outside_the_box_is_refused_with_its_row():
    x = np.array([[0.5, 0.5], [0.5, 1.5], [0.5, 2.5], [-0.1, 1.0]])
    with pytest.raises(InputError, match=r"2 of 4 rows of x lie outside.*row 2, x = \[0\.5, 2\.5\]"):
        Box([0, 0], [1, 2]).check(x)


@pytest.mark.parametrize(
    ("lower", "upper", "nodes", "message"),
    [
        (0, 0, None, "is empty"),
        (1, 0, None, "is empty"),
        ([0, 1], [1, 1], None, "is empty"),
        ([0, 0], [1, 1, 1], None, r"Box\(\[0, 0\], \[1, 1, 1\]\)"),
        (0, np.inf, None, "finite"),
        (np.nan, 1, None, "finite"),
        ([[0, 0]], 1, None, "corners"),
        ("low", 1, None, "lower corner of the box must be numbers"),
        (0, "high", None, "upper corner of the box must be numbers"),
        (0, 1, 1, "nodes=1"),
        (0, 1, 0, "nodes=0"),
        (0, 1, -3, "nodes=-3"),
    ],
)
def test_boxes_that_are_none_are_refused(lower, upper, nodes, message):
    with pytest.raises(InputError, match=message):
        Box(lower, upper, nodes=nodes)


def test_box_of_another_dimension_than_x_is_refused():
    box = Box([0, 0], [1, 1])
    for use in (lambda: box.check(np.zeros((3, 3))), lambda: box.rules(1), lambda: box.bounds(4)):
        with pytest.raises(InputError, match="box has 2 dimensions but x has"):
            use()


def test_points_are_their_own_rule_with_weights_that_sum_to_one():
    points = Points([[0.0, 1.0], [2.0, 3.0], [5.0, -1.0]], [1, 2, 5])
    rule, half = points.rules(2)
    np.testing.assert_array_equal(rule.nodes, [[0, 1], [2, 3], [5, -1]])
    np.testing.assert_allclose(rule.weights, [0.125, 0.25, 0.625])
    assert half is None
    lower, upper = points.bounds(2)
    np.testing.assert_array_equal(lower, [0, -1])
    np.testing.assert_array_equal(upper, [5, 3])


def test_points_given_as_a_vector_without_weights_weigh_the_same():
    rule, _ = Points([1.0, 2.0, 3.0, 4.0]).rules(1)
    assert rule.nodes.shape == (4, 1)
    np.testing.assert_allclose(rule.weights, 0.25)


def test_volumes_of_points_are_the_weights_of_the_nearest_nodes():
    points = Points([0.0, 1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4, 10])
    x = np.array([[3.6], [0.4], [3.6], [100.0]])
    # nodes 0, 1, 2 belong to 0.4; 3 and 4 to 3.6, which is there twice; none to 100
    np.testing.assert_allclose(points.volumes(x), [0.35, 0.3, 0.35, 0.0])


def test_distances_between_points_do_not_depend_on_the_units():
    nodes = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.6, 0.1]])
    x = np.array([[0.1, 0.9], [0.9, 0.3]])
    weights = np.array([1, 2, 3, 4, 5])
    expected = Points(nodes, weights).volumes(x)
    unit = np.array([1e-4, 1e5])
    np.testing.assert_allclose(Points(nodes * unit, weights).volumes(x * unit), expected)
    np.testing.assert_allclose(expected.sum(), 1.0)


def test_points_that_all_have_one_coordinate_in_common():
    points = Points([[0.0, 7.0], [1.0, 7.0]], [1, 3])
    np.testing.assert_allclose(points.volumes(np.array([[0.1, 7.0], [0.8, 7.0]])), [0.25, 0.75])


@pytest.mark.parametrize(
    ("nodes", "weights", "message"),
    [
        ([0.0, 1.0], [1.0], r"2 nodes but weights has shape \(1,\)"),
        ([0.0, 1.0], [[1.0], [1.0]], r"2 nodes but weights has shape \(2, 1\)"),
        ([0.0, 1.0], [1.0, -1.0], "negative"),
        ([0.0, 1.0], [0.0, 0.0], "all zero"),
        ([0.0, np.nan], None, "finite"),
        ([0.0, 1.0], [1.0, np.inf], "finite"),
        (np.zeros((2, 2, 2)), None, "nodes has 3 dimensions"),
        (["left", 1.0], None, "has numbers, and 'left' in row 0: fix that cell"),
        ([0.0, 1.0], "equal", "weights must be numbers"),
        ([], None, "weights"),
    ],
)
def test_points_that_are_no_measure_are_refused(nodes, weights, message):
    with pytest.raises(InputError, match=message):
        Points(nodes, weights)


def test_points_of_another_dimension_than_x_are_refused():
    with pytest.raises(InputError, match="nodes have 1 dimensions but x has 2 inputs"):
        Points([0.0, 1.0]).check(np.zeros((3, 2)))


def test_the_cells_of_points_do_not_know_the_units_of_the_inputs():
    """A box a hundred times as long as wide has the shares of the square that it is in other units."""
    x = np.random.default_rng(0).random((12, 2))
    square, long = Box([0, 0], [1, 1]).volumes(x), Box([0, 0], [1, 100]).volumes(x * [1, 100])
    np.testing.assert_allclose(long, square, atol=1e-3)
    assert np.ptp(square) > 0.05

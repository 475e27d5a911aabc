"""BART as an emulator: the lookup is the mean of the forests, cuts move as the prior says, differences, bad input.

False alarms: the chi-square statistic of the cuts exceeds its bound with probability 1e-5; seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.emulators.bart import BART
from orthocal.emulators.lookup import plan_tables
from orthocal.emulators.stacked import StackedEmulator
from orthocal.emulators.tree_kernels import move_cuts
from orthocal.errors import InputError
from orthocal.regression.tree_kernels import CHILD, CUT, DEPTH, FREE, LEAF, PARENT, SLOTS, VARIABLE

SMALL = {"trees": 20, "draws": 15, "burn": 30, "thin": 1, "cuts": 12, "beta": 0.5, "least": 2}


def standard(targets):
    return (targets - targets.mean(axis=0)) / targets.std(axis=0)


def rows_and_targets(k, rows=150, seed=0):
    """Inputs (rows, k), and two targets in which every input matters together with others."""
    rng = np.random.default_rng(seed)
    inputs = rng.random((rows, k))
    inputs[0], inputs[1] = 0.0, 1.0
    first = np.sin(4 * inputs @ rng.uniform(0.3, 1.0, k))
    return inputs, standard(np.column_stack([first, np.prod(inputs + 0.5, axis=1)]))


def tree_value(kind, value, start, row, cut_points):
    """The value of one packed tree at a row, and where the next tree starts."""
    if kind[start, 0] < 0:
        return value[start], start + 1
    left, middle = tree_value(kind, value, start + 1, row, cut_points)
    right, end = tree_value(kind, value, middle, row, cut_points)
    return (left if row[kind[start, 0]] <= cut_points[kind[start, 0]][kind[start, 1]] else right), end


def mean_of_forests(fitted, row):
    """The posterior mean at one row by walking tree after tree in plain Python."""
    means = []
    for forest, offset in zip(fitted.forests, fitted.offset, strict=True):
        total, start = 0.0, 0
        while start < len(forest.value):
            one, start = tree_value(*forest, start, row, fitted.cut_points)
            total += one
        means.append(total / fitted.settings.draws + offset)
    return np.array(means)


def some_theta(fitted, d, p):
    """Values inside, outside of the unit cube, and on the borders of cells."""
    rng = np.random.default_rng(5)
    borders = np.stack([rng.choice(cuts, 10) for cuts in fitted.cut_points[d:]], axis=1)
    return np.vstack([rng.uniform(-0.3, 1.3, (15, p)), borders, np.zeros(p), np.ones(p)])


def with_points(points, theta):
    return np.hstack([points, np.tile(theta, (len(points), 1))])


@pytest.mark.parametrize(("p", "d"), [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (3, 2), (4, 2), (2, 0)])
def test_the_lookup_is_the_mean_of_the_forests(p, d):
    inputs, targets = rows_and_targets(d + p)
    fitted = BART(**SMALL).fit(inputs, targets)
    points = np.random.default_rng(3).uniform(-0.1, 1.1, (12, d))
    points[-1] = points[0]
    all_theta = some_theta(fitted, d, p)
    expected = np.stack([fitted.predict(with_points(points, theta)) for theta in all_theta])
    one_pair = 8 * 2 * 12 * 13**2
    for most_bytes in (2**29, one_pair, 0):
        lookup = fitted.at(points, most_bytes)
        found = np.stack([lookup(theta) for theta in all_theta])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert lookup.tables <= {2**29: 6, one_pair: p, 0: 0}[most_bytes]
        if most_bytes == 0 or p > 2:
            assert lookup.boxes > 0
        elif most_bytes == 2**29:
            assert lookup.boxes == 0
    if d:
        walked = [mean_of_forests(fitted, with_points(points, theta)[0]) for theta in all_theta]
        np.testing.assert_allclose(expected[:, 0], walked, rtol=0, atol=1e-10)
    one_row = with_points(points, all_theta[0])[:1]
    np.testing.assert_allclose(fitted.predict(one_row), expected[0, :1], rtol=0, atol=1e-10)


def test_the_pairs_with_most_leaves_get_tables_first():
    counts = np.array([[5, 9, 1], [0, 5, 7], [0, 0, 5]])
    bins = np.array([4, 5, 6])
    tables = plan_tables(counts, bins, 20)
    assert tables.axes.tolist() == [[0, 1]]
    assert tables.choice[0, 0] == tables.choice[1, 1] == 0
    assert tables.choice[2, 2] == -1
    tables = plan_tables(counts, bins, 26)
    assert tables.axes.tolist() == [[0, 1], [2, 2]]
    tables = plan_tables(counts, bins, 1000)
    assert tables.axes.tolist() == [[0, 1], [1, 2], [0, 2]]
    assert tables.cells == 20 + 30 + 24
    assert plan_tables(counts, bins, 0).cells == 0


def test_the_same_seed_gives_the_same_and_a_target_does_not_depend_on_others():
    inputs, targets = rows_and_targets(2)
    first, again = (BART(**SMALL, seed=4).fit(inputs, targets).predict(inputs) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    alone = BART(**SMALL, seed=4).fit(inputs, targets[:, :1]).predict(inputs)
    np.testing.assert_array_equal(alone[:, 0], first[:, 0])
    assert np.abs(BART(**SMALL, seed=5).fit(inputs, targets).predict(inputs) - first).max() > 1e-3


def test_constant_targets_and_inputs():
    inputs, targets = rows_and_targets(3)
    inputs[:, 2] = 0.0
    targets[:, 1] = 0.7
    fitted = BART(**SMALL).fit(inputs, targets)
    elsewhere = np.array([[0.2, 0.4, 3.0], [0.2, 0.4, 0.0]])
    found = fitted.predict(elsewhere)
    np.testing.assert_allclose(found[:, 1], 0.7, atol=1e-14)
    assert fitted.variance(elsewhere)[0, 1] == 0
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(fitted.at(elsewhere[:, :1])(elsewhere[0, 1:]), found, atol=1e-12)
    np.testing.assert_allclose(fitted.cell_width, [1 / 13, 1 / 13, 0.0], atol=1e-12)


def test_runs_at_one_value_of_theta():
    x = np.linspace(0, 1, 40)
    runs = oc.RunTable([[2.0]], [np.sin(3 * x)], x)
    emulator = StackedEmulator("bart", runs, BART(**{**SMALL, "draws": 50, "burn": 200}))
    assert np.sqrt(np.mean((emulator(x, [2.0])[:, 0] - np.sin(3 * x)) ** 2)) < 0.1
    np.testing.assert_array_equal(emulator.gradient(x, [2.0]), np.zeros((40, 1, 1)))


def smooth(x, theta):
    return np.sin(2 * x[:, 0] + theta[0]) + 2 * theta[1] * (1 + x[:, 0])


def smooth_gradient(x, theta):
    return np.column_stack([np.cos(2 * x[:, 0] + theta[0]), 2 * (1 + x[:, 0])])


@pytest.fixture(scope="module")
def grid_emulator():
    """Runs on a 7 x 7 grid over [0, 2] x [1, 2], at 15 points."""
    x = np.random.default_rng(2).random((15, 1))
    theta = np.array([(a, b) for a in np.linspace(0, 2, 7) for b in np.linspace(1, 2, 7)])
    runs = oc.RunTable(theta, [smooth(x, one) for one in theta], x)
    return StackedEmulator("bart", runs, BART(trees=100, draws=300, burn=300, thin=1))


def test_differences_span_a_cell_and_approximate_the_gradient(grid_emulator):
    """Steps of a seventh of the range; the mean interpolates nearly linearly, so 10 % of the gradient are left."""
    fitted = grid_emulator._parts[0][2]
    assert not grid_emulator.smooth
    assert np.all(grid_emulator.steps >= fitted.cell_width[1:] * [2.0, 1.0])
    x = grid_emulator.runs.x
    errors, sizes = [], []
    for theta in np.random.default_rng(1).uniform([0.2, 1.1], [1.8, 1.9], (30, 2)):
        truth = smooth_gradient(x, theta)
        errors.append(grid_emulator.gradient(x, theta)[:, 0] - truth)
        sizes.append(truth)
    relative = np.sqrt(np.mean(np.square(errors), axis=(0, 1)) / np.mean(np.square(sizes), axis=(0, 1)))
    assert np.all(relative < 0.1)


def test_the_mean_interpolates_between_the_values_of_the_design(grid_emulator):
    """In the middle of a gap the nearest run is off by half a step; six seeds leave 0.12 to 0.20 of that."""
    x = grid_emulator.runs.x
    errors, nearest = [], []
    for a in np.linspace(0, 2, 7)[:-1] + 1 / 6:
        theta = np.array([a, 1.5])
        truth = smooth(x, theta)
        errors.append(grid_emulator(x, theta)[:, 0] - truth)
        nearest.append(smooth(x, np.array([a - 1 / 6, 1.5])) - truth)
    assert np.std(errors) < 0.3 * np.std(nearest)


def test_the_variance_covers_the_error_and_is_larger_between_the_runs(grid_emulator):
    x = grid_emulator.runs.x
    theta = np.random.default_rng(3).uniform([0, 1], [2, 2], (10, 2))
    between = np.stack([grid_emulator.variance(x, one)[:, 0] for one in theta])
    errors = np.stack([grid_emulator(x, one)[:, 0] - smooth(x, one) for one in theta])
    assert np.mean(np.abs(errors) < 1.96 * np.sqrt(between)) > 0.9
    at_runs = np.stack([grid_emulator.variance(x, one)[:, 0] for one in grid_emulator.runs.theta[::5]])
    assert at_runs.mean() < 0.3 * between.mean()


def nested_tree():
    """A root and its left child, both cut in the one variable: slots 0, 1, 2 and the leaves 3, 4."""
    tree = np.zeros((1, SLOTS, 5), dtype=np.int16)
    tree[0, :, CHILD], tree[0, :, PARENT] = LEAF, FREE
    tree[0, :5, PARENT] = [-1, 0, 0, 1, 1]
    tree[0, 0, CHILD], tree[0, 1, CHILD] = 1, 3
    tree[0, :5, DEPTH] = [0, 1, 1, 2, 2]
    tree[0, 0, CUT], tree[0, 1, CUT] = 3, 1
    return tree


def test_without_rows_between_them_cuts_follow_the_prior():
    """The joint distribution of two nested cuts of five, by enumeration, after every twentieth step."""
    cuts, alpha, beta = 5, 0.9, 1.0
    chance = [alpha / (1 + depth) ** beta for depth in range(3)]
    exact = {}
    for root in range(1, cuts):
        for child in range(root):
            right = 1 - chance[1] if root + 1 < cuts else 1.0
            leaves = (1 - chance[2] if child > 0 else 1.0) * (1 - chance[2] if child + 1 < root else 1.0)
            exact[root, child] = right * leaves / root
    rng, tree = np.random.default_rng(0), nested_tree()
    found = dict.fromkeys(exact, 0)
    gaps = np.zeros((1, cuts), dtype=np.int64), np.full((1, cuts), cuts, dtype=np.int64)
    steps = 4000
    for _ in range(steps):
        for _ in range(20):
            move_cuts(rng, tree, np.array([cuts]), np.ones(1), *gaps, alpha, beta)
        found[int(tree[0, 0, CUT]), int(tree[0, 1, CUT])] += 1
    expected = steps * np.array(list(exact.values())) / sum(exact.values())
    assert stats.chisquare(list(found.values()), expected).pvalue > 1e-5


def test_cuts_stay_in_their_gap():
    rng, tree = np.random.default_rng(0), nested_tree()
    low, high = np.array([[0, 0, 2, 2, 2]]), np.array([[2, 2, 5, 5, 5]])
    for _ in range(50):
        move_cuts(rng, tree, np.array([5]), np.ones(1), low, high, 0.9, 1.0)
        assert tree[0, 1, CUT] < 2 <= tree[0, 0, CUT]
    assert not tree[0, :, VARIABLE].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": 0}, "BART has draws=0: give a whole number of at least 1"),
        ({"thin": 1.5}, "BART has thin=1.5"),
        ({"burn": -1}, "BART has burn=-1"),
        ({"trees": 0}, "BART has trees=0"),
        ({"cuts": 300}, "cuts=300: give 1 to 255"),
        ({"k": -1.0}, "k > 0"),
        ({"seed": -2}, "BART has seed=-2"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        BART(**settings)


def test_bad_rows():
    with pytest.raises(InputError, match="do not go together"):
        BART().fit(np.zeros((3, 1)), np.zeros((2, 1)))
    with pytest.raises(InputError, match="have not been fitted"):
        BART().predict(np.zeros((3, 1)))

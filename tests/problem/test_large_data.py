"""What a problem does with a million rows before the bias is modelled."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import orthocal as oc
from orthocal import Box
from orthocal.arrays import repeated_rows, unique_rows
from orthocal.errors import InputError
from orthocal.problem.domain.domain import MOST_COUNTED, cell_volumes

MILLION = 1_000_000
PRIORS = {"a": stats.norm(0, 3), "b": stats.uniform(0, 5)}


def simulator(x, t):
    return t[0] * np.sin(3 * x[:, 0]) + np.exp(-t[1] * x[:, 1])


@pytest.fixture(scope="module")
def million():
    rng = np.random.default_rng(1)
    x = rng.random((MILLION, 2))
    return x, simulator(x, [1.0, 1.5]) + 0.1 * rng.standard_normal(MILLION)


def parts(problem):
    """All that is known before the bias."""
    for name in ("noise", "gradient_at_data", "sensitivity", "misfit", "fit"):
        getattr(problem, name)
    return problem.theta_tilde, problem.merged.data.n


@pytest.mark.slow
def test_one_repeated_x_of_a_million_is_merged(million):
    x, y = million
    x = x.copy()
    x[7] = x[3]
    theta, rows = parts(oc.Problem(x, y, simulator, PRIORS, noise_cov=0.01))
    # least squares errs by 2e-4
    assert theta == pytest.approx([1.0, 1.5], abs=2e-3)
    assert rows == MILLION - 1


@pytest.mark.slow
def test_a_million_rows_at_a_few_places_are_those_places(million):
    x, y = million
    x = np.round(x * 20) / 20
    problem = oc.Problem(x, simulator(x, [1.0, 1.5]) + y - simulator(million[0], [1.0, 1.5]), simulator, PRIORS)
    theta, rows = parts(problem)
    assert theta == pytest.approx([1.0, 1.5], abs=2e-3)
    assert rows == 441
    # replicates have 999 559 degrees of freedom, the thousand rows of the regression an error of 2 %
    assert np.sqrt(problem.noise.cov[0, 0]) == pytest.approx(0.1, rel=0.07)


def test_a_million_equal_x_are_a_sentence_or_one_row(million):
    x, y = np.full((MILLION, 2), 0.4), million[1]
    with pytest.raises(InputError, match="input 1 of x is constant: give the domain"):
        oc.Problem(x, y, simulator, PRIORS, noise_cov=0.01)
    constant = {"a": PRIORS["a"]}
    problem = oc.Problem(x, y, lambda x, t: t[0] * x[:, 0], constant, Box([0, 0], [1, 1]), noise_cov=0.01)
    theta, rows = parts(problem)
    assert rows == 1
    assert theta == pytest.approx([y.mean() / 0.4], rel=1e-6)


@pytest.mark.slow
def test_a_hundred_missing_values_of_a_million_are_left_out(million):
    x, y = million
    y = y.copy()
    y[np.random.default_rng(2).choice(MILLION, 100, replace=False)] = np.nan
    problem = oc.Problem(x, y, simulator, PRIORS, noise_cov=0.01)
    theta, _rows = parts(problem)
    assert theta == pytest.approx([1.0, 1.5], abs=2e-3)
    assert (problem.noise.precision == 0).sum() == 100
    x = x.copy()
    x[np.isnan(y), 0] = np.nan
    with pytest.raises(InputError, match="x has NaN or infinite values in 100 of 1000000 rows"):
        oc.Problem(x, y, simulator, PRIORS, noise_cov=0.01)


@pytest.mark.slow
def test_errors_of_a_million_points_are_checked_at_once(million):
    x, y = million
    error = 0.1 * (1 + x[:, 0])
    theta, _ = parts(oc.Problem(x, y, simulator, PRIORS, y_err=error))
    assert theta == pytest.approx([1.0, 1.5], abs=3e-3)
    error[MILLION // 2] = -1.0
    with pytest.raises(InputError, match="y_err is -1 in row 500000, column 0"):
        oc.Problem(x, y, simulator, PRIORS, y_err=error)
    with pytest.raises(InputError, match="noise_cov is not positive in row 500000"):
        oc.Problem(x, y, simulator, PRIORS, noise_cov=np.where(error > 0, 0.01, -1.0)[:, None, None])


@pytest.mark.slow
def test_many_outliers_of_large_data_are_found_in_few_rounds():
    rng = np.random.default_rng(3)
    x = rng.random((20_000, 1))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(len(x))
    wild = rng.choice(len(x), 800, replace=False)
    y[wild] += rng.choice([-3.0, 3.0], len(wild))
    problem = oc.Problem(x, y, lambda x, t: t[0] * x, {"a": stats.norm(0, 3)})
    # of a thousand rows that are looked at, each as likely a wild one as any
    assert np.sqrt(problem.noise.cov[0, 0]) == pytest.approx(0.1, rel=0.1)
    assert (problem.noise.by_point[:, 0, 0] > 10 * problem.noise.cov[0, 0]).sum() == pytest.approx(40, abs=20)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("power", [1, 2])
def test_sliced_cells_integrate_as_counted_ones(d, power):
    """Random points, also crowded at one corner; the mean of the values is off by many times as much."""
    rng = np.random.default_rng(4)
    x = rng.random((8000, d)) ** power
    value = np.prod(np.cos(1.3 * x + 0.2), axis=1)
    true = ((np.sin(1.5) - np.sin(0.2)) / 1.3) ** d
    box = Box(np.zeros(d), np.ones(d))
    sliced, counted = cell_volumes(x, *box.bounds(d)), box.volumes(x)
    assert sliced.sum() == pytest.approx(1, abs=1e-12)
    assert (sliced > 0).all()
    error = abs(sliced @ value - true) / value.std()
    # a tenth of what independent points would give
    assert error < (0.1 if d == 2 else 0.5) * len(x) ** -0.5 * power**2
    # as uneven as they are: neither loses rows to weights of few
    assert np.sum(counted**2) == pytest.approx(np.sum(sliced**2), rel=0.25)


def test_many_points_have_sliced_cells_and_few_have_counted_ones():
    rng = np.random.default_rng(5)
    x, box = rng.random((MOST_COUNTED + 1, 2)), Box([0, 0], [1, 1])
    np.testing.assert_array_equal(
        box.volumes(x[np.lexsort(x.T[::-1])]), cell_volumes(x, *box.bounds(2))[np.lexsort(x.T[::-1])]
    )
    doubled = np.vstack([x, x[:5]])
    volumes = box.volumes(doubled)
    assert volumes.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(volumes[:5], volumes[-5:])


def test_sliced_cells_of_a_grid_have_equal_volumes_and_none_is_empty():
    grid = np.stack(np.meshgrid((np.arange(40) + 0.5) / 40, (np.arange(10) + 0.5) / 10), axis=-1).reshape(-1, 2)
    volumes = cell_volumes(grid, np.zeros(2), np.ones(2))
    assert volumes == pytest.approx(np.full(400, 1 / 400), rel=0.35)
    # one line of points across the box
    line = np.column_stack([np.linspace(0, 1, 101), np.full(101, 0.3)])
    assert cell_volumes(line, np.zeros(2), np.ones(2)).sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from([-1.0, -0.0, 0.0, 1e-300, 2.5])] * 2), min_size=1, max_size=30),
    cut=st.integers(0, 30),
)
def test_distinct_rows_are_those_of_numpy(rows, cut):
    array = np.array(rows)
    distinct, index, place, counts = np.unique(
        array, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    found, blocks = unique_rows(array[:cut], array[cut:])
    np.testing.assert_array_equal(found, distinct)
    np.testing.assert_array_equal(np.concatenate(blocks), place.ravel())
    repeats = repeated_rows(array)
    if len(distinct) == len(array):
        assert repeats is None
    else:
        np.testing.assert_array_equal(repeats.first, np.sort(index))
        np.testing.assert_array_equal(array[repeats.first][repeats.place], array)
        np.testing.assert_array_equal(np.sort(repeats.counts), np.sort(counts))
        np.testing.assert_array_equal(repeats.sums(np.ones((len(array), 2)))[:, 1], repeats.counts)


class TestMaps:
    """Data in files that are mapped into memory: a file that was cut would end Python without a word."""

    @pytest.fixture
    def mapped(self, tmp_path):
        rng = np.random.default_rng(6)
        values = rng.random((5000, 3))
        values[:, 2] = simulator(values, [1.0, 1.5]) + 0.1 * rng.standard_normal(5000)
        path = tmp_path / "field.npy"
        np.save(path, values)
        return path, np.load(path, mmap_mode="r")

    def test_maps_are_as_good_as_arrays(self, mapped):
        _, map_ = mapped
        plain = np.array(map_)
        one = oc.Problem(map_[:, :2], map_[:, 2], simulator, PRIORS, noise_cov=0.01)
        other = oc.Problem(plain[:, :2], plain[:, 2], simulator, PRIORS, noise_cov=0.01)
        np.testing.assert_array_equal(one.theta_tilde, other.theta_tilde)

    @pytest.mark.parametrize("left", [0, 100, 8192, 119_000])
    @pytest.mark.parametrize("view", [np.asarray, lambda map_: map_, lambda map_: map_[4000:]])
    def test_a_file_that_was_cut_is_a_sentence(self, mapped, left, view):
        path, map_ = mapped
        with path.open("r+b") as file:
            file.truncate(left)
        with pytest.raises(InputError, match=f"x is mapped from .*field.npy, of which {left} of 120128 bytes are left"):
            oc.Problem(view(map_)[:, :2], np.zeros(5000), simulator, PRIORS, noise_cov=0.01)

    def test_a_file_that_was_removed_is_still_there_for_its_map(self, mapped):
        path, map_ = mapped
        path.unlink()
        assert oc.Problem(map_[:, :2], map_[:, 2], simulator, PRIORS, noise_cov=0.01).data.n == 5000

    def test_a_map_inside_of_its_file_knows_how_much_it_needs(self, tmp_path):
        path = tmp_path / "raw.bin"
        np.arange(10_000.0).tofile(path)
        map_ = np.memmap(path, mode="r", offset=8 * 1000, shape=(8000,), dtype=float)
        data = oc.Problem(map_, map_, lambda x, t: t[0] * x, {"a": stats.norm(0, 3)}, noise_cov=1.0).data
        assert data.x[0, 0] == 1000
        with path.open("r+b") as file:
            file.truncate(8 * 8999)
        with pytest.raises(InputError, match=r"x is mapped from .*raw.bin, of which 71992 of 72000 bytes are left"):
            oc.Problem(map_, map_, lambda x, t: t[0] * x, {"a": stats.norm(0, 3)}, noise_cov=1.0)

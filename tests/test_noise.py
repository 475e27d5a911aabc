import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from orthocal.data import field_data
from orthocal.errors import InputError
from orthocal.noise import Noise, estimated_noise, known_noise
from orthocal.studies import MODEL1

COV = np.array([[4.0, 1.2, -0.3], [1.2, 1.0, 0.1], [-0.3, 0.1, 0.25]])


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of BLAS that wait for a busy core make these small matrices forty times slower."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize(
    ("given", "q", "expected"),
    [
        (0.04, 1, [[0.04]]),
        ([0.04], 1, [[0.04]]),
        ([[0.04]], 1, [[0.04]]),
        (2, 3, 2 * np.eye(3)),
        ([1.0, 4.0, 9.0], 3, np.diag([1.0, 4.0, 9.0])),
        (COV, 3, COV),
    ],
)
def test_forms_of_a_known_noise(given, q, expected):
    noise = known_noise(given, 5, q)
    np.testing.assert_array_equal(noise.cov, expected)
    np.testing.assert_array_equal(noise.relative_var, np.ones((5, q)))
    assert noise.source == "known"


def test_noise_is_a_copy_of_what_the_user_gave():
    given = COV.copy()
    noise = known_noise(given, 5, 3)
    given[0, 0] = 99.0
    assert noise.cov[0, 0] == 4.0


def test_a_variance_for_every_point():
    variances = np.array([0.5, 1.0, 2.0, 4.0])
    noise = known_noise(variances[:, None, None], 4, 1)
    np.testing.assert_allclose(noise.cov[0, 0] * noise.relative_var[:, 0], variances)
    assert noise.relative_var.shape == (4, 1)
    # a typical point lies between the extremes
    assert 0.5 < noise.cov[0, 0] < 4.0


def test_equal_variances_for_every_point_are_one_variance():
    noise = known_noise(np.full((4, 1, 1), 0.3), 4, 1)
    assert noise.cov[0, 0] == pytest.approx(0.3)
    np.testing.assert_allclose(noise.relative_var, 1.0)


@pytest.mark.parametrize(
    ("given", "n", "q", "message"),
    [
        ([1.0, 2.0], 5, 3, r"y has 3 outcomes but noise_cov is 2: give a \(3, 3\) matrix, 3 variances"),
        (np.eye(2), 5, 3, r"y has 3 outcomes but noise_cov is 2 x 2: give a \(3, 3\) matrix, 3 variances"),
        (np.ones((5, 3)), 5, 3, "noise_cov is 5 x 3"),
        (np.ones(5), 5, 1, r"y has 1 outcome but noise_cov is 5: give one variance.*\(5, 1, 1\)"),
        (np.ones((4, 1, 1)), 5, 1, "noise_cov is 4 x 1 x 1"),
        (np.ones((5, 2, 2)), 5, 2, "one outcome only"),
        (np.nan, 5, 1, "finite"),
        ([1.0, np.inf], 5, 2, "finite"),
        (None, 5, 1, "noise_cov"),
        ("large", 5, 1, "noise_cov must be numbers"),
        (0.0, 5, 1, "noise_cov is 0: a variance must be positive"),
        (-0.04, 5, 1, r"noise_cov is -0\.04: a variance must be positive"),
        ([[-1.0]], 5, 1, "must be positive"),
        (np.array([1.0, 2.0, 0.0, -1.0, 1.0])[:, None, None], 5, 1, "not positive in row 2"),
        (np.array([1.0, 2.0, 1.0, 0.0, 1.0])[:, None, None], 5, 1, "not positive in row 3"),
        (-1.0, 5, 2, "not positive definite"),
        ([1.0, 0.0], 5, 2, "not positive definite"),
        ([1.0, -2.0], 5, 2, "not positive definite"),
        ([[1.0, 2.0], [2.0, 1.0]], 5, 2, "not positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], 5, 2, "not positive definite"),
        ([[1.0, 0.5], [0.4, 1.0]], 5, 2, "not symmetric"),
        ([[1e-12, 5e-13], [4e-13, 1e-12]], 5, 2, "not symmetric"),
    ],
)
def test_noise_that_is_no_covariance_is_refused(given, n, q, message):
    with pytest.raises(InputError, match=message):
        known_noise(given, n, q)


def test_a_covariance_in_tiny_and_huge_units_is_accepted():
    unit = np.array([1e-9, 1.0, 1e8])
    cov = COV * np.outer(unit, unit)
    np.testing.assert_array_equal(known_noise(cov, 5, 3).cov, cov)


def test_rounding_errors_are_no_asymmetry():
    cov = np.array([[1.0, 1e-17], [3e-17, 1.0]])
    np.testing.assert_allclose(known_noise(cov, 5, 2).cov, cov, atol=1e-15)


def noise_of(cov):
    return Noise(np.asarray(cov), np.ones((1, len(cov))), "known")


@pytest.mark.parametrize("cov", [[[0.04]], np.diag([4.0, 0.01]), COV, COV * 1e-10])
def test_whitener_makes_the_covariance_the_identity(cov):
    noise = noise_of(cov)
    T = noise.whitener
    np.testing.assert_allclose(T @ noise.cov @ T.T, np.eye(len(cov)), atol=1e-12)
    np.testing.assert_allclose(noise.unwhitener @ T, np.eye(len(cov)), atol=1e-12)


def test_whitener_of_independent_outcomes_divides_by_their_sd():
    np.testing.assert_allclose(noise_of(np.diag([4.0, 0.25])).whitener, np.diag([0.5, 2.0]))


def test_whitened_values_do_not_depend_on_the_units():
    # T' y' = T y where y' = D y has the covariance D cov D
    unit = np.diag([1e3, 0.01, 7.0])
    T = noise_of(COV).whitener
    np.testing.assert_allclose(noise_of(unit @ COV @ unit).whitener @ unit, T, rtol=1e-10)


def test_whitened_values_follow_the_order_of_the_outcomes():
    order = np.array([2, 0, 1])
    T = noise_of(COV).whitener
    np.testing.assert_allclose(noise_of(COV[np.ix_(order, order)]).whitener, T[np.ix_(order, order)], rtol=1e-10)


def model1(seed, x=None):
    rng = np.random.default_rng(seed)
    if x is None:
        return field_data(*MODEL1.simulate(rng, 100), None, None)
    return field_data(x, MODEL1.truth(x) + MODEL1.noise_sd * rng.standard_normal(len(x)), None, None)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_estimated_variance_of_model_1_is_near_the_truth(seed):
    # truth 0.04; with 100 points and about 5 degrees of freedom in the curve the standard error is 0.006
    noise = estimated_noise(model1(seed), np.ones(1))
    assert noise.source == "estimated"
    assert noise.cov.shape == (1, 1)
    assert 0.028 < noise.cov[0, 0] < 0.055
    np.testing.assert_array_equal(noise.relative_var, np.ones((100, 1)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_estimated_variance_with_replicates_is_near_the_truth(seed):
    # 25 distinct points four times each: standard error 0.006
    noise = estimated_noise(model1(seed, np.repeat(np.linspace(0, 1, 25), 4)[:, None]), np.ones(1))
    assert 0.025 < noise.cov[0, 0] < 0.058


def test_estimated_variance_of_replicates_at_one_point_is_the_sample_variance():
    y = np.random.default_rng(4).normal(5.0, 0.3, 40)
    noise = estimated_noise(field_data(np.full(40, 0.5), y, None, None), np.ones(1))
    assert noise.cov[0, 0] == pytest.approx(np.var(y, ddof=1), rel=1e-3)


def test_estimated_variance_with_two_inputs():
    rng = np.random.default_rng(5)
    x = rng.random((100, 2))
    y = np.sin(3 * x[:, 0]) * x[:, 1] + 0.1 * rng.standard_normal(100)
    noise = estimated_noise(field_data(x, y, None, None), np.ones(2))
    assert 0.006 < noise.cov[0, 0] < 0.015


def test_estimated_variance_follows_the_units():
    data = model1(0)
    moved = field_data(data.x * 250 - 40, data.y * 1e4 + 3e5, None, None)
    reference = estimated_noise(data, np.ones(1)).cov[0, 0]
    assert estimated_noise(moved, np.full(1, 250.0)).cov[0, 0] == pytest.approx(1e8 * reference, rel=1e-3)


@pytest.mark.parametrize("slope", [30.0, -1000.0])
def test_estimated_variance_does_not_see_a_linear_trend(slope):
    data = model1(1)
    tilted = field_data(data.x, data.y + slope * data.x, None, None)
    reference = estimated_noise(data, np.ones(1)).cov[0, 0]
    assert estimated_noise(tilted, np.ones(1)).cov[0, 0] == pytest.approx(reference, rel=1e-3)


def test_estimated_variance_with_inputs_that_depend_on_each_other():
    data = model1(2)
    doubled = field_data(np.column_stack([data.x, 3 - 2 * data.x]), data.y, None, None)
    assert 0.028 < estimated_noise(doubled, np.array([1.0, 2.0])).cov[0, 0] < 0.055


def test_the_fewest_observations_that_give_an_estimate():
    data = field_data([0.0, 0.0, 0.5, 1.0, 1.0], [-1.0, 1.0, 0.0, 1.0, 3.0], None, None)
    # scatter about the line 2 x - 0.2, in 3 degrees of freedom
    line = np.polyval(np.polyfit(data.x[:, 0], data.y[:, 0], 1), data.x[:, 0])
    expected = np.sum((data.y[:, 0] - line) ** 2) / 3
    assert estimated_noise(data, np.ones(1)).cov[0, 0] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("n", "d"), [(4, 1), (1, 1), (5, 2)])
def test_too_few_observations_to_estimate_the_noise(n, d):
    rng = np.random.default_rng(6)
    data = field_data(rng.random((n, d)), rng.standard_normal(n), None, None)
    with pytest.raises(InputError, match=f"{n} observations are too few.*noise_cov"):
        estimated_noise(data, np.ones(d))


@pytest.mark.parametrize("level", [0.0, 0.1, 7.0, 1e6 / 3])
def test_the_noise_of_constant_outcomes_cannot_be_estimated(level):
    data = field_data(np.linspace(0, 1, 30), np.full(30, level), None, None)
    with pytest.raises(InputError, match=r"cannot be estimated.*noise_cov"):
        estimated_noise(data, np.ones(1))


@pytest.mark.parametrize("curve", [lambda x: 2 * x + 1, lambda x: np.sin(3 * x)])
def test_the_noise_of_outcomes_without_scatter_cannot_be_estimated(curve):
    x = np.linspace(0, 1, 30)
    with pytest.raises(InputError, match=r"cannot be estimated.*noise_cov"):
        estimated_noise(field_data(x, curve(x), None, None), np.ones(1))


def test_the_noise_of_several_outcomes_cannot_be_estimated_yet():
    data = field_data(np.linspace(0, 1, 30), np.random.default_rng(7).random((30, 2)), None, None)
    with pytest.raises(InputError, match=r"2 outcomes.*noise_cov as a \(2, 2\) matrix"):
        estimated_noise(data, np.ones(1))

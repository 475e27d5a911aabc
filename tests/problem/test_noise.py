import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from orthocal.errors import InputError
from orthocal.examples import MODEL1
from orthocal.problem.data.field_data import field_data
from orthocal.problem.noise.estimate import estimated_noise, low_rank_correlation
from orthocal.problem.noise.kinds import LowRankNoise
from orthocal.problem.noise.noise import Noise, known_noise, noise_from_errors, observed_precision

COV = np.array([[4.0, 1.2, -0.3], [1.2, 1.0, 0.1], [-0.3, 0.1, 0.25]])


def all_observed(n, q):
    return np.ones((n, q), dtype=bool)


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
    noise = known_noise(given, all_observed(5, q))
    np.testing.assert_array_equal(noise.cov, expected)
    np.testing.assert_array_equal(noise.precision, np.tile(np.eye(q), (5, 1, 1)))
    assert not noise.coupled
    assert noise.source == "known"


def test_noise_is_a_copy_of_what_the_user_gave():
    given = COV.copy()
    noise = known_noise(given, all_observed(5, 3))
    given[0, 0] = 99.0
    assert noise.cov[0, 0] == 4.0


def test_a_variance_for_every_point():
    variances = np.array([0.5, 1.0, 2.0, 4.0])
    noise = known_noise(variances[:, None, None], all_observed(4, 1))
    np.testing.assert_allclose(noise.cov[0, 0] * noise.variances[:, 0], variances)
    assert noise.variances.shape == (4, 1)
    # a typical point lies between the extremes
    assert 0.5 < noise.cov[0, 0] < 4.0


def test_equal_variances_for_every_point_are_one_variance():
    noise = known_noise(np.full((4, 1, 1), 0.3), all_observed(4, 1))
    assert noise.cov[0, 0] == pytest.approx(0.3)
    np.testing.assert_allclose(noise.variances, 1.0)


@pytest.mark.parametrize(
    ("given", "n", "q", "message"),
    [
        ([1.0, 2.0], 5, 3, r"y has 3 outcomes but noise_cov is 2: give a \(3, 3\) matrix, 3 variances"),
        (np.eye(2), 5, 3, r"y has 3 outcomes but noise_cov is 2 x 2: give a \(3, 3\) matrix, 3 variances"),
        (np.ones((5, 3)), 5, 3, "noise_cov is 5 x 3"),
        (np.ones(5), 5, 1, r"y has 1 outcome but noise_cov is 5: give one variance.*\(5, 1, 1\)"),
        (np.ones((4, 1, 1)), 5, 1, "noise_cov is 4 x 1 x 1"),
        (np.ones((5, 2, 2)), 5, 2, "noise_cov in row 0 is not positive definite"),
        (
            np.where(np.arange(5)[:, None, None] == 3, [[1, 0.5], [0.1, 1]], np.eye(2)),
            5,
            2,
            "in row 3 is not symmetric",
        ),
        (np.where(np.arange(5)[:, None, None] == 2, np.inf, np.eye(2)), 5, 2, "not finite in row 2"),
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
        known_noise(given, all_observed(n, q))


def test_a_covariance_in_tiny_and_huge_units_is_accepted():
    unit = np.array([1e-9, 1.0, 1e8])
    cov = COV * np.outer(unit, unit)
    np.testing.assert_array_equal(known_noise(cov, all_observed(5, 3)).cov, cov)


def test_rounding_errors_are_no_asymmetry():
    cov = np.array([[1.0, 1e-17], [3e-17, 1.0]])
    np.testing.assert_allclose(known_noise(cov, all_observed(5, 2)).cov, cov, atol=1e-15)


def noise_of(cov):
    return Noise(np.asarray(cov), all_observed(1, len(cov)), "known")


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
    np.testing.assert_array_equal(noise.variances, np.ones((100, 1)))


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


def test_the_precision_of_a_row_is_that_of_its_observed_cells():
    """In the outcomes' units, T' L T = E' (E cov E')^-1 E, from the definition."""
    observed = np.array([[True, True, True], [True, False, True], [False, True, False], [False, False, False]])
    noise = Noise(COV, observed, "known")
    T = noise.whitener
    for row, seen in zip(np.einsum("ji,njk,kl->nil", T, noise.precision, T), observed, strict=True):
        cells = np.flatnonzero(seen)
        expected = np.zeros((3, 3))
        expected[np.ix_(cells, cells)] = np.linalg.inv(COV[np.ix_(cells, cells)])
        np.testing.assert_allclose(row, expected, atol=1e-10)
    assert noise.coupled
    np.testing.assert_array_equal(noise.precision[0], np.eye(3))
    assert np.isinf(noise.variances[3]).all()


def test_missing_cells_do_not_couple_independent_outcomes():
    observed = np.array([[True, True], [True, False], [False, True]])
    noise = Noise(np.diag([0.04, 1e9]), observed, "known")
    assert not noise.coupled
    np.testing.assert_allclose(noise.variances, np.where(observed, 1.0, np.inf))


def test_precisions_follow_the_units():
    observed = np.array([[True, False, True], [True, True, False]])
    unit = np.array([1e-6, 1.0, 1e9])
    scaled = Noise(COV * np.outer(unit, unit), observed, "known")
    np.testing.assert_allclose(scaled.precision, Noise(COV, observed, "known").precision, atol=1e-9)


def test_observed_precision_takes_one_covariance_a_row():
    covs = np.stack([COV, 2 * COV])
    observed = np.array([[True, True, False], [True, True, False]])
    result = observed_precision(covs, observed)
    np.testing.assert_allclose(result[0], 2 * result[1])
    np.testing.assert_allclose(result[0, :2, :2], np.linalg.inv(COV[:2, :2]))
    assert not result[:, 2].any()
    assert not result[:, :, 2].any()


def test_errors_of_every_cell():
    errors = np.array([[0.1, 2.0], [0.4, np.nan], [0.1, 2.0]])
    observed = np.array([[True, True], [True, False], [True, True]])
    noise = noise_from_errors(errors, observed)
    np.testing.assert_allclose(noise.by_point[1, 0, 0], 0.16)
    np.testing.assert_allclose(np.diag(noise.cov), [np.exp(np.mean(np.log([0.01, 0.16, 0.01]))), 4.0])
    np.testing.assert_allclose(noise.variances[:, 0] * noise.cov[0, 0], [0.01, 0.16, 0.01])
    np.testing.assert_allclose(noise.variances[:, 1] * noise.cov[1, 1], [4.0, np.inf, 4.0])


def test_equal_errors_are_one_covariance():
    noise = noise_from_errors([0.2, 0.2, 0.2], all_observed(3, 1))
    assert noise.by_point is None
    np.testing.assert_allclose(noise.cov, [[0.04]])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_an_error_that_is_none_is_refused_with_its_place(bad):
    errors = np.full((4, 2), 0.5)
    errors[2, 1] = bad
    with pytest.raises(InputError, match=r"row 2, column 1 \(1 such cells\).*set y to NaN"):
        noise_from_errors(errors, all_observed(4, 2))


def pair(seed, n=100):
    """Two smooth curves with correlated noise."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    cov = np.array([[0.04, 0.018], [0.018, 0.01]])
    y = np.column_stack([np.sin(4 * x), np.exp(x)]) + rng.multivariate_normal([0, 0], cov, n)
    return x, y, cov


@pytest.mark.slow
def test_estimated_covariance_of_two_outcomes_is_near_the_truth():
    """Over 30 data sets the mean's relative error is about .15 / sqrt(30) = .03."""
    estimates = []
    for seed in range(30):
        x, y, cov = pair(seed)
        estimates.append(estimated_noise(field_data(x, y, None, None), np.ones(1)).cov)
    np.testing.assert_allclose(np.mean(estimates, axis=0), cov, rtol=0.1)


def several(seed, correlation, n=20):
    """As many smooth curves as the matrix has rows, with noise of that correlation and an sd of .1."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    curves = [np.sin(4 * x + k) if k % 2 else np.exp(k * x / 4) for k in range(len(correlation))]
    noise = 0.1 * rng.multivariate_normal(np.zeros(len(correlation)), correlation, n)
    return field_data(x, np.column_stack(curves) + noise, None, None)


@pytest.mark.parametrize("strength", [0.0, 0.5, -0.95], ids=["independent", "moderate", "nearly singular"])
@pytest.mark.parametrize("q", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_few_data_give_an_admissible_covariance_that_is_worth_having(q, strength):
    """n = 20, 15 data sets: never less likely to new noise, on average, than variances alone by more than .02 q.

    Of 15 data sets with independent noise the loss by a correlation that is not there is below that.
    """
    order = np.abs(np.subtract.outer(np.arange(q), np.arange(q)))
    correlation = strength**order
    whole, alone = [], []
    for seed in range(15):
        cov = estimated_noise(several(seed, correlation), np.ones(1)).cov
        sd = np.sqrt(np.diag(cov))
        assert np.linalg.eigvalsh(cov / np.outer(sd, sd))[0] > 0
        for estimate, scores in ((cov, whole), (np.diag(np.diag(cov)), alone)):
            # the expected log density of new noise, but for its constant
            expected = np.trace(np.linalg.solve(estimate, 0.01 * correlation)) + np.linalg.slogdet(estimate)[1]
            scores.append(-0.5 * expected)
    assert np.mean(whole) > np.mean(alone) - 0.02 * q
    if strength == -0.95:
        assert np.mean(whole) > np.mean(alone) + 0.3


def test_noise_that_is_one_for_all_outcomes_stays_admissible():
    """Counts that move from one outcome to the other: what the regressions leave is nearly opposite."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 21)
    one = rng.standard_normal(21)
    y = np.column_stack([10 * np.sin(3 * x) + one, 10 * x**2 - 0.7 * one + 0.05 * rng.standard_normal(21)])
    cov = estimated_noise(field_data(x, y, None, None), np.ones(1)).cov
    assert -1 < cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]) < -0.9


def test_the_covariance_is_estimated_from_the_rows_with_both():
    x, y, cov = pair(0, n=300)
    y[:100, 0] = np.nan
    y[250:, 1] = np.nan
    estimate = estimated_noise(field_data(x, y, None, None), np.ones(1)).cov
    np.testing.assert_allclose(estimate, cov, rtol=0.35)


def test_outcomes_that_are_never_seen_together_are_taken_as_uncorrelated():
    x, y, _ = pair(0)
    y[::2, 0] = np.nan
    y[1::2, 1] = np.nan
    noise = estimated_noise(field_data(x, y, None, None), np.ones(1))
    assert noise.cov[0, 1] == 0.0
    assert not noise.coupled


def test_too_few_observations_of_one_outcome_name_it():
    x, y, _ = pair(0)
    y[4:, 1] = np.nan
    with pytest.raises(InputError, match="4 observations of y2 are too few"):
        estimated_noise(field_data(x, y, None, None), np.ones(1))


def test_a_low_rank_correlation_is_found_again():
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((20, 2))
    model = loadings @ loadings.T + np.diag(rng.uniform(0.5, 1.5, 20))
    scale = np.sqrt(np.diag(model))
    correlation = model / np.outer(scale, scale)
    np.testing.assert_allclose(low_rank_correlation(correlation, 2), correlation, atol=1e-3)
    # one factor is too few for it
    assert np.abs(low_rank_correlation(correlation, 1) - correlation).max() > 0.1


def test_rank_zero_means_independent_outcomes():
    np.testing.assert_allclose(low_rank_correlation(np.array([[1.0, 0.5], [0.5, 1.0]]), 0), np.eye(2))


def test_low_rank_noise_of_many_outcomes_beats_the_full_estimate():
    """15 outcomes, 40 points, one factor: 30 numbers are estimated better than 120."""
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 40)
    loadings = rng.uniform(0.5, 1.5, 15)
    cov = np.outer(loadings, loadings) + np.eye(15)
    y = np.sin(3 * x)[:, None] + rng.multivariate_normal(np.zeros(15), cov, 40)
    data = field_data(x, y, None, None)
    full, low = (estimated_noise(data, np.ones(1), kind).cov for kind in (None, LowRankNoise(1)))
    assert np.linalg.norm(low - cov) < np.linalg.norm(full - cov)
    sd = np.sqrt(np.diag(low))
    values = np.linalg.eigvalsh(low / np.outer(sd, sd))
    assert values[0] > 0


@pytest.mark.parametrize("rank", [-1, 1.5, True, "two"])
def test_a_rank_that_is_none_is_refused(rank):
    with pytest.raises(InputError, match="whole number"):
        LowRankNoise(rank)


def test_a_rank_as_large_as_the_number_of_outcomes_is_refused():
    x, y, _ = pair(0)
    with pytest.raises(InputError, match="rank must be below the number of outcomes, 2"):
        estimated_noise(field_data(x, y, None, None), np.ones(1), LowRankNoise(2))

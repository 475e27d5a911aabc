"""Noise that is not the same in all rows: outliers, groups, replicates, variances that change with x."""

import re

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.data.field_data import field_data
from orthocal.problem.noise.estimate import estimated_noise
from orthocal.problem.noise.regression import GroupVariance, PenalisedFit, SmoothVariance, scoring_step

PRIOR = stats.norm(1, 1)


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of BLAS that wait for a busy core make these small matrices forty times slower."""
    with threadpool_limits(1):
        yield


def curve(x):
    return np.sin(6 * x) + x


def noise_of(x, y, asked=None, **names):
    data = field_data(x, y, names.get("input_names"), names.get("outcome_names"))
    return estimated_noise(data, np.ones(data.d), asked)


def spoilt(seed, n=60, size=1.0, rows=(17,)):
    """Noise sd 0.1, with errors of ``size`` added in some rows."""
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    y = curve(x) + 0.1 * rng.standard_normal(n)
    y[list(rows)] += size
    return x, y


def row_sds(noise, k=0):
    return np.sqrt(np.diagonal(noise.by_point, axis1=1, axis2=2)[:, k])


@pytest.mark.parametrize("size", [1.0, -3.0, 1e4])
def test_an_outlier_is_named_and_does_not_change_the_estimate(size):
    x, clean = spoilt(3, size=0.0)
    _, y = spoilt(3, size=size)
    expected, found = noise_of(x, clean), noise_of(x, y)
    assert expected.by_point is None
    assert not expected.remarks
    # the row says less than before, the others as much
    assert abs(np.log(found.cov[0, 0] / expected.cov[0, 0])) < 0.25
    sds = row_sds(found)
    assert np.argmax(sds) == 17
    assert sds[17] > 0.6 * abs(size)
    np.testing.assert_allclose(np.delete(sds, 17), np.sqrt(found.cov[0, 0]))
    (remark,) = found.remarks
    assert remark.topic == "outliers"
    assert f"row 17 (x = {x[17]:.4g})" in remark.message


def test_several_outliers_are_found():
    rows = (5, 17, 40)
    found = noise_of(*spoilt(3, size=2.0, rows=rows))
    assert set(np.flatnonzero(row_sds(found) > 0.5)) == set(rows)
    assert 0.08 < np.sqrt(found.cov[0, 0]) < 0.12


def test_an_outlier_that_a_rough_curve_would_go_through():
    """In the middle of sparse points, a short length-scale explains it as well as noise does."""
    x = np.linspace(0, 1, 25)
    y = curve(x) + 0.05 * np.random.default_rng(2).standard_normal(25)
    y[12] += 1.0
    found = noise_of(x, y)
    assert np.argmax(row_sds(found)) == 12
    assert 0.03 < np.sqrt(found.cov[0, 0]) < 0.08


def test_gaussian_noise_has_no_outliers():
    """False alarms in a thousandth of the data sets: two among 25 have a chance of 0.03 %."""
    found = [noise_of(*spoilt(seed, n=30, size=0.0)).by_point is not None for seed in range(25)]
    assert sum(found) < 2


def test_a_rough_process_has_no_outliers():
    x = np.linspace(0, 1, 80)
    y = np.sin(30 * x) + 0.05 * np.random.default_rng(1).standard_normal(80)
    found = noise_of(x, y)
    assert found.by_point is None
    assert 0.03 < np.sqrt(found.cov[0, 0]) < 0.08


@pytest.mark.slow
def test_noise_with_heavy_tails_is_estimated_and_said():
    """Student's t with two degrees of freedom, of which one data set in 70 was once refused."""
    sds, said = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.random(40)
        found = noise_of(x, curve(x) + 0.1 * rng.standard_t(2, 40))
        sds.append(np.sqrt(found.cov[0, 0]))
        said += any(remark.topic == "outliers" for remark in found.remarks)
    assert min(sds) > 0.08
    assert max(sds) < 0.5
    # the 0.05 % quantiles of 40 such errors lie at 22 sds
    assert said > 5


def test_an_outlier_of_one_outcome_leaves_the_other_alone():
    rng = np.random.default_rng(0)
    x = rng.random(60)
    e = rng.multivariate_normal([0, 0], [[0.01, 0.008], [0.008, 0.01]], 60)
    e[30, 1] += 2.0
    found = noise_of(x, np.column_stack([curve(x), 3 * x]) + e, outcome_names=["a", "b"])
    assert row_sds(found, 1)[30] > 1
    assert row_sds(found, 0)[30] < 0.12
    assert np.corrcoef(e[np.arange(60) != 30].T)[0, 1] == pytest.approx(
        found.cov[0, 1] / np.sqrt(found.cov[0, 0] * found.cov[1, 1]), abs=0.15
    )
    assert "b is far" in found.remarks[0].message


def test_a_variance_for_each_group():
    rng = np.random.default_rng(4)
    x, sds = rng.random(160), np.array([0.02, 0.1, 0.3])
    labels = rng.integers(0, 3, 160)
    found = noise_of(x, curve(x) + sds[labels] * rng.standard_normal(160), oc.GroupNoise(labels))
    for k, sd in enumerate(sds):
        rows = row_sds(found)[labels == k]
        assert np.ptp(rows) == 0
        # six standard errors of a sd from about 50 rows
        assert abs(np.log(rows[0] / sd)) < 0.6
    assert not found.remarks


@pytest.mark.slow
def test_replicates_in_groups_have_the_closed_form():
    """At one point per group the estimate is nearly the group's sample variance, drawn to the others by the prior."""
    rng = np.random.default_rng(5)
    x = np.repeat([0.0, 0.5, 1.0, 0.25, 0.75], 40)
    labels = np.repeat([0, 1, 2, 0, 1], 40)
    y = curve(x) + np.array([0.1, 0.4, 1.6])[labels] * rng.standard_normal(200)
    found = noise_of(x, y, oc.GroupNoise(labels))
    for k in range(3):
        within = np.mean([y[x == place].var(ddof=1) for place in np.unique(x[labels == k])])
        assert row_sds(found)[labels == k][0] ** 2 == pytest.approx(within, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("along", ["x", "mean"])
def test_a_variance_that_changes_smoothly(along):
    rng = np.random.default_rng(6)
    x = np.sort(rng.random(200))
    mean = np.exp(2 * x)
    sd = 0.03 * mean**1.5
    found = row_sds(noise_of(x, mean + sd * rng.standard_normal(200), oc.VaryingNoise(along)))
    # a factor of 20 between the ends, found to 35 %
    assert np.max(np.abs(np.log(found / sd))) < 0.35


def test_a_variance_that_does_not_change_is_found_even():
    rng = np.random.default_rng(7)
    x = np.sort(rng.random(150))
    found = row_sds(noise_of(x, curve(x) + 0.1 * rng.standard_normal(150), oc.VaryingNoise()))
    assert np.all((found > 0.07) & (found < 0.14))


def test_the_scoring_has_the_slope_of_the_likelihood():
    """A step of length zero only where the restricted likelihood, by its formula, is stationary: Gaussian white z."""
    rng = np.random.default_rng(8)
    z, codes = rng.standard_normal(40) * np.repeat([1.0, 3.0], 20), np.repeat([0, 1], 20)
    model = GroupVariance(codes)
    C = model.columns(np.arange(40), z)
    now = PenalisedFit(np.zeros(2), 0.0)
    for _ in range(50):
        variances = np.exp(C @ now.coefficients)
        now = scoring_step(model, now, C, variances, np.diag(1 / variances), z)
    expected = [np.log(np.mean(z[:20] ** 2)), np.log(np.mean(z[20:] ** 2))]
    np.testing.assert_allclose(now.coefficients, expected, rtol=1e-8)


def test_the_splines_add_up_to_one():
    x = np.random.default_rng(9).random((30, 2)) * [1.0, 1e9]
    columns = SmoothVariance(x).columns(np.arange(30), np.zeros(30))
    np.testing.assert_allclose(columns.sum(axis=1), 2.0)


def test_uneven_replicates_are_said():
    rng = np.random.default_rng(10)
    x = np.repeat(np.linspace(0, 1, 6), 15)
    sd = np.repeat([0.02, 0.02, 0.02, 0.3, 0.3, 0.3], 15)
    topics = [
        one.topic for one in noise_of(x, curve(x) + sd * rng.standard_normal(90)).remarks if one.level == "problem"
    ]
    assert "replicates" in topics
    assert not noise_of(x, curve(x) + 0.1 * rng.standard_normal(90)).remarks


def test_replicates_that_contradict_the_curve_are_used():
    """The points lie off any smooth curve by far more than their replicates scatter."""
    rng = np.random.default_rng(11)
    x = np.repeat(rng.random(20), 4)
    rough = np.repeat(rng.standard_normal(20), 4)
    y = rough + 0.01 * rng.standard_normal(80)
    found = noise_of(x, y)
    assert np.sqrt(found.cov[0, 0]) == pytest.approx(0.01, rel=0.3)


def test_the_freedom_is_that_of_the_variance():
    """For a constant curve, n - 1 replicates at one point have n - 1 degrees of freedom."""
    y = np.random.default_rng(12).standard_normal(30)
    assert noise_of(np.zeros(30), y).freedom == pytest.approx((29,), rel=1e-6)


def test_few_degrees_of_freedom_are_said():
    rng = np.random.default_rng(13)
    x = np.linspace(0, 1, 6)
    found = noise_of(x, curve(x) + 0.3 * rng.standard_normal(6))
    assert any("degrees of freedom" in one.message for one in found.remarks)


def problem_of(noise_cov, **more):
    x, y = spoilt(3, size=0.0)
    return oc.Problem(x, y, lambda x, t: t[0] * np.sin(6 * x), {"a": PRIOR}, noise_cov=noise_cov, **more)


def test_a_problem_takes_groups_by_name_and_by_word():
    labels = np.repeat(["left", "right"], 30)
    given = problem_of(oc.GroupNoise(labels)).noise.by_point
    np.testing.assert_array_equal(problem_of("by-group", groups=labels).noise.by_point, given)
    np.testing.assert_array_equal(problem_of(oc.GroupNoise("group"), groups=labels).noise.by_point, given)


@pytest.mark.parametrize(
    ("noise_cov", "message"),
    [
        ("by-group", "have no groups.*groups="),
        (oc.GroupNoise("rig"), "no groups 'rig'.*one of x"),
        (oc.GroupNoise([1, 2]), r"shape \(2,\).*60 rows"),
    ],
)
def test_groups_that_are_none_are_refused(noise_cov, message):
    with pytest.raises(InputError, match=message):
        _ = problem_of(noise_cov).noise


def test_a_variance_along_nothing_is_refused():
    with pytest.raises(InputError, match=r'along=.*give "x" or "mean"'):
        oc.VaryingNoise("time")


def test_check_names_outliers_and_says_how_well_the_noise_is_known():
    x, y = spoilt(3, size=2.0)
    problem = oc.Problem(x, y, lambda x, t: t[0] * np.sin(6 * x) + x, {"a": PRIOR})
    posterior = oc.calibrate(problem, draws=200, chains=2, seed=1, progress=False)
    text = str(posterior.check())
    assert "row 17" in text
    assert re.search(r"; in single rows 0\.\d+ to [12]\.\d+", text)
    assert re.search(r"unknown and integrated over: 0\.\d+ \(0\.\d+ to 0\.\d+\)", text)
    # at the true value, although the error of one row is twenty sds
    assert abs(float(posterior.data["posterior"]["a"].mean()) - 1) < 0.1


def test_predictions_have_the_noise_of_their_neighbours(tmp_path):
    rng = np.random.default_rng(14)
    x = np.sort(rng.random(80))
    y = x + 0.01 * np.exp(3 * x) * rng.standard_normal(80)
    problem = oc.Problem(x, y, lambda x, t: t[0] * x, {"a": PRIOR}, noise_cov=oc.VaryingNoise())
    oc.calibrate(problem, "none", draws=500, chains=2, seed=1, progress=False).save(tmp_path / "fit.nc")
    loaded = oc.load(tmp_path / "fit.nc", simulator=lambda x, t: t[0] * x)
    sds = loaded.predict([0.02, 0.98])["observation"].std(("chain", "draw")).values.ravel()
    # a factor of 18 is true
    assert 8 < sds[1] / sds[0] < 40

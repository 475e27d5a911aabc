import numpy as np
import pytest
from scipy.special import gamma, kv
from threadpoolctl import threadpool_limits

from orthocal.errors import InputError
from orthocal.regression.gaussian_process import (
    LIKELIHOOD_POINTS,
    SMOOTHNESSES,
    Hyperparameters,
    check_smoothness,
    correlation,
    correlation_slopes,
    fit_hyperparameters,
    jittered_cholesky,
    label_correlation,
    label_odds,
    restricted_deviance,
)

LENGTHSCALE = np.array([0.4, 2.0])


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of BLAS that wait for a busy core make these small matrices forty times slower."""
    with threadpool_limits(1):
        yield


def points(seed, count):
    return np.random.default_rng(seed).uniform(0, 2, (count, 2))


def scaled_distance(a, b):
    return np.sqrt((((a[:, None] - b[None]) / LENGTHSCALE) ** 2).sum(axis=2))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_correlation_is_the_matern_formula_with_a_bessel_function(nu):
    a, b = points(0, 8), points(1, 5)
    u = np.sqrt(2 * nu) * scaled_distance(a, b)
    expected = 2 ** (1 - nu) / gamma(nu) * u**nu * kv(nu, u)
    k = correlation(a, b, LENGTHSCALE, nu)
    assert k.shape == (8, 5)
    np.testing.assert_allclose(k, expected, rtol=1e-12)


def test_correlation_of_infinite_smoothness_is_the_squared_exponential():
    a, b = points(0, 8), points(1, 5)
    expected = np.exp(-(scaled_distance(a, b) ** 2) / 2)
    np.testing.assert_allclose(correlation(a, b, LENGTHSCALE, np.inf), expected, rtol=1e-12)


@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_correlation_of_a_point_with_itself_is_one(nu):
    x = points(2, 6)
    k = correlation(x, x, LENGTHSCALE, nu)
    np.testing.assert_array_equal(np.diag(k), 1.0)
    np.testing.assert_array_equal(k, k.T)
    assert (k[~np.eye(6, dtype=bool)] < 1).all()


@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_slopes_are_the_derivatives_by_the_log_lengthscales(nu):
    x = points(3, 7)
    x[4] = x[1]  # a replicate: distance zero
    k, slopes = correlation_slopes(x, LENGTHSCALE, nu)
    np.testing.assert_allclose(k, correlation(x, x, LENGTHSCALE, nu))
    assert slopes.shape == (2, 7, 7)
    h = 1e-5
    for j in range(2):
        step = np.ones(2)
        step[j] = np.exp(h)
        above = correlation(x, x, LENGTHSCALE * step, nu)
        below = correlation(x, x, LENGTHSCALE / step, nu)
        np.testing.assert_allclose(slopes[j], (above - below) / (2 * h), atol=1e-9)


@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_known_smoothnesses_are_accepted(nu):
    check_smoothness(nu)


@pytest.mark.parametrize("nu", [0.0, 1.0, 2.0, 3.5, -0.5, np.nan, -np.inf])
def test_other_smoothnesses_are_refused(nu):
    with pytest.raises(InputError, match=r"nu=.*0\.5, 1\.5, 2\.5"):
        check_smoothness(nu)


def deviance_data(seed=4, n=15):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2, (n, 2))
    basis = np.column_stack([np.ones(n), x[:, 0]])
    z = np.sin(2 * x[:, 0]) + x[:, 1] + 0.3 * rng.standard_normal(n)
    return x, z, basis, rng.uniform(0.5, 2.0, n)


VALUES = np.log([0.8, 0.5, 1.5, 0.1])
SHIFT = np.array([0.3, -0.2, 0.4, 0.7])


def log_restricted_likelihood(values, x, z, nu, basis, relative_var):
    """The density of contrasts N'z, N an orthonormal basis of what is orthogonal to ``basis``."""
    covariance = np.exp(2 * values[0]) * correlation(x, x, np.exp(values[1:-1]), nu)
    covariance = covariance + np.exp(values[-1]) * np.diag(relative_var)
    rank = basis.shape[1]
    contrasts = np.linalg.qr(basis, mode="complete")[0][:, rank:] if rank else np.eye(len(z))
    reduced = contrasts.T @ covariance @ contrasts
    value = contrasts.T @ z
    return -0.5 * (np.linalg.slogdet(reduced)[1] + value @ np.linalg.solve(reduced, value))


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_restricted_deviance_is_that_of_the_contrasts(nu, rank):
    x, z, basis, relative_var = deviance_data()
    basis = basis[:, :rank]

    def difference(function):
        return function(VALUES) - function(VALUES + SHIFT)

    # the two differ by log|B'B|, which does not depend on the hyperparameters
    ours = difference(lambda values: restricted_deviance(values, x, z, nu, basis, relative_var)[0])
    exact = difference(lambda values: -2 * log_restricted_likelihood(values, x, z, nu, basis, relative_var))
    assert abs(exact) > 0.1
    assert ours == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_gradient_of_the_restricted_deviance(nu, rank):
    x, z, basis, relative_var = deviance_data()
    basis = basis[:, :rank]
    _, gradient = restricted_deviance(VALUES, x, z, nu, basis, relative_var)
    h = 1e-5
    for j, step in enumerate(h * np.eye(4)):
        above = restricted_deviance(VALUES + step, x, z, nu, basis, relative_var)[0]
        below = restricted_deviance(VALUES - step, x, z, nu, basis, relative_var)[0]
        assert gradient[j] == pytest.approx((above - below) / (2 * h), rel=1e-6, abs=1e-7)


def test_restricted_deviance_does_not_see_what_the_basis_explains():
    x, z, basis, relative_var = deviance_data()
    value, _ = restricted_deviance(VALUES, x, z, 1.5, basis, relative_var)
    moved, _ = restricted_deviance(VALUES, x, z + basis @ [7.0, -3.0], 1.5, basis, relative_var)
    assert moved == pytest.approx(value, rel=1e-10)


def test_restricted_deviance_of_a_singular_covariance_is_huge_but_finite():
    x, z, basis, relative_var = deviance_data()
    value, gradient = restricted_deviance(np.log([1.0, 50.0, 50.0, 1e-30]), x, z, np.inf, basis, relative_var)
    assert np.isfinite(value)
    assert value > 1e20
    np.testing.assert_array_equal(gradient, np.zeros(4))


def test_cholesky_of_a_well_conditioned_matrix_has_no_jitter():
    x = points(5, 20)
    matrix = 3 * correlation(x, x, LENGTHSCALE, 0.5) + 0.1 * np.eye(20)
    before = matrix.copy()
    lower, jitter = jittered_cholesky(matrix)
    assert jitter == 0.0
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(lower @ lower.T, matrix, rtol=1e-12)
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_cholesky_of_a_singular_matrix_has_a_tiny_jitter(scale):
    x = np.repeat(np.linspace(0, 1, 15), 2)[:, None]
    matrix = scale * correlation(x, x, np.array([0.5]), np.inf)
    before = matrix.copy()
    lower, jitter = jittered_cholesky(matrix)
    assert 0 < jitter <= 1e-12 * scale
    np.testing.assert_allclose(lower @ lower.T, matrix + jitter * np.eye(30), atol=1e-13 * scale)
    np.testing.assert_array_equal(matrix, before)


def test_cholesky_of_a_matrix_that_is_no_covariance_is_an_error():
    with pytest.raises(InputError, match="not positive definite"):
        jittered_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def sample(seed, n, lengthscale, nu=1.5, sd=2.0, noise_var=0.25):
    rng = np.random.default_rng(seed)
    d = len(lengthscale)
    x = rng.uniform(0, 10, (n, d))
    lower, _ = jittered_cholesky(sd**2 * correlation(x, x, np.asarray(lengthscale), nu))
    return x, lower @ rng.standard_normal(n) + np.sqrt(noise_var) * rng.standard_normal(n)


def fit(x, z, nu=1.5, basis=None, **fixed):
    n, d = x.shape
    basis = np.ones((n, 1)) if basis is None else basis
    return fit_hyperparameters(x, z, nu, span=np.full(d, 10.0), basis=basis, relative_var=np.ones(n), **fixed)


def test_hyperparameters_are_recovered_from_a_large_sample():
    result = fit(*sample(6, 300, [0.5]))
    assert isinstance(result, Hyperparameters)
    assert result.sd == pytest.approx(2.0, rel=0.3)
    assert result.lengthscale == pytest.approx([0.5], rel=0.3)
    assert result.noise_var == pytest.approx(0.25, rel=0.25)
    assert result.at_bound == ()


def test_each_input_has_its_own_lengthscale():
    result = fit(*sample(7, 250, [0.8, 3.0], nu=2.5), nu=2.5)
    assert result.lengthscale == pytest.approx([0.8, 3.0], rel=0.35)


def test_fixed_hyperparameters_stay_as_they_are():
    x, z = sample(8, 80, [0.5])
    result = fit(x, z, sd=1.7, lengthscale=np.array([0.9]))
    assert result.sd == pytest.approx(1.7, rel=1e-12)
    assert result.lengthscale == pytest.approx([0.9], rel=1e-12)
    only_noise = result.noise_var
    result = fit(x, z, sd=1.7, lengthscale=np.array([0.9]), noise_var=0.11)
    assert (result.sd, result.noise_var) == pytest.approx((1.7, 0.11), rel=1e-12)
    assert only_noise != pytest.approx(0.11, rel=0.01)
    assert result.at_bound == ()


@pytest.mark.parametrize("fixed", [{}, {"sd": 1.5}, {"noise_var": 0.25}, {"lengthscale": np.array([0.7])}])
def test_the_fit_is_a_stationary_point_in_what_is_free(fixed):
    x, z = sample(9, 80, [0.5])
    result = fit(x, z, **fixed)
    values = np.log([result.sd, *result.lengthscale, result.noise_var])
    value, gradient = restricted_deviance(values, x, z, 1.5, np.ones((80, 1)), np.ones(80))
    free = [name not in fixed for name in ("sd", "lengthscale", "noise_var")]
    assert result.at_bound == ()
    assert np.abs(gradient[free]).max() < 0.02
    for step in 0.3 * np.eye(3)[free]:
        for moved in (values + step, values - step):
            assert restricted_deviance(moved, x, z, 1.5, np.ones((80, 1)), np.ones(80))[0] > value


def test_unequal_variances_of_the_points_are_used():
    rng = np.random.default_rng(10)
    x = np.linspace(0, 10, 200)[:, None]
    relative_var = np.where(np.arange(200) % 2, 25.0, 1.0)
    z = np.sin(x[:, 0]) + 0.1 * np.sqrt(relative_var) * rng.standard_normal(200)
    result = fit_hyperparameters(x, z, 2.5, span=np.full(1, 10.0), basis=np.ones((200, 1)), relative_var=relative_var)
    assert result.noise_var == pytest.approx(0.01, rel=0.3)


def test_hyperparameters_follow_the_units():
    x, z = sample(11, 80, [0.5])
    reference = fit(x, z)
    moved = fit_hyperparameters(
        x * 1e3, z * 1e-5, 1.5, span=np.full(1, 1e4), basis=np.ones((80, 1)), relative_var=np.ones(80)
    )
    assert moved.sd == pytest.approx(1e-5 * reference.sd, rel=1e-2)
    assert moved.lengthscale == pytest.approx(1e3 * reference.lengthscale, rel=1e-2)
    assert moved.noise_var == pytest.approx(1e-10 * reference.noise_var, rel=1e-2)


def test_a_hyperparameter_that_ends_on_a_bound_is_named():
    x = np.linspace(0, 10, 40)[:, None]
    assert "noise" in fit(x, np.sin(x[:, 0]), nu=2.5).at_bound


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("span", [0.01, 10.0])
def test_the_bounds_of_the_search_are_relative_to_the_data_and_the_domain(size, span):
    x = np.linspace(0, span, 40)[:, None]
    scale = {"span": np.full(1, span), "relative_var": np.ones(40)}
    wave, rough = np.sin(10 * x[:, 0] / span), np.where(np.arange(40) % 2, 1.0, -1.0)
    no_noise = fit_hyperparameters(x, size * wave, 2.5, basis=np.ones((40, 1)), **scale)
    assert no_noise.noise_var == pytest.approx(1e-8 * np.var(size * wave), rel=0.01)
    assert no_noise.at_bound == ("noise",)
    # far from zero without a basis, and no bias to explain it: the noise would have to be 25 times the variance
    far = fit_hyperparameters(
        x, size * (5 + rough), 2.5, basis=np.empty((40, 0)), sd=1e-6 * size, lengthscale=np.full(1, span), **scale
    )
    assert far.noise_var == pytest.approx(4 * size**2, rel=0.01)
    assert far.at_bound == ("noise",)
    # a straight line and no basis for it: longer is better
    straight = fit_hyperparameters(
        x, size * x[:, 0] / span, np.inf, basis=np.ones((40, 1)), noise_var=(0.3 * size) ** 2, sd=30 * size, **scale
    )
    assert straight.lengthscale == pytest.approx([20 * span], rel=0.01)
    assert straight.at_bound == ("lengthscale 1",)
    # a zigzag between neighbours and no noise: shorter is better
    zigzag = fit_hyperparameters(x, size * rough, np.inf, basis=np.ones((40, 1)), noise_var=(1e-3 * size) ** 2, **scale)
    assert zigzag.lengthscale == pytest.approx([0.02 * span], rel=0.01)
    assert "lengthscale 1" in zigzag.at_bound


def test_values_that_are_all_zero_give_finite_hyperparameters():
    x = np.linspace(0, 10, 20)[:, None]
    result = fit(x, np.zeros(20), noise_var=0.1)
    assert np.isfinite([result.sd, *result.lengthscale]).all()
    assert "sd" in result.at_bound


def test_no_basis_is_possible():
    x, z = sample(12, 80, [0.5])
    result = fit(x, z, basis=np.empty((80, 0)))
    assert 0 < result.noise_var < 1
    assert result.sd > 0.5


def test_many_points_are_thinned(monkeypatch):
    x = np.linspace(0, 10, LIKELIHOOD_POINTS + 500)[:, None]
    z = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(13).standard_normal(len(x))
    seen = []

    def counted(values, x, z, nu, basis, relative_var, labelled):
        seen.append((len(x), len(z), len(basis), len(relative_var)))
        np.testing.assert_allclose(z, np.sin(x[:, 0]), atol=0.6)
        return float(values @ values), 2 * values

    monkeypatch.setattr("orthocal.regression.gaussian_process.restricted_deviance", counted)
    fit(x, z)
    assert max(seen) == seen[-1] == (LIKELIHOOD_POINTS,) * 4
    assert all(len(set(lengths)) == 1 for lengths in seen)


def test_a_column_of_the_basis_that_is_zero_changes_nothing():
    """A parameter may have no effect on one of several outcomes."""
    rng = np.random.default_rng(5)
    x = rng.random((60, 1))
    z = np.sin(6 * x[:, 0]) + 0.3 * rng.standard_normal(60)
    options = {"span": np.ones(1), "relative_var": np.ones(60), "noise_var": 0.09}
    alone = fit_hyperparameters(x, z, 1.5, basis=x, **options)
    with_zero = fit_hyperparameters(x, z, 1.5, basis=np.column_stack([x, 0 * x, 2 * x]), **options)
    assert with_zero.sd == pytest.approx(alone.sd, rel=1e-4)
    assert with_zero.lengthscale == pytest.approx(alone.lengthscale, rel=1e-4)


def test_the_length_scale_of_a_constant_input_is_long():
    """The likelihood says nothing about it; a short one would make the process forget everything elsewhere."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random(40), np.full(40, 0.5)])
    z = np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(40)
    fit = fit_hyperparameters(x, z, 1.5, span=np.ones(2), basis=np.ones((40, 1)), relative_var=np.ones(40))
    assert fit.lengthscale[1] == pytest.approx(20.0)
    assert fit.at_bound == ()


LABELLED = (1, 3)


def with_labels(n=24, seed=4):
    """Two numeric inputs, and two of labels whose numbers mean nothing."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.random(n), rng.choice([7.0, -1.0, 100.0], n), rng.random(n), rng.integers(0, 2, n).astype(float)]
    )


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
def test_labels_multiply_the_correlation_of_the_numbers(nu):
    x, lengths = with_labels(), np.array([0.3, 1.5, 0.7, 0.25])
    k = correlation(x, x[:9], lengths, nu, LABELLED)
    plain = correlation(x[:, [0, 2]], x[:9, [0, 2]], lengths[[0, 2]], nu)
    different = [(x[:, j, None] != x[:9, j]) for j in LABELLED]
    expected = plain * np.where(different[0], 1.5 / 2.5, 1.0) * np.where(different[1], 0.25 / 1.25, 1.0)
    np.testing.assert_allclose(k, expected, rtol=1e-14)
    # positive definite: labels at the same place are exchangeable
    assert np.linalg.eigvalsh(correlation(x, x, lengths, nu, LABELLED)).min() > 0
    whole, slopes = correlation_slopes(x, lengths, nu, LABELLED)
    np.testing.assert_allclose(whole, correlation(x, x, lengths, nu, LABELLED), rtol=1e-14)
    for j in range(4):
        step = np.where(np.arange(4) == j, np.exp(1e-5), 1.0)
        above, below = (correlation(x, x, own, nu, LABELLED) for own in (lengths * step, lengths / step))
        np.testing.assert_allclose(slopes[j], (above - below) / 2e-5, atol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
def test_the_gradient_of_the_deviance_holds_for_labels(nu):
    x = with_labels()
    rng = np.random.default_rng(2)
    z, basis, relative_var = rng.standard_normal(24), np.column_stack([np.ones(24), x[:, 0]]), rng.uniform(0.5, 2, 24)
    values = np.log([1.3, 0.4, 0.8, 0.6, 2.0, 0.1])
    _, gradient = restricted_deviance(values, x, z, nu, basis, relative_var, LABELLED)
    for j in range(6):
        step = np.where(np.arange(6) == j, 1e-5, 0.0)
        above, below = (
            restricted_deviance(values + sign * step, x, z, nu, basis, relative_var, LABELLED)[0] for sign in (1, -1)
        )
        assert gradient[j] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6)


def test_the_correlation_between_labels_is_found():
    """From 20 labels and 12 points each: rho is known to about 0.07, so that 0.25 fails in one of a thousand."""
    rng = np.random.default_rng(8)
    points, labels, rho = np.linspace(0, 1, 12), 20, 0.6
    K = correlation(points[:, None], points[:, None], np.array([0.3]), 1.5)
    root = np.linalg.cholesky(K + 1e-10 * np.eye(12))
    common, own = root @ rng.standard_normal(12), root @ rng.standard_normal((12, labels))
    z = (np.sqrt(rho) * common[:, None] + np.sqrt(1 - rho) * own).T.ravel() + 0.05 * rng.standard_normal(12 * labels)
    x = np.column_stack([np.tile(points, labels), np.repeat(np.arange(labels), 12)])
    fit = fit_hyperparameters(
        x, z, 1.5, span=np.ones(2), basis=np.empty((240, 0)), relative_var=np.ones(240), labelled=(1,)
    )
    assert label_correlation(fit.lengthscale[1]) == pytest.approx(rho, abs=0.25)
    assert fit.lengthscale[0] == pytest.approx(0.3, rel=0.25)
    assert not fit.at_bound


def test_a_single_label_says_nothing_about_others():
    x = np.column_stack([np.linspace(0, 1, 20), np.full(20, 3.0)])
    z = np.sin(5 * x[:, 0]) + 0.1 * np.cos(40 * x[:, 0])
    options = {"basis": np.ones((20, 1)), "relative_var": np.ones(20), "noise_var": 0.01}
    fit = fit_hyperparameters(x, z, 1.5, span=np.ones(2), labelled=(1,), **options)
    alone = fit_hyperparameters(x[:, :1], z, 1.5, span=np.ones(1), **options)
    assert label_correlation(fit.lengthscale[1]) == pytest.approx(0.5)
    assert fit.sd == pytest.approx(alone.sd, rel=1e-6)


def test_odds_of_none_and_all_are_finite():
    np.testing.assert_allclose(label_correlation(label_odds(np.array([0.0, 0.3, 1.0]))), [0, 0.3, 1], atol=2e-12)

"""Sampled noise with every method: its posterior by numerical integration, for simulators that are linear in theta.

There y is Gaussian given the noise, N(f0, C + noise) with theta and the bias integrated out, and C is written down here
without the package. False alarms: |z| > 4.5 has probability 7e-6 a comparison; seeds are fixed.
"""

import numpy as np
import pytest
from closed_form import matern
from scipy import stats
from scipy.special import logsumexp

import orthocal as oc
from helpers import batch_z, short
from orthocal.errors import InputError

LIMIT = 4.5
N, NU, SD, LENGTH, PRIOR_SD = 20, 1.5, 0.7, 0.4, 3.0
PROCESS = {"nu": NU, "sd": SD, "lengthscale": LENGTH}
#: of the rows, for noise that each samples by itself
GROUPS = np.isin(np.arange(N), [2, 5, 9, 10, 14, 19]).astype(int)
RUN = {"draws": 200, "warmup": 50, "chains": 4, "seed": 3, "progress": False}


def field(n=N):
    rng = np.random.default_rng(11)
    x = np.sort(rng.random(n))
    return x, 2 * x + 0.4 * np.sin(7 * x) + 0.3 * rng.standard_normal(n)


def slopes(x):
    return np.column_stack([x, x**2 - 0.3])


def problem(y=None, **changes):
    x, own = field()
    settings = {"domain": oc.Box(0, 1), "noise_cov": "sample", "starts": 2, **changes}
    simulator = oc.Simulator(lambda x, theta: slopes(x[:, 0]) @ theta, lambda x, theta: slopes(x[:, 0])[:, None])
    priors = {"a": stats.norm(0, PRIOR_SD), "b": stats.norm(0, PRIOR_SD)}
    return oc.Problem(x, own if y is None else y, simulator, priors, **settings)


def kernel(a, b, sd=SD):
    return matern(a[:, None], b[:, None], NU, sd, LENGTH)


def legendre():
    points, weights = np.polynomial.legendre.leggauss(40)
    return 0.5 + 0.5 * points, 0.5 * weights


def covariance(name, sd=SD):
    """C of y, (n, n), for each method."""
    x, _ = field()
    K, G = kernel(x, x, sd), slopes(x)
    theta = PRIOR_SD**2 * G @ G.T
    nodes, weights = legendre()
    A = weights[:, None] * slopes(nodes)
    across = kernel(x, nodes, sd) @ A
    if name == "none":
        return theta
    if name == "pcal":
        return K
    if name == "sgasp":
        return theta + K - K @ np.linalg.solve(K + np.sqrt(N) * sd**2 * np.eye(N), K)
    if name == "ogp":
        return theta + K - across @ np.linalg.solve(A.T @ kernel(nodes, nodes, sd) @ A, across.T)
    if name == "gp":
        # b - G lambda(b), with lambda(b) = (G'G)^-1 G'b over the domain
        taken = np.linalg.solve(A.T @ slopes(nodes), A.T)
        inner = taken @ kernel(nodes, nodes, sd) @ taken.T
        return theta + K - across_of(x, taken, G, sd) - across_of(x, taken, G, sd).T + G @ inner @ G.T
    return theta + K


def across_of(x, taken, G, sd):
    nodes, _ = legendre()
    return kernel(x, nodes, sd) @ taken.T @ G.T


METHODS = {
    "none": oc.methods.NoBias(),
    "ko": oc.methods.KO(**PROCESS),
    "ogp": oc.methods.OGP(**PROCESS),
    "sgasp": oc.methods.SGaSP(**PROCESS),
    "pcal": oc.methods.PCAL(**PROCESS),
    "gp": oc.methods.Joint(oc.bias.GP(**PROCESS)),
}


def slow_but(*fast):
    """All methods, of which only some are quick enough for every run."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]


def log_likelihood(C, variance, y):
    lower = np.linalg.cholesky(C + variance * np.eye(len(y)))
    white = np.linalg.solve(lower, y)
    return -0.5 * white @ white - np.log(np.diag(lower)).sum()


def half_cauchy(log_ratio):
    return log_ratio - np.logaddexp(0.0, 2 * log_ratio)


def log_prior(log_variance, name):
    """Of the log of the variance: flat for none, and where there is a bias SD over its root is half-Cauchy."""
    return 0.0 if name == "none" else half_cauchy(np.log(SD) - log_variance / 2)


def moments(values, log_weights):
    weights = np.exp(log_weights - logsumexp(log_weights))
    return np.array([weights @ values, weights @ values**2])


def z_of(posterior, exact):
    drawn = np.log(posterior.data["posterior"]["noise_cov"].values[..., 0, 0])
    return batch_z(np.column_stack([drawn.mean(axis=0), (drawn**2).mean(axis=0)]), exact)


@pytest.mark.parametrize("name", slow_but("none", "ko", "pcal", "gp"))
def test_the_noise_follows_its_marginal_posterior(name):
    fit = oc.calibrate(problem(), METHODS[name], **RUN)
    estimate, y = float(fit.data["constant_data"]["noise_cov"].values[0, 0]), field()[1]
    grid, C = np.linspace(np.log(estimate) - 4, np.log(estimate) + 4, 300), covariance(name)
    density = [log_likelihood(C, np.exp(v), y) + log_prior(v, name) for v in grid]
    assert np.all(np.abs(z_of(fit, moments(grid, np.array(density)))) < LIMIT)


@pytest.mark.parametrize("name", slow_but("none", "ko", "pcal", "gp"))
def test_the_noise_of_groups_follows_its_marginal_posterior(name):
    """Two groups of unlike size: against a grid of both variances."""
    given = problem(noise_cov=oc.GroupNoise(GROUPS, sample=True))
    fit = oc.calibrate(given, METHODS[name], **RUN)
    estimates, y, C = [given.noise.by_point[g == GROUPS, 0, 0][0] for g in (0, 1)], field()[1], covariance(name)
    assert estimates[0] != estimates[1]
    grids = [np.linspace(np.log(one) - 4, np.log(one) + 4, 80) for one in estimates]
    # the logs of both sds are normal, with sd 1, around one that is flat, or of which SD over it is half-Cauchy
    common = np.linspace(-15, 15, 301)
    each = [-0.5 * np.subtract.outer(grid / 2, common) ** 2 for grid in grids]
    density = logsumexp(each[0][:, None] + each[1] + log_prior(2 * common, name), axis=2)
    for i, first in enumerate(grids[0]):
        for j, second in enumerate(grids[1]):
            density[i, j] += log_likelihood(C + np.diag(np.exp(np.where(GROUPS == 0, first, second))), 0.0, y)
    exact = np.concatenate([moments(grids[g], logsumexp(density, axis=1 - g)) for g in (0, 1)])
    drawn = np.log(fit.data["posterior"]["noise_cov_by_group"].values[..., 0, 0])
    features = np.concatenate([[drawn[..., g], drawn[..., g] ** 2] for g in (0, 1)]).mean(axis=1).T
    assert np.all(np.abs(batch_z(features, exact)) < LIMIT)


def test_the_noise_of_groups_is_kept_and_used(tmp_path):
    given = problem(noise_cov=oc.GroupNoise(GROUPS, sample=True))
    fit = short(given, "gp", draws=20)
    by_group = fit.data["posterior"]["noise_cov_by_group"].values
    assert by_group.shape == (2, 20, 2, 1, 1)
    typical = (by_group[:, :, 0] * 14 + by_group[:, :, 1] * 6) / 20
    np.testing.assert_allclose(fit.data["posterior"]["noise_cov"].values, typical)
    left = given.data.y - (fit.data["model"]["model"] + fit.data["bias"]["bias"]).values
    expected = stats.norm(0, np.sqrt(by_group[:, :, GROUPS, 0, 0])).logpdf(left[..., 0])
    np.testing.assert_allclose(fit.log_likelihood["y"].values, expected)
    again = oc.load(fit.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(again.data["posterior"]["noise_cov_by_group"].values, by_group)
    assert "in single rows" in str(again.check())
    # a part without one of the groups
    assert short(given.subset(GROUPS == 1), "none", draws=4).data["posterior"].sizes["noise_group"] == 1


def test_the_papers_algorithm_takes_the_estimate_of_each_groups_noise():
    fit = short(problem(noise_cov=oc.GroupNoise(GROUPS)), "pgp", draws=4)
    assert fit.record.run_facts.noise_source == "estimated"
    assert len(np.unique(fit.record.noise_sds)) == 2


@pytest.mark.parametrize("method", ["bart", "softbart", "bmars", "bnn"])
def test_the_noise_of_groups_beside_other_priors(method):
    fit = short(problem(noise_cov=oc.GroupNoise(GROUPS, sample=True)), method, draws=20)
    by_group = fit.data["posterior"]["noise_cov_by_group"].values
    assert by_group.shape == (2, 20, 2, 1, 1)
    assert np.ptp(by_group, axis=1).min() > 0
    assert fit.data["sample_stats"]["sd_0"].shape == (2, 20)


def test_without_a_bias_the_noise_grows_to_what_the_simulator_leaves():
    """Far beyond its estimate, which is what a smooth curve leaves: 46 from 3.4 in the units of a real problem."""
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 100)
    y = 300 + 65 * np.sin(12 * x) + 3.4 * rng.standard_normal(100)
    level = oc.Simulator(lambda x, theta: np.full(len(x), theta[0]), lambda x, theta: np.ones((len(x), 1, 1)))
    given = oc.Problem(x, y, level, {"level": stats.uniform(0, 1000)}, domain=oc.Box(0, 1), noise_cov="sample")
    assert given.noise.cov[0, 0] < 6**2
    fit = oc.calibrate(given, "none", **RUN)
    # flat priors: the variance is inverse gamma, and theta a Student t
    exact = stats.invgamma(99 / 2, scale=np.sum((y - y.mean()) ** 2) / 2)
    drawn = fit.data["posterior"]["noise_cov"].values[..., 0, 0]
    assert np.all(np.abs(batch_z(drawn.mean(axis=0)[:, None], exact.mean())) < LIMIT)
    assert stats.kstest(drawn[:, ::4].ravel(), exact.cdf).pvalue > 1e-4
    assert fit.theta.std() == pytest.approx(np.sqrt(exact.mean() / 100), rel=0.1)
    assert np.sqrt(drawn.mean()) > 40


def two_outcomes(missing):
    rng = np.random.default_rng(4)
    x = np.sort(rng.random(8))
    G = np.stack([np.column_stack([x, 0 * x]), np.column_stack([0.3 + 0 * x, 1 - x])], axis=1)
    y = G @ [1.0, -2.0] + rng.standard_normal((8, 2)) @ np.array([[0.3, 0.1], [0.0, 0.2]])
    if missing:
        y[[1, 4], [0, 1]] = np.nan
        y[6] = np.nan
    gradient = lambda x, theta: np.stack(  # noqa: E731
        [np.column_stack([x[:, 0], 0 * x[:, 0]]), np.column_stack([0.3 + 0 * x[:, 0], 1 - x[:, 0]])], axis=1
    )
    simulator = oc.Simulator(lambda x, theta: gradient(x, theta) @ theta, gradient)
    priors = {"a": stats.norm(0, PRIOR_SD), "b": stats.norm(0, PRIOR_SD)}
    settings = {"domain": oc.Box(0, 1), "noise_cov": "sample", "starts": 2}
    return x, y, G, oc.Problem(x, y, simulator, priors, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", ["none", "ko", "pcal"])
def test_the_covariance_of_two_outcomes(name, missing):
    """Against a grid of variances and correlations; missing cells are left out of the likelihood."""
    x, y, G, given = two_outcomes(missing)
    fit = oc.calibrate(given, METHODS[name], **{**RUN, "draws": 2000})
    noise = given.noise
    back, size = noise.unwhitener, SD / np.sqrt(np.diag(noise.cov))
    cells = np.flatnonzero(~np.isnan(y).ravel())
    flat = G.reshape(16, 2)
    C = PRIOR_SD**2 * flat @ flat.T * (name != "pcal")
    if name != "none":
        C = C + np.kron(kernel(x, x, 1.0), back @ np.diag(size**2) @ back.T)
    scales, bends = np.linspace(-16, 8, 49), np.linspace(-3.5, 3.5, 25)
    values, density = [], []
    for first in scales:
        for second in scales:
            for bend in bends:
                sds, rho = np.exp([first / 2, second / 2]), np.tanh(bend)
                own = np.outer(sds, sds) * np.array([[1, rho], [rho, 1]])
                Sigma = back @ own @ back.T
                # flat over correlations; the bias's sds over these are half-Cauchy
                prior = np.log1p(-(rho**2)) + (0.0 if name == "none" else half_cauchy(np.log(size / sds)).sum())
                whole = (C + np.kron(np.eye(8), Sigma))[np.ix_(cells, cells)]
                density.append(prior + log_likelihood(whole, 0.0, y.ravel()[cells]))
                values.append(
                    [np.log(Sigma[0, 0]), np.log(Sigma[1, 1]), Sigma[0, 1] / np.sqrt(Sigma[0, 0] * Sigma[1, 1])]
                )
    weights = np.exp(np.array(density) - logsumexp(density))
    drawn = fit.data["posterior"]["noise_cov"].values
    features = np.stack(
        [
            np.log(drawn[..., 0, 0]),
            np.log(drawn[..., 1, 1]),
            drawn[..., 0, 1] / np.sqrt(drawn[..., 0, 0] * drawn[..., 1, 1]),
        ],
        axis=-1,
    ).mean(axis=0)
    exact = weights @ np.array(values)
    # a thousand points stand for the noise, where there is a bias: 12 cells leave it open by a factor of three
    points = 0.0 if name == "none" else np.sqrt(weights @ (np.array(values) - exact) ** 2 / 1000)
    assert np.all(np.abs(batch_z(features, exact, points)) < LIMIT)


@pytest.mark.parametrize("name", slow_but("ko", "gp"))
def test_sampled_noise_of_two_outcomes_with_missing_cells(name, tmp_path):
    """It is kept, used in predictions, and read again."""
    *_, given = two_outcomes(missing=True)
    fit = short(given, METHODS[name], draws=20)
    drawn = fit.data["posterior"]["noise_cov"].values
    assert drawn.shape == (2, 20, 2, 2)
    assert np.ptp(drawn[:, :, 0, 0], axis=1).min() > 0
    assert np.isfinite(fit.predict(np.array([[0.2], [0.9]]), seed=1)["observation"].values).all()
    assert np.isfinite(fit.log_likelihood["y"].values).all()
    again = oc.load(fit.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(again.data["posterior"]["noise_cov"].values, drawn)


def test_what_cannot_be_sampled_together(monkeypatch):
    *_, given = two_outcomes(missing=False)
    monkeypatch.setattr("orthocal.methods.rivals.marginal.MOST_INTEGRATED", 15)
    with pytest.raises(InputError, match="at most 15"):
        short(given, "ogp", draws=4)

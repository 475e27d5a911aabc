"""KO with hyperparameters integrated over, against a grid, with none of the package's formulas.

For a simulator linear in theta, with phi the log hyperparameters, p(phi | y) is proportional to
p(phi) N(y; 0, t2 G G' + S(phi)), and theta given phi is Gaussian: sums over a fine grid of phi are the posterior.

False alarms: each mean or sd is compared in units of its Monte-Carlo error from the effective sample size, and
|z| > 4.5 has probability 7e-6. There are 57 such comparisons here, so 4e-4 in all; seeds are fixed. (The first test,
run with 40 other seeds: the 240 z have sds of 0.8 to 1.1 and are at most 3.1. Its negative control has |z| > 40.)
"""

import json

import numpy as np
import pytest
from arviz_stats.base import array_stats
from closed_form import matern
from scipy import stats

import orthocal as oc
from orthocal.bias.sampled_gp import SampledGPSampler
from orthocal.errors import InputError
from orthocal.examples import MODEL1
from orthocal.methods.rivals.marginal import Law

Z_LIMIT = 4.5


def z_scores(draws, mean, sd):
    """z of the mean and of the sd of draws (c, s)."""
    errors = [float(array_stats.mcse(draws, method=method)) for method in ("mean", "sd")]
    return np.array([(draws.mean() - mean) / errors[0], (draws.std() - sd) / errors[1]])


def moments(weights, mean, var=0.0):
    """Mean and sd of a mixture."""
    centre = np.sum(weights * mean)
    return centre, np.sqrt(np.sum(weights * (var + mean**2)) - centre**2)


def normalised(log_weights):
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def gaussian(y, G, S, prior_var):
    """log N(y; 0, G G' t2 + S) up to a constant, and mean and covariance of theta given y, for S (..., n, n)."""
    inverse = np.linalg.inv(S)
    V = np.linalg.inv(G.T @ inverse @ G + np.eye(G.shape[1]) / prior_var)
    pull = G.T @ (inverse @ y)[..., None]
    mean = (V @ pull)[..., 0]
    fit = np.einsum("i,...ij,j->...", y, inverse, y) - np.einsum("...i,...i->...", pull[..., 0], mean)
    size = np.linalg.slogdet(S)[1] - np.linalg.slogdet(V)[1]
    return -0.5 * (fit + size), mean, V


def half_cauchy(log_ratio):
    """Log density of the log of the sd over that of the noise."""
    return log_ratio - np.log1p(np.exp(2 * log_ratio))


def stat(posterior, name):
    return posterior.data["sample_stats"][name].values


@pytest.fixture(scope="module")
def problem():
    x, y = MODEL1.simulate(np.random.default_rng(0), n=30)
    return MODEL1.problem(x, y)


@pytest.fixture(scope="module")
def posterior(problem):
    return oc.calibrate(problem, "ko", draws=1000, seed=1)


@pytest.fixture(scope="module")
def law(problem):
    """Mean and sd of log sd, log lengthscale and theta, and the mean of the bias at the data."""
    x, y = problem.data.x, problem.data.y[:, 0]
    steps = np.linspace(-4, 4, 81)
    log_sd, log_length = np.log(0.2) + 2 * steps, np.log(0.4) + 0.8 * steps
    R = np.stack([matern(x, x, 1.5, 1.0, length) for length in np.exp(log_length)])
    K = np.exp(2 * log_sd)[:, None, None, None] * R
    S = K + 0.04 * np.eye(len(x))
    log_evidence, mean, V = gaussian(y, x, S, 100.0)
    weights = normalised(log_evidence + half_cauchy(log_sd - np.log(0.2))[:, None] - 0.5 * steps**2)
    left = np.linalg.solve(S, (y - mean * x[:, 0])[..., None])
    return {
        "log sd": moments(weights, log_sd[:, None]),
        "log lengthscale": moments(weights, log_length),
        "theta": moments(weights, mean[..., 0], V[..., 0, 0]),
        "bias": np.einsum("ab,abn->n", weights, (K @ left)[..., 0]),
    }


def scores(posterior, law):
    draws = {
        "log sd": np.log(stat(posterior, "sd_0")),
        "log lengthscale": np.log(stat(posterior, "lengthscale_0_0")),
        "theta": posterior.theta[:, :, 0],
    }
    return np.concatenate([z_scores(values, *law[name]) for name, values in draws.items()])


def test_the_posterior_is_the_integral_over_the_hyperparameters(posterior, law):
    assert np.max(np.abs(scores(posterior, law))) < Z_LIMIT


def test_the_bias_has_its_mean(posterior, law):
    bias = posterior.data["bias"]["bias"].values[..., 0]
    errors = np.array([float(array_stats.mcse(bias[:, :, i])) for i in range(bias.shape[2])])
    assert np.max(np.abs((bias.mean(axis=(0, 1)) - law["bias"]) / errors)) < Z_LIMIT


def test_without_the_determinant_the_posterior_is_another(problem, law, monkeypatch):
    """Negative control."""

    def broken(self, left):
        return -0.5 * float(left @ self.precision @ left)

    monkeypatch.setattr(Law, "log_gaussian", broken)
    posterior = oc.calibrate(problem, "ko", draws=200, seed=1)
    assert np.max(np.abs(scores(posterior, law))) > 2 * Z_LIMIT


@pytest.mark.slow
def test_two_outcomes_with_holes_and_errors_of_their_own():
    """A given length-scale; the sds of both outcomes share two parameters, and units differ."""
    rng = np.random.default_rng(3)
    x = rng.random((25, 1))
    designs = [np.column_stack([np.ones(25), x[:, 0]]), 10 * np.column_stack([x[:, 0] ** 2, 0 * x[:, 0]])]
    y_err = np.column_stack([rng.uniform(0.2, 0.4, 25), rng.uniform(1.0, 3.0, 25)])
    truth = np.column_stack([np.sin(5 * x[:, 0]), 10 * x[:, 0] ** 3])
    y = truth + y_err * rng.standard_normal(y_err.shape)
    y[rng.random(y.shape) < 0.25] = np.nan
    parameters = {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}
    problem = oc.Problem(
        x, y, lambda x, t: np.column_stack([t[0] + t[1] * x, 10 * t[0] * x**2]), parameters, oc.Box(0, 1), y_err=y_err
    )
    method = oc.methods.KO(2.5, lengthscale=0.4)
    posterior = oc.calibrate(problem, method, draws=500, seed=2)

    steps = np.linspace(-4, 4, 41)
    seen = [~np.isnan(column) for column in y.T]
    log_sd, blocks = [], []
    for k in range(2):
        # in the outcome's unit: a typical error, the geometric mean, takes the unit of the whitened residual away
        log_sd.append(np.log(y_err[seen[k], k]).mean() + 2 * steps)
        R = matern(x[seen[k]], x[seen[k]], 2.5, 1.0, 0.4)
        blocks.append(np.exp(2 * log_sd[k])[:, None, None] * R + np.diag(y_err[seen[k], k] ** 2))
    first = len(blocks[0][0])
    S = np.zeros((41, 41, first + len(blocks[1][0]), first + len(blocks[1][0])))
    S[..., :first, :first], S[..., first:, first:] = blocks[0][:, None], blocks[1][None]
    G = np.vstack([design[rows] for design, rows in zip(designs, seen, strict=True)])
    values = np.concatenate([y[rows, k] for k, rows in enumerate(seen)])
    log_evidence, mean, V = gaussian(values, G, S, 4.0)
    weights = normalised(log_evidence + half_cauchy(2 * steps)[:, None] + half_cauchy(2 * steps))
    compared = [
        (np.log(stat(posterior, "sd_0")), moments(weights, log_sd[0][:, None])),
        (np.log(stat(posterior, "sd_1")), moments(weights, log_sd[1])),
        *((posterior.theta[:, :, j], moments(weights, mean[..., j], V[..., j, j])) for j in range(2)),
    ]
    assert np.max(np.abs([z_scores(draws, *exact) for draws, exact in compared])) < Z_LIMIT
    assert not [name for name in posterior.data["sample_stats"].data_vars if "lengthscale" in str(name)]
    predicted = posterior.predict(x, draws=20)
    kept = predicted["draw"].values
    np.testing.assert_allclose(predicted["bias"], posterior.data["bias"]["bias"].values[:, kept], atol=1e-8)


@pytest.mark.slow
def test_a_simulator_that_is_not_linear():
    """A given sd; theta and the length-scale on a grid."""
    rng = np.random.default_rng(4)
    x = rng.random((15, 1))
    y = np.exp(1.2 * x[:, 0]) + 0.3 * np.sin(6 * x[:, 0]) + 0.2 * rng.standard_normal(15)
    problem = oc.Problem(
        x, y, lambda x, t: np.exp(t[0] * x), {"t": stats.norm(0, 1)}, domain=oc.Box(0, 1), noise_cov=0.04
    )
    posterior = oc.calibrate(problem, oc.methods.KO(sd=0.5), draws=500, seed=5)
    theta, steps = np.linspace(-2, 3, 401), np.linspace(-4.5, 4.5, 91)
    lengths = 0.4 * np.exp(0.8 * steps)
    residual = y - np.exp(theta[:, None] * x[:, 0])
    log_weights = np.empty((401, 91))
    for j, length in enumerate(lengths):
        S = matern(x, x, 1.5, 0.5, length) + 0.04 * np.eye(15)
        quadratic = np.einsum("ti,ij,tj->t", residual, np.linalg.inv(S), residual)
        log_weights[:, j] = -0.5 * (quadratic + np.linalg.slogdet(S)[1] + theta**2 + steps[j] ** 2)
    weights = normalised(log_weights)
    drawn = np.log(stat(posterior, "lengthscale_0_0"))
    compared = [
        (posterior.theta[:, :, 0], moments(weights, theta[:, None])),
        (drawn, moments(weights, np.log(lengths))),
    ]
    assert np.max(np.abs([z_scores(draws, *exact) for draws, exact in compared])) < Z_LIMIT


@pytest.mark.slow
def test_without_information_the_hyperparameters_follow_their_priors():
    """Two parameters take two points. Every tenth draw is nearly independent; p < 1e-4 is a false alarm."""
    wide = {name: stats.norm(0, 1e6) for name in ("a", "b")}
    problem = oc.Problem([0.1, 0.9], [1.0, 2.0], lambda x, t: t[0] + t[1] * x[:, 0], wide, oc.Box(0, 1), 0.04)
    posterior = oc.calibrate(problem, "ko", draws=1000, chains=2, seed=7)
    priors = {"sd_0": stats.halfcauchy(scale=0.2), "lengthscale_0_0": stats.lognorm(0.8, scale=0.4)}
    for name, prior in priors.items():
        assert stats.kstest(stat(posterior, name)[:, ::10].ravel(), prior.cdf).pvalue > 1e-4


def test_predictions_at_the_data_are_the_stored_bias(posterior, problem):
    predicted = posterior.predict(problem.data.x, draws=50)
    stored = posterior.data["bias"]["bias"].values[:, predicted["draw"].values]
    np.testing.assert_allclose(predicted["bias"], stored, rtol=0, atol=1e-12)


def test_predictions_between_the_data_have_the_conditional_law():
    """One draw, predicted 4000 times: Gaussian conditioning, written out."""
    rng = np.random.default_rng(8)
    x, x_new, values = rng.random((6, 2)), rng.random((3, 2)), rng.standard_normal(6)
    sampler = SampledGPSampler(1.5, x, x[:0], np.ones(6))
    # the sampler's points are sorted
    order = np.lexsort(x.T[::-1])
    records = {
        "hyperparameters": np.tile(np.log([1.3, 0.7, 0.7]), (4000, 1)),
        "values": np.tile(values[order], (4000, 1)),
    }
    drawn = sampler.predict(rng, records, np.vstack([x_new, x]))
    np.testing.assert_array_equal(drawn[:, 3:], np.tile(values, (4000, 1)))
    K, cross = matern(x, x, 1.5, 1.3, 0.7), matern(x, x_new, 1.5, 1.3, 0.7)
    mean = cross.T @ np.linalg.solve(K, values)
    covariance = matern(x_new, x_new, 1.5, 1.3, 0.7) - cross.T @ np.linalg.solve(K, cross)
    white = np.linalg.solve(np.linalg.cholesky(covariance), (drawn[:, :3] - mean).T)
    assert np.max(np.abs(white.mean(axis=1))) < Z_LIMIT / np.sqrt(4000)
    # the variance of a product is one, that of a square two
    assert np.max(np.abs(np.cov(white) - np.eye(3))) < Z_LIMIT * np.sqrt(2 / 4000)


def test_what_is_stored(posterior):
    found = json.loads(posterior.data.attrs["notes"])["bias"][0]
    assert found["sd"] == pytest.approx(stat(posterior, "sd_0").mean())
    assert found["lengthscale"] == [pytest.approx(stat(posterior, "lengthscale_0_0").mean())]
    assert found["sd_interval"] == pytest.approx(np.quantile(stat(posterior, "sd_0"), (0.025, 0.975)))
    assert found["hyperparameter_rhat"] < 1.02
    assert posterior.check().ok


def test_what_is_given_is_no_unknown(problem):
    posterior = oc.calibrate(problem, oc.methods.KO(1.5, 1.0, 0.5), draws=10, warmup=10, seed=1)
    assert not {"sd_0", "lengthscale_0_0"} & set(posterior.data["sample_stats"].data_vars)
    assert posterior.predict([0.2])["bias"].shape == (4, 10, 1, 1)


def test_short_runs_and_single_chains_work(problem):
    posterior = oc.calibrate(problem, "ko", draws=4, warmup=0, chains=1, seed=1)
    assert np.isfinite(posterior.predict([0.2, 0.7])["observation"].values).all()


def test_refusals():
    rng = np.random.default_rng(0)
    x, y = rng.random((20, 1)), rng.standard_normal((20, 2))
    parameters = {"t": stats.norm(0, 1)}

    def simulator(x, t):
        return np.column_stack([t[0] * x, t[0] * x**2])

    def run(x, y, f=simulator, method="ko", **settings):
        oc.calibrate(oc.Problem(x, y, f, parameters, domain=oc.Box(0, 1), **settings), method, draws=4, warmup=0)

    with pytest.raises(InputError, match="lengthscale has 3 values but x has 1 inputs"):
        run(x, y, method=oc.methods.KO(lengthscale=[1, 2, 3]), noise_cov=1.0)
    with pytest.raises(NotImplementedError, match="with them and theta"):
        SampledGPSampler(1.5, x, x[:0], np.ones(20)).draw([rng], None, y[:, :1].T)

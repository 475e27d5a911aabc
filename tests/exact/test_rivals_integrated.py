"""Rivals with noise, size and length-scale of the bias integrated over: against a grid, without the package's formulas.

For a linear simulator with flat priors, given r (the bias's sd over the noise's) and the length-scale, the noise can be
integrated by hand: theta is a Student t, and a grid of both makes it a mixture of t's. Given noise makes it a mixture
of Gaussians. A level of the mixture's distribution at a quantile of 4000 draws has an sd of at most .008; .035 beside
the points' own error fails once in ten thousand.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import orthocal as oc

N, SCALE, NOISE_SD = 16, 5.0, 0.3
LEVELS = np.array([0.025, 0.16, 0.5, 0.84, 0.975])
LIMIT = 0.035
NODES, WEIGHTS = (part / 2 + shift for part, shift in zip(np.polynomial.legendre.leggauss(40), (0.5, 0.0), strict=True))
RATIOS, LENGTHS = np.exp(np.linspace(-7, 7, 70)), 0.4 * np.exp(0.8 * np.linspace(-3.8, 3.8, 45))
METHODS = {
    "ko": oc.methods.KO(),
    "sgasp": oc.methods.SGaSP(scale=SCALE),
    "ogp": oc.methods.OGP(),
    "pcal": oc.methods.PCAL(),
}


def matern32(a, b, length):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None]) / length
    return (1 + r) * np.exp(-r)


def slopes(x):
    return np.stack([np.ones_like(x), x], axis=1)


def data_set(n=N):
    rng = np.random.default_rng(5)
    x = rng.random(n)
    return x, 1 + 2 * x + 0.8 * np.sin(6 * x) + NOISE_SD * rng.standard_normal(n)


def problem_of(x, y, **settings):
    simulator = oc.Simulator(lambda x, t: slopes(x[:, 0]) @ t, gradient=lambda x, t: slopes(x[:, 0]))
    flat = {name: stats.norm(0, 1e4) for name in ("a", "b")}
    return oc.Problem(x, y, simulator, flat, oc.Box(0, 1, nodes=len(NODES)), **settings)


def bias_covariance(name, x, length):
    """Of a bias of sd one at the data."""
    K = matern32(x, x, length)
    if name == "sgasp":
        return K - K @ np.linalg.solve(K + len(x) / SCALE * np.eye(len(x)), K)
    if name == "ogp":
        A = WEIGHTS[:, None] * slopes(NODES)
        h = A.T @ matern32(NODES, x, length)
        return K - h.T @ np.linalg.solve(A.T @ matern32(NODES, NODES, length) @ A, h)
    return K


def mixture(name, x, y, noise_var=None):
    """Weights of the grid, means and scales of theta, degrees of freedom, log r, log length and n s^2's shape."""
    G, Gu = slopes(x), slopes(NODES)
    image = np.linalg.solve(Gu.T @ (WEIGHTS[:, None] * Gu), (WEIGHTS[:, None] * Gu).T)
    n, p = len(x), 0 if name == "pcal" else 2
    found = []
    for length in LENGTHS:
        R = bias_covariance(name, x, length)
        for ratio in RATIOS:
            C = np.eye(n) + ratio**2 * R
            solved = np.linalg.solve(C, np.column_stack([G, y]))
            V = np.linalg.inv(G.T @ solved[:, :2])
            mean, cov = V @ (G.T @ solved[:, 2]), V
            size, left = np.linalg.slogdet(C)[1], y - G @ mean
            if name == "pcal":
                cross = ratio**2 * matern32(NODES, x, length)
                mean, left = image @ cross @ np.linalg.solve(C, y), y
                whole = ratio**2 * matern32(NODES, NODES, length) - cross @ np.linalg.solve(C, cross.T)
                cov = image @ whole @ image.T
            else:
                size -= np.linalg.slogdet(V)[1]
            square = left @ np.linalg.solve(C, left)
            # the noise's sd integrated with the density 1 / s, or given
            fit = (n - p) * np.log(square) if noise_var is None else square / noise_var
            var = square / (n - p) if noise_var is None else noise_var
            prior = np.log(ratio) - np.log1p(ratio**2) + stats.norm.logpdf(np.log(length), np.log(0.4), 0.8)
            found.append((prior - 0.5 * (size + fit), mean, np.sqrt(np.diag(cov) * var), ratio, length, var))
    log_weight, mean, scale, ratio, length, var = (np.array(part) for part in zip(*found, strict=True))
    freedom = n - p if noise_var is None else np.inf
    return np.exp(log_weight - logsumexp(log_weight)), mean, scale, freedom, ratio, length, var


def worst(posterior, law):
    """How far the levels of all that is drawn, at quantiles of the draws, are from where they belong."""
    weight, mean, scale, freedom, ratio, length, var = law
    drawn = posterior.data["sample_stats"]
    theta = np.quantile(posterior.theta.reshape(-1, 2), LEVELS, axis=0)
    levels = [weight @ stats.t.cdf((values - mean) / scale, freedom) for values in theta]
    errors = [np.abs(np.array(levels) - LEVELS[:, None])]
    lengths = np.quantile(np.log(drawn["lengthscale_0_0"].values), LEVELS)
    errors.append(np.abs(smooth(weight, np.log(length), lengths, 0.8 * 7.6 / 44) - LEVELS))
    sd = drawn["sd_0"].values
    if np.isfinite(freedom):
        noise_var = posterior.data["posterior"]["noise_cov"].values[..., 0, 0]
        found = np.quantile(noise_var, LEVELS)
        # s^2 is inverse gamma given the others
        own = [weight @ stats.invgamma.cdf(value, freedom / 2, scale=freedom * var / 2) for value in found]
        errors.append(np.abs(np.array(own) - LEVELS))
        sd = sd / np.sqrt(noise_var)
    else:
        sd = sd / NOISE_SD
    ratios = np.quantile(np.log(sd), LEVELS)
    errors.append(np.abs(smooth(weight, np.log(ratio), ratios, 14 / 69) - LEVELS))
    return max(float(error.max()) for error in errors)


def smooth(weight, places, values, step):
    """The distribution of a grid, each of whose places is a cell as wide as the step."""
    return np.clip((values[:, None] - places) / step + 0.5, 0, 1) @ weight


@pytest.mark.parametrize("name", METHODS)
def test_with_unknown_noise_theta_is_a_mixture_of_students(name):
    x, y = data_set()
    posterior = oc.calibrate(problem_of(x, y, noise_cov="unknown"), METHODS[name], draws=1000, seed=1, progress=False)
    assert worst(posterior, mixture(name, x, y)) < LIMIT


@pytest.mark.parametrize("name", METHODS)
def test_with_given_noise_size_and_length_are_integrated_over(name):
    x, y = data_set()
    var = NOISE_SD**2
    posterior = oc.calibrate(problem_of(x, y, noise_cov=var), METHODS[name], draws=1000, seed=1, progress=False)
    assert worst(posterior, mixture(name, x, y, var)) < LIMIT
    assert "noise_cov" not in posterior.data["posterior"]


def test_the_law_of_another_method_is_noticed():
    """Negative control: the draws of one against the mixture of the others."""
    x, y = data_set()
    posterior = oc.calibrate(problem_of(x, y, noise_cov="unknown"), "ogp", draws=1000, seed=1, progress=False)
    for other in ("ko", "sgasp", "pcal"):
        assert worst(posterior, mixture(other, x, y)) > 2 * LIMIT


def test_without_a_bias_theta_is_a_student():
    """Mean, scale and quantiles of a multivariate t on n - p = 4 degrees of freedom; |z| of a share is below 4.5."""
    x, y = data_set(6)
    posterior = oc.calibrate(problem_of(x, y, noise_cov="unknown"), "none", draws=4000, seed=1, progress=False)
    G = slopes(x)
    beta = np.linalg.lstsq(G, y, rcond=None)[0]
    square = float(np.sum((y - G @ beta) ** 2))
    V = np.linalg.inv(G.T @ G)
    theta = posterior.theta.reshape(-1, 2)
    scaled = (theta - beta) / np.sqrt(np.diag(V) * square / 4)
    # a chain's draws are worth a third of what independent ones are, at the least
    error = 3**0.5 * np.sqrt(LEVELS * (1 - LEVELS) / len(theta))
    for column in scaled.T:
        shares = np.mean(column[:, None] < stats.t.ppf(LEVELS, 4), axis=0)
        assert np.max(np.abs(shares - LEVELS) / error) < 4.5
    # the squared length over p is F distributed, and s^2 inverse gamma
    length = np.einsum("si,ij,sj->s", theta - beta, np.linalg.inv(V), theta - beta) / 2 / (square / 4)
    assert np.max(np.abs(np.mean(length[:, None] < stats.f.ppf(LEVELS, 2, 4), axis=0) - LEVELS) / error) < 4.5
    noise_var = posterior.data["posterior"]["noise_cov"].values.ravel()
    exact = stats.invgamma(2, scale=square / 2)
    assert np.max(np.abs(np.mean(noise_var[:, None] < exact.ppf(LEVELS), axis=0) - LEVELS) / error) < 4.5


def test_no_bias_takes_many_data():
    """A hundred thousand rows: nothing is as large as their square."""
    rng = np.random.default_rng(2)
    x = rng.random(100_000)
    y = slopes(x) @ [1.0, 2.0] + NOISE_SD * rng.standard_normal(len(x))
    posterior = oc.calibrate(problem_of(x, y, noise_cov="unknown"), "none", draws=50, warmup=25, chains=2, seed=1)
    assert posterior.theta.std(axis=(0, 1))[0] == pytest.approx(2 * NOISE_SD / np.sqrt(1e5), rel=0.4)
    assert posterior.data["posterior"]["noise_cov"].values.mean() == pytest.approx(NOISE_SD**2, rel=0.02)


def test_a_curved_simulator_has_the_law_of_its_grid():
    """OGP whose gradients depend on theta: theta, size and length-scale on a grid, given noise; levels as above."""
    x = np.sort(np.random.default_rng(3).random(14))
    noise = 0.1 * np.random.default_rng(4).standard_normal(14)
    y = np.exp(1.2 * x) + 0.25 * np.cos(7 * x) + noise
    simulator = oc.Simulator(lambda x, t: np.exp(t[0] * x[:, 0]), lambda x, t: x * np.exp(t[0] * x))
    given = {"domain": oc.Box(0, 1, nodes=len(NODES)), "noise_cov": 0.01}
    problem = oc.Problem(x, y, simulator, {"t": stats.norm(1, 1)}, **given)
    posterior = oc.calibrate(problem, "ogp", draws=1000, seed=1, progress=False)
    grid, ratios, lengths = (
        np.linspace(0.9, 1.5, 121),
        np.exp(np.linspace(-5, 6, 34)),
        0.4 * np.exp(0.8 * np.linspace(-3.5, 3.5, 22)),
    )
    log_density = np.empty((len(grid), len(ratios), len(lengths)))
    for k, length in enumerate(lengths):
        K, Kn, Knn = matern32(x, x, length), matern32(NODES, x, length), matern32(NODES, NODES, length)
        for i, t in enumerate(grid):
            g = WEIGHTS * NODES * np.exp(t * NODES)
            bias = K - np.outer(g @ Kn, g @ Kn) / (g @ Knn @ g)
            values, vectors = np.linalg.eigh(bias)
            left = vectors.T @ (y - np.exp(t * x))
            for j, ratio in enumerate(ratios):
                var = 0.01 * (1 + ratio**2 * np.maximum(values, 0))
                log_density[i, j, k] = -0.5 * np.sum(np.log(var) + left**2 / var)
        log_density[:, :, k] += stats.norm.logpdf(np.log(length), np.log(0.4), 0.8)
    log_density += (np.log(ratios) - np.log1p(ratios**2))[:, None] + stats.norm.logpdf(grid, 1, 1)[:, None, None]
    weight = np.exp(log_density - logsumexp(log_density))
    # no draw of this problem lies where the loss is not least
    assert posterior.data["sample_stats"]["curvature"].values.min() > 0
    found = np.quantile(posterior.theta, LEVELS)
    assert np.abs(smooth(weight.sum(axis=(1, 2)), grid, found, 0.6 / 120) - LEVELS).max() < LIMIT
    sd = np.quantile(np.log(posterior.data["sample_stats"]["sd_0"].values / 0.1), LEVELS)
    assert np.abs(smooth(weight.sum(axis=(0, 2)), np.log(ratios), sd, 11 / 33) - LEVELS).max() < LIMIT


@pytest.mark.slow
def test_another_theta_kernel_has_the_same_law():
    x, y = data_set()
    method = replace(METHODS["ogp"], kernel=oc.kernels.Slice(sweeps=2))
    posterior = oc.calibrate(problem_of(x, y, noise_cov="unknown"), method, draws=1000, seed=1, progress=False)
    assert worst(posterior, mixture("ogp", x, y)) < LIMIT

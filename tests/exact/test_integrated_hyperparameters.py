"""Noise, size and length-scale of the bias integrated over, against a fine grid with none of the package's formulas.

For a linear simulator with flat priors, given r (the bias's sd over the noise's) and the length-scale, theta is a
Student t on n - p degrees of freedom: a grid of both makes it a mixture of t's. A level of the mixture's distribution
at a quantile of 4000 draws has an sd of at most .008; .03 beside the points' own error fails once in ten thousand.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import orthocal as oc
from orthocal.errors import InputError
from orthocal.methods.joint.gaussian_model import GaussianModel
from orthocal.methods.joint.regress import Linear
from orthocal.methods.joint.regress_integrated import Asked, hyperparameter_points
from orthocal.methods.joint.unknowns import Unknowns, correlation_of, log_prior_of_tangents

DRAWS = 4000
LEVELS = np.array([0.025, 0.16, 0.5, 0.84, 0.975])
NODES, WEIGHTS = (part / 2 + shift for part, shift in zip(np.polynomial.legendre.leggauss(40), (0.5, 0.0), strict=True))


def matern32(a, b, length):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None]) / length
    return (1 + r) * np.exp(-r)


def slopes(x):
    return np.stack([np.ones_like(x), x], axis=1)


def data_set(n, bias, seed):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    return x, 1 + 2 * x + bias * np.sin(6 * x) + 0.3 * rng.standard_normal(n)


def problem_of(x, y, **settings):
    simulator = oc.Simulator(lambda x, t: slopes(x[:, 0]) @ t, gradient=lambda x, t: slopes(x[:, 0]))
    flat = {name: stats.norm(0, 1e4) for name in ("a", "b")}
    return oc.Problem(x, y, simulator, flat, oc.Box(0, 1, nodes=len(NODES)), **settings)


def student_mixture(x, y, ratios, lengths, log_prior):
    """Weights, means, scales and degrees of freedom of theta's t's over a grid of ratios and length-scales."""
    G, Gu = slopes(x), slopes(NODES)
    image = np.linalg.solve(Gu.T @ (WEIGHTS[:, None] * Gu), (WEIGHTS[:, None] * Gu).T)
    n, p = G.shape
    found = []
    for length in lengths:
        K, Ku, Kuu = matern32(x, x, length), matern32(x, NODES, length), matern32(NODES, NODES, length)
        for ratio in ratios:
            C = np.eye(n) + ratio**2 * K
            solved = np.linalg.solve(C, np.column_stack([G, y]))
            V = np.linalg.inv(G.T @ solved[:, :p])
            beta = V @ (G.T @ solved[:, p])
            left = y - G @ beta
            squares = left @ np.linalg.solve(C, left)
            size = np.linalg.slogdet(C)[1] - np.linalg.slogdet(V)[1] + (n - p) * np.log(squares)
            k = ratio**2 * Ku @ image.T
            B = np.eye(p) - k.T @ solved[:, :p]
            cov = B @ V @ B.T + ratio**2 * image @ Kuu @ image.T - k.T @ np.linalg.solve(C, k)
            mean = beta + k.T @ np.linalg.solve(C, left)
            found.append((log_prior(ratio, length) - 0.5 * size, mean, np.sqrt(np.diag(cov) * squares / (n - p))))
    weight, mean, scale = (np.array(part) for part in zip(*found, strict=True))
    return np.exp(weight - logsumexp(weight)), mean, scale, n - p


def log_prior(ratio, length):
    """Of the logarithms: a half-Cauchy ratio, and a length-scale that is log-normal."""
    return np.log(ratio) - np.log1p(ratio**2) + stats.norm.logpdf(np.log(length), np.log(0.4), 0.8)


RATIOS, LENGTHS = np.exp(np.linspace(-7, 8, 90)), 0.4 * np.exp(0.8 * np.linspace(-3.8, 3.8, 50))


def levels_of(posterior, law):
    """The mixture's distribution at quantiles of the draws, (levels, 2)."""
    weight, mean, scale, freedom = law
    quantiles = np.quantile(posterior.theta.reshape(-1, 2), LEVELS, axis=0)
    return np.array([weight @ stats.t.cdf((values - mean) / scale, freedom) for values in quantiles])


@pytest.mark.parametrize(("n", "bias"), [(5, 0.0), (8, 0.8), (25, 0.8), pytest.param(12, 0.0, marks=pytest.mark.slow)])
def test_theta_is_a_mixture_of_students(n, bias):
    x, y = data_set(n, bias, seed=5)
    posterior = oc.calibrate(problem_of(x, y, noise_cov="sample"), "gp", draws=1000, seed=1, progress=False)
    law = student_mixture(x, y, RATIOS, LENGTHS, log_prior)
    assert np.abs(levels_of(posterior, law) - LEVELS[:, None]).max() < 0.03


def test_another_prior_of_the_ratio_is_noticed():
    """Negative control: with eight points it matters, and a law that plugs it in is far off."""
    x, y = data_set(8, 0.8, seed=5)
    posterior = oc.calibrate(problem_of(x, y, noise_cov="sample"), "gp", draws=1000, seed=1, progress=False)
    law = student_mixture(x, y, [0.01], [0.4], lambda ratio, length: 0.0)
    assert np.abs(levels_of(posterior, law) - LEVELS[:, None]).max() > 0.06


def test_with_known_noise_size_and_length_are_integrated_over():
    x, y = data_set(12, 0.8, seed=6)
    method = oc.methods.Joint(oc.bias.GP())
    posterior = oc.calibrate(problem_of(x, y, noise_cov=0.09), method, draws=1000, seed=1, progress=False)
    G, Gu = slopes(x), slopes(NODES)
    image = np.linalg.solve(Gu.T @ (WEIGHTS[:, None] * Gu), (WEIGHTS[:, None] * Gu).T)
    parts = []
    for length in LENGTHS:
        K, Ku, Kuu = matern32(x, x, length), matern32(x, NODES, length), matern32(NODES, NODES, length)
        for ratio in RATIOS:
            C = 0.09 * (np.eye(len(x)) + ratio**2 * K)
            V = np.linalg.inv(G.T @ np.linalg.solve(C, G))
            beta = V @ G.T @ np.linalg.solve(C, y)
            left = y - G @ beta
            size = np.linalg.slogdet(C)[1] - np.linalg.slogdet(V)[1] + left @ np.linalg.solve(C, left)
            k = 0.09 * ratio**2 * Ku @ image.T
            B = np.eye(2) - k.T @ np.linalg.solve(C, G)
            cov = B @ V @ B.T + 0.09 * ratio**2 * image @ Kuu @ image.T - k.T @ np.linalg.solve(C, k)
            mean = beta + k.T @ np.linalg.solve(C, left)
            parts.append((log_prior(ratio, length) - 0.5 * size, mean, np.sqrt(np.diag(cov))))
    weight, mean, scale = (np.array(part) for part in zip(*parts, strict=True))
    law = np.exp(weight - logsumexp(weight)), mean, scale, np.inf
    assert np.abs(levels_of(posterior, law) - LEVELS[:, None]).max() < 0.03


def test_the_evidence_is_that_of_the_gaussian():
    """Two outcomes with holes and an informative prior, against log N(y; f + G m, G V G' + P K P' + noise)."""
    rng = np.random.default_rng(3)
    x = rng.random(9)
    G = np.stack([slopes(x), slopes(x)[:, ::-1] * 0.5], axis=1)
    y = G @ [1.0, 2.0] + rng.standard_normal((9, 2)) * [0.2, 0.3]
    y[2, 0] = y[5, 1] = np.nan
    y[7] = np.nan

    def gradient(x, theta):
        return np.stack([slopes(x[:, 0]), slopes(x[:, 0])[:, ::-1] * 0.5], axis=1)

    simulator = oc.Simulator(lambda x, t: gradient(x, t) @ t, gradient)
    priors = {"a": stats.norm(1.2, 0.1), "b": stats.norm(1.8, 0.2)}
    problem = oc.Problem(x, y, simulator, priors, oc.Box(0, 1, nodes=len(NODES)), noise_cov="sample")
    prior, linear = oc.bias.GP(), Linear.of(problem)
    unknowns = Unknowns.of(problem, prior)
    model = GaussianModel(problem, linear, prior, unknowns, problem.rule.nodes)
    vectors = unknowns.values + 0.5 * rng.standard_normal((4, len(unknowns.values)))
    back, tilde = problem.noise.unwhitener, problem.theta_tilde
    seen = problem.data.observed.ravel()
    points = np.concatenate([x, NODES])
    Gu = gradient(NODES[:, None], tilde)
    Q = np.einsum("m,mki,kl,mlj->ij", WEIGHTS, Gu, problem.weight, Gu)
    expected = []
    for v in vectors:
        own = np.exp(unknowns.log_sd_and_lengths(v))
        K = sum(
            np.kron(sd**2 * matern32(points, points, length), np.outer(back[:, k], back[:, k]))
            for k, (sd, length) in enumerate(own)
        )
        image = np.linalg.solve(Q, np.einsum("m,mki,kl->iml", WEIGHTS, Gu, problem.weight).reshape(2, -1))
        P = np.hstack([np.eye(18), -G.reshape(18, 2) @ image])
        cov = P @ K @ P.T + np.kron(np.eye(9), back @ unknowns.noise_cov(v) @ back.T)
        flat = G.reshape(18, 2)
        cov = (cov + flat @ np.diag([0.01, 0.04]) @ flat.T)[np.ix_(seen, seen)]
        expected.append(stats.multivariate_normal(cov=cov).logpdf((y.ravel() - flat @ [1.2, 1.8])[seen]))
    found = model.evidence(vectors)
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-6)


def test_draws_are_those_of_the_gaussian():
    """theta, and the real process at data and nodes, given hyperparameters and an informative prior; |z| < 4.5."""
    x, y = data_set(10, 0.8, seed=9)
    simulator = oc.Simulator(lambda x, t: slopes(x[:, 0]) @ t, gradient=lambda x, t: slopes(x[:, 0]))
    priors, mean, V = (
        {"a": stats.norm(1.2, 0.2), "b": stats.norm(1.5, 0.4)},
        np.array([1.2, 1.5]),
        np.diag([0.04, 0.16]),
    )
    problem = oc.Problem(x, y, simulator, priors, oc.Box(0, 1, nodes=len(NODES)), noise_cov=0.09)
    prior, linear = oc.bias.GP(sd=0.7, lengthscale=0.3), Linear.of(problem)
    unknowns = Unknowns.of(problem, prior)
    model = GaussianModel(problem, linear, prior, unknowns, problem.rule.nodes)
    drawn = model.draw([np.random.default_rng(1)], np.array([DRAWS]), unknowns.values)
    points = np.concatenate([x, NODES])
    G, Gu = slopes(points), slopes(NODES)
    image = np.linalg.solve(Gu.T @ (WEIGHTS[:, None] * Gu), (WEIGHTS[:, None] * Gu).T)
    P = np.eye(len(points)) - G @ np.hstack([np.zeros((2, len(x))), image])
    # of (theta, y_R) jointly, before the data
    process = G @ V @ G.T + P @ (0.49 * matern32(points, points, 0.3)) @ P.T
    whole = np.block([[V, V @ G.T], [G @ V, process]])
    seen = slice(2, 2 + len(x))
    gain = np.linalg.solve(whole[seen, seen] + 0.09 * np.eye(len(x)), whole[seen]).T
    expected = np.concatenate([mean, G @ mean]) + gain @ (y - G[: len(x)] @ mean)
    sd = np.sqrt(np.diag(whole - gain @ whole[seen]))
    found = np.hstack([drawn.moved + problem.theta_tilde, drawn.real[:, :, 0] * 0.3 + G @ problem.theta_tilde])
    assert np.abs((found.mean(axis=0) - expected) / sd).max() < 4.5 / np.sqrt(DRAWS)
    assert np.abs(found.std(axis=0) / sd - 1).max() < 4.5 / np.sqrt(2 * DRAWS)


def test_correlations_are_flat():
    """Three outcomes: partial correlations by the prior of their numbers make matrices whose correlations are alike."""
    rng = np.random.default_rng(1)
    tangents = rng.uniform(-4, 4, (60_000, 3))
    density = np.array([log_prior_of_tangents(one, 3) for one in tangents])
    kept = tangents[rng.random(len(tangents)) < np.exp(density - density.max())]
    found = np.array([correlation_of(np.tanh(one), 3)[np.tril_indices(3, -1)] for one in kept])
    # flat over matrices of order three: each correlation is Beta(3/2, 3/2) on (-1, 1)
    for column in found.T:
        assert stats.kstest((column + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-4


def test_many_data_leave_little_to_choose_between():
    """Points by a part of the data first: the same law, whatever that part is."""
    x, y = data_set(400, 0.8, seed=7)
    problem = problem_of(x, y, noise_cov="sample")
    prior, linear = oc.bias.GP(), Linear.of(problem)
    unknowns = Unknowns.of(problem, prior)
    found = hyperparameter_points(Asked(problem, prior, linear, unknowns, problem.rule.nodes))
    assert found.std(axis=0).max() < 0.8
    assert np.exp(found[:, -1].mean()) * np.sqrt(problem.noise.cov[0, 0]) == pytest.approx(0.3, rel=0.12)


def test_where_nothing_tells_the_noise_a_sentence_says_so():
    x, y = data_set(8, 0.8, seed=2)

    def fit(count, columns):
        rows = np.argsort(x)[:count]
        names = {f"t{j}": stats.norm(0, 1e4) for j in range(len(columns))}
        simulator = oc.Simulator(
            lambda x, t: np.column_stack([column(x[:, 0]) for column in columns]) @ t, batched=False
        )
        problem = oc.Problem(x[rows], y[rows], simulator, names, oc.Box(0, 1), noise_cov="sample")
        oc.calibrate(problem, "gp", draws=4, progress=False)

    powers = [lambda x, k=k: x**k for k in range(5)]
    with pytest.raises(InputError, match="y has 5 values and theta 5 parameters"):
        fit(5, powers)
    with pytest.raises(InputError, match="goes through every value of y"):
        fit(8, [lambda at: np.interp(at, np.sort(x), y[np.argsort(x)])])


def test_too_many_unknowns_are_no_false_certainty():
    """Six outcomes: the noise is drawn in a chain beside the likeliest hyperparameters."""
    rng = np.random.default_rng(6)
    x = rng.random(40)
    y = np.stack([(k + 1) * x for k in range(6)], axis=1) + 0.2 * rng.standard_normal((40, 6))

    def simulator(x, t):
        return np.stack([t[0] * (k + 1) * x[:, 0] + t[1] for k in range(6)], axis=1)

    problem = oc.Problem(x, y, simulator, {name: stats.norm(0, 1) for name in "ab"}, oc.Box(0, 1), noise_cov="sample")
    run = {"draws": 40, "chains": 2, "seed": 1, "progress": False}
    assert "lengthscale_0_0" not in oc.calibrate(problem, "gp", **run).data["sample_stats"]

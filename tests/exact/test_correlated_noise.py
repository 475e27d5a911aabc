"""Noise that is correlated between rows against the exact posterior of a linear simulator, written without the package.

y = G theta + b* + e with e ~ N(0, R), b* = b - G lambda(b), lambda(b) = Q^-1 ∫ g' W b: theta and w (b = L w) are
jointly Gaussian. Every z below is that of a mean or an sd over independent draws, or over as many as they are worth,
so that |z| < 4.5 fails in 7 of a million.
"""

import numpy as np
import pytest
import test_experiments_together as together
from arviz_stats.base import array_stats
from scipy import stats
from scipy.linalg import solve_discrete_lyapunov

import orthocal as oc

SLOW = pytest.mark.slow
N, NODES, DRAWS = 40, 40, 4000
SD, LENGTH = 0.6, 0.4
COV = np.array([[0.04, 0.012], [0.012, 0.09]])
PRIORS = {"flat": (0.0, 1e4), "informative": (1.2, 0.08)}
GP = oc.bias.GP(nu=1.5, sd=SD, lengthscale=LENGTH)
SERIES = np.array(["a", "b"])[np.arange(N) % 2]


def matern32(a, b, sd, length):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None]) / length
    return sd**2 * (1 + r) * np.exp(-r)


def slopes(x, q=1):
    """df/dtheta, (n, q, 2): the outcomes share both parameters."""
    columns = [np.stack([x, 1 + x**2], axis=1), np.stack([np.cos(3 * x), x], axis=1)]
    return np.stack(columns[:q], axis=1)


def places(seed=0):
    return np.random.default_rng(seed).random(N)


def dense(x):
    """A covariance with variances of its own for every row, and no structure."""
    rng = np.random.default_rng(7)
    mixed = 0.25 * rng.standard_normal((N, N)) / np.sqrt(N)
    return mixed @ mixed.T + np.diag(rng.uniform(0.01, 0.04, N))


def along(x, length, share, series=None, kind="ar1"):
    distance = np.abs(x[:, None] - x) / length
    r = np.sqrt(5) * distance
    C = np.exp(-distance) if kind == "ar1" else (1 + r + r**2 / 3) * np.exp(-r)
    C = C if series is None else C * (series[:, None] == series)
    return share * C + (1 - share) * np.eye(len(x))


def field_data(x, R, q=1, seed=1):
    """y (n, q) with noise of the covariance R (n q, n q), row after row."""
    rng = np.random.default_rng(seed)
    bias = np.stack([0.5 * np.sin(7 * x), 0.4 * np.cos(5 * x)], axis=1)[:, :q]
    return slopes(x, q) @ [1.0, 1.5] + bias + (np.linalg.cholesky(R) @ rng.standard_normal(len(R))).reshape(-1, q)


def rule():
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def exact(x, y, R, cov, prior):
    """Mean and covariance of theta, and the mean of b* at the data; W is the inverse of the rows' covariance."""
    q, weight = y.shape[1], np.linalg.inv(cov)
    nodes, w = rule()
    points = np.concatenate([x, nodes])
    noise_sd = np.sqrt(np.diag(cov))
    values, vectors = np.linalg.eigh(cov / np.outer(noise_sd, noise_sd))
    back = np.linalg.inv((vectors / np.sqrt(values)) @ vectors.T / noise_sd)
    roots = [
        np.linalg.cholesky(matern32(points, points, SD / own, LENGTH) + 1e-9 * np.eye(len(points))) for own in noise_sd
    ]
    L = np.zeros((len(points), q, sum(map(len, roots))))
    start = 0
    for k, root in enumerate(roots):
        L[:, :, start : start + len(root)] = back[:, k][None, :, None] * root[:, None, :]
        start += len(root)
    G, Gu = slopes(x, q), slopes(nodes, q)
    Q = np.einsum("m,mki,kl,mlj->ij", w, Gu, weight, Gu)
    A = np.linalg.solve(Q, np.einsum("m,mki,kl,mlu->iu", w, Gu, weight, L[len(x) :]))
    star = L[: len(x)] - G @ A
    seen = ~np.isnan(y).ravel()
    design = np.concatenate([G, star], axis=2).reshape(y.size, -1)[seen]
    noise = R[np.ix_(seen, seen)]
    precision = design.T @ np.linalg.solve(noise, design)
    precision += np.diag([1 / prior[1] ** 2] * 2 + [1.0] * (L.shape[2]))
    information = design.T @ np.linalg.solve(noise, y.ravel()[seen])
    information[:2] += prior[0] / prior[1] ** 2
    covariance = np.linalg.inv(precision)
    mean = covariance @ information
    return mean[:2], covariance[:2, :2], (star @ mean[2:])


def problem_of(x, y, noise, prior=PRIORS["flat"], **changes):
    parameters = {name: stats.norm(*prior) for name in "ab"}
    domain, q = oc.Box(0, 1, nodes=NODES), y.shape[1]
    return oc.Problem(
        x, y, lambda x, t: slopes(x, q) @ t, parameters, domain, noise_cov=noise, input_names="t", starts=4, **changes
    )


def z_scores(theta, mean, cov):
    """Of means and sds, for draws (c, s, p); the error is what the effective sample size makes of it."""
    scores = []
    for j, own in enumerate(np.moveaxis(theta, -1, 0)):
        sd = np.sqrt(cov[j, j])
        size = min(float(array_stats.ess(own)), own.size)
        scores += [(own.mean() - mean[j]) / sd * np.sqrt(size)]
        size = min(float(array_stats.ess((own - own.mean()) ** 2)), own.size)
        scores += [(own.std() / sd - 1) * np.sqrt(2 * size)]
    return np.array(scores)


def assert_exact(problem, method, law, draws=DRAWS // 4):
    posterior = oc.calibrate(problem, method, draws=draws, chains=4, seed=3, progress=False)
    assert np.all(np.abs(z_scores(posterior.theta, *law[:2])) < 4.5)
    correlation = np.corrcoef(posterior.theta.reshape(-1, 2).T)[0, 1]
    expected = law[1][0, 1] / np.sqrt(law[1][0, 0] * law[1][1, 1])
    size = min(float(array_stats.ess(own)) for own in np.moveaxis(posterior.theta, -1, 0))
    assert abs(np.arctanh(correlation) - np.arctanh(expected)) < 4.5 / np.sqrt(min(size, 4 * draws))
    return posterior


def ar1(x, **changes):
    settings = {"length": 0.08, "share": 0.9, "sd": 0.2, "groups": SERIES, **changes}
    return oc.CorrelatedNoise("t", "ar1", **settings), 0.04 * along(x, 0.08, 0.9, SERIES)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("dense", False),
        ("ar1", True),
        *(pytest.param(*one, marks=SLOW) for one in (("dense", True), ("blocks", True), ("matern", True))),
    ],
)
def test_a_gaussian_process_beside_correlated_noise(kind, missing, prior):
    x = places()
    if kind == "dense":
        R = given = dense(x)
    elif kind == "blocks":
        given = [dense(x)[:15, :15], dense(x)[15:, 15:]]
        R = np.block([[given[0], np.zeros((15, 25))], [np.zeros((25, 15)), given[1]]])
    elif kind == "ar1":
        given, R = ar1(x)
    else:
        given = oc.CorrelatedNoise("t", "matern", length=0.1, share=0.8, sd=0.2, nu=2.5)
        R = 0.04 * along(x, 0.1, 0.8, kind="matern")
    y = field_data(x, R)
    if missing:
        y[[3, 8, 21]] = np.nan
    typical = np.exp(np.log(np.diag(R))[~np.isnan(y[:, 0])].mean())
    mean, cov, star = exact(x, y, R, np.array([[typical]]), PRIORS[prior])
    posterior = assert_exact(problem_of(x, y, given, PRIORS[prior]), oc.methods.Joint(GP), (mean, cov))
    bias = posterior.data["bias"]["bias"].values
    error = bias.std(axis=(0, 1)) / np.sqrt(bias.shape[0] * bias.shape[1])
    assert np.max(np.abs(bias.mean(axis=(0, 1)) - star) / error) < 4.5


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("missing", [pytest.param(False, marks=SLOW), True], ids=["complete", "missing"])
def test_two_outcomes_with_the_same_correlation(missing, prior):
    x = places()
    R = np.kron(along(x, 0.08, 0.9, SERIES), COV)
    y = field_data(x, R, 2)
    if missing:
        y[[3, 8, 21], 0], y[[8, 30], 1] = np.nan, np.nan
    mean, cov, _ = exact(x, y, R, COV, PRIORS[prior])
    noise = oc.CorrelatedNoise("t", length=0.08, share=0.9, cov=COV, groups=SERIES)
    assert_exact(problem_of(x, y, noise, PRIORS[prior]), oc.methods.Joint(GP), (mean, cov))


class Wrapped:
    """A prior that is not known to be Gaussian: a chain draws the correlated part of the noise beside it."""

    def __init__(self, inside=GP):
        self._inside = inside

    def prepare(self, setting):
        return _Plain(self._inside.prepare(setting))

    def describe(self):
        return {"kind": "wrapped"}


class _Plain:
    def __init__(self, inside):
        for name in ("draw", "record", "predict", "findings"):
            setattr(self, name, getattr(inside, name))

    def settings(self):
        return {"kind": "wrapped"}


@SLOW
@pytest.mark.parametrize("kind", ["dense", "ar1", "two outcomes"])
def test_a_chain_with_the_correlated_part_as_a_latent(kind):
    """Chains with the bias, theta's coefficients and the correlated part in turns have the law of the exact model."""
    x = places()
    given, R = ar1(x)
    q, cov = 1, np.array([[0.04]])
    if kind == "dense":
        R = given = dense(x)
        cov = np.exp(np.log(np.diag(R)).mean()) * np.eye(1)
    if kind == "two outcomes":
        q, cov, R = 2, COV, np.kron(along(x, 0.08, 0.9, SERIES), COV)
        given = oc.CorrelatedNoise("t", length=0.08, share=0.9, cov=COV, groups=SERIES)
    y = field_data(x, R, q)
    y[[3, 8]] = np.nan
    # the draws' own covariance carries a prior in: it must not be as far from the data as their error shows
    for prior in (PRIORS["flat"], (0.8, 0.5)):
        law = exact(x, y, R, cov, prior)
        assert_exact(problem_of(x, y, given, prior), oc.methods.Joint(Wrapped()), law, draws=4000)


def conditional(G, precision, y, prior):
    """N(m, V) of theta for y ~ N(G theta, precision^-1)."""
    V = np.linalg.inv(G.T @ precision @ G + np.eye(2) / prior[1] ** 2)
    return V @ (G.T @ precision @ y + prior[0] / prior[1] ** 2), V


@pytest.mark.parametrize("name", ["none", "ko", *(pytest.param(one, marks=SLOW) for one in ("sgasp", "ogp", "pcal"))])
def test_other_methods_have_the_covariance_in_their_likelihood(name):
    x, prior = places(), (1.2, 0.5)
    given, R = ar1(x)
    y = field_data(x, R)
    nodes, w = rule()
    G, Gu = slopes(x)[:, 0], slopes(nodes)[:, 0]
    points = np.concatenate([x, nodes])
    K = matern32(points, points, SD, LENGTH)
    free = K[:N, :N]
    settings = {"nu": 1.5, "sd": SD, "lengthscale": LENGTH}
    if name == "none":
        method, S = oc.methods.NoBias(), R
    elif name == "ko":
        method, S = oc.methods.KO(**settings), free + R
    elif name == "sgasp":
        method = oc.methods.SGaSP(**settings)
        S = free - free @ np.linalg.solve(free + np.sqrt(N) * SD**2 * np.eye(N), free) + R
    elif name == "ogp":
        method = oc.methods.OGP(**settings)
        h = (w[:, None] * Gu).T @ K[N:, :N]
        S = free - h.T @ np.linalg.solve((w[:, None] * Gu).T @ K[N:, N:] @ (w[:, None] * Gu), h) + R
    else:
        method = oc.methods.PCAL(**settings)
        gain = np.linalg.solve(free + R, K[:N, N:]).T
        A = np.linalg.solve(Gu.T @ (w[:, None] * Gu), (w[:, None] * Gu).T)
        law = A @ gain @ y[:, 0], A @ (K[N:, N:] - gain @ K[:N, N:]) @ A.T
    if name != "pcal":
        law = conditional(G, np.linalg.inv(S), y[:, 0], prior)
    assert_exact(problem_of(x, y, given, prior), method, law)


@SLOW
@pytest.mark.parametrize("chain", [False, True], ids=["exact", "latent"])
def test_the_papers_algorithm(chain):
    """theta_k+1 = c + A theta_k + e, a Gaussian autoregression."""
    x, prior = places(), (1.2, 0.5)
    given, R = ar1(x)
    y = field_data(x, R)[:, 0]
    nodes, w = rule()
    G, Gu = slopes(x)[:, 0], slopes(nodes)[:, 0]
    points = np.concatenate([x, nodes])
    K = matern32(points, points, SD, LENGTH)
    B = np.linalg.solve(K[:N, :N] + R, K[:N]).T
    S = K - B @ K[:N]
    P = np.hstack([np.eye(N), -G @ np.linalg.solve(Gu.T @ (w[:, None] * Gu), (w[:, None] * Gu).T)])
    precision = np.linalg.inv(R)
    V = np.linalg.inv(G.T @ precision @ G + np.eye(2) / prior[1] ** 2)
    gain = V @ G.T @ precision
    A = gain @ P @ B @ G
    step = V + gain @ P @ S @ P.T @ gain.T
    constant = gain @ (y - P @ B @ y) + V @ np.full(2, prior[0] / prior[1] ** 2)
    law = np.linalg.solve(np.eye(2) - A, constant), solve_discrete_lyapunov(A, step)
    if not chain:
        assert_exact(problem_of(x, y[:, None], given, prior), oc.methods.Projected(GP), law)
        return
    # the bias is one step of a chain here, not a draw: its law is known where it is drawn given theta_tilde
    problem = problem_of(x, y[:, None], given, prior)
    cut = constant + A @ problem.theta_tilde, step
    assert_exact(problem, oc.methods.Projected(Wrapped(), feedback=False), cut, draws=4000)


@pytest.mark.slow
def test_several_experiments():
    """Each experiment has the covariance of its own noise."""
    data, problems = together.made()
    noise = []
    for (name, (x, y)), sd in zip(data.items(), together.NOISE_SD, strict=True):
        noise.append(sd**2 * along(x[:, 0], 0.1, 0.9))
        line, old = oc.CorrelatedNoise(x[:, 0], length=0.1, share=0.9, sd=sd), problems[name]
        problems[name] = oc.Problem(x, y, old.simulator.evaluate, old.parameters.given, old.domain, noise_cov=line)
    _, mean, cov = together.closed_form(data, problems, ("offset",), dict.fromkeys(data, 1.0), noise=noise)
    experiments = oc.Experiments(problems, ["offset"])
    posterior = oc.calibrate(experiments, together.GP, draws=1000, chains=4, seed=2, progress=False)
    assert np.all(np.abs(z_scores(posterior.theta[..., : len(mean)], mean, cov)) < 4.5)

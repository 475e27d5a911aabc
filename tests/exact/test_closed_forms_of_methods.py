"""KO, OGP, S-GaSP, PCAL and the method without bias against their closed forms, for simulators linear in theta.

With y - G theta ~ N(0, S) and theta ~ N(0, t2 I) the posterior is N(V G'S^-1 y, V), V = (G'S^-1 G + I / t2)^-1. Each
S is written from the method's definition, with none of the package's formulas.

False alarms: |z| > 4.5 has probability 7e-6 for each mean and sd compared; seeds are fixed.
"""

import numpy as np
import pytest
from closed_form import Law, matern
from scipy import stats
from test_projected_gp import Z_LIMIT, z_scores

import orthocal as oc
from orthocal.examples import MODEL1

SD, LENGTH = 1.0, 0.5


def gaussian_law(y, G, S, prior_var=100.0) -> Law:
    precision = G.T @ np.linalg.solve(S, G) + np.eye(G.shape[1]) / prior_var
    V = np.linalg.inv(precision)
    return Law(V @ G.T @ np.linalg.solve(S, y), V, np.zeros_like(V))


def kernel(a, b, nu):
    return matern(a, b, nu, SD, LENGTH)


def ko_covariance(problem, G, nu):
    x = problem.data.x
    return kernel(x, x, nu)


def ogp_covariance(problem, G, nu):
    """K - h'H^-1 h with h(x) = ∫ g(u) K(u, x) du and H = ∫∫ g(u) K(u, v) g(v)' du dv, by the nodes."""
    x, nodes, weights = problem.data.x, problem.rule.nodes, problem.rule.weights
    g = weights[:, None] * G(nodes)
    h = g.T @ kernel(nodes, x, nu)
    H = g.T @ kernel(nodes, nodes, nu) @ g
    return kernel(x, x, nu) - h.T @ np.linalg.solve(H, h)


def sgasp_covariance(problem, G, nu):
    x, n = problem.data.x, problem.data.n
    K = kernel(x, x, nu)
    return K - K @ np.linalg.solve(K + n / np.sqrt(n) * SD**2 * np.eye(n), K)


COVARIANCES = {"KO": ko_covariance, "OGP": ogp_covariance, "SGaSP": sgasp_covariance}


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("data_seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_model_1(name, nu, data_seed):
    x, y = MODEL1.simulate(np.random.default_rng(data_seed))
    problem = MODEL1.problem(x, y)
    method = getattr(oc.methods, name)(nu, SD, LENGTH)
    posterior = oc.calibrate(problem, method, draws=1000, seed=10 + data_seed)
    K = COVARIANCES[name](problem, lambda x: x, nu)
    S = K + 0.04 * np.eye(len(x))
    law = gaussian_law(y, x, S)
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)
    # the bias given theta has the mean K S^-1 (y - x theta), and so has theta's mean in it
    bias = posterior.data["bias"]["bias"].values.reshape(4000, -1)
    expected = K @ np.linalg.solve(S, y - x[:, 0] * law.mean[0])
    assert np.all(np.abs(bias.mean(axis=0) - expected) < 5 * bias.std(axis=0) / np.sqrt(3000))


def test_the_table_of_exact_posterior_sds():
    """The sds of METHOD's table for Model 1: KO .95 to 1.05, S-GaSP .43 to .54."""
    ranges = {"KO": (0.95, 1.05), "SGaSP": (0.43, 0.54)}
    for name, (low, high) in ranges.items():
        for seed in range(5):
            x, y = MODEL1.simulate(np.random.default_rng(seed))
            problem = MODEL1.problem(x, y)
            S = COVARIANCES[name](problem, lambda x: x, 1.5) + 0.04 * np.eye(len(x))
            assert low < np.sqrt(gaussian_law(y, x, S).cov[0, 0]) < high


@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("d", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_parameters_with_replicates(name, d):
    rng = np.random.default_rng(7)
    x = rng.random((40, d))
    x = np.vstack([x, x[:13]])

    def design(x):
        return np.column_stack([np.ones(len(x)), x[:, 0] ** 2])

    y = np.sin(3 * x.sum(axis=1)) + 0.3 * rng.standard_normal(len(x))
    parameters = {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}
    problem = oc.Problem(x, y, lambda x, t: design(x) @ t, parameters, domain=oc.Box(0, 1), noise_cov=0.09)
    posterior = oc.calibrate(problem, getattr(oc.methods, name)(1.5, SD, LENGTH), draws=1000, seed=3)
    S = COVARIANCES[name](problem, design, 1.5) + 0.09 * np.eye(len(x))
    assert np.all(np.abs(z_scores(posterior.theta, gaussian_law(y, design(x), S, 4.0))) < Z_LIMIT)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_pcal_on_model_1(nu):
    """theta = ∫ y_R x dx / ∫ x^2 dx is Gaussian as y_R is."""
    x, y = MODEL1.simulate(np.random.default_rng(0))
    problem = MODEL1.problem(x, y)
    posterior = oc.calibrate(problem, oc.methods.PCAL(nu, SD, LENGTH), draws=1000, seed=1)
    nodes, weights = problem.rule.nodes, problem.rule.weights
    functional = weights * nodes[:, 0] / np.sum(weights * nodes[:, 0] ** 2)
    K, cross = kernel(nodes, nodes, nu), kernel(nodes, x, nu)
    S = kernel(x, x, nu) + 0.04 * np.eye(len(x))
    mean = functional @ cross @ np.linalg.solve(S, y)
    var = functional @ (K - cross @ np.linalg.solve(S, cross.T)) @ functional
    law = Law(np.array([mean]), np.array([[var]]), np.zeros((1, 1)))
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)


def test_pcal_fits_every_draw(monkeypatch):
    """At every theta the gradient of the loss vanishes, also where the simulator is not linear."""
    from orthocal.examples import MODEL2
    from orthocal.methods.rivals.pcal import closest

    x, y = MODEL2.simulate(np.random.default_rng(0))
    problem = MODEL2.problem(x, y)
    nodes, weights = problem.rule.nodes, problem.rule.weights
    rng = np.random.default_rng(1)
    goals = problem.whiten(
        problem.simulator.batch(nodes, np.tile([0.2, 0.3], (50, 1))) + rng.normal(0, 0.3, (50, len(nodes), 1))
    )
    theta, loss, _ = closest(problem, goals)
    for one, goal, value in zip(theta, goals, loss, strict=True):
        left = (goal - problem.whiten(problem.simulator.required(nodes, one)))[:, 0]
        gradient = problem.whitened_gradient(nodes, one)[:, 0]
        slope = gradient.T @ (weights * left)
        size = np.sqrt(np.einsum("mp,m->p", gradient**2, weights) * np.sum(weights * left**2))
        assert np.max(np.abs(slope) / size) < 1e-5
        assert value == pytest.approx(np.sum(weights * left**2))


def test_without_bias():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    posterior = oc.calibrate(MODEL1.problem(x, y), "none", draws=1000, seed=1)
    assert np.all(np.abs(z_scores(posterior.theta, gaussian_law(y, x, 0.04 * np.eye(len(x))))) < Z_LIMIT)
    assert not posterior.data["bias"]["bias"].values.any()


OUTCOMES = np.array([[0.04, 0.03], [0.03, 0.09]])


def pair(x):
    """df/dtheta of two outcomes and two parameters, (n, 2, 2)."""
    return np.stack([np.column_stack([np.ones(len(x)), x[:, 0]]), np.column_stack([x[:, 0] ** 2, 0 * x[:, 0]])], axis=1)


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.parametrize("name", ["KO", pytest.param("OGP", marks=pytest.mark.slow), "SGaSP", "NoBias"])
def test_two_correlated_outcomes(name, holes):
    """In the outcomes' units: Cov(b) = U diag(k) U' with U = V^1/2 P^1/2, only observed cells."""
    rng = np.random.default_rng(2)
    x = rng.random((35, 1))
    y = np.column_stack([np.sin(4 * x), x**3]) + rng.multivariate_normal([0, 0], OUTCOMES, 35)
    if holes:
        y[rng.random(y.shape) < 0.2] = np.nan
    parameters = {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}
    problem = oc.Problem(x, y, lambda x, t: pair(x) @ t, parameters, domain=oc.Box(0, 1), noise_cov=OUTCOMES)
    s = np.sqrt(np.diag(OUTCOMES))
    values, vectors = np.linalg.eigh(OUTCOMES / np.outer(s, s))
    U = np.diag(s) @ (vectors * np.sqrt(values)) @ vectors.T
    between = U @ np.diag((SD / s) ** 2) @ U.T
    noise = np.kron(np.eye(35), OUTCOMES)
    K = np.kron(kernel(x, x, 1.5), between)
    if name == "OGP":
        nodes, W = problem.rule.nodes, np.linalg.inv(OUTCOMES)
        g = (problem.rule.weights[:, None, None] * np.einsum("kl,mlp->mkp", W, pair(nodes))).reshape(-1, 2)
        h = g.T @ np.kron(kernel(nodes, x, 1.5), between)
        K = K - h.T @ np.linalg.solve(g.T @ np.kron(kernel(nodes, nodes, 1.5), between) @ g, h)
    elif name == "SGaSP":
        # K_z of each whitened component
        R = kernel(x, x, 1.5) / SD**2
        scaled = R - R @ np.linalg.solve(R + np.sqrt(35) * np.eye(35), R)
        K = np.kron(scaled * SD**2, between)
    elif name == "NoBias":
        K = 0 * K
    seen = np.flatnonzero(~np.isnan(y.ravel()))
    S = (K + noise)[np.ix_(seen, seen)]
    law = gaussian_law(y.ravel()[seen], pair(x).reshape(-1, 2)[seen], S, 4.0)
    method = oc.methods.NoBias() if name == "NoBias" else getattr(oc.methods, name)(1.5, SD, LENGTH)
    posterior = oc.calibrate(problem, method, draws=1000, seed=4)
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)


def wave(x, t):
    return np.sin(2 * np.pi * (x + t))


def ogp_on_a_grid(x, y, nodes, weights, grid, noise_var, nu=1.5):
    """log density of t for f = sin 2 pi (x + t), and the probability that the loss is least there, on a grid.

    Given y and <b, g> = 0 the product <b, f''> is Gaussian; the loss is least where it is smaller than <g, g>.
    """
    log_density, least = [], []
    points = np.concatenate([x, nodes])[:, None]
    K = kernel(points, points, nu)
    n = len(x)
    for t in grid:
        g = 2 * np.pi * np.cos(2 * np.pi * (nodes + t))
        h = np.concatenate([np.zeros(n), weights * g])
        K_t = K - np.outer(K @ h, K @ h) / (h @ K @ h)
        S = K_t[:n, :n] + noise_var * np.eye(n)
        left = y - wave(x, t)
        log_density.append(-0.5 * (np.linalg.slogdet(S)[1] + left @ np.linalg.solve(S, left)))
        second = -((2 * np.pi) ** 2) * wave(nodes, t)
        v = np.concatenate([np.zeros(n), weights * second])
        cross = K_t[:n] @ v
        mean = cross @ np.linalg.solve(S, left)
        var = v @ K_t @ v - cross @ np.linalg.solve(S, cross)
        least.append(stats.norm.cdf((weights @ g**2 - mean) / np.sqrt(max(var, 1e-30))))
    return np.array(log_density), np.array(least)


@pytest.mark.slow
@pytest.mark.parametrize("size", [pytest.param(0.5, marks=pytest.mark.slow), 2.0])
def test_ogp_with_a_curved_simulator_against_a_grid(size):
    """Mean and sd over a support with one minimum; the whole circle has its maxima half a turn away."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(40))
    y = wave(x, 0.25) + size * np.sin(4 * np.pi * x) + 0.2 * rng.standard_normal(40)
    settings = {"domain": oc.Box(0, 1, nodes=40), "noise_cov": 0.04, "starts": 8}
    problem = oc.Problem(x, y, lambda x, t: wave(x, t[0]), {"t": stats.uniform(0.05, 0.4)}, **settings)
    posterior = oc.calibrate(problem, oc.methods.OGP(1.5, SD, LENGTH), draws=1500, seed=1, progress=False)
    grid = np.linspace(0.0501, 0.4499, 801)
    rule = problem.rule
    log_density, least = ogp_on_a_grid(x, y, rule.nodes[:, 0], rule.weights, grid, 0.04)
    density = np.exp(log_density - log_density.max()) * least
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    table = posterior.summary().iloc[0]
    assert abs(table["mean"] - mean) < Z_LIMIT * sd / np.sqrt(table["ess_bulk"])
    assert abs(table["sd"] / sd - 1) < Z_LIMIT / np.sqrt(2 * table["ess_tail"])


@pytest.mark.slow
@pytest.mark.parametrize("lower", [0.24, 0.27])
def test_ogp_at_a_bound_against_a_grid(lower):
    """The bound cuts the posterior in two, or leaves its tail alone; a draw still costs one gradient."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(40))
    y = wave(x, 0.25) + 0.5 * np.sin(4 * np.pi * x) + 0.2 * rng.standard_normal(40)
    settings = {"domain": oc.Box(0, 1, nodes=30), "noise_cov": 0.04, "starts": 4}
    problem = oc.Problem(x, y, lambda x, t: wave(x, t[0]), {"t": stats.uniform(lower, 0.2)}, **settings)
    _ = problem.sensitivity
    before = problem.simulator.calls
    posterior = oc.calibrate(problem, oc.methods.OGP(1.5, SD, LENGTH), draws=700, seed=1, progress=False)
    assert problem.simulator.calls - before < 5 * 4 * 900
    # the middles of cells: the density is highest at the bound
    grid = lower + 0.1 * (np.arange(500) + 0.5) / 500
    log_density, least = ogp_on_a_grid(x, y, problem.rule.nodes[:, 0], problem.rule.weights, grid, 0.04)
    density = np.exp(log_density - log_density.max()) * least
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    table = posterior.summary().iloc[0]
    assert table["ess_bulk"] > 700
    assert abs(table["mean"] - mean) < Z_LIMIT * sd / np.sqrt(table["ess_bulk"])
    assert abs(table["sd"] / sd - 1) < Z_LIMIT / np.sqrt(2 * table["ess_tail"])


@pytest.mark.slow
def test_ogp_leaves_out_where_the_loss_is_largest():
    """The maximum is half a turn from the minimum; where there is nothing else, that is said."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(40))
    y = wave(x, 0.25) + 3 * np.sin(4 * np.pi * x) + 0.2 * rng.standard_normal(40)
    circle = oc.Problem(
        x,
        y,
        lambda x, t: wave(x, t[0]),
        {"t": stats.uniform(-0.25, 1)},
        domain=oc.Box(0, 1, nodes=40),
        noise_cov=0.04,
    )
    kept = oc.calibrate(circle, "ogp", draws=300, seed=1, progress=False)
    assert (np.abs(kept.theta - 0.25) < 0.1).all()
    assert (kept.data["sample_stats"]["curvature"] > 0).all()
    # a support that has the maximum, and no minimum inside
    only = oc.Problem(
        x,
        y,
        lambda x, t: wave(x, t[0]),
        {"t": stats.uniform(0.6, 0.3)},
        domain=oc.Box(0, 1, nodes=40),
        noise_cov=0.04,
    )
    with pytest.raises(oc.OrthocalError, match="stationary but not least"):
        oc.calibrate(only, "ogp", draws=300, seed=1, progress=False)

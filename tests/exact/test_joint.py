"""The joint projection against the exact posterior of a linear simulator, written without the package.

y = G theta + b* + e with b* = b - G lambda(b), lambda(b) = Q^-1 ∫ g' W b: theta and w (b = L w) are jointly Gaussian,
with the prior N(m, V) of theta. Every z below is that of a mean over independent draws, so that |z| < 4.5 fails in 7 of
a million; an sd over s draws has the relative error 1 / sqrt(2 s).
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

import orthocal as oc

NODES, DRAWS = 40, 4000
SD, LENGTH = 0.6, 0.4
COV = np.array([[0.04, 0.012], [0.012, 0.09]])
PRIORS = {"flat": (0.0, 1e4), "informative": (1.2, 0.05)}


def matern32(a, b, sd, length):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None]) / length
    return sd**2 * (1 + r) * np.exp(-r)


def slopes(x, q):
    """df/dtheta, (n, q, 2): the outcomes share both parameters."""
    columns = [np.stack([x, 1 + x**2], axis=1), np.stack([np.cos(3 * x), x], axis=1)]
    return np.stack(columns[:q], axis=1)


def simulator(q):
    return lambda x, theta: slopes(x, q) @ theta


def data_set(q, seed, missing):
    rng = np.random.default_rng(seed)
    x = rng.random(30)
    bias = np.stack([0.5 * np.sin(7 * x), 0.4 * np.cos(5 * x)], axis=1)[:, :q]
    y = slopes(x, q) @ [1.0, 1.5] + bias + rng.standard_normal((30, q)) @ np.linalg.cholesky(COV[:q, :q]).T
    if missing:
        y[rng.random((30, q)) < 0.2] = np.nan
        y[5] = np.nan
    return x, y


def exact(x, y, weight, prior, sd=SD):
    """Mean and covariance of theta, and the mean of b* at the data."""
    q = y.shape[1]
    cov = COV[:q, :q]
    nodes, w = np.polynomial.legendre.leggauss(NODES)
    nodes, w = (nodes + 1) / 2, w / 2
    points = np.concatenate([x, nodes])
    # b = T^-1 c with independent Matern processes c for the whitened outcomes, the sd of each in the outcome's unit
    noise_sd = np.sqrt(np.diag(cov))
    values, vectors = np.linalg.eigh(cov / np.outer(noise_sd, noise_sd))
    back = np.linalg.inv((vectors / np.sqrt(values)) @ vectors.T / noise_sd)
    roots = [
        np.linalg.cholesky(matern32(points, points, sd / own, LENGTH) + 1e-9 * np.eye(len(points))) for own in noise_sd
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
    noise = np.kron(np.eye(len(x)), cov)[np.ix_(seen, seen)]
    precision = design.T @ np.linalg.solve(noise, design)
    precision += np.diag([1 / prior[1] ** 2] * 2 + [1.0] * (L.shape[2]))
    information = design.T @ np.linalg.solve(noise, y.ravel()[seen])
    information[:2] += prior[0] / prior[1] ** 2
    covariance = np.linalg.inv(precision)
    mean = covariance @ information
    return mean[:2], covariance[:2, :2], (star @ mean[2:])


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize(("q", "weight"), [(1, "identity"), (2, "identity"), (2, "noise-precision")])
@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2, 3, 4), marks=pytest.mark.slow)], ids=["one", "four more"])
def test_theta_and_the_bias_are_those_of_the_exact_model(q, weight, missing, prior, seeds):
    for seed in seeds:
        x, y = data_set(q, seed, missing)
        mean, spread = PRIORS[prior]
        problem = oc.Problem(
            x,
            y,
            simulator(q),
            {name: stats.norm(mean, spread) for name in ("a", "b")},
            domain=oc.Box(0, 1, nodes=NODES),
            noise_cov=COV[:q, :q],
            loss_weight=weight,
        )
        method = oc.methods.Joint(oc.bias.GP(1.5, SD, LENGTH))
        posterior = oc.calibrate(problem, method, draws=DRAWS // 4, seed=seed, progress=False)
        W = np.eye(q) if weight == "identity" else np.linalg.inv(COV[:q, :q])
        centre, covariance, bias = exact(x, y, W, PRIORS[prior])
        draws = posterior.theta.reshape(-1, 2)
        z = (draws.mean(axis=0) - centre) / np.sqrt(np.diag(covariance) / DRAWS)
        ratio = (draws.std(axis=0) / np.sqrt(np.diag(covariance)) - 1) * np.sqrt(2 * DRAWS)
        assert np.abs(z).max() < 4.5
        assert np.abs(ratio).max() < 4.5
        own = posterior.data["bias"]["bias"].values.reshape(DRAWS, -1)
        gap = (own.mean(axis=0) - bias.ravel()) / (own.std(axis=0) / np.sqrt(DRAWS))
        assert np.abs(gap).max() < 5
        assert posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-6
        # f(theta) + b* is the draw of the real process: one call of the simulator a draw
        assert posterior.record.run_facts.simulator_calls < 1.1 * DRAWS + 500


def test_the_projection_of_the_bias_alone_fails_this_where_the_prior_says_much():
    """A negative control: the prior of theta left out of the exact model is seen."""
    x, y = data_set(1, 0, False)
    problem = oc.Problem(
        x,
        y,
        simulator(1),
        {name: stats.norm(1.2, 0.05) for name in ("a", "b")},
        domain=oc.Box(0, 1, nodes=NODES),
        noise_cov=0.04,
    )
    posterior = oc.calibrate(problem, oc.methods.Joint(oc.bias.GP(1.5, SD, LENGTH)), seed=0, progress=False)
    centre, covariance, _ = exact(x, y, np.eye(1), PRIORS["flat"])
    z = (posterior.theta.mean(axis=(0, 1)) - centre) / np.sqrt(np.diag(covariance) / DRAWS)
    assert np.abs(z).max() > 10


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("q", "weight"), [(1, "identity"), (2, "identity"), (2, "noise-precision")])
@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2, 3, 4), marks=pytest.mark.slow)], ids=["one", "four more"])
def test_the_form_for_large_data_is_exact_along_one_input(q, weight, prior, seeds):
    for seed in seeds:
        x, y = data_set(q, seed, False)
        problem = oc.Problem(
            x,
            y,
            simulator(q),
            {name: stats.norm(*PRIORS[prior]) for name in ("a", "b")},
            domain=oc.Box(0, 1, nodes=NODES),
            noise_cov=COV[:q, :q],
            loss_weight=weight,
        )
        method = oc.methods.Joint(oc.bias.GP(1.5, SD, LENGTH, form="large"))
        posterior = oc.calibrate(problem, method, draws=DRAWS // 4, seed=seed, progress=False)
        W = np.eye(q) if weight == "identity" else np.linalg.inv(COV[:q, :q])
        centre, covariance, bias = exact(x, y, W, PRIORS[prior])
        draws = posterior.theta.reshape(-1, 2)
        z = (draws.mean(axis=0) - centre) / np.sqrt(np.diag(covariance) / DRAWS)
        ratio = (draws.std(axis=0) / np.sqrt(np.diag(covariance)) - 1) * np.sqrt(2 * DRAWS)
        assert np.abs(z).max() < 4.5
        assert np.abs(ratio).max() < 4.5
        own = posterior.data["bias"]["bias"].values.reshape(DRAWS, -1)
        gap = (own.mean(axis=0) - bias.ravel()) / (own.std(axis=0) / np.sqrt(DRAWS))
        assert np.abs(gap).max() < 5


class HiddenGP:
    """A Gaussian process that the method does not know as one: it takes the chain that it takes for every prior."""

    def __init__(self, *settings):
        self._gp = oc.bias.GP(*settings)

    def prepare(self, setting):
        return Hidden(self._gp.prepare(setting))

    def describe(self):
        return {"kind": "hidden"}


class Hidden:
    def __init__(self, own):
        self._own = own

    def __getattr__(self, name):
        return getattr(self._own, name)


def free_size(posterior):
    """Effective draws of the chain behind the mean of the bias.

    The chain knows nothing of theta's prior. Where that moves theta by m sds, it moves the bias by m times a slope that
    is known to within 1 / sqrt(draws).
    """
    own = posterior.data["projection"]
    if "unshifted" not in own:
        return float(posterior.summary()["ess_bulk"].min())
    moved = own["unshifted"].values
    sizes = [array_stats.ess(moved[:, :, j], method="bulk") for j in range(moved.shape[2])]
    flat, shift = moved.reshape(-1, moved.shape[2]), own["prior_shift"].values.mean(axis=(0, 1))
    return min(sizes) / (1 + shift @ np.linalg.solve(np.cov(flat.T), shift))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("q", [1, 2])
def test_the_chain_of_any_prior_has_the_same_law(q, missing, prior):
    """The prior of theta comes in after the chain; means have the chain's effective sizes. At new points, too."""
    x, y = data_set(q, 0, missing)
    problem = oc.Problem(
        x,
        y,
        simulator(q),
        {name: stats.norm(*PRIORS[prior]) for name in ("a", "b")},
        domain=oc.Box(0, 1, nodes=NODES),
        noise_cov=COV[:q, :q],
        loss_weight="identity",
    )
    method = oc.methods.Joint(HiddenGP(1.5, SD, LENGTH))
    posterior = oc.calibrate(problem, method, draws=DRAWS // 4, warmup=100, seed=1, progress=False)
    centre, covariance, bias = exact(x, y, np.eye(q), PRIORS[prior])
    table = posterior.summary()
    size = table["ess_bulk"].to_numpy()
    z = (table["mean"] - centre) / np.sqrt(np.diag(covariance) / size)
    ratio = (table["sd"] / np.sqrt(np.diag(covariance)) - 1) * np.sqrt(2 * table["ess_tail"].to_numpy())
    assert size.min() > 0.1 * DRAWS
    assert np.abs(z).max() < 4.5
    assert np.abs(ratio).max() < 4.5
    own = posterior.data["bias"]["bias"].values.reshape(DRAWS, -1)
    assert np.abs((own.mean(axis=0) - bias.ravel()) / (own.std(axis=0) / np.sqrt(free_size(posterior)))).max() < 5
    predicted = posterior.predict(x)["bias"].values.reshape(DRAWS, -1)
    assert np.abs(predicted - own).max() < 1e-6 * np.abs(own).max()


@pytest.mark.slow
def test_sampled_hyperparameters_are_averaged_over():
    """The sd of the process sampled, its length given: against a grid over the sd of the closed form and the evidence.

    One z of a mean and one of an sd, from the effective sample sizes: |z| < 4.5 fails in 7 of a million.
    """
    x, y = data_set(1, 0, False)
    problem = oc.Problem(
        x,
        y,
        simulator(1),
        {name: stats.norm(*PRIORS["flat"]) for name in ("a", "b")},
        domain=oc.Box(0, 1, nodes=NODES),
        noise_cov=0.04,
    )
    prior = oc.bias.GP(1.5, lengthscale=LENGTH)
    posterior = oc.calibrate(problem, oc.methods.Joint(prior), draws=1500, seed=1, progress=False)
    G = slopes(x, 1)[:, 0]
    # half-Cauchy in units of the noise
    grid = 0.2 * np.exp(np.linspace(-6, 8, 140))
    weights, means, variances = [], [], []
    for sd in grid:
        S = matern32(x, x, sd, LENGTH) + 0.04 * np.eye(len(x))
        B = G.T @ np.linalg.solve(S, G)
        fitted = np.linalg.solve(B, G.T @ np.linalg.solve(S, y[:, 0]))
        left = y[:, 0] - G @ fitted
        log_evidence = -0.5 * (np.linalg.slogdet(S)[1] + np.linalg.slogdet(B)[1] + left @ np.linalg.solve(S, left))
        weights.append(log_evidence + np.log(sd) - np.log1p((sd / 0.2) ** 2))
        mean, covariance, _ = exact(x, y, np.eye(1), PRIORS["flat"], sd)
        means.append(mean)
        variances.append(np.diag(covariance))
    weights = np.exp(np.array(weights) - max(weights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    sd = np.sqrt(weights @ (np.array(variances) + (np.array(means) - mean) ** 2))
    table = posterior.summary()
    assert np.abs((table["mean"] - mean) / (sd / np.sqrt(table["ess_bulk"]))).max() < 4.5
    assert np.abs((table["sd"] / sd - 1) * np.sqrt(2 * table["ess_tail"])).max() < 4.5
    drawn = np.log(posterior.data["sample_stats"]["sd_0"].values)
    expected = weights @ np.log(grid)
    spread = np.sqrt(weights @ (np.log(grid) - expected) ** 2)
    assert drawn.mean() == pytest.approx(expected, abs=0.25 * spread)
    # at new points: the value at a data point is the drawn one
    predicted = posterior.predict(x[:3], draws=20)["bias"].values
    kept = np.linspace(0, 1499, 20).round().astype(int)
    assert np.allclose(predicted, posterior.data["bias"]["bias"].values[:, kept, :3], atol=1e-6)

"""Several experiments with linear simulators: the posterior of all parameters in closed form, without the package."""

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag

import orthocal as oc

SD, LENGTH, NOISE_SD = 0.7, 0.5, (0.2, 0.1, 0.3)
#: name -> number of data, of inputs, and the parameters that it has
CASES = {"A": (10, 1, ("a", "offset")), "B": (60, 2, ("a", "c", "offset")), "C": (90, 1, ("a", "offset"))}
PRIORS = {"a": (1.0, 0.3), "c": (0.0, 5.0), "offset": (0.0, 2.0)}


def gradient(x, names):
    columns = {"a": x[:, 0], "c": np.sin(3 * x[:, -1]), "offset": np.ones(len(x))}
    return np.stack([columns[name] for name in names], axis=1)


def matern(a, b):
    away = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2)) * np.sqrt(3) / LENGTH
    return SD**2 * (1 + away) * np.exp(-away)


def made(sizes=(10, 60, 90), seed=3, noise=None):
    """Data of each experiment, and its problem."""
    rng, data, problems = np.random.default_rng(seed), {}, {}
    for (name, (_, d, names)), n, sd in zip(CASES.items(), sizes, NOISE_SD, strict=True):
        x = rng.uniform(0, 1, (n, d))
        values = {"a": 1.4, "c": -0.5, "offset": {"A": 0.3, "B": 1.0, "C": -0.4}[name]}
        y = gradient(x, names) @ [values[one] for one in names] + 0.4 * np.sin(5 * x[:, 0]) + sd * rng.normal(size=n)
        data[name] = x, y

        def f(x, theta, names=names):
            return gradient(x, names) @ theta

        priors = {one: stats.norm(*PRIORS[one]) for one in names}
        problems[name] = oc.Problem(x, y, f, priors, oc.Box([0] * d, [1] * d, nodes=12), noise_cov=noise or sd**2)
    return data, problems


def closed_form(data, problems, private, weights, flat=(), noise=None):
    """Mean and covariance of theta: y_e = G_e (theta - sum_k lambda_k(b_k)) + b_e + e, theta ~ its normal prior."""
    order = list(dict.fromkeys(n if n not in private else f"{n}[{e}]" for e in problems for n in CASES[e][2]))
    total, G, nodes_G, K, R, w = len(order), [], [], [], [], []
    for e, (x, y) in data.items():
        rule = problems[e].rule
        names = CASES[e][2]
        place = [order.index(n if n not in private else f"{n}[{e}]") for n in names]
        for found, points in ((G, x), (nodes_G, rule.nodes)):
            whole = np.zeros((len(points), total))
            whole[:, place] = gradient(points, names)
            found.append(whole)
        every = np.vstack([x, rule.nodes])
        K.append(matern(every, every))
        R.append(np.full(len(y), NOISE_SD[list(data).index(e)] ** 2))
        # in units of the noise
        w.append(weights[e] * rule.weights / R[-1][0])
    Q = sum(g.T @ (v[:, None] * g) for g, v in zip(nodes_G, w, strict=True))
    rows = []
    for k, g in enumerate(G):
        parts = []
        for j, (other, v, points) in enumerate(zip(nodes_G, w, G, strict=True)):
            taken = np.linalg.solve(Q, (v[:, None] * other).T)
            at_data = np.eye(len(g)) if j == k else np.zeros((len(g), len(points)))
            parts.append(np.hstack([at_data, -g @ taken]))
        rows.append(np.hstack(parts))
    spread = np.vstack(rows)
    S = spread @ block_diag(*K) @ spread.T + (np.diag(np.concatenate(R)) if noise is None else block_diag(*noise))
    G, y = np.vstack(G), np.concatenate([y for _, y in data.values()])
    mean = np.array([PRIORS[n.split("[")[0]][0] for n in order])
    precision = np.diag([0.0 if n in flat else PRIORS[n.split("[")[0]][1] ** -2.0 for n in order])
    information = np.linalg.solve(S, G)
    cov = np.linalg.inv(G.T @ information + precision)
    return order, cov @ (information.T @ y + precision @ mean), cov


def close(posterior, mean, cov, draws):
    """Within 4.5 standard errors each: a false alarm in about 1 of 10 000 runs."""
    theta = posterior.theta.reshape(-1, posterior.theta.shape[2])[:, : len(mean)]
    sd = np.sqrt(np.diag(cov))
    assert np.abs((theta.mean(axis=0) - mean) / sd).max() < 4.5 / np.sqrt(draws)
    assert np.abs(theta.std(axis=0) / sd - 1).max() < 4.5 / np.sqrt(2 * draws)
    scaled = np.corrcoef(theta.T) - cov / np.outer(sd, sd)
    assert np.abs(scaled).max() < 4.5 / np.sqrt(draws)


GP = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=SD, lengthscale=LENGTH))


UNEVEN = {"A": 1.0, "B": 5.0, "C": 0.2}
slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("private", "weights"),
    [
        ((), None),
        (("offset",), "data"),
        pytest.param(("offset",), None, marks=slow),
        pytest.param((), "data", marks=slow),
        pytest.param((), UNEVEN, marks=slow),
        pytest.param(("offset",), UNEVEN, marks=slow),
    ],
)
def test_shared_and_private_parameters(private, weights):
    data, problems = made()
    experiments = oc.Experiments(problems, list(private), weights)
    given = {"A": 1.0, "B": 1.0, "C": 1.0} if weights is None else weights
    if weights == "data":
        given = {name: len(y) for name, (_, y) in data.items()}
    order, mean, cov = closed_form(data, problems, private, given)
    posterior = oc.calibrate(experiments, GP, draws=1000, seed=1, progress=False)
    assert list(posterior.parameter_names) == order
    close(posterior, mean, cov, 4000)


@pytest.mark.slow
def test_weights_change_theta():
    """The negative control: with other weights another theta is meant."""
    data, problems = made()
    posterior = oc.calibrate(oc.Experiments(problems, ["offset"]), GP, draws=1000, seed=1, progress=False)
    _, mean, cov = closed_form(data, problems, ("offset",), UNEVEN)
    with pytest.raises(AssertionError):
        close(posterior, mean, cov, 4000)


@pytest.mark.slow
def test_ten_a_hundred_and_a_thousand_data():
    data, problems = made((10, 100, 1000))
    for weights in (None, "data"):
        experiments = oc.Experiments(problems, ["offset"], weights)
        given = {name: 1 if weights is None else len(y) for name, (_, y) in data.items()}
        _, mean, cov = closed_form(data, problems, ("offset",), given)
        close(oc.calibrate(experiments, GP, draws=1000, seed=2, progress=False), mean, cov, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_the_chain_of_any_prior_has_the_same_law(monkeypatch, exact):
    """With beta given the biases, as trees have it, and with the biases integrated out, as Gaussian processes can."""
    from orthocal.experiments import regression

    data, problems = made()
    monkeypatch.setattr(regression.JointGP, "possible", staticmethod(lambda processes: False))
    monkeypatch.setattr(regression.Gibbs, "exact", exact)
    _, mean, cov = closed_form(data, problems, ("offset",), {"A": 1.0, "B": 1.0, "C": 1.0})
    posterior = oc.calibrate(oc.Experiments(problems, ["offset"]), GP, draws=5000, seed=1, progress=False)
    # draws of the chain are worth fewer where beta and the biases take turns
    least = float(posterior.summary()[["ess_bulk", "ess_tail"]].min().min())
    assert least > (16_000 if exact else 800)
    close(posterior, mean, cov, least)


def test_beta_with_the_bias_integrated_out():
    """Against a dense inverse, for noise of three sizes."""
    from orthocal.methods.joint.gibbs import BiasIntegrated

    rng = np.random.default_rng(2)
    L, G, weight = rng.standard_normal((9, 14)), rng.standard_normal((9, 3)), rng.uniform(0.5, 2, 9)
    z, scale = rng.standard_normal((3, 9)), np.array([0.1, 1.0, 30.0])
    B, pull = BiasIntegrated.of(L, G, weight).information(z, scale)
    for k in range(3):
        inverse = np.linalg.inv(L @ L.T + np.diag(1 / (scale[k] * weight)))
        np.testing.assert_allclose(B[k], G.T @ inverse @ G, rtol=1e-9)
        np.testing.assert_allclose(pull[k], G.T @ inverse @ z[k], rtol=1e-9)


def test_sampled_noise_mixes():
    """2000 draws were worth 21 while beta and the biases took turns."""
    _, problems = made(noise="sample")
    posterior = oc.calibrate(oc.Experiments(problems, ["offset"]), GP, draws=250, seed=1, progress=False)
    assert posterior.summary()["ess_bulk"].min() > 500


def pooled_closed_form(data, problems, names):
    """Moments of theta, mu and tau by quadrature over (mu, tau); mu ~ N(0, 2²), tau ~ half-normal of scale 2."""
    flat = tuple(names)
    order, mean, cov = closed_form(data, problems, ("offset",), {"A": 1.0, "B": 1.0, "C": 1.0}, flat)
    columns = [order.index(name) for name in names]
    mus, taus = np.linspace(-8, 8, 401), np.linspace(1e-3, 10, 800)
    density, first, second = np.empty((401, 800)), [], []
    own, values = cov[np.ix_(columns, columns)], mean[columns]
    for j, tau in enumerate(taus):
        S = own + tau**2 * np.eye(len(columns))
        inverse, (_, logdet) = np.linalg.inv(S), np.linalg.slogdet(S)
        away = values[None] - mus[:, None]
        density[:, j] = -0.5 * np.einsum("mi,ij,mj->m", away, inverse, away) - 0.5 * logdet
        gain = cov[:, columns] @ inverse
        first.append(mean[:, None] - gain @ away.T)
        second.append(np.diag(cov - gain @ cov[columns]))
    density += stats.norm(0, 2).logpdf(mus)[:, None] + stats.halfnorm(scale=2).logpdf(taus)[None]
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    moments = np.einsum("mt,tpm->p", weight, np.array(first))
    var = np.einsum("mt,tp->p", weight, np.array(second)) + np.einsum("mt,tpm->p", weight, np.array(first) ** 2)
    at = {"mu": (weight.sum(axis=1), mus), "tau": (weight.sum(axis=0), taus)}
    hyper = {k: (w @ v, np.sqrt(w @ v**2 - (w @ v) ** 2)) for k, (w, v) in at.items()}
    return order, moments, np.sqrt(var - moments**2), hyper


@pytest.mark.slow
def test_partial_pooling():
    data, problems = made()
    experiments = oc.Experiments(problems, {"offset": oc.Pooled()})
    names = [f"offset[{name}]" for name in problems]
    order, mean, sd, hyper = pooled_closed_form(data, problems, names)
    posterior = oc.calibrate(experiments, GP, draws=1000, seed=1, progress=False)
    assert posterior.parameter_names == (*order, "mu[offset]", "tau[offset]")
    mean, sd = np.append(mean, [hyper["mu"][0], hyper["tau"][0]]), np.append(sd, [hyper["mu"][1], hyper["tau"][1]])
    theta = posterior.theta.reshape(4000, -1)
    assert np.abs((theta.mean(axis=0) - mean) / sd).max() < 4.5 / np.sqrt(4000)
    # tau has a long tail
    assert np.abs(theta.std(axis=0) / sd - 1)[:-1].max() < 4.5 / np.sqrt(2 * 4000) * 1.5
    assert abs(theta[:, -1].std() / sd[-1] - 1) < 0.12

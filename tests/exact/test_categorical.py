"""Categorical inputs: the joint projection of a linear simulator against its closed form, written without the package.

y = G theta + b* + e, b* = b - G lambda(b), with b ~ GP of covariance sd^2 k(x, x') (1 where machines are the same, else
rho) times the like for operators, and lambda by a rule that is a tensor of Gauss–Legendre nodes and labels. Every z is
that of a mean over independent draws: |z| < 4.5 fails in 7 of a million.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.bias.gp import GP
from orthocal.methods.bias_samplers import fitted_bias

SD, LENGTH, NOISE = 0.5, 0.3, 0.02
RHO = {"machine": 0.6, "operator": 0.3}
WEIGHTS = {"machine": {"A": 1.0, "B": 2.0, "C": 1.0}}
MACHINES, OPERATORS = ("A", "B", "C"), ("Jo", "Al")
NODES = 12


def simulate(seed=3, n=40):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame(
        {
            "machine": rng.choice(MACHINES, n),
            "x": rng.random(n),
            "operator": rng.choice(OPERATORS, n),
        }
    )
    level = x["machine"].map({"A": 0.3, "B": -0.2, "C": 0.0}) + x["operator"].map({"Al": 0.1, "Jo": 0.0})
    return x, 2 * x["x"] + 0.5 + level + 0.3 * np.sin(7 * x["x"]) + np.sqrt(NOISE) * rng.standard_normal(n)


def gradient(x, machine):
    """df/dtheta: a slope that machine B has twice, and a level."""
    return np.column_stack([x * np.where(machine == "B", 2.0, 1.0), np.ones(len(x))])


def covariance(a, b):
    r = np.sqrt(3) * np.abs(a["x"].to_numpy()[:, None] - b["x"].to_numpy()) / LENGTH
    k = SD**2 * (1 + r) * np.exp(-r)
    for name, rho in RHO.items():
        k = k * np.where(a[name].to_numpy()[:, None] == b[name].to_numpy(), 1.0, rho)
    return k


def exact(x, y, weights):
    """Mean and covariance of theta under a flat prior."""
    points, share = np.polynomial.legendre.leggauss(NODES)
    rows = [
        (machine, point, operator, own * weights[machine] / sum(weights.values()) / len(OPERATORS))
        for machine in MACHINES
        for operator in OPERATORS
        for point, own in zip((points + 1) / 2, share / 2, strict=True)
    ]
    nodes = pd.DataFrame(rows, columns=["machine", "x", "operator", "weight"])
    both = pd.concat([x, nodes[list(x.columns)]], ignore_index=True)
    n, w = len(x), nodes["weight"].to_numpy()
    G, at_nodes = (gradient(part["x"].to_numpy(), part["machine"].to_numpy()) for part in (x, nodes))
    project = np.linalg.solve(at_nodes.T @ (w[:, None] * at_nodes), (w[:, None] * at_nodes).T)
    P = np.hstack([np.eye(n), -G @ project])
    S = P @ covariance(both, both) @ P.T + NOISE * np.eye(n)
    cov = np.linalg.inv(G.T @ np.linalg.solve(S, G))
    return cov @ G.T @ np.linalg.solve(S, y), cov


def problem(x, y, weights=None, **options):
    machine = list(x.columns).index("machine")
    numbers = {}

    def simulator(x_all, theta):
        own = x_all[:, machine] == numbers["machine"]["B"]
        return theta[0] * x_all[:, list(x.columns).index("x")] * np.where(own, 2.0, 1.0) + theta[1]

    made = oc.Problem(
        x,
        y,
        simulator,
        {"slope": stats.norm(0, 1e3), "level": stats.norm(0, 1e3)},
        domain=oc.Labels(oc.Box(0, 1, nodes=NODES), {} if weights is None else weights),
        noise_cov=NOISE,
        **options,
    )
    numbers |= made.categories
    return made


def bias(columns=("machine", "x", "operator")):
    return oc.bias.GP(1.5, SD, LENGTH, label_correlation=[RHO[name] for name in columns if name in RHO])


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_a_linear_simulator_follows_its_closed_form(weights):
    x, y = simulate()
    made = problem(x, y, weights)
    posterior = oc.calibrate(made, oc.methods.Joint(bias=bias()), draws=2000, chains=2, seed=1, progress=False)
    mean, cov = exact(x, y.to_numpy(), dict.fromkeys(MACHINES, 1.0) if weights is None else weights["machine"])
    draws = posterior.record.theta.reshape(-1, 2)
    sd = np.sqrt(np.diag(cov))
    assert np.abs((draws.mean(axis=0) - mean) / (sd / np.sqrt(len(draws)))).max() < 4.5
    assert np.abs(draws.std(axis=0) / sd - 1).max() < 4.5 / np.sqrt(2 * len(draws))


def moments(made, columns=("machine", "x", "operator")):
    """Law of b at the data given the residual at theta_tilde: means, and covariance."""
    made_bias = fitted_bias(bias(columns), made, made.rule.nodes)
    (process,) = made_bias.processes
    residual = made.whiten(made.complete_y - made.fit)[:, 0]
    gain, _ = process._posterior
    return (gain @ residual)[process._rows[: made.data.n]], made_bias.covariance_factor()


@pytest.mark.parametrize("change", ["order", "names", "columns"])
def test_neither_the_order_nor_the_names_of_labels_matter(change):
    x, y = simulate()
    mean, factor = moments(problem(x, y))
    columns, options = tuple(x.columns), {}
    if change == "order":
        options["categorical"] = {"machine": ["C", "A", "B"], "operator": ["Jo", "Al"]}
    elif change == "names":
        x = x.assign(operator=x["operator"].map({"Jo": "zz", "Al": "a"}))
    else:
        columns = ("x", "operator", "machine")
        x = x[list(columns)]
    other, other_factor = moments(problem(x, y, **options), columns)
    np.testing.assert_allclose(other, mean, atol=1e-9)
    np.testing.assert_allclose(other_factor @ other_factor.T, factor @ factor.T, atol=1e-9)


def test_labels_that_share_nothing_are_fitted_one_by_one():
    """rho = 0: b of machine A given all data is b of machine A given its own; rho = 1: as if there were no labels."""
    x, y = simulate()
    x = x[["machine", "x"]]

    def mean_of(rows, rho, frame):
        part = oc.Problem(
            frame[rows], y[rows], lambda x, t: t[0] + 0 * x[:, -1], {"a": stats.norm(0, 1)}, noise_cov=NOISE
        )
        (process,) = fitted_bias(GP(1.5, SD, LENGTH, label_correlation=rho), part, part.rule.nodes[:0]).processes
        gain = process._posterior[0][process._rows[: part.data.n]]
        return gain @ part.whiten(part.data.y - 0.5)[:, 0]

    own = (x["machine"] == "A").to_numpy()
    np.testing.assert_allclose(mean_of(slice(None), 0.0, x)[own], mean_of(own, 0.0, x), atol=1e-8)
    plain = mean_of(slice(None), None, x[["x"]])
    np.testing.assert_allclose(mean_of(slice(None), 1.0, x), plain, atol=1e-6)

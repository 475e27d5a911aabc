"""Which functions stand for a Gaussian process with many data, and theta by them against closed forms."""

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

import orthocal as oc
from orthocal.errors import InputError
from orthocal.methods.joint import regress_basis as gp_functions, regress_basis as regress_functions
from orthocal.regression import inducing
from orthocal.regression.inducing import Inducing, neighbourhoods

NOISE_SD, SD, LENGTH, PRIOR = 0.2, 0.5, 0.25, (1.0, 0.3)


def slopes(x):
    return np.stack([np.sin(x.sum(axis=1)), 1 + x[:, 0] ** 2], axis=1)


def simulator(x, theta):
    return slopes(x) @ theta


def problem(n, d=3):
    rng = np.random.default_rng(0)
    x, nodes = rng.random((n, d)), rng.random((40, d))
    y = slopes(x) @ [1.0, 1.5] + 0.4 * np.sin(9 * x[:, 0]) + NOISE_SD * rng.standard_normal(n)
    priors = {name: stats.norm(*PRIOR) for name in ("a", "b")}
    return oc.Problem(x, y, simulator, priors, oc.Points(nodes, np.full(40, 1 / 40)), noise_cov=NOISE_SD**2)


def fit(given, draws=10, **prior):
    method = oc.methods.Joint(oc.bias.GP(1.5, SD, form="large", **prior))
    return oc.calibrate(given, method, draws=draws, seed=1, progress=False)


def covariance(a, b):
    r = np.sqrt(3) * cdist(a, b) / LENGTH
    return SD**2 * (1 + r) * np.exp(-r)


def closed_form(given, points, size):
    """Mean and covariance of theta: the process, but for what neighbourhoods leave out between each other."""
    x, nodes, n = given.data.x, given.rule.nodes, given.data.n
    process = Inducing.at(points, SD, np.full(3, LENGTH), 1.5)
    phi, at_nodes = process.functions(x), process.functions(nodes)
    block, node_block = np.empty(n), np.empty(len(nodes))
    for number, (rows, near) in enumerate(neighbourhoods(x / LENGTH, nodes / LENGTH, size)):
        block[rows], node_block[near] = number, number
    said, across = phi @ phi.T, at_nodes @ phi.T
    S = said + np.where(block[:, None] == block, covariance(x, x) - said, 0) + NOISE_SD**2 * np.eye(n)
    across += np.where(node_block[:, None] == block, covariance(nodes, x) - across, 0)
    G, Gm = slopes(x), slopes(nodes)
    C = np.linalg.solve(Gm.T @ Gm, Gm.T)
    # theta = beta + C b: (y, theta) with beta flat, then theta's prior as an observation
    B = G.T @ np.linalg.solve(S, G)
    beta = np.linalg.solve(B, G.T @ np.linalg.solve(S, given.data.y[:, 0]))
    L = C @ across
    turn = np.eye(2) - L @ np.linalg.solve(S, G)
    mean = beta + L @ np.linalg.solve(S, given.data.y[:, 0] - G @ beta)
    cov = turn @ np.linalg.solve(B, turn.T) + C @ covariance(nodes, nodes) @ C.T - L @ np.linalg.solve(S, L.T)
    precision = np.linalg.inv(cov) + np.eye(2) / PRIOR[1] ** 2
    information = np.linalg.solve(cov, mean) + PRIOR[0] / PRIOR[1] ** 2
    return np.linalg.solve(precision, information), np.sqrt(np.diag(np.linalg.inv(precision)))


def designs(monkeypatch):
    """The design that draws are made from, when they are."""
    seen = []
    drawn = regress_functions._drawn

    def noted(problem, plan, linear, design):
        seen.append(design)
        return drawn(problem, plan, linear, design)

    monkeypatch.setattr(regress_functions, "_drawn", noted)
    return seen


def test_theta_is_that_of_the_partially_independent_process(monkeypatch):
    monkeypatch.setattr(inducing, "NEIGHBOURHOOD", 30)
    monkeypatch.setattr(gp_functions, "INDUCING", 60)
    monkeypatch.setattr(regress_functions, "MOST_DOUBLINGS", 0)
    seen, given = designs(monkeypatch), problem(150)
    posterior = fit(given, draws=250, lengthscale=LENGTH)
    (design,) = seen
    mean, sd = closed_form(given, design.parts[0].sampler.process.points, 30)
    found, wide = design.theta
    np.testing.assert_allclose(found + given.theta_tilde, mean, atol=1e-4 * sd.min())
    np.testing.assert_allclose(wide, sd, rtol=1e-4)
    # |z| < 4.5 fails in 7 of a million
    draws = posterior.theta.reshape(-1, 2)
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * sd / np.sqrt(len(draws))).all()
    assert (np.abs(draws.std(axis=0) / sd - 1) < 4.5 / np.sqrt(2 * len(draws))).all()


def test_a_grid_is_taken_where_it_can_be_fine_enough(monkeypatch):
    monkeypatch.setattr(regress_functions, "MOST_DOUBLINGS", 0)
    monkeypatch.setattr(gp_functions, "INDUCING", 60)
    few, more = problem(100, 2), problem(100, 3)
    assert fit(few, lengthscale=0.3).record.run_facts.bias[0]["form"] == "values on a grid"
    assert fit(few, lengthscale=0.05).record.run_facts.bias[0]["form"] == "values at inducing points"
    monkeypatch.setattr(gp_functions, "FEW_FOR_INDUCING", 50)
    assert fit(more, lengthscale=1.0).record.run_facts.bias[0]["form"] == "values on a grid"


def test_hyperparameters_are_found_by_all_data_where_a_grid_has_their_likelihood(monkeypatch):
    monkeypatch.setattr(regress_functions, "MOST_DOUBLINGS", 0)
    monkeypatch.setattr(gp_functions, "INDUCING", 60)
    given, seen = problem(100, 3), []

    def noted(prior, scales, deviance, shortest):
        seen.append(scales)
        return scales._replace(sd=0.77)

    monkeypatch.setattr(gp_functions, "refined", noted)
    found = oc.calibrate(given, oc.methods.Joint(oc.bias.GP(1.5, form="large")), draws=25, seed=1, progress=False)
    assert len(seen) == 1
    assert found.record.run_facts.bias[0]["form"] == "values at inducing points"
    sampler_sd = found.record.run_facts.bias[0]["sd"]
    assert sampler_sd == pytest.approx(0.77 * NOISE_SD, rel=1e-6)


def test_a_length_scale_too_short_for_any_form_is_a_sentence():
    with pytest.raises(InputError, match=r"length-scales of 0\.02.*inducing points or more, at most 3000.*take bart"):
        fit(problem(300), lengthscale=0.02)


@pytest.mark.parametrize(("n", "most"), [(3000, 3000), (100_000, 2000), (10_000_000, 1000)])
def test_inducing_points_are_fewer_where_the_data_are_many(n, most):
    assert gp_functions.most_inducing(n) == most

"""Noise, size and length-scales of several experiments: which sets are chosen, and what every draw has of its own."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.experiments import hyperparameter_sets
from orthocal.experiments.experiment_model import Told
from orthocal.experiments.hyperparameter_sets import ThetaPrior, ToldByAll

NOISE_SD = 0.1
PRIORS = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}


def f(x, theta):
    return theta[0] * x + theta[1]


def problem(n, offset, seed, noise=NOISE_SD**2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    y = 2 * x + offset + 0.2 * np.sin(5 * x) + NOISE_SD * rng.standard_normal(n)
    return oc.Problem(x, y, f, PRIORS, oc.Box(0, 1, nodes=15), noise_cov=noise, starts=2)


@pytest.fixture(scope="module")
def two():
    return oc.Experiments({"few": problem(10, 0.5, 1), "more": problem(40, -1.0, 2, "unknown")}, private=["offset"])


def calibrated(experiments, method="gp", **given):
    return oc.calibrate(experiments, method, **{"draws": 100, "chains": 2, "seed": 3, "progress": False, **given})


def test_points_are_chosen_as_often_as_the_evidence_of_all_says(monkeypatch):
    """Two experiments with four points each, and a prior of two parameters that feels the biases: enumerated.

    Shares within 5 standard errors of independent chains.
    """
    count = 4000
    monkeypatch.setattr(hyperparameter_sets, "SWEEPS", 60)
    rng, p = np.random.default_rng(2), 4
    # one feels the parameters 0 and 1, the other 0, 2 and 3; what is known before, feels all
    columns, told = [np.array([0, 1]), np.array([0, 2, 3])], []
    for own in columns:
        roots = rng.standard_normal((4, len(own), len(own) + 2)) * np.array([0.5, 1, 2, 3])[:, None, None]
        Z = np.stack([np.diag(one) for one in rng.uniform(0.1, 1, (4, 2))])
        T, m = 0.3 * rng.standard_normal((4, 2, len(own))), rng.standard_normal((4, 2))
        told.append(Told(roots @ roots.swapaxes(1, 2), 2 * rng.standard_normal((4, len(own))), T, Z, m))
    prior = ThetaPrior(np.array([0, 2]), np.array([0.5, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]))
    start, alone = ToldByAll.zeros(count, p, 2), [rng.normal(size=4) for _ in columns]
    start.H += np.eye(p) + 0.3
    start.h += rng.standard_normal(p)
    chosen, shares, log_density = hyperparameter_sets._chosen(columns, told, alone, start, prior), np.zeros((4, 4)), {}
    np.add.at(shares, tuple(chosen.T), 1 / count)
    for a in range(4):
        for b in range(4):
            H, h, A, Z, m = start.H[0].copy(), start.h[0].copy(), np.eye(p)[[0, 2]], 0.0, 0.0
            for own, one, k in zip(columns, told, (a, b), strict=True):
                H[np.ix_(own, own)] += one.H[k]
                h[own] += one.h[k]
                A[:, own] -= one.T[k]
                Z, m = Z + one.Z[k], m + one.m[k]
            # (beta, u) as one Gaussian: the prior of u, and u given beta
            inner = np.linalg.inv(Z)
            whole = np.block([[H + A.T @ inner @ A, -A.T @ inner], [-inner @ A, inner + prior.precision]])
            pull = np.concatenate([h - A.T @ inner @ m, inner @ m + prior.pull])
            value = pull @ np.linalg.solve(whole, pull) - m @ inner @ m - np.linalg.slogdet(Z)[1]
            log_density[a, b] = 0.5 * (value - np.linalg.slogdet(whole)[1]) - alone[0][a] - alone[1][b]
    expected = np.exp(np.reshape(list(log_density.values()), (4, 4)) - max(log_density.values()))
    expected /= expected.sum()
    error = np.sqrt(expected * (1 - expected) / count) + 1e-3
    assert (np.abs(shares - expected) < 5 * error).all()
    assert np.sort(expected.ravel())[-2] > 0.05


def test_an_experiment_that_shares_nothing_is_its_problem():
    """Two outcomes of unknown, correlated noise and a missing cell beside another experiment: moments within 5 errors.

    Both runs have sets of hyperparameters of their own, 480 here; the error is that of so many draws.
    """
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, 25)
    noise = rng.multivariate_normal([0, 0], [[0.02, 0.01], [0.01, 0.03]], 25)
    y = np.stack([2 * x + 0.3 * np.sin(5 * x), 1 - x], axis=1) + noise
    y[3, 1] = np.nan

    def g(x, theta):
        return np.stack([theta[0] * x, theta[1] - x], axis=1)

    priors = {"slope": stats.norm(1.5, 0.4), "level": stats.norm(0, 5)}
    alone = oc.Problem(x, y, g, priors, oc.Box(0, 1, nodes=15), noise_cov="unknown", starts=2)
    method = {"draws": 1000, "chains": 2}
    expected = calibrated(alone, **method)
    found = calibrated(oc.Experiments({"wide": alone, "other": problem(15, 0.5, 1)}), **method)["wide"]
    a, b = (one.theta.reshape(-1, 2) for one in (expected, found))
    assert np.abs((a.mean(axis=0) - b.mean(axis=0)) / a.std(axis=0)).max() < 5 * np.sqrt(2 / 480)
    assert np.abs(b.std(axis=0) / a.std(axis=0) - 1).max() < 5 / np.sqrt(480)
    covs = [one.data["posterior"]["noise_cov"].values.reshape(-1, 4) for one in (expected, found)]
    assert np.abs(covs[0].mean(axis=0) - covs[1].mean(axis=0)).max() < 5 * np.sqrt(2 / 480) * covs[0].std(axis=0).max()


def test_every_draw_has_hyperparameters_and_noise_of_its_own(two):
    posterior = calibrated(two)
    for name, own in posterior.experiments.items():
        kept = own.data["bias_state"]["hyperparameters_0"].values.reshape(-1, 2)
        assert len(np.unique(kept, axis=0)) > 20, name
        there = own.predict(own.record.x, warn=False)
        np.testing.assert_allclose(there["bias"].values, own.record.at_data("bias"), atol=1e-6)
        assert np.isfinite(own.predict(np.array([0.123, 0.77]), warn=False)["mean"].values).all()
        assert own.data["sample_stats"]["sd_0"].shape == (2, 100)
    noise = np.sqrt(posterior["more"].data["posterior"]["noise_cov"].values)
    lower, upper = np.quantile(noise, [0.005, 0.995])
    assert lower < NOISE_SD < upper < 2 * NOISE_SD
    assert "noise_cov" not in posterior["few"].data["posterior"]
    assert posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-8


def test_given_hyperparameters_are_taken_as_they_are():
    """Nothing is integrated over, and each experiment has the ordinary process."""
    rigs = {name: problem(10, 0.5, seed) for name, seed in (("A", 1), ("B", 2))}
    method = oc.methods.Joint(oc.bias.GP(sd=0.2, lengthscale=0.3))
    posterior = calibrated(oc.Experiments(rigs, ["offset"]), method, draws=20)
    for own in posterior.experiments.values():
        assert set(own.data["bias_state"]) == {"values_0"}
        there = own.predict(own.record.x, warn=False)
        np.testing.assert_allclose(there["bias"].values, own.record.at_data("bias"), atol=1e-6)


def test_rows_that_are_correlated_and_groups_of_rows_and_labels():
    """A given correlation between rows beside noise that each group has for itself, and a categorical input."""
    n, rng = 20, np.random.default_rng(1)
    x = np.linspace(0, 1, n)
    between = NOISE_SD**2 * np.exp(-np.abs(x[:, None] - x) / 0.1)
    y = 2 * x + 0.5 + np.linalg.cholesky(between) @ rng.standard_normal(n)
    series = oc.Problem(x, y, f, PRIORS, oc.Box(0, 1, nodes=15), noise_cov=between, starts=2)
    sds = np.where(np.arange(n) % 2, 0.02, 0.3)
    y = 2 * x + 1 + sds * rng.standard_normal(n)
    groups = oc.GroupNoise(np.where(np.arange(n) % 2, "good", "bad"), sample=True)
    grouped = oc.Problem(x, y, f, PRIORS, oc.Box(0, 1, nodes=15), noise_cov=groups, starts=2)
    table = np.empty((n, 2), dtype=object)
    table[:, 0], table[:, 1] = x, np.resize(["north", "south"], n)

    def h(x, theta):
        return theta[0] * x[:, 0].astype(float) + theta[1]

    settings = {"categorical": ["x2"], "noise_cov": "unknown", "starts": 2}
    y = 2 * x + NOISE_SD * rng.standard_normal(n)
    labelled = oc.Problem(table, y, h, PRIORS, oc.Labels(oc.Box(0, 1, nodes=15)), **settings)
    rigs = {"series": series, "grouped": grouped, "labelled": labelled}
    posterior = calibrated(oc.Experiments(rigs, {"offset": oc.Pooled()}))
    assert abs(posterior.theta[..., 0].mean() - 2) < 5 * posterior.theta[..., 0].std() < 1
    each = np.sqrt(posterior["grouped"].data["posterior"]["noise_cov_by_group"].values).mean(axis=(0, 1)).ravel()
    assert each.max() / each.min() > 4


def test_a_bias_that_few_data_could_hide_is_not_ruled_out():
    """Two experiments with a bias of .9 noise sds, which each by itself sees: .4 to 1.5."""
    rng, problems = np.random.default_rng([5, 2]), {}
    for name in "AB":
        x = rng.uniform(0, 1, 15)
        y = 2 * x + 0.6 * x**2 + 0.05 * rng.standard_normal(15)
        problems[name] = oc.Problem(x, y, f, PRIORS, oc.Box(0, 1, nodes=30), noise_cov=0.05**2, starts=2)
    posterior = calibrated(oc.Experiments(problems, private=["offset"]), draws=300)
    for name, own in posterior.experiments.items():
        size = own.bias_size().iloc[0] / 0.05
        assert size["rms_lower"] < 0.9 < size["rms_upper"], name
        assert size["rms"] > 0.2, name


def test_a_shared_parameter_that_one_experiment_does_not_feel():
    """Its simulator does not answer to b: the others know it."""

    def flat(x, theta):
        return theta[0] * x + 0.0 * theta[1]

    rng = np.random.default_rng(3)
    x, priors = np.linspace(0, 1, 20), {"a": stats.norm(0, 10), "b": stats.norm(0, 5)}
    problems = {
        name: oc.Problem(
            x, true + 0.1 * rng.standard_normal(20), one, priors, oc.Box(0, 1, nodes=15), noise_cov=0.01, starts=2
        )
        for name, one, true in (("A", f, 2 * x + 1), ("B", flat, 2 * x))
    }
    posterior = calibrated(oc.Experiments(problems))
    assert abs(posterior.theta[..., 1].mean() - 1) < 0.3
    errors = [one for one in posterior.check() if one.topic == "B: quadrature"]
    assert [one.level for one in errors] == ["fine"]

"""Hyperparameters of experiments with few data: the sample against the restricted posterior on a grid, and its use."""

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag

import orthocal as oc
from orthocal.experiments import integrated_scales, regression
from orthocal.experiments.scales import fitted_scales

NOISE_SD = 0.1


def f(x, theta):
    return theta[0] * x + theta[1]


def problem(n, offset, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    y = 2 * x + offset + 0.2 * np.sin(5 * x) + NOISE_SD * rng.standard_normal(n)
    priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
    return oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=15), noise_cov=NOISE_SD**2, starts=2)


@pytest.fixture(scope="module")
def two():
    return oc.Experiments({"few": problem(10, 0.5, 1), "more": problem(40, -1.0, 2)}, private=["offset"])


def fitted(experiments):
    """What ``fitted_scales`` finds, as the regression calls it."""
    together = experiments.together
    linear = regression.Linear.of(together)
    problems = experiments.linearised
    at_data = [regression._own_linear(experiments, name, one, linear).at_data for name, one in problems.items()]
    return fitted_scales(oc.bias.GP(), list(problems.values()), at_data, linear.unit)


def restricted_log_density(experiments, found, log_values):
    """Of (log sd, log length) of the first experiment, whitened, by one regression of all data: no blocks, no others.

    The second experiment has the hyperparameters that were found.
    """
    covariances, rows, z = [], [], []
    for number, (name, own) in enumerate(experiments.linearised.items()):
        x = own.data.x[:, 0]
        sd, length = np.exp(log_values) if number == 0 else (found[1][0].scales.sd, found[1][0].scales.lengthscale[0])
        away = np.sqrt(3) * np.abs(x[:, None] - x[None]) / length
        covariances.append(sd**2 * (1 + away) * np.exp(-away) + np.eye(len(x)))
        rows.append(np.column_stack([x, *(np.full(len(x), float(name == other)) for other in experiments.names)]))
        z.append((own.data.y - own.fit)[:, 0] / NOISE_SD)
    S, G, z = block_diag(*covariances), np.vstack(rows), np.concatenate(z)
    inverse = np.linalg.inv(S)
    H, h = G.T @ inverse @ G, G.T @ inverse @ z
    value = -0.5 * (np.linalg.slogdet(S)[1] + np.linalg.slogdet(H)[1] + z @ inverse @ z - h @ np.linalg.solve(H, h))
    prior = found[0][0].expected
    return value - 0.5 * np.sum(((log_values - prior.mean[:2]) / prior.sd[:2]) ** 2)


def test_the_sample_has_the_moments_of_the_restricted_posterior(two, monkeypatch):
    """Means within .15 sds and sds within 15 %: with 1024 candidates both errors have sds of about .03."""
    monkeypatch.setattr(integrated_scales, "MOST_POINTS", 20)
    monkeypatch.setattr(integrated_scales, "TRIED", 1024)
    monkeypatch.setattr(integrated_scales, "SETS", 512)
    found = fitted(two)
    few, more = integrated_scales.with_sets(oc.bias.GP(), found)
    assert not more.sets
    drawn = np.log([[one.known[0].sd, one.known[0].lengthscale[0]] for one in few.sets])
    expected = found[0][0].expected
    grid = [
        np.linspace(mean - 4.5 * sd, mean + 4.5 * sd, 61) for mean, sd in zip(expected.mean, expected.sd, strict=True)
    ][:2]
    # shorter length-scales are noise, and left out
    grid[1] = grid[1][grid[1] >= np.log(0.02)]
    points = np.stack([one.ravel() for one in np.meshgrid(*grid, indexing="ij")], axis=1)
    log_density = np.array([restricted_log_density(two, found, one) for one in points])
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ points
    sd = np.sqrt(weights @ (points - mean) ** 2)
    assert np.abs((drawn.mean(axis=0) - mean) / sd).max() < 0.15
    assert np.abs(drawn.std(axis=0) / sd - 1).max() < 0.15
    # the most probable ones alone are another answer
    mode = np.log([few.prior.known[0].sd, few.prior.known[0].lengthscale[0]])
    assert np.abs(mode - mean).max() > 0.02


def test_every_draw_has_hyperparameters_of_its_own(two):
    posterior = oc.calibrate(two, "gp", draws=100, chains=2, seed=3, progress=False)
    for name, own in posterior.experiments.items():
        kept = own.data["bias_state"]["hyperparameters_0"].values.reshape(-1, 2)
        assert len(np.unique(kept, axis=0)) > 20, name
        there = own.predict(own.record.x, warn=False)
        np.testing.assert_allclose(there["bias"].values, own.record.at_data("bias"), atol=1e-6)
        assert np.isfinite(own.predict(np.array([0.123, 0.77]), warn=False)["mean"].values).all()
    assert posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-8


def test_given_hyperparameters_are_taken_as_they_are(two):
    """Nothing is integrated over, and each experiment has the ordinary process."""
    method = oc.methods.Joint(oc.bias.GP(sd=0.2, lengthscale=0.3))
    posterior = oc.calibrate(two, method, draws=20, chains=2, seed=3, progress=False)
    for own in posterior.experiments.values():
        assert set(own.data["bias_state"]) == {"values_0"}


def test_sizes_that_few_data_leave_open_make_theta_less_certain(two, monkeypatch):
    sampled = oc.calibrate(two, "gp", draws=500, chains=2, seed=3, progress=False).theta[..., 1].std()
    monkeypatch.setattr(integrated_scales, "MOST_POINTS", 0)
    plugged = oc.calibrate(two, "gp", draws=500, chains=2, seed=3, progress=False).theta[..., 1].std()
    assert 0.9 * plugged < sampled < 3 * plugged


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
    posterior = oc.calibrate(oc.Experiments(problems), "gp", draws=100, chains=2, seed=1, progress=False)
    assert abs(posterior.theta[..., 1].mean() - 1) < 0.3
    errors = [one for one in posterior.check() if one.topic == "B: quadrature"]
    assert [one.level for one in errors] == ["fine"]

"""Hyperparameters of experiments with few data: the sample against the restricted posterior on a grid, and its use."""

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag

import orthocal as oc
from orthocal.experiments import regression, scales, scales as integrated_scales
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
    return value + expected_log_density(found[0][0].expected, log_values)


def expected_log_density(expected, log_values):
    """Half-Cauchy of sd, whose scale is the rms of sds that are log-normal about the others', and of the length."""
    size = np.sqrt(stats.lognorm(np.log(3), scale=np.exp(expected.mean[0])).moment(2))
    of_log_sd = stats.halfcauchy(scale=size).logpdf(np.exp(log_values[0])) + log_values[0]
    return of_log_sd + stats.norm(expected.mean[1], np.log(3)).logpdf(log_values[1])


def test_the_median_of_an_sd_by_quadrature():
    """Against restricted likelihoods with dense inverses, noise that is correlated, and one direction flat."""
    rng = np.random.default_rng(4)
    x, G = np.sort(rng.uniform(0, 1, 12))[:, None], rng.standard_normal((12, 1))
    noise = np.diag(rng.uniform(0.5, 2, 12)) + np.outer(x, x)
    away = np.sqrt(3) * np.abs(x - x.T) / 0.3
    C = (1 + away) * np.exp(-away)
    for size in (0.0, 3.0):
        z = size * np.sin(5 * x[:, 0]) + rng.standard_normal(12)
        setting = oc.bias.Setting(x, x[:0], np.ones(1), np.diag(noise), z, G, 1.0, noise_cov=noise)
        sds, log_density = np.linspace(1e-3, 40, 8000), []
        for sd in sds:
            inverse = np.linalg.inv(sd**2 * C + noise)
            H, h = (G.T @ inverse @ G)[0, 0], (G.T @ inverse @ z)[0]
            log_density.append(0.5 * (np.linalg.slogdet(inverse)[1] - np.log(H) - z @ inverse @ z + h**2 / H))
        cumulative = np.cumsum(np.exp(np.array(log_density) - max(log_density)))
        median = np.interp(0.5, cumulative / cumulative[-1], sds)
        assert scales.likely_sd(setting, np.array([0.3]), 1.5) == pytest.approx(median, rel=0.01)


def test_a_bias_that_few_data_could_hide_is_not_ruled_out():
    """Two experiments with a bias of .9 noise sds, which each by itself sees: .4 to 1.5.

    The most probable sd of both together is 0, and each expected that of the other, to a factor of three: .007 and at
    most .05 was said.
    """
    rng, problems = np.random.default_rng([5, 2]), {}
    priors = {"a": stats.norm(0, 5), "offset": stats.norm(0, 5)}
    for name in "AB":
        x = rng.uniform(0, 1, 15)
        y = 2 * x + 0.6 * x**2 + 0.05 * rng.standard_normal(15)
        problems[name] = oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=30), noise_cov=0.05**2, starts=2)
    experiments = oc.Experiments(problems, private=["offset"])
    posterior = oc.calibrate(experiments, "gp", draws=300, chains=2, seed=2, progress=False)
    for name, own in posterior.experiments.items():
        size = own.bias_size().iloc[0] / 0.05
        assert size["rms_lower"] < 0.9 < size["rms_upper"], name
        assert size["rms"] > 0.2, name


def test_the_prior_of_few_data_is_a_half_cauchy_law_of_the_sd(two):
    """Up to a constant; and the share of sds below s is proportional to s where s is small."""
    expected = fitted(two)[0][0].expected
    points = np.array([[-20.0, 0.3], [-3.0, -1.0], [0.0, 0.0], [2.0, -2.0], [15.0, 1.0]])
    away = [integrated_scales.log_prior(expected, one) - expected_log_density(expected, one) for one in points]
    np.testing.assert_allclose(away, away[0], atol=1e-8)
    small = [integrated_scales.log_prior(expected, np.array([size, 0.0])) for size in (-12.0, -11.0)]
    assert np.diff(small)[0] == pytest.approx(1.0, abs=1e-6)


def test_the_sample_has_the_moments_of_the_restricted_posterior(two, monkeypatch):
    """Means within .15 sds and sds within 15 %: with 512 sets the errors have sds of about .05."""
    monkeypatch.setattr(integrated_scales, "MOST_POINTS", 20)
    monkeypatch.setattr(integrated_scales, "TRIED", 1024)
    monkeypatch.setattr(integrated_scales, "SETS", 512)
    found = fitted(two)
    few, more = integrated_scales.with_sets(oc.bias.GP(), found)
    assert not more.sets
    drawn = np.log([[one.known[0].sd, one.known[0].lengthscale[0]] for one in few.sets])
    # shorter length-scales are noise, and left out
    grid = np.linspace(-6, 6, 61), np.linspace(np.log(0.02), 4, 51)
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


def test_candidates_are_chosen_as_often_as_the_density_of_all_says(monkeypatch):
    """Two outcomes with four candidates each: shares within 5 standard errors of the enumerated density."""
    monkeypatch.setattr(integrated_scales, "SETS", 4000)
    rng, p = np.random.default_rng(2), 4
    # one feels the parameters 0 and 1, the other 0, 2 and 3; a third, whose value is fixed, feels all
    feels, drawn = (np.array([0, 1]), np.array([0, 2, 3])), {}
    for i, own in enumerate(feels):
        roots = rng.standard_normal((4, len(own), len(own) + 2)) * np.array([0.5, 1, 2, 3])[:, None, None]
        H, h = roots @ roots.swapaxes(1, 2), 2 * rng.standard_normal((4, len(own)))
        drawn[i] = integrated_scales._Candidates(rng.normal(size=(4, 2)), own, H, h, rng.normal(size=4))
    fixed = scales.Information(np.eye(p) + 0.3, rng.standard_normal(p), 0.0)
    chosen = integrated_scales._chosen(drawn, fixed, np.random.default_rng(3))
    counts, log_density = np.zeros((4, 4)), np.empty((4, 4))
    numbers = [
        [int(np.argmin(np.abs(np.log(one.sd) - drawn[i].log_values[:, 0]))) for one in chosen[i]] for i in range(2)
    ]
    np.add.at(counts, tuple(numbers), 1)
    for a in range(4):
        for b in range(4):
            H, h = fixed.H.copy(), fixed.h.copy()
            for i, k in enumerate((a, b)):
                H[np.ix_(feels[i], feels[i])] += drawn[i].H[k]
                h[feels[i]] += drawn[i].h[k]
            value = 0.5 * h @ np.linalg.solve(H, h) - 0.5 * np.log(np.linalg.det(H))
            log_density[a, b] = value + drawn[0].log_weights[a] + drawn[1].log_weights[b]
    shares = np.exp(log_density - log_density.max())
    shares /= shares.sum()
    # neighbours of a chain with a sweep between them are nearly independent here
    error = np.sqrt(shares * (1 - shares) / 4000) + 1e-3
    assert np.abs(counts / 4000 - shares).max() < 5 * error.max()
    assert np.sort(shares.ravel())[-2] > 0.05

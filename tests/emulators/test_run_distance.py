"""Where an emulator has runs nearby: quiet where runs fill the box, loud elsewhere, in 1 to 11 dimensions."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

import orthocal as oc
from orthocal.emulators.emulator import RunDistance

DIMENSIONS = (1, 2, 5, 11)
X = np.linspace(0, 1, 40)


class Linear:
    """A regressor without length-scales: a user's own."""

    layout = "components"

    def fit(self, inputs, targets):
        self._slope = np.linalg.lstsq(np.column_stack([np.ones(len(inputs)), inputs]), targets, rcond=None)[0]
        return self

    def predict(self, inputs):
        return np.column_stack([np.ones(len(inputs)), inputs]) @ self._slope

    def gradient(self, inputs):
        return np.broadcast_to(self._slope[1:].T, (len(inputs), *self._slope[1:].T.shape))


def design(p, s=None, seed=0, kind="lhs"):
    rng = np.random.default_rng(seed)
    s = max(20 * p, 40) if s is None else s
    if kind == "lhs":
        return qmc.LatinHypercube(p, rng=rng).random(s)
    return qmc.Sobol(p, rng=rng).random_base2(int(np.ceil(np.log2(s))))[:s]


def simulate(x, theta):
    return np.cos(np.pi * np.outer(x, np.arange(len(theta)))) @ (theta + 0.1 * theta**2)


def calibrated(theta, truth, regressor, noise_sd):
    """A posterior around the truth, with priors that leave it room, and the warnings that it came with."""
    p = len(truth)
    runs = oc.RunTable(theta, np.stack([simulate(X, one) for one in theta]), X)
    y = simulate(X, np.asarray(truth)) + noise_sd * np.random.default_rng(1).standard_normal(len(X))
    priors = {name: stats.uniform(-2, 5) for name in runs.parameter_names}
    problem = oc.Problem(X, y, oc.emulate(runs, regressor), priors, oc.Points(X), noise_cov=noise_sd**2, starts=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = oc.calibrate(problem, "none", draws=100, warmup=50, chains=2, seed=1, progress=False)
    assert np.abs(posterior.theta.mean(axis=(0, 1)) - truth).max() < (0.3 if p < 11 else 0.6)
    return posterior, [str(one.message) for one in caught if "no runs nearby" in str(one.message)]


def levels(posterior):
    return [one.level for one in posterior.check() if one.topic == "emulator" and "runs nearby" in one.message]


@pytest.mark.parametrize("p", DIMENSIONS)
def test_a_posterior_amid_the_runs_is_quiet(p):
    posterior, said = calibrated(design(p), np.full(p, 0.5), Linear(), 0.1)
    assert not said
    assert levels(posterior) == ["fine"]


@pytest.mark.parametrize("p", DIMENSIONS)
def test_a_posterior_outside_of_the_box_is_loud(p):
    """In one parameter alone."""
    posterior, said = calibrated(design(p), np.append(np.full(p - 1, 0.5), 1.6), Linear(), 0.1)
    assert len(said) == 1
    assert levels(posterior) == ["problem"]


@pytest.mark.parametrize("p", DIMENSIONS)
def test_a_posterior_in_a_hole_is_loud(p):
    """Runs at the ends of one parameter's range, and none between."""
    theta = design(p, 3 * max(20 * p, 40))
    posterior, said = calibrated(theta[np.abs(theta[:, 0] - 0.5) > 0.35], np.full(p, 0.5), Linear(), 0.05)
    assert len(said) == 1
    assert levels(posterior) == ["problem"]


@pytest.mark.parametrize("p", [5, 11])
def test_a_posterior_in_a_corner_far_from_all_runs_is_loud(p):
    theta = design(p)
    far = np.linalg.norm(theta - 1, axis=1) > (0.65 if p == 5 else 0.85)
    posterior, said = calibrated(theta[far], np.full(p, 0.97), Linear(), 0.01)
    assert len(said) == 1
    assert levels(posterior) == ["problem"]


@pytest.mark.slow
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_same_with_the_length_scales_of_a_gaussian_process(p):
    theta = design(p)
    amid, said = calibrated(theta, np.full(p, 0.5), "gp", 0.1)
    assert not said
    assert levels(amid) == ["fine"]
    outside, said = calibrated(theta, np.append(np.full(p - 1, 0.5), 1.6), "gp", 0.1)
    assert len(said) == 1
    assert levels(outside) == ["problem"]


@pytest.mark.parametrize("kind", ["lhs", "sobol"])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_hardly_any_theta_of_a_box_that_runs_fill_is_outside(p, kind):
    """At most 1 % of it, on average over designs of 10 p and 40 p runs; the hull leaves out nearly all at 11."""
    shares = []
    for seed in range(8):
        for s in (10 * p, 40 * p):
            runs = design(p, max(s, 16), seed, kind)
            shares.append(RunDistance(runs).outside(np.random.default_rng(seed).random((1000, p))).mean())
    assert np.mean(shares) < 0.01


@pytest.mark.parametrize("p", DIMENSIONS)
def test_far_away_is_outside_whatever_the_length_scales(p):
    runs = design(p)
    for lengthscale in (None, np.full(p, 0.3), np.full(p, 30.0)):
        assert RunDistance(runs, lengthscale).outside(np.array([np.full(p, 1.3), np.full(p, -0.3)])).all()
        assert not RunDistance(runs, lengthscale).outside(runs).any()


def test_a_parameter_without_effect_makes_no_hole():
    """Runs in two clumps: a hole for an emulator whose length-scale is short, none for one that is linear there."""
    rng = np.random.default_rng(0)
    runs = np.concatenate([rng.uniform(0, 0.2, (30, 1)), rng.uniform(0.8, 1, (30, 1))])
    middle = np.array([[0.5]])
    assert RunDistance(runs).outside(middle).all()
    assert RunDistance(runs, np.array([0.1])).outside(middle).all()
    assert not RunDistance(runs, np.array([20.0])).outside(middle).any()


def test_an_emulator_that_knows_little_says_so():
    """Five runs of a wiggly function: its own sd is larger than the noise's, and that is a problem unless it counts."""

    def wiggly(x, t):
        return np.sin(9 * t[0] + 6 * x) + 3 * np.cos(14 * t[0] * x)

    theta = np.linspace(0, 1, 5)[:, None]
    runs = oc.RunTable(theta, np.stack([wiggly(X, one) for one in theta]), X)
    emulator = oc.emulate(runs, "gp")
    y = wiggly(X, [0.4]) + 0.05 * np.random.default_rng(0).standard_normal(len(X))
    for counted in (False, True):
        problem = oc.Problem(
            X, y, emulator, {"theta1": stats.uniform(0, 1)}, oc.Points(X), noise_cov=0.05**2, emulator_error=counted
        )
        posterior = oc.calibrate(problem, "none", draws=50, warmup=25, chains=2, seed=1, progress=False)
        assert posterior.record.run_facts.emulator_sd > 1
        said = [one.level for one in posterior.check() if "its own standard deviation" in one.message]
        assert said == (["fine"] if counted else ["problem"])

"""The joint projection where it differs from Algorithm 1: a curved simulator, bounds, priors that are not Gaussian.

Exact laws of linear simulators are in ``tests/exact/test_joint.py``; every prior goes through ``tests/contract``.
"""

import numpy as np
import pytest
from scipy import optimize, stats

import orthocal as oc
from orthocal.methods.joint.closest import closest

N = 200
X = (np.arange(N) + 0.5) / N


def wave(x):
    return np.sqrt(2) * np.sin(2 * np.pi * x), np.sqrt(2) * np.cos(2 * np.pi * x)


def curved(x, theta):
    """f = a t + e t^2 / 2 with a and e orthonormal: for y_R = s e the right sd is noise / sqrt(n) / (1 - s)."""
    a, e = wave(x)
    return a * theta[0] + e * theta[0] ** 2 / 2


def curved_problem(size, seed, simulator=curved, prior=None):
    y = size * wave(X)[1] + 0.1 * np.random.default_rng(seed).standard_normal(N)
    domain = oc.Box(0, 1, nodes=40)
    return oc.Problem(X, y, simulator, {"t": prior or stats.norm(0, 10)}, domain=domain, noise_cov=0.01, starts=4)


@pytest.mark.parametrize("size", [-0.5, 0.5])
def test_the_curvature_beside_a_bias_is_in_the_width(size):
    """A posterior's sd depends on its data by a few percent: over three data sets 8 % is three times that."""
    exact = 0.1 / np.sqrt(N) / (1 - size)
    posteriors = [oc.calibrate(curved_problem(size, seed), "gp", seed=1, progress=False) for seed in range(3)]
    assert np.mean([one.theta.std() for one in posteriors]) == pytest.approx(exact, rel=0.08)
    assert all(one.data["sample_stats"]["orthogonality_error"].max() < 1e-6 for one in posteriors)
    assert all(one.record.run_facts.simulator_calls < 4 * one.theta.size for one in posteriors)
    assert not [finding for finding in posteriors[0].check() if finding.topic == "curvature"]


def test_the_projection_at_the_best_fit_alone_is_half_as_wide():
    """The negative control: Algorithm 1 on the same data."""
    posterior = oc.calibrate(curved_problem(0.5, 0), "pgp", draws=500, seed=1, progress=False)
    assert posterior.theta.std() < 0.6 * 0.01414


def test_every_theta_is_the_minimum_of_its_own_loss():
    """Against a scan of the loss, for draws of a real process that is far from what the simulator can do."""
    problem = curved_problem(0.5, 0)
    nodes = problem.rule.nodes[:, 0]
    rng = np.random.default_rng(2)
    a, e = wave(nodes)
    real = (rng.normal(0, 0.3, (20, 1)) * a + rng.normal(0.4, 0.1, (20, 1)) * e) / 0.1
    found = closest(problem, real[:, :, None], np.array([0.1]))
    grid = np.linspace(-1.5, 1.5, 6001)
    models = np.stack([curved(nodes, [t]) for t in grid]) / 0.1
    losses = np.einsum("m,sgm->sg", problem.rule.weights, (real[:, None] - models) ** 2)
    np.testing.assert_allclose(found.theta[:, 0], grid[losses.argmin(axis=1)], atol=5e-4)
    assert not found.stuck.any()
    assert (found.loss <= losses.min(axis=1) * (1 + 1e-6)).all()


def test_draws_beyond_a_bound_stay_on_it_and_are_counted():
    problem = curved_problem(0.0, 0, prior=stats.uniform(0.005, 1))
    posterior = oc.calibrate(problem, "gp", draws=200, seed=1, progress=False)
    assert posterior.theta.min() >= 0.005
    share = posterior.data["sample_stats"]["on_bound"].values.mean()
    assert 0.05 < share < 1
    assert any(finding.topic == "projection" and "bound" in finding.message for finding in posterior.check().problems)


def decay(x, theta):
    return 5 * np.exp(-theta[0] * x)


def logistic(x, theta):
    return theta[0] / (1 + np.exp(-theta[1] * (x - theta[2])))


@pytest.mark.parametrize(
    ("f", "truth", "priors"),
    [
        (decay, lambda x: 3.5 * np.exp(-1.7 * x) + 1.5, {"u": stats.uniform(0, 10)}),
        (
            logistic,
            lambda x: logistic(x, [2, 4, 1.2]) + 0.4 * np.sin(2 * x),
            {"top": stats.uniform(0, 5), "rate": stats.uniform(0.5, 10), "middle": stats.uniform(0, 3)},
        ),
    ],
    ids=["decay", "logistic"],
)
def test_a_simulator_that_no_parabola_describes_settles_in_few_calls(f, truth, priors):
    """Curvature of all orders beside a bias of several noise sds: every draw at its own minimum."""
    x = np.linspace(0.1, 3, 30)
    y = truth(x) + 0.15 * np.random.default_rng(3).standard_normal(30)
    problem = oc.Problem(x, y, f, priors, oc.Box(0, 3), noise_cov=0.15**2, starts=8)
    before = (problem.theta_tilde, problem.simulator.calls)[1]
    posterior = oc.calibrate(problem, "gp", draws=250, seed=1, progress=False)
    statistics = posterior.data["sample_stats"]
    assert statistics["stuck"].values.mean() == 0
    assert statistics["orthogonality_error"].values.max() < 1e-3
    assert (problem.simulator.calls - before) / 1000 < 4


@pytest.mark.parametrize("top", [1.5, 2.0, 3.0], ids=["all on the bound", "half of them", "none"])
def test_correlated_parameters_at_a_bound_against_a_search_for_each_draw(top):
    """f = a x + b^2 sin x / 10 is nearly collinear: a step that is cut off at b's bound alone would go uphill."""
    x = np.linspace(0, 1, 40)
    f = lambda x, theta: theta[0] * x + 0.1 * theta[1] ** 2 * np.sin(x)  # noqa: E731
    rng = np.random.default_rng(0)
    y = f(x, np.array([2.0, 2.0])) + 0.02 * rng.standard_normal(40)
    priors = {"a": stats.norm(0, 10), "b": stats.uniform(0.1, top - 0.1)}
    problem = oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=30), noise_cov=0.01**2, starts=4)
    nodes, weights = problem.rule.nodes[:, 0], problem.rule.weights
    slopes = 0.02 * rng.standard_normal((20, 2))
    real = f(nodes, np.array([2.0, 2.0])) + slopes @ np.vstack([nodes, nodes**3]) + 0.05 * np.cos(7 * nodes)
    found = closest(problem, problem.whiten(real[:, :, None]), np.array([0.1, 0.1]))
    for one, theta in zip(real, found.theta, strict=True):
        by_itself = optimize.least_squares(
            lambda theta, one=one: np.sqrt(weights) * (one - f(nodes, theta)),
            [2.0, 1.0],
            bounds=([-100, 0.1], [100, top]),
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )
        np.testing.assert_allclose(theta, by_itself.x, atol=2e-4)
    assert not found.stuck.any()
    np.testing.assert_array_equal(
        found.on_bound, np.isclose(found.theta[:, 1], top) | np.isclose(found.theta[:, 1], 0.1)
    )
    assert found.error.max() < 1e-3


def test_a_prior_that_is_not_gaussian_is_put_right_by_weights():
    """Against the product of the flat posterior, which is Gaussian here, and the prior, on a grid."""
    line = lambda x, theta: wave(x)[0] * theta[0]  # noqa: E731
    bias = oc.methods.Joint(oc.bias.GP(1.5, 0.1, 0.3))
    flat = oc.calibrate(curved_problem(0.3, 1, line, stats.uniform(-5, 10)), bias, seed=1, progress=False)
    prior = stats.t(3, loc=flat.theta.mean() + 0.01, scale=0.005)
    posterior = oc.calibrate(curved_problem(0.3, 1, line, prior), bias, seed=1, progress=False)
    grid = np.linspace(-0.1, 0.1, 20001)
    density = stats.norm(flat.theta.mean(), flat.theta.std()).pdf(grid) * prior.pdf(grid)
    mean = np.sum(grid * density) / density.sum()
    sd = np.sqrt(np.sum((grid - mean) ** 2 * density) / density.sum())
    # the flat posterior itself is known from 4000 draws: five of the errors of both
    assert posterior.theta.mean() == pytest.approx(mean, abs=5 * 0.007 / np.sqrt(2000))
    assert posterior.theta.std() == pytest.approx(sd, rel=0.1)
    assert posterior.record.run_facts.pareto_k < 0.7


def test_a_simulator_that_fails_on_the_way_is_survived():
    def fragile(x, theta):
        return curved(x, theta) if theta[0] < 0.02 else np.full(len(x), np.nan)

    posterior = oc.calibrate(curved_problem(0.0, 0, fragile), "gp", draws=200, seed=1, progress=False)
    assert np.isfinite(posterior.theta).all()
    assert posterior.theta.max() < 0.02
    assert np.isfinite(posterior.data["model"]["model"].values).all()
    assert any("count as impossible" in finding.message for finding in posterior.check())
    assert any("where the simulator fails; they were left out" in one.message for one in posterior.check().problems)


def test_a_loss_with_two_equal_minima_keeps_to_one_and_names_the_other():
    """f(t) = f(-t): every draw is as close at the other minimum."""

    def even(x, theta):
        return theta[0] ** 2 * wave(x)[0]

    y = wave(X)[0] + 0.1 * np.random.default_rng(0).standard_normal(N)
    problem = oc.Problem(X, y, even, {"t": stats.norm(0, 3)}, domain=oc.Box(0, 1, nodes=40), noise_cov=0.01)
    posterior = oc.calibrate(problem, "gp", draws=200, seed=1, progress=False)
    assert (posterior.theta > 0).all()
    found = [one.message for one in posterior.check() if one.topic == "best fit"]
    assert "2 minima fit equally well" in found[0]
    assert "t = -1" in found[0]
    assert posterior.data["sample_stats"]["elsewhere"].mean() == 0


def test_draws_that_are_closer_at_another_minimum_are_counted():
    """Two valleys of nearly the same depth: the data prefer one, but some draws of the real process the other."""

    def two(x, theta):
        a, e = wave(x)
        return a * theta[0] ** 2 + 0.01 * e * theta[0]

    y = wave(X)[0] + 0.1 * np.random.default_rng(3).standard_normal(N)
    problem = oc.Problem(X, y, two, {"t": stats.norm(0, 3)}, domain=oc.Box(0, 1, nodes=40), noise_cov=0.01)
    method = oc.methods.Joint(oc.bias.GP(sd=0.3, lengthscale=0.3))
    posterior = oc.calibrate(problem, method, draws=500, seed=1, progress=False)
    share = float(posterior.data["sample_stats"]["elsewhere"].mean())
    assert 0.02 < share < 0.6
    found = [one for one in posterior.check() if one.topic == "projection"]
    assert any("another minimum" in one.message for one in found)


class WithHole:
    """Uniform on (-1, 1) but for a hole beside zero."""

    def logpdf(self, x):
        x = np.asarray(x, dtype=float)
        return np.where((np.abs(x) < 1) & ((x < 0.003) | (x > 0.006)), -np.log(2), -np.inf)

    def ppf(self, q):
        return 2 * np.asarray(q) - 1

    def support(self):
        return -1.0, 1.0


def test_a_support_with_a_hole_keeps_its_hole_empty():
    posterior = oc.calibrate(curved_problem(0.0, 0, prior=WithHole()), "gp", draws=500, seed=1, progress=False)
    assert not ((posterior.theta > 0.003) & (posterior.theta < 0.006)).any()
    assert (posterior.theta > 0.006).any()
    assert "prior of theta" in {one.topic for one in posterior.check()}


def test_a_prior_of_no_width_far_from_the_data_is_a_problem():
    posterior = oc.calibrate(
        curved_problem(0.0, 0, prior=stats.norm(0.5, 1e-6)), "gp", draws=200, seed=1, progress=False
    )
    assert posterior.theta.mean() == pytest.approx(0.5, abs=0.1) or not posterior.check()
    assert not posterior.check()


def test_more_parameters_than_distinct_points_is_said():
    x = np.repeat([0.2, 0.8], 10)
    y = np.random.default_rng(0).standard_normal(20)
    problem = oc.Problem(
        x,
        y,
        lambda x, t: t[0] + t[1] * x + t[2] * x**2,
        {name: stats.norm(0, 10) for name in "abc"},
        domain=oc.Box(0, 1),
        noise_cov=1.0,
    )
    posterior = oc.calibrate(problem, "gp", draws=100, seed=1, progress=False)
    assert "information" in {one.topic for one in posterior.check() if one.level != "fine"}
    with pytest.raises(oc.OrthocalError, match="do not determine the 3 parameters"):
        oc.calibrate(problem, "bart", draws=100, warmup=50, seed=1, progress=False)

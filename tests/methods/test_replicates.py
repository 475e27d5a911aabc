"""Rows with the same x are merged: every draw is the one that all rows would give, and a point is simulated once."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import generators, row_by_row
from orthocal.bias.base import ChainwiseSampler
from orthocal.methods.bias_samplers import fitted_bias
from orthocal.methods.joint.gaussian_model import GaussianModel
from orthocal.methods.joint.regress import Linear
from orthocal.methods.joint.unknowns import Unknowns

COV = np.array([[0.01, 0.006], [0.006, 0.02]])
POINTS = np.random.default_rng(3).random(12)
GP = oc.bias.GP(sd=0.3, lengthscale=0.4)
GIVEN = {"sd": 0.3, "lengthscale": 0.4}
METHODS = {
    "gp": oc.methods.Joint(GP),
    "bart": oc.methods.Joint(oc.bias.BART(trees=20)),
    "softbart": oc.methods.Joint(oc.bias.SoftBART(trees=5)),
    "bmars": oc.methods.Joint(oc.bias.BMARS()),
    "pgp": oc.methods.Projected(GP),
    "pgp finite": oc.methods.Projected(GP, projection="finite"),
    "pbart": oc.methods.Projected(oc.bias.BART(trees=20)),
    "ko": oc.methods.KO(**GIVEN),
    "ogp": oc.methods.OGP(**GIVEN),
    "sgasp": oc.methods.SGaSP(**GIVEN),
    "pcal": oc.methods.PCAL(**GIVEN),
    "none": oc.methods.NoBias(),
}


def two(x, theta):
    return np.column_stack([theta[0] * x, theta[1] * np.sin(2 * x) + theta[0]])


def two_gradient(x, theta):
    return np.stack([np.column_stack([x, 0 * x]), np.column_stack([1 + 0 * x, np.sin(2 * x)])], axis=1)


def replicated(holes=True, noise_cov=COV, n=60, simulator=None, domain=None):
    """Twelve points, uneven numbers of replicates, some cells missing, one outcome never seen at one point."""
    rng = np.random.default_rng(3)
    x = POINTS[np.concatenate([np.arange(12), rng.integers(0, 12, n - 12)])]
    noise = rng.standard_normal((n, 2)) @ np.linalg.cholesky(COV).T
    y = two(x, [1.0, 2.0]) + 0.2 * np.column_stack([np.sin(5 * x), np.cos(4 * x)]) + noise
    if holes:
        y[rng.random(n) < 0.3, 0] = np.nan
        y[(rng.random(n) < 0.2) | (x == POINTS[3]), 1] = np.nan
    simulator = simulator or oc.Simulator(two, two_gradient)
    # wide: a prior's curvature is found by differences, in which rounding of theta_tilde shows
    priors = {"a": stats.norm(1, 100), "b": stats.norm(2, 100)}
    return oc.Problem(x, y, simulator, priors, domain=domain or oc.Box(0, 1), noise_cov=noise_cov)


def short(problem, method, draws=10):
    return oc.calibrate(problem, method, draws=draws, warmup=10, chains=2, seed=1, progress=False)


def assert_same(ours, reference, rtol=1e-10):
    assert ours.shape == reference.shape
    np.testing.assert_allclose(ours, reference, rtol=0, atol=rtol * np.abs(reference).max())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "softbart" else name for name in METHODS]
)
def test_every_method_draws_what_it_would_from_all_rows(name):
    ours = short(replicated(), METHODS[name])
    with row_by_row():
        reference = short(replicated(), METHODS[name])
    assert_same(ours.theta, reference.theta)
    for variable in ("model", "bias"):
        assert_same(*(one.data[variable][variable].values for one in (ours, reference)))
    assert_same(*(one.data["sample_stats"]["lp"].values for one in (ours, reference)))


def test_the_log_likelihood_has_all_rows():
    ours = short(replicated(), METHODS["gp"])
    with row_by_row():
        reference = short(replicated(), METHODS["gp"])
    (name,) = ours.log_likelihood.data_vars
    assert_same(*(one.log_likelihood[name].values for one in (ours, reference)))
    assert ours.log_likelihood.sizes["point"] == replicated().data.observed.any(axis=1).sum() > 12


def test_errors_of_every_row_count():
    sd = np.random.default_rng(0).uniform(0.05, 0.3, (60, 2))
    noise = np.einsum("nk,kl->nkl", sd**2, np.eye(2))
    ours = short(replicated(noise_cov=noise), METHODS["pgp"])
    with row_by_row():
        reference = short(replicated(noise_cov=noise), METHODS["pgp"])
    assert_same(ours.theta, reference.theta)


def test_estimated_noise_is_that_of_all_rows():
    ours = replicated(holes=False, noise_cov="estimate")
    posterior = short(ours, METHODS["ko"])
    with row_by_row():
        reference = replicated(holes=False, noise_cov="estimate")
        all_rows = short(reference, METHODS["ko"])
    # two searches that differ by rounding end where their tolerance, 1e-5 of a slope, lets them
    np.testing.assert_allclose(ours.noise.cov, reference.noise.cov, rtol=1e-4)
    assert_same(posterior.theta, all_rows.theta, rtol=1e-3)


@pytest.mark.parametrize("method", ["gp", "pgp", "ogp", "none", oc.methods.Projected(GP, projection="finite")])
def test_the_simulator_is_never_given_a_point_twice(method):
    rows = []

    def simulator(x, theta):
        rows.append(len(x))
        assert len(np.unique(x)) == len(x)
        return two(x, theta)

    # the nodes are points of the data as well
    problem = replicated(simulator=simulator, holes=False, domain=oc.Points(POINTS))
    posterior = short(problem, method)
    assert max(rows) == 12
    assert posterior.data["model"]["model"].shape == (2, 10, 60, 2)


def test_predictions_of_a_merged_fit_are_those_of_its_file(tmp_path):
    posterior = short(replicated(), METHODS["pgp finite"])
    posterior.save(tmp_path / "fit.nc")
    loaded = oc.load(tmp_path / "fit.nc", simulator=oc.Simulator(two, two_gradient))
    x_new = np.linspace(0, 1, 7)
    first, second = (one.predict(x_new, seed=1)["mean"].values for one in (posterior, loaded))
    np.testing.assert_array_equal(first, second)
    with row_by_row():
        reference = short(replicated(), METHODS["pgp finite"])
    projected = [one.predict(x_new, seed=1)["mean"].values.mean(axis=(0, 1)) for one in (posterior, reference)]
    np.testing.assert_allclose(*projected, atol=0.02)


class Counting:
    """A prior of a user's: no bias, and it remembers how many data points it was given."""

    def __init__(self):
        self.points = []

    def prepare(self, setting):
        self.points.append(len(setting.x))
        return Nothing(len(setting.x) + len(setting.nodes))

    def describe(self):
        return {"kind": "counting"}


class Nothing(ChainwiseSampler):
    def __init__(self, points):
        self._points = points

    def one_draw(self, rng, state, residual):
        return 0, np.zeros(self._points)


def test_a_prior_of_the_user_is_given_every_row():
    prior = Counting()
    short(replicated(holes=False), oc.methods.Joint(prior))
    assert prior.points == [60, 60]


def test_sampled_noise_needs_every_row():
    problem = replicated(holes=False, noise_cov="sample")
    assert problem.merged is problem
    posterior = short(problem, oc.methods.Projected(GP))
    assert posterior.data["bias"]["bias"].shape == (2, 10, 60, 2)


def test_data_without_replicates_are_not_touched():
    x = np.linspace(0, 1, 20)
    problem = oc.Problem(x, two(x, [1.0, 2.0]), two, {"a": stats.norm(1, 1), "b": stats.norm(2, 1)}, noise_cov=COV)
    assert problem.merged is problem


def test_hyperparameters_have_the_evidence_of_all_rows():
    """Their law is the same; the draws are not, because a draw of the bias takes a number for each row."""
    evidence = []
    problem = replicated(holes=False, noise_cov=np.array([0.01, 0.02]))
    for one in (problem.merged, problem):
        unknowns = Unknowns.of(one, oc.bias.GP())
        model = GaussianModel(one, Linear.of(one), oc.bias.GP(), unknowns, one.rule.nodes)
        away = 0.5 * generators(1)[0].standard_normal((5, int(unknowns.free.sum())))
        evidence.append(model.evidence(unknowns.whole(unknowns.values[unknowns.free] + away)))
    ours, reference = (one - one[0] for one in evidence)
    np.testing.assert_allclose(ours, reference, rtol=1e-9)


def test_a_network_has_the_density_of_all_rows():
    """Its trajectories are chaotic: the density and its gradient are what can be compared."""
    rng = np.random.default_rng(5)
    problem = replicated(holes=False, noise_cov=np.array([0.01, 0.02]))
    results = []
    hidden = rng.standard_normal((2, 40))
    for one in (problem.merged, problem):
        sampler = fitted_bias(oc.bias.BNN(), one, one.data.x[:0]).samplers[0]
        residual = one.whiten(one.complete_y - one.fit)[:, 0]
        density, gradient = sampler._density(hidden, np.tile(residual / sampler._noise_sd, (2, 1)))
        results.append((density[1] - density[0], gradient, sampler.spread, sampler.offset))
    for ours, reference in zip(*results, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-8, atol=1e-8)

"""The noise that is drawn in a chain, against its density on grids, and with a sum of trees by Geweke's test.

|z| > 4.5 has probability 7e-6 a comparison, Kolmogorov's tests have level 1e-4; seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import orthocal as oc
from helpers import batch_z, generators
from orthocal.bias.one_hot import prepared
from orthocal.bias.sized import SizedState
from orthocal.methods import chain_noise
from orthocal.methods.chain_noise import ChainNoise, NoiseState
from orthocal.problem.noise.noise import observed_precision

LIMIT, CHAINS = 4.5, 400
GROUPS = np.array([0, 0, 0, 1, 1, 0, 0, 1, 0, 1])


def problem(q=1, holes=(), noise_cov="sample"):
    rng = np.random.default_rng(4)
    x = np.linspace(0, 1, 10)
    y = np.outer(x, [1.0, -2.0, 0.5][:q]) + rng.standard_normal((10, q)) @ np.tril(np.full((q, q), 0.4))
    for row, k in holes:
        y[row, k] = np.nan
    simulator = oc.Simulator(lambda x, t: np.outer(x[:, 0], t), lambda x, t: x[:, :1, None] * np.eye(q))
    priors = {name: stats.norm(0, 3) for name in "abc"[:q]}
    return oc.Problem(x, y, simulator, priors, oc.Box(0, 1), noise_cov=noise_cov, starts=1)


def after(sampler, errors, sizes, steps=60):
    chains = len(sizes)
    state, rngs = sampler.start(chains), generators(chains)
    for _ in range(steps):
        state = sampler.draw(rngs, state, np.broadcast_to(errors, (chains, *errors.shape)), sizes)
    return state


def moments_agree(drawn, values, log_weights):
    """Mean and mean square of draws (c, f) against values (g, f) with log weights (g,)."""
    weights = np.exp(log_weights - logsumexp(log_weights))
    for power in (1, 2):
        own, exact = drawn**power, weights @ values**power
        assert np.all(np.abs(own.mean(axis=0) - exact) < LIMIT * own.std(axis=0) / np.sqrt(len(own)))


@pytest.mark.parametrize("size", [1e-9, 0.3, 40.0])
def test_one_outcome(size):
    one_outcome(size)


@pytest.mark.parametrize("size", [1e-9, 40.0])
def test_without_the_half_cauchy_factor_it_is_another_law(size, monkeypatch):
    """The negative control: z is about 15."""
    monkeypatch.setattr(chain_noise, "_half_cauchy", lambda log_sd, sizes: np.zeros(len(log_sd)))
    with pytest.raises(AssertionError):
        one_outcome(size)


def one_outcome(size):
    errors, sizes = np.random.default_rng(1).standard_normal((10, 1)), np.full((4000, 1, 1), size)
    state = after(ChainNoise(problem()), errors, sizes, steps=20)
    log_s = np.linspace(-4, 6, 4001)
    log_density = -10 * log_s - 0.5 * np.sum(errors**2) * np.exp(-2 * log_s) + log_s
    log_density -= np.log(np.exp(2 * log_s) + size**2)
    moments_agree(np.log(state.sd), log_s[:, None], log_density)


def test_without_a_bias_it_is_inverse_gamma():
    """The half-Cauchy factor of a size of almost 0 is 1 / s: one more row than 1 / s^2 alone has."""
    errors, sizes = np.random.default_rng(1).standard_normal((10, 1)), np.full((CHAINS, 0, 1), 1.0)
    state = after(ChainNoise(problem()), errors, sizes, steps=1)
    exact = stats.invgamma(5, scale=np.sum(errors**2) / 2)
    assert stats.kstest(state.cov[:, 0, 0], exact.cdf).pvalue > 1e-4


def test_two_outcomes():
    errors = np.random.default_rng(2).standard_normal((10, 2)) @ np.array([[0.5, 0.4], [0.0, 1.0]])
    sizes = np.tile([[0.2, 3.0]], (CHAINS, 1, 1))
    state = after(ChainNoise(problem(2)), errors, sizes)
    one, other, bend = (a.ravel() for a in np.meshgrid(*[np.linspace(-2.5, 2.5, 71)] * 3, indexing="ij"))
    rho, sds = np.tanh(bend), np.exp([one, other])
    S = errors.T @ errors
    left = S[0, 0] / sds[0] ** 2 + S[1, 1] / sds[1] ** 2 - 2 * rho * S[0, 1] / (sds[0] * sds[1])
    # flat in log sds and rho
    log_density = np.log(1 - rho**2) - 10 * (one + other) - 5 * np.log(1 - rho**2) - 0.5 * left / (1 - rho**2)
    for sd, size in zip(sds, (0.2, 3.0), strict=True):
        log_density += np.log(sd / (sd**2 + size**2))
    drawn = [*np.log(state.sd).T, np.arctanh(state.cov[:, 0, 1] / np.prod(state.sd, axis=1))]
    moments_agree(np.stack(drawn, axis=1), np.stack([one, other, bend], axis=1), log_density)


def test_groups():
    """Two sds around a typical one, whose prior is flat but for the bias."""
    errors = np.random.default_rng(3).standard_normal((10, 1)) * np.where(GROUPS == 1, 3.0, 0.5)[:, None]
    given = problem(noise_cov=oc.GroupNoise(GROUPS, sample=True))
    state = after(ChainNoise(given), errors, np.full((CHAINS, 1, 1), 0.5), steps=200)
    log_s, *apart = (
        a.ravel()
        for a in np.meshgrid(np.linspace(-4, 4, 81), np.linspace(-4, 4, 81), np.linspace(-4, 4, 81), indexing="ij")
    )
    log_density = log_s - np.log(np.exp(2 * log_s) + 0.25)
    for g, own in enumerate(apart):
        square, number = np.sum(errors[g == GROUPS] ** 2), np.sum(g == GROUPS)
        log_density += -0.5 * own**2 - number * (log_s + own) - 0.5 * square * np.exp(-2 * (log_s + own))
    drawn = np.column_stack([np.log(state.sd), state.groups[:, :, 0]])
    moments_agree(drawn, np.stack([log_s, *apart], axis=1), log_density)


def test_a_bias_in_units_of_the_noise():
    """s given y - G beta = s (b0 + e), where b0 is given."""
    rng = np.random.default_rng(5)
    b0, left = rng.standard_normal((10, 1)), 0.5 + rng.standard_normal((10, 1))
    sampler, rngs = ChainNoise(problem()), generators(CHAINS)
    state = sampler.start(CHAINS)
    for _ in range(60):
        bias = state.sd[:, None] * b0
        state = sampler.draw_with_bias(rngs, state, np.broadcast_to(left, bias.shape), bias)
    log_s = np.linspace(-4, 6, 4001)
    log_density = -10 * log_s - 0.5 * np.sum((left * np.exp(-log_s) - b0) ** 2, axis=0)
    moments_agree(np.log(state.sd), log_s[:, None], log_density)


def test_size_trees_and_noise_together():
    """Geweke's test: errors of six more rows make the prior of s proper."""
    x, rngs, rng = np.linspace(0, 1, 10)[:, None], generators(CHAINS), np.random.default_rng(6)
    setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(10), x[:, 0], x, unit=1.0)
    trees = prepared(oc.bias.BART(trees=5, least=0), setting, size_drawn=True)
    noise, prior = ChainNoise(problem()), stats.invgamma(3, scale=3)
    cov = prior.rvs((CHAINS, 1, 1), random_state=rng)
    size, offset = np.sqrt(cov[:, 0, 0]) * np.tan(np.pi * (rng.random((2, CHAINS)) - 0.5))
    own = None
    for _ in range(30):
        own, f = trees.own.draw(rngs, own, np.zeros((CHAINS, 10)), noise_scale=np.full(CHAINS, 1e12))
    state, b = SizedState(size, offset, own), offset[:, None] + size[:, None] * f
    for _ in range(12):
        sd = np.sqrt(cov[:, 0, 0])
        y = b + sd[:, None] * rng.standard_normal((CHAINS, 10))
        state, b = trees.draw(rngs, state, y, noise_scale=sd**2, noise_sd=sd)
        squares = np.sum((y - b) ** 2, axis=1)[:, None, None] + 6
        cov = noise.given_squares(rngs, cov, squares, 16, np.stack([state.size, state.offset], axis=1)[..., None])
    sd = np.sqrt(cov[:, 0, 0])
    assert stats.kstest(cov[:, 0, 0], prior.cdf).pvalue > 1e-4
    assert stats.kstest(state.offset / sd, "cauchy").pvalue > 1e-4
    assert stats.kstest(2 / np.pi * np.arctan(np.abs(state.size) / sd), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("holes", [[1], [0, 2]])
@pytest.mark.parametrize("noise_cov", ["sample", oc.GroupNoise(GROUPS, sample=True)])
def test_missing_errors_are_drawn_given_the_others(holes, noise_cov):
    given = problem(3, [(4, k) for k in holes], noise_cov)
    sampler, T = ChainNoise(given), given.noise.whitener
    errors = np.random.default_rng(1).standard_normal((10, 3)) + 0.5
    one = np.array([[1.3, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 1.1]])
    state = sampler.start(2000)._replace(cov=np.tile(one, (2000, 1, 1)))
    times = np.array([1.0, 2.0, 0.5])
    if given.noise.groups is not None:
        state.groups[:, 1] = np.log(times)
        one = one * np.outer(times, times)
    whole = sampler.completed(generators(2000), np.broadcast_to(errors @ T.T, (2000, 10, 3)), state)
    drawn = whole @ np.linalg.inv(T).T
    observed = given.data.observed
    np.testing.assert_allclose(drawn[:, observed], np.tile(errors[observed], (2000, 1)), atol=1e-10)
    Sigma = np.linalg.inv(T) @ one @ np.linalg.inv(T).T
    seen = np.setdiff1d(np.arange(3), holes)
    between = Sigma[np.ix_(holes, seen)] @ np.linalg.inv(Sigma[np.ix_(seen, seen)])
    cov = Sigma[np.ix_(holes, holes)] - between @ Sigma[np.ix_(seen, holes)]
    cells = drawn[:, 4, holes]
    assert np.all(np.abs(cells.mean(axis=0) - between @ errors[4, seen]) < 5 * np.sqrt(np.diag(cov) / 2000))
    size = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    assert np.all(np.abs(np.cov(cells, rowvar=False) - cov) < 5 * size * np.sqrt(2 / 2000))


def test_rows_say_what_their_observed_cells_say():
    given = problem(3, [(1, 0), (3, 1), (3, 2)], oc.GroupNoise(GROUPS, sample=True))
    sampler, back = ChainNoise(given), given.noise.unwhitener
    root = np.random.default_rng(1).standard_normal((2, 3, 5))
    state = NoiseState(root @ root.swapaxes(1, 2), np.random.default_rng(2).standard_normal((2, 2, 3)), np.ones((2, 0)))
    covs = back @ sampler.covariance(state) @ back.T
    observed = given.data.observed
    expected = [back.T @ observed_precision(one[GROUPS], observed) @ back for one in covs]
    np.testing.assert_allclose(sampler.of_observed(state), expected, atol=1e-8)
    np.testing.assert_allclose(
        np.linalg.inv(sampler.of_rows(state).precision), sampler.covariance(state)[:, GROUPS], atol=1e-8
    )


class Constant(oc.bias.ChainwiseSampler):
    """b = v, v ~ N(0, 4) in units of the noise, for a sampler of a user's."""

    def __init__(self, setting):
        self.weight, self.points = 1 / setting.noise_var, len(setting.x) + len(setting.nodes)

    def one_draw(self, rng, state, residual):
        precision = 1 / 4 + self.weight.sum()
        level = rng.normal(self.weight @ residual / precision, precision**-0.5)
        return level, np.full(self.points, level)

    def one_record(self, state):
        return {"level": np.array([state])}

    def one_prediction(self, record, x_new):
        return np.full(len(x_new), record["level"][0])


class ConstantPrior:
    def prepare(self, setting):
        return Constant(setting)

    def describe(self):
        return {"kind": "constant"}


def test_a_prior_of_the_users_is_one_in_units_of_the_noise(tmp_path):
    """y = beta x + s (v + e): a Student t model; log s against quadrature."""
    given = problem()
    fit = oc.calibrate(
        given, oc.methods.Joint(bias=ConstantPrior()), draws=1000, warmup=100, chains=4, seed=1, progress=False
    )
    drawn = np.log(fit.data["posterior"]["noise_cov"].values[..., 0, 0]) / 2
    x, y = given.data.x[:, 0], given.data.y[:, 0]
    C = np.eye(10) + 4
    # beta is flat in the chain
    G = x[:, None]
    P = np.linalg.inv(C)
    P = P - P @ G @ np.linalg.solve(G.T @ P @ G, G.T @ P)
    log_s = np.linspace(-4, 3, 3001)
    log_density = -9 * log_s - 0.5 * (y @ P @ y) * np.exp(-2 * log_s)
    weights = np.exp(log_density - logsumexp(log_density))
    exact = [weights @ log_s, weights @ log_s**2]
    z = batch_z(np.column_stack([drawn.mean(axis=0), (drawn**2).mean(axis=0)]), exact)
    assert np.all(np.abs(z) < LIMIT)
    again = oc.load(fit.save(tmp_path / "fit.nc"), simulator=lambda x, t: np.outer(x[:, 0], t), bias=ConstantPrior())
    new = np.array([[0.3]])
    np.testing.assert_allclose(again.predict(new, seed=1)["bias"].values, fit.predict(new, seed=1)["bias"].values)

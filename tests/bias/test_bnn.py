"""The Bayesian neural network: gradient, the prior without data, Geweke's joint test, predictions, bad input.

False alarms: |z| > 4.5 has probability 7e-6 a comparison; seeds are fixed.
"""

import json

import numpy as np
import pytest

import orthocal as oc
from helpers import generators, largest_error, setting
from orthocal.bias.bnn import BNN, Network
from orthocal.examples import MODEL1


def prior_functions(rng, sampler, x, count):
    """Functions of the prior at x (count, len(x)), written out unit by unit."""
    prior = sampler.prior
    varies = np.ptp(x, axis=0) > 0
    below = np.where(varies, 2 * (x - x.min(axis=0)) / np.where(varies, np.ptp(x, axis=0), 1) - 1, 0)
    below = np.broadcast_to(below, (count, *x.shape))
    for layer in range(prior.layers):
        size = varies.sum() if layer == 0 else prior.hidden
        weights = prior.weight_sd / np.sqrt(size) * rng.standard_normal((count, below.shape[2], prior.hidden))
        shifts = prior.weight_sd * rng.standard_normal((count, 1, prior.hidden))
        below = np.tanh(shifts + np.einsum("cnj,cjh->cnh", below, weights))
    output = sampler.spread / np.sqrt(prior.hidden) * rng.standard_normal((count, prior.hidden))
    intercept = sampler.offset * rng.standard_normal((count, 1))
    return intercept + np.einsum("cnh,ch->cn", below, output), below


@pytest.mark.parametrize("layers", [1, 2])
def test_gradient_against_finite_differences(layers):
    rng = np.random.default_rng(0)
    sampler = BNN(hidden=4, layers=layers, weight_sd=1.5).prepare(
        setting(rng.random((9, 2)), noise_var=rng.uniform(0.5, 2, 9), residual=4 * rng.standard_normal(9))
    )
    hidden = rng.standard_normal((3, len(sampler.hidden_scales)))
    response = 4 * rng.standard_normal((3, 9))
    _, gradient = sampler._density(hidden, response)
    for j in range(hidden.shape[1]):
        move = 1e-5 * np.eye(hidden.shape[1])[j]
        ahead, behind = (sampler._density(hidden + side * move, response)[0] for side in (1, -1))
        np.testing.assert_allclose(gradient[:, j], (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-7)


def test_density_is_the_gaussian_one():
    """log p(y | hidden) of the dense covariance, up to a constant, with noise that differs between the points."""
    rng = np.random.default_rng(1)
    noise_var = rng.uniform(0.5, 2, 9)
    sampler = BNN(hidden=4).prepare(setting(rng.random((9, 2)), noise_var=noise_var, residual=np.arange(9.0)))
    hidden = rng.standard_normal((5, len(sampler.hidden_scales)))
    response = rng.standard_normal(9)
    ours, _ = sampler._density(hidden, np.tile(response / np.sqrt(noise_var), (5, 1)))
    exact = []
    for one in hidden:
        units = sampler._units((one * sampler.hidden_scales)[None], sampler._inputs)[-1][0]
        columns = np.hstack([units, np.ones((9, 1))]) * sampler.output_scales
        covariance = columns @ columns.T + np.diag(noise_var)
        fit = response @ np.linalg.solve(covariance, response)
        exact.append(-(np.linalg.slogdet(covariance)[1] + fit + one @ one) / 2)
    np.testing.assert_allclose(ours - ours[0], np.array(exact) - exact[0], atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.slow
def test_without_data_functions_follow_the_prior(layers):
    """Variance A^2 + (R/2)^2 E tanh^2 at a point, and the size of differences, which the hidden weights decide."""
    rng = np.random.default_rng(2)
    x = rng.random((6, 2))
    prior = BNN(hidden=5, layers=layers)
    sampler = prior.prepare(setting(x, noise_var=np.full(6, 1e12), residual=np.linspace(-3, 1, 6)))
    assert (sampler.spread, sampler.offset) == (2.0, 3.0)
    exact, units = prior_functions(rng, sampler, x, 100_000)
    expected = sampler.offset**2 + sampler.spread**2 * np.mean(units**2, axis=(0, 2))
    np.testing.assert_allclose(exact.var(axis=0), expected, rtol=5 * np.sqrt(2 / 100_000))

    chains, rngs, state = 200, generators(200), None
    sums = []
    for _ in range(40):
        state, values = sampler.draw(rngs, state, np.zeros((chains, 6)))
        sums.append(np.hstack([values**2, np.abs(np.diff(values)), np.diff(values) ** 2]))
    # chains are independent of each other: their means give the standard error
    means = np.mean(sums, axis=0)
    exact = np.hstack([exact**2, np.abs(np.diff(exact)), np.diff(exact) ** 2])
    error = np.hypot(means.std(axis=0, ddof=1) / np.sqrt(chains), exact.std(axis=0) / np.sqrt(100_000))
    assert np.all(np.abs(means.mean(axis=0) - exact.mean(axis=0)) < 4.5 * error)


def geweke_scores(layers=1, break_it=None):
    """Geweke's joint-distribution test: data given the function, the function given the data, in turn.

    Chains begin with weights from the prior, which they must keep: each chain's mean has the prior's expectation, and
    chains are independent.
    """
    chains, rounds = 400, 60
    rng, rngs = np.random.default_rng(3), generators(chains, 3)
    x = rng.random((8, 2))
    sampler = BNN(hidden=3, layers=layers, weight_sd=2.0, leapfrogs=5).prepare(
        setting(x, residual=np.linspace(-3, 3, 8), noise_var=np.linspace(0.5, 2, 8))
    )

    def functions(fit, hidden):
        return np.column_stack(
            [
                fit[:, 0],
                fit[:, 0] ** 2,
                fit[:, 3] * fit[:, 7],
                fit.max(axis=1),
                np.abs(np.diff(fit)).mean(axis=1),
                (hidden**2).mean(axis=1),
                np.abs(hidden[:, 0]),
            ]
        )

    def from_the_prior(count):
        hidden = rng.standard_normal((count, len(sampler.hidden_scales)))
        return Network(hidden, rng.standard_normal((count, 4)), np.zeros(count))

    state, _ = sampler.draw(rngs, None, 3 * rng.standard_normal((chains, 8)))
    state = from_the_prior(chains)._replace(step=state.step)
    network = from_the_prior(100_000)
    fits = sampler.predict(rng, sampler.record(network), x)
    reference = functions(fits, network.hidden)
    fits = sampler.predict(rng, sampler.record(state), x)
    if break_it:
        break_it(sampler)
    total = np.zeros((chains, reference.shape[1]))
    for _ in range(rounds):
        noise = np.sqrt(np.linspace(0.5, 2, 8)) * rng.standard_normal((chains, 8))
        state, fits = sampler.draw(rngs, state, fits + noise)
        total += functions(fits, state.hidden) / rounds
    error = np.hypot(total.std(axis=0, ddof=1) / np.sqrt(chains), reference.std(axis=0) / np.sqrt(len(reference)))
    return (total.mean(axis=0) - reference.mean(axis=0)) / error


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.slow
def test_geweke(layers):
    assert np.max(np.abs(geweke_scores(layers))) < 4.5


def narrow(sampler):
    """Output weights with a wrong variance."""
    sampler.spread /= 1.3


def flatten(sampler):
    """Hidden weights without the determinant of their density, as if the output weights were maximised over."""
    right = sampler._density

    def wrong(hidden, response):
        columns = sampler._columns(sampler._units(hidden * sampler.hidden_scales, sampler._inputs)[-1])
        gram = np.eye(columns.shape[2]) + columns.swapaxes(1, 2) @ columns
        density, gradient = right(hidden, response)
        return density + np.linalg.slogdet(gram)[1] / 2, gradient

    sampler._density = wrong


@pytest.mark.parametrize("break_it", [narrow, flatten])
@pytest.mark.slow
def test_geweke_notices_a_wrong_sampler(break_it):
    assert np.max(np.abs(geweke_scores(break_it=break_it))) > 6


def test_steps_are_adapted_before_the_first_draw_only():
    """Adapting further would make the draws depend on all that came before."""
    rng = np.random.default_rng(5)
    sampler = BNN(trajectories=2).prepare(setting(rng.random((30, 2))))
    state, _ = sampler.draw([rng], None, np.zeros((1, 30)))
    later, _ = sampler.draw([rng], state, np.ones((1, 30)))
    np.testing.assert_array_equal(later.step, state.step)


def test_sampled_noise_is_the_noise_of_each_chain():
    rng = np.random.default_rng(13)
    x, residual = rng.random((30, 2)), np.linspace(-4, 4, 30)
    sampler = BNN(hidden=6).prepare(setting(x, residual=residual))
    response, scale = rng.standard_normal((3, 30)), np.array([0.5, 1.0, 4.0])
    rngs, state = generators(3), None
    for _ in range(8):
        state, together = sampler.draw(rngs, state, response, noise_scale=scale)
    assert "density_rhat" in sampler.findings()
    for c, one in enumerate(scale):
        alone = BNN(hidden=6).prepare(setting(x, residual=residual, noise_var=np.full(30, one)))
        rngs, state = generators(3)[c : c + 1], None
        for _ in range(8):
            state, values = alone.draw(rngs, state, response[c : c + 1])
        np.testing.assert_allclose(together[c : c + 1], values, atol=1e-6)


def test_chains_do_not_depend_on_each_other():
    rng = np.random.default_rng(6)
    sampler = BNN(hidden=6).prepare(setting(rng.random((30, 2))))
    response = rng.standard_normal((3, 30))
    _, together = sampler.draw(generators(3), None, response)
    _, alone = sampler.draw(generators(3)[1:2], None, response[1:2])
    np.testing.assert_allclose(together[1:2], alone, atol=1e-6)


@pytest.mark.parametrize("layers", [1, 2])
def test_it_learns_a_smooth_function(layers):
    rng = np.random.default_rng(7)
    x = rng.random((200, 1))
    truth = 3 * np.sin(6 * x[:, 0])
    response = truth + rng.standard_normal(200)
    sampler = BNN(layers=layers).prepare(setting(x, residual=response))
    state, draws = None, []
    for _ in range(200):
        state, values = sampler.draw([rng], state, response[None])
        draws.append(values[0])
    assert np.sqrt(np.mean((np.mean(draws, axis=0) - truth) ** 2)) < 0.3


def drawn_from(size, shape, layers, draws):
    """A sampler after some draws of four chains, and the rms misfit of each in the later half, in noise sds."""
    rng = np.random.default_rng(12)
    x = rng.random((60, 1))
    response = size * shape(x[:, 0], rng) + rng.standard_normal(60)
    sampler = BNN(hidden=10, layers=layers).prepare(setting(x, residual=response))
    state, misfit, rngs = None, [], generators(4)
    for _ in range(draws):
        state, values = sampler.draw(rngs, state, np.tile(response, (4, 1)))
        misfit.append(np.mean((values - response) ** 2, axis=1))
    return sampler, np.sqrt(np.mean(misfit[draws // 2 :], axis=0))


def wave(x, rng):
    return np.sin(6 * x)


def scatter(x, rng):
    return rng.standard_normal(len(x))


@pytest.mark.parametrize("layers", [1, 2])
def test_it_arrives_at_a_bias_of_many_noise_sds(layers):
    """From the prior in one go, two layers stay at steps of 1e-18 and a misfit of some 100 noise sds."""
    sampler, misfit = drawn_from(1e5, wave, layers, 100)
    assert sampler.findings()["hmc_step"] > 1e-9
    assert misfit.max() < 20


@pytest.mark.parametrize(
    ("size", "shape", "settled"), [(3.0, wave, True), (0.0, wave, True), (1e3, scatter, False), (1e9, wave, False)]
)
@pytest.mark.slow
def test_it_reports_whether_it_has_settled(size, shape, settled):
    sampler, _ = drawn_from(size, shape, 1, 300)
    found = sampler.findings()
    assert (found["density_rhat"] < 1.1) == settled
    if settled:
        assert found["hmc_acceptance"] > 0.5
        assert found["hmc_step"] > 0.01
    else:
        assert found["density_rhat"] > 2
        assert found["hmc_step"] < 1e-3
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_few_draws_say_nothing_about_that():
    sampler, _ = drawn_from(1.0, wave, 1, 3)
    assert "density_rhat" not in sampler.findings()


def test_an_offset_is_learnt():
    """A residual far from 0 in comparison with its range: the intercept is not held back."""
    rng = np.random.default_rng(8)
    x = rng.random((10, 1))
    response = 200 + rng.standard_normal(10)
    sampler = BNN().prepare(setting(x, residual=response))
    state, draws = None, []
    for _ in range(100):
        state, values = sampler.draw([rng], state, response[None])
        draws.append(values)
    assert abs(np.mean(draws) - 200) < 1.5


def test_a_step_that_leaves_the_numbers_is_refused():
    rng = np.random.default_rng(10)
    sampler = BNN(hidden=4).prepare(setting(rng.random((10, 2))))
    state, _ = sampler.draw([rng], None, np.zeros((1, 10)))
    wild = state._replace(step=np.array([1e100]))
    later, values = sampler.draw([rng], wild, np.zeros((1, 10)))
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(later.hidden, state.hidden)


@pytest.mark.slow
def test_the_finite_projection_works():
    """The network's covariance is that of draws, so the findings must be those of the run, not of these."""
    x, y = MODEL1.simulate(np.random.default_rng(2), n=40)
    method = oc.methods.Projected(BNN(hidden=8), "finite")
    posterior = oc.calibrate(MODEL1.problem(x, y), method, draws=100, chains=2, seed=1)
    summary = posterior.summary()
    assert abs(summary["mean"].item() - MODEL1.theta_star[0]) < 4 * summary["sd"].item()
    assert largest_error(posterior) < 1e-10
    assert json.loads(posterior.data.attrs["notes"])["bias"][0]["density_rhat"] < 1.5

"""BMARS: the prior without data, exact posteriors, Geweke's joint test, predictions, bad input.

False alarms: batch means have 39 degrees of freedom, so |z| > 5 has probability 1.2e-5 a comparison, and there are
about 60 of them; seeds are fixed.
"""

import numpy as np
import pytest
from scipy import special, stats

from helpers import batch_z, setting, unit_inputs
from orthocal.bias.bmars import BMARS

LIMIT = 5


# The prior once more, written from its definition and without the package: inputs lie in [0, 1] and reach both ends.


def hinges(column, least):
    """All hinges of one input as rows of values at the data, for either sign."""
    rising = [np.maximum(column - t, 0) / (1 - t) for t in column if np.sum(column > t) >= least or t == 0]
    falling = [np.maximum(t - column, 0) / t for t in column if np.sum(column < t) >= least or t == 1]
    return rising, falling


def number_shares(most):
    """P(K) for lambda ~ Gamma(10, rate 10), K | lambda Poisson, truncated: a negative binomial."""
    shares = stats.nbinom.pmf(np.arange(most + 1), 10, 10 / 11)
    return shares / shares.sum()


def prior_draw(rng, table, order, most, spread, offset):
    """K, lambda given K, tau^2, how many basis functions have one input, and b at the data."""
    number = rng.choice(most + 1, p=number_shares(most))
    tau2 = spread**2 / rng.gamma(2)
    b, single = np.full(len(table[0][0][0]), offset * rng.standard_normal()), 0
    for _ in range(number):
        count = rng.integers(1, order + 1)
        single += count == 1
        product = 1.0
        for v in rng.permutation(len(table))[:count]:
            side = table[v][rng.integers(2)]
            product = product * side[rng.integers(len(side))]
        b = b + np.sqrt(tau2) * rng.standard_normal() * product
    return number, rng.gamma(10 + number) / 11, tau2, single, b


@pytest.mark.parametrize("most", [pytest.param(3, marks=pytest.mark.slow), 50])
def test_without_data_the_structure_follows_the_prior(most):
    """Numbers of basis functions, lambda and tau, and the inputs, signs and knots of the basis functions."""
    rng = np.random.default_rng(0)
    x = rng.random((30, 3))
    sampler = BMARS(most=most, order=3).prepare(setting(x, noise_var=np.full(30, 1e200)))
    state, numbers, scales, kinds = None, [], [], []
    for _ in range(20_000):
        state, _ = sampler.draw([rng], state, np.zeros((1, 30)))
        bases = state[0]
        number, used = bases.number[0], bases.slots[1 : 1 + bases.number[0]]
        factor, first = bases.factors[used], bases.factors[used, 0]
        sizes = np.count_nonzero(factor, axis=1)
        numbers.append(number)
        scales.append([bases.hyper[0], np.log(bases.hyper[1] / 4), bases.hyper[1] < 4])
        found = (sizes == 1, sizes == 2, sizes == 3, abs(first) == 2, first > 0, factor.ravel() == 3)
        middle = bases.knots[used, 0][first == 1] < 0.5
        kinds.append([*(np.count_nonzero(kind) for kind in found), number, np.count_nonzero(middle), len(middle)])
    shown = np.arange(min(most, 5) + 1)
    assert np.max(np.abs(batch_z(np.array(numbers)[:, None] == shown, number_shares(most)[shown]))) < LIMIT
    rate = np.sum(number_shares(most) * (10 + np.arange(most + 1)) / 11)
    # the residual has range 2, so tau^2 / 4 is inverse-gamma(2, 1)
    assert np.max(np.abs(batch_z(scales, [rate, -special.digamma(2), stats.invgamma.cdf(1, 2)]))) < LIMIT
    # input 3 with sign 1 is a factor of a basis function with probability E(J) / 6 = 1 / 3
    kinds, expected = np.array(kinds), np.array([1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 3])
    column = (x[:, 0] - x[:, 0].min()) / np.ptp(x[:, 0])
    knots = [t for t in column if np.sum(column > t) >= 5]
    deviations = np.column_stack(
        [kinds[:, :6] - kinds[:, 6:7] * expected, kinds[:, 7] - kinds[:, 8] * np.mean(np.array(knots) < 0.5)]
    )
    assert np.max(np.abs(batch_z(deviations, 0.0))) < LIMIT
    assert (state[0].counts[:, 1] > 100).all()


@pytest.mark.parametrize("degree", [1, 2])
def test_without_data_the_function_has_the_priors_variance(degree):
    """Var(b(x) - beta_0 | tau) = tau^2 E(K) E(h(x)^2), the last by going through all hinges."""
    rng = np.random.default_rng(1)
    x = unit_inputs(rng, 15, 2)
    sampler = BMARS(degree=degree, least=3).prepare(setting(x, noise_var=np.full(15, 1e200)))
    state, squares = None, []
    for _ in range(20_000):
        state, values = sampler.draw([rng], state, np.zeros((1, 15)))
        intercept = state[0].coefficient[0]
        squares.append([*((values[0, :4] - intercept) ** 2 / state[0].hyper[1]), intercept**2])
    one, two = (
        np.mean([np.mean(np.power(side, 2 * degree), axis=0) for side in hinges(column, 3)], axis=0) for column in x.T
    )
    expected = np.sum(number_shares(50) * np.arange(51)) * ((one + two) / 4 + one * two / 2)
    assert np.max(np.abs(batch_z(squares, [*expected[:4], 1.0]))) < LIMIT


def exact_posterior(table, most, spread, offset, noise_var, response):
    """P(K | y) and E(b | y) by going through all sets of hinges of one input and the quantiles of tau^2."""
    n = len(response)
    every = [np.array(side) for side in table]
    prior = np.concatenate([np.full(len(side), 0.5 / len(side)) for side in every])
    every = np.concatenate(every)
    tau2 = stats.invgamma.ppf((np.arange(200) + 0.5) / 200, 2, scale=spread**2)
    shares, weights, means = number_shares(most), [], []
    for number in range(most + 1):
        total, mean = 0.0, np.zeros(n)
        for which in np.ndindex(*[len(every)] * number):
            rows = every[list(which)]
            covariance = offset**2 + tau2[:, None, None] * (rows.T @ rows)
            whole = covariance + np.diag(noise_var)
            solved = np.linalg.solve(whole, np.broadcast_to(response, (200, n))[..., None])[..., 0]
            evidence = np.exp(-0.5 * solved @ response - 0.5 * np.linalg.slogdet(whole)[1])
            weight = shares[number] * np.prod(prior[list(which)]) * evidence / 200
            total += weight.sum()
            mean += np.einsum("t,tij,tj->i", weight, covariance, solved)
        weights.append(total)
        means.append(mean)
    return np.array(weights) / np.sum(weights), np.sum(means, axis=0) / np.sum(weights)


def test_posterior_is_the_exact_one_for_few_basis_functions():
    """Unequal noise, at most two basis functions: shares of their number, and the mean of b."""
    rng = np.random.default_rng(2)
    x = np.array([0.0, 0.2, 0.3, 0.7, 1.0])[:, None]
    noise_var = np.array([0.5, 0.2, 1.0, 0.3, 2.0])
    response = np.array([3.0, 1.0, -1.0, 2.0, 5.0])
    sampler = BMARS(most=2, least=2).prepare(setting(x, noise_var=noise_var, residual=response))
    shares, mean = exact_posterior(hinges(x[:, 0], 2), 2, sampler.spread, sampler.offset, noise_var, response)
    state, draws = None, []
    for _ in range(40_000):
        state, values = sampler.draw([rng], state, response[None])
        draws.append([*(state[0].number[0] == np.arange(3)), *values[0]])
    assert np.max(np.abs(batch_z(draws, [*shares, *mean]))) < LIMIT
    # the data must matter for this to mean anything
    assert np.abs(shares - number_shares(2)).max() > 0.1


def geweke_functions(number, rate, tau2, single, b):
    """Test functions (s, f) of draws (s,) and b (s, n); all have a variance, which tau^2 has not."""
    soft = np.tanh(b / 2)
    products = [soft[:, 0] ** 2, soft[:, 3] * soft[:, 7], np.tanh(np.ptp(b, axis=1)), soft.max(axis=1)]
    return np.column_stack([b[:, 0], *products, number, number == 0, rate, np.log(tau2), tau2 < 4, single])


def geweke_scores(break_it=None):
    """Geweke's joint-distribution test: z of test functions between prior draws and successive-conditional draws.

    Data are drawn given the function, the function given the data, in turn: the function then follows its prior.
    The prior draws are made without the package.
    """
    rng = np.random.default_rng(3)
    x = unit_inputs(rng, 12, 2)
    noise_var = rng.uniform(0.2, 1.0, 12)
    sampler = BMARS(most=4, least=3).prepare(setting(x, noise_var=noise_var))
    table = [hinges(column, 3) for column in x.T]
    prior = [prior_draw(rng, table, 2, 4, sampler.spread, sampler.offset) for _ in range(20_000)]
    reference = geweke_functions(*(np.array(part) for part in zip(*prior, strict=True)))
    if break_it:
        break_it(sampler)
    state, fits, joint = None, np.zeros((1, 12)), []
    noise = np.sqrt(noise_var) * rng.standard_normal((40_000, 12))
    for row in noise:
        state, fits = sampler.draw([rng], state, fits + row)
        bases = state[0]
        used = bases.slots[1 : 1 + bases.number[0]]
        single = np.count_nonzero(bases.factors[used, 1] == 0)
        joint.append((len(used), bases.hyper[0], bases.hyper[1], single, fits[0]))
    draws = geweke_functions(*(np.array(part) for part in zip(*joint, strict=True)))
    return batch_z(draws, reference.mean(axis=0), reference.std(axis=0) / np.sqrt(len(reference)))


@pytest.mark.slow
def test_geweke():
    assert np.max(np.abs(geweke_scores())) < LIMIT


def double_weight(sampler):
    sampler._weight = 2 * sampler._weight


def wrong_scale(sampler):
    sampler.spread /= 1.3


@pytest.mark.parametrize("break_it", [double_weight, pytest.param(wrong_scale, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_geweke_notices_a_wrong_sampler(break_it):
    """Negative controls: a wrong likelihood, a wrong scale of the coefficients."""
    assert np.max(np.abs(geweke_scores(break_it))) > 8


def test_the_kept_inner_products_do_not_drift():
    """After many moves, the state's rows and inner products are those of its basis functions."""
    rng = np.random.default_rng(7)
    x, noise_var = rng.random((60, 2)), rng.uniform(0.5, 2, 60)
    response = 40 * np.sin(6 * x[:, 0]) * x[:, 1]
    sampler = BMARS().prepare(setting(x, noise_var=noise_var, residual=response))
    state = None
    for _ in range(3000):
        state, _ = sampler.draw([rng], state, response[None])
    bases = state[0]
    used = bases.slots[: 1 + bases.number[0]]
    assert len(used) > 4
    assert sorted(bases.slots) == list(range(52))
    np.testing.assert_allclose(
        bases.gram[np.ix_(used, used)], (bases.rows[used] / noise_var) @ bases.rows[used].T, atol=1e-10
    )
    np.testing.assert_allclose(bases.fit, bases.coefficient[used] @ bases.rows[used], atol=1e-10)


def test_it_learns_a_smooth_function():
    rng = np.random.default_rng(8)
    x = rng.random((200, 2))
    truth = 5 * np.sin(5 * x[:, 0]) + 4 * x[:, 0] * x[:, 1]
    response = truth + rng.standard_normal(200)
    sampler = BMARS().prepare(setting(x, residual=response))
    state, draws = None, []
    for _ in range(2000):
        state, values = sampler.draw([rng], state, response[None])
        draws.append(values[0])
    # least squares with as many as ten free coefficients would have sqrt(10 / 200) = 0.22 from the noise alone
    assert np.sqrt(np.mean((np.mean(draws[200:], axis=0) - truth) ** 2)) < 0.4


def test_constant_inputs_are_not_used():
    rng = np.random.default_rng(10)
    x = np.column_stack([np.ones(30), rng.random(30)])
    sampler = BMARS().prepare(setting(x))
    assert sampler.findings()["knots"][0] == 0
    state, seen = None, set()
    for _ in range(500):
        state, _ = sampler.draw([rng], state, np.zeros((1, 30)))
        seen |= set(np.abs(sampler.record(state)["factor"]).ravel().tolist())
    assert seen == {0, 2}

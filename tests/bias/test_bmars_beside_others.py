"""Splines beside other coefficients: moves with these integrated out, and what the splines say about them.

False alarms: batch means have 39 degrees of freedom, so |z| > 5 has probability 1.2e-5 a comparison, and there are 18
of them; seeds are fixed.
"""

import numpy as np
import pytest
from test_bmars import LIMIT, hinges, prior_draw

from helpers import batch_z, setting, unit_inputs
from orthocal.bias.bmars import BMARS
from orthocal.regression.linear_part import LinearPart, Others


def dense(G, precision, weight):
    """Covariance of G beta + e, beta ~ N(0, precision^-1)."""
    return G @ np.linalg.inv(precision) @ G.T + np.diag(1 / weight)


def test_with_the_functions_coefficients_integrated_out():
    """Against a dense inverse."""
    rng = np.random.default_rng(1)
    H, D, weight = rng.standard_normal((4, 9)), rng.uniform(0.01, 2, 4), rng.uniform(0.5, 2, 9)
    G, z = rng.standard_normal((9, 3)), rng.standard_normal(9)
    B, pull = LinearPart(H, D, weight).information(G, z)
    inverse = np.linalg.inv(dense(H.T, np.diag(D), weight))
    np.testing.assert_allclose(B, G.T @ inverse @ G, rtol=1e-9)
    np.testing.assert_allclose(pull, G.T @ inverse @ z, rtol=1e-9)


def test_functions_that_follow_the_gradient_leave_its_prior():
    """H = G' with a prior of 1e-14 of the data's precision: B is that prior, to all digits but the last few."""
    x = np.linspace(0, 1, 30)
    G = np.stack([np.ones(30), x], axis=1)
    B, _ = LinearPart(G.T.copy(), np.array([1e-12, 1e-12]), np.full(30, 100.0)).information(G, x)
    np.testing.assert_allclose(B, np.diag([1e-12, 1e-12]), rtol=1e-4, atol=1e-16)


def test_with_the_others_integrated_out():
    """Inner products with S^-1, S of what the others and the noise make of the data, against a dense inverse."""
    rng = np.random.default_rng(2)
    G, weight, z, mean = rng.standard_normal((9, 3)), rng.uniform(0.5, 2, 9), rng.standard_normal(9), np.arange(3.0)
    root = rng.standard_normal((3, 3))
    precision = root @ root.T + np.eye(3)
    along, pull = Others(G, precision[None], (precision @ mean)[None]).of_chain(0).beside(weight, z)
    a, b = rng.standard_normal((2, 9))
    inverse = np.linalg.inv(dense(G, precision, weight))
    np.testing.assert_allclose(a @ (weight * b) - (along @ a) @ (along @ b), a @ inverse @ b, rtol=1e-9)
    np.testing.assert_allclose(a @ (weight * z) - (along @ a) @ pull, a @ inverse @ (z - G @ mean), rtol=1e-9)


def functions(number, tau2, single, b, beta):
    """Test functions of K, tau^2, functions of one input, b at the first two points, and beta (2,)."""
    odd = [np.tanh(b[:, 0]), np.tanh(b[:, 1]), np.tanh(b[:, 0] * beta[:, 0])]
    return np.column_stack([number == 0, number, single, tau2 < 4, *odd, *np.tanh(beta).T])


def geweke_scores(scale, noise_scale, others=lambda known: known):
    """z of test functions between draws of the prior and those of data, functions, beta and coefficients in turn."""
    rng = np.random.default_rng(3)
    x = unit_inputs(rng, 12, 2)
    noise_var = rng.uniform(0.2, 1.0, 12)
    sampler = BMARS(most=4, least=3, moves=2).prepare(setting(x, noise_var=noise_var))
    # a beta whose functions the splines can have, too, so that the two compete
    G, precision, mean = np.stack([np.ones(12), x[:, 0]], axis=1), np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([1, -2])
    known = Others(G, precision[None], (precision @ mean)[None])
    table, spread = [hinges(column, 3) for column in x.T], np.linalg.cholesky(np.linalg.inv(precision))
    prior = [prior_draw(rng, table, 2, 4, sampler.spread, sampler.offset) for _ in range(10_000)]
    number, _, tau2, single, b = (np.array(part) for part in zip(*prior, strict=True))
    reference = functions(number, tau2, single, b, mean + rng.standard_normal((10_000, 2)) @ spread.T)
    noise = np.sqrt(noise_scale * noise_var) * rng.standard_normal((10_000, 12))
    state, fits, beta, joint = None, np.zeros((1, 12)), mean + 0.0, []
    given = {"noise_scale": np.array([noise_scale * scale])}
    for row in noise:
        z = fits + G @ beta + row
        state, fits = sampler.draw([rng], state, z - G @ beta, **given)
        sampler.move_functions([rng], state, z, others(known), **given)
        (part,) = sampler.linear_parts(state, **given)
        B, pull = part.information(G, z[0])
        cov = np.linalg.inv(B + precision)
        beta = cov @ (pull + precision @ mean) + np.linalg.cholesky(cov) @ rng.standard_normal(2)
        fits = sampler.draw_coefficients([rng], state, z - G @ beta, **given)
        used = state[0].slots[1 : 1 + state[0].number[0]]
        joint.append((len(used), state[0].hyper[1], np.sum(state[0].factors[used, 1] == 0), fits[0], beta))
    draws = functions(*(np.array(part) for part in zip(*joint, strict=True)))
    return batch_z(draws, reference.mean(axis=0), reference.std(axis=0) / 100)


@pytest.mark.parametrize("noise_scale", [1.0, 2.0])
def test_geweke(noise_scale):
    assert np.max(np.abs(geweke_scores(1.0, noise_scale))) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        {"scale": 0.5},
        {"others": lambda known: known._replace(pull=-known.pull)},
        {"others": lambda known: known._replace(precision=30 * known.precision, pull=30 * known.pull)},
    ],
)
def test_geweke_notices_a_wrong_sampler(broken):
    """Negative controls: half the noise; moves with another mean of the others, and another precision."""
    assert np.max(np.abs(geweke_scores(**{"scale": 1.0, "noise_scale": 1.0, **broken}))) > 8


def test_inner_products_are_kept():
    """After moves beside others, with noise of another size, rows and inner products are those of the functions."""
    rng = np.random.default_rng(7)
    x, noise_var = rng.random((40, 2)), rng.uniform(0.5, 2, 40)
    sampler = BMARS().prepare(setting(x, noise_var=noise_var))
    z, scale = 20 * np.sin(6 * x[:, 0])[None], np.array([3.0])
    state, _ = sampler.draw([rng], None, z, noise_scale=scale)
    known = Others(x, np.eye(2)[None], np.zeros((1, 2)))
    for _ in range(20):
        sampler.move_functions([rng], state, z, known, noise_scale=scale)
    fit = sampler.draw_coefficients([rng], state, z, noise_scale=scale)
    own = state[0]
    used = own.slots[: 1 + own.number[0]]
    assert len(used) > 2
    rows = own.rows[used]
    np.testing.assert_allclose(own.gram[np.ix_(used, used)], (rows / noise_var) @ rows.T, rtol=1e-9)
    np.testing.assert_allclose(fit[0], own.coefficient[used] @ rows)
    np.testing.assert_allclose(sampler.predict(rng, sampler.record(state), x), fit)

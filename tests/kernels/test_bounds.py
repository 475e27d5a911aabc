"""The theta step where the posterior lies on bounds of the support, against numerical integration.

False alarms: |z| > 4.5 has probability 7e-6 a comparison; seeds are fixed, so a pass stays a pass.
"""

import numpy as np
import pytest
from scipy import stats

from helpers import batch_z, generators
from orthocal.kernels import Laplace
from orthocal.kernels.base import Conditional, ThetaModel
from orthocal.kernels.laplace import Truncated
from orthocal.problem.prior.parameters import Parameters

LIMIT = 4.5
CHAINS = 4


def target(simulate, slope, offset, upper=50.0, p=2):
    """theta uniform on [0, upper], offset ~ N(simulate(theta), I) for theta (c, p)."""
    parameters = Parameters({f"t{j}": stats.uniform(0, upper) for j in range(p)})
    model = ThetaModel(
        parameters,
        lambda theta: simulate(theta)[:, :, None],
        lambda theta: slope(theta)[:, None],
        np.ones((len(offset), 1)),
    )
    return Conditional(model, np.tile(np.asarray(offset, float)[None, :, None], (CHAINS, 1, 1)))


def run(conditional, start, draws=200):
    """Draws (draws, chains, p) and the acceptance after a tuned warm-up that begins on the bounds."""
    kernel, rngs, model = Laplace(), generators(CHAINS), conditional.base
    tuning = kernel.tune(model, start)
    state = model.state(np.tile(start, (CHAINS, 1)))
    for _ in range(4):
        window = []
        for _ in range(25):
            state, info = kernel.step(rngs, tuning, state, conditional)
            window.append((state.theta, info.tuned))
        tuning = kernel.adapt(tuning, model, *(np.stack(part) for part in zip(*window, strict=True)))
    kept = []
    for _ in range(draws):
        state, info = kernel.step(rngs, tuning, state, conditional)
        np.testing.assert_allclose(info.log_density, conditional.log_density(state))
        kept.append(state.theta)
    return np.stack(kept)


def moments(conditional, reach, p):
    """Means and mean squares by a grid from 0 to ``reach`` (p,)."""
    points = 20_000 if p == 1 else 400
    axes = [(np.arange(points) + 0.5) / points * one for one in reach]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, p)
    whole = Conditional(
        conditional.base, np.broadcast_to(conditional.offset[:1], (len(grid), *conditional.offset.shape[1:]))
    )
    density = whole.log_density(conditional.base.state(grid))
    weights = np.exp(density - density.max())
    return np.concatenate([weights @ grid, weights @ grid**2]) / weights.sum()


def z_of_moments(draws, exact):
    flat = np.concatenate([draws, draws**2], axis=2).mean(axis=1)
    return batch_z(flat, exact)


@pytest.mark.parametrize("centre", [0.0, -3.0, -30.0, 1.5])
def test_one_parameter_at_its_bound(centre):
    """With the best fit on the bound, or far outside of it: a linear simulator's step is an exact draw."""
    conditional = target(lambda theta: theta, lambda theta: np.eye(1), [centre], p=1)
    draws = run(conditional, np.array([1e-6]))
    assert np.all(np.diff(draws, axis=0) != 0)
    exact = moments(conditional, [min(8.0, 20 / max(-centre, 2.0)) + max(centre, 0.0)], 1)
    assert np.all(np.abs(z_of_moments(draws, exact)) < LIMIT)


@pytest.mark.parametrize(
    ("rho", "centre"),
    [
        (0.95, (-2, -2)),
        (0.95, (-10, 5)),
        # these two need slice sampling
        pytest.param(-0.95, (0, 0), marks=pytest.mark.slow),
        pytest.param(-0.95, (-10, 5), marks=pytest.mark.slow),
    ],
)
def test_two_parameters_at_their_bounds(rho, centre):
    """A Gaussian that is cut off at a corner, or at one bound far from where a coordinate alone would put it."""
    G = np.linalg.cholesky(np.linalg.inv(np.array([[1, rho], [rho, 1]]))).T
    conditional = target(lambda theta: theta @ G.T, lambda theta: G, G @ np.array(centre))
    draws = run(conditional, np.full(2, 1e-6))
    assert np.mean(np.any(np.diff(draws, axis=0) != 0, axis=2)) > 0.9
    exact = moments(conditional, 1.6 * draws.max(axis=(0, 1)), 2)
    assert np.all(np.abs(z_of_moments(draws, exact)) < LIMIT)


@pytest.mark.slow
def test_a_curved_simulator_at_two_bounds():
    x = np.linspace(0, 1, 8)

    def simulate(theta):
        return 6 * np.exp(-theta[:, :1] * x) + 3 * theta[:, 1:] ** 1.5 * x

    def slope(theta):
        return np.column_stack([-6 * x * np.exp(-theta[0] * x), 4.5 * theta[1] ** 0.5 * x])

    conditional = target(simulate, slope, 6 + 0.5 * x)
    draws = run(conditional, np.full(2, 1e-6))
    exact = moments(conditional, 1.6 * draws.max(axis=(0, 1)), 2)
    assert np.all(np.abs(z_of_moments(draws, exact)) < LIMIT)


def test_the_density_of_truncated_proposals():
    """It is a density, on a grid, and that of the draws: their means and squares follow it."""
    parameters = Parameters({"a": stats.uniform(0, 3), "b": stats.norm(0, 1)})
    precision = np.array([[2.0, -1.1], [-1.1, 1.0]])
    centre = np.array([-0.7, 0.4])
    count = 5_000
    proposal = Truncated.of(np.tile(centre, (count, 1)), np.linalg.cholesky(precision)[None], parameters)
    drawn, density = proposal.draw(generators(1) * count)
    np.testing.assert_allclose(proposal.log_density(drawn), density, atol=1e-9)
    assert parameters.inside(drawn).all()
    a, b = np.meshgrid((np.arange(150) + 0.5) / 50, np.linspace(-8, 8, 200), indexing="ij")
    grid = np.column_stack([a.ravel(), b.ravel()])
    whole = Truncated.of(np.tile(centre, (len(grid), 1)), np.linalg.cholesky(precision)[None], parameters)
    weights = np.exp(whole.log_density(grid)) * np.sqrt(np.linalg.det(precision)) / (2 * np.pi) * 0.02 * 16 / 199
    assert weights.sum() == pytest.approx(1, abs=1e-3)
    for power in (1, 2):
        exact, values = weights @ grid**power, drawn**power
        assert np.all(np.abs(values.mean(axis=0) - exact) < LIMIT * values.std(axis=0) / np.sqrt(count) + 1e-3)


@pytest.mark.parametrize("bounded", [False, True])
def test_truncated_proposals_at_one_bound_are_the_truncated_gaussian(bounded):
    """-(theta - c)' H (theta - c) / 2, less the log of the share of a within its bounds: the closed form."""
    priors = {"a": stats.uniform(0, 3) if bounded else stats.norm(0, 1), "b": stats.norm(0, 1)}
    precision, centre = np.array([[2.0, -1.1], [-1.1, 1.0]]), np.array([0.4, -0.3])
    theta = np.random.default_rng(1).uniform(0.1, 2.9, (20, 2))
    proposal = Truncated.of(np.tile(centre, (20, 1)), np.linalg.cholesky(precision)[None], Parameters(priors))
    inside = stats.norm(centre[0], np.sqrt(np.linalg.inv(precision)[0, 0]))
    share = inside.cdf(3) - inside.cdf(0) if bounded else 1.0
    away = theta - centre
    exact = -0.5 * np.einsum("ci,ij,cj->c", away, precision, away) - np.log(share)
    np.testing.assert_allclose(proposal.log_density(theta), exact, atol=1e-10)

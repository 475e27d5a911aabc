"""What makes a theta step leave its target invariant, as identities: there and back, proposals and their densities.

The one statistical test says so; its seed is fixed.
"""

import numpy as np
import pytest
from scipy import stats

from helpers import generators
from orthocal.kernels import HMC, slice
from orthocal.kernels.base import Conditional, ThetaModel, ThetaState, accept
from orthocal.kernels.hmc import HMCTuning, _reflected
from orthocal.kernels.laplace import _log_kernel, _proposal, _standard
from orthocal.problem.prior.parameters import Parameters

ROOT = np.array([[0.5, 0.0], [0.3, 0.4]])
TUNING = HMCTuning(ROOT, 0.3)


def curved(theta):
    return np.stack([theta[:, 0] + theta[:, 1] ** 2, np.sin(theta[:, 0]) - theta[:, 1]], axis=1)[:, :, None]


def slope(theta):
    return np.array([[1.0, 2 * theta[1]], [np.cos(theta[0]), -1.0]])[:, None]


def conditional(chains, lower=0.0, width=1.0):
    """theta uniform on a square, two observations of a curved simulator."""
    parameters = Parameters({name: stats.uniform(lower, width) for name in "ab"})
    model = ThetaModel(parameters, curved, slope, np.full((2, 1), 4.0))
    return Conditional(model, np.tile(np.array([0.9, -0.1])[None, :, None], (chains, 1, 1)))


def crossings(theta, target):
    """How many of the two bounds in each parameter lie before theta, (c,)."""
    parameters = target.base.parameters
    return ((theta < parameters.lower) | (theta > parameters.upper)).sum(axis=1)


def there_and_back(target, start, momentum, leapfrogs=5):
    """Where a trajectory ends, and where one with the opposite momentum leads from there."""
    size = np.full((len(start), 1), TUNING.size)
    kernel = HMC(leapfrogs=leapfrogs)
    end, last = kernel._trajectory(TUNING, target.base.state(start), momentum, size, target)
    back, first = kernel._trajectory(TUNING, end, -last, size, target)
    return end, back.theta, -first


def test_a_trajectory_leads_back():
    rng = np.random.default_rng(1)
    target = conditional(50, -20.0, 40.0)
    start, momentum = rng.uniform(-1, 1, (50, 2)), rng.standard_normal((50, 2))
    end, theta, first = there_and_back(target, start, momentum)
    assert np.abs(end.theta - start).min() > 1e-3
    np.testing.assert_allclose(theta, start, atol=1e-10)
    np.testing.assert_allclose(first, momentum, atol=1e-10)


def test_short_leaps_keep_the_energy():
    """The error of ten leaps of 0.003 is of the order of their square; that of a full last kick of their length."""
    rng = np.random.default_rng(1)
    target = conditional(50, -20.0, 40.0)
    state, momentum = target.base.state(rng.uniform(-1, 1, (50, 2))), rng.standard_normal((50, 2))
    end, last = HMC(leapfrogs=10)._trajectory(TUNING, state, momentum, np.full((50, 1), 0.003), target)
    energies = [0.5 * np.sum(m**2, axis=1) - target.log_density(one) for one, m in ((state, momentum), (end, last))]
    np.testing.assert_allclose(*energies, atol=2e-4)


def test_a_trajectory_that_meets_a_bound_leads_back():
    """One leap from inside of the square: where it would leave by one bound it turns, and stays inside."""
    rng = np.random.default_rng(2)
    target = conditional(400)
    start, momentum = rng.uniform(0, 1, (400, 2)), 2 * rng.standard_normal((400, 2))
    size = np.full((400, 1), TUNING.size)
    end, theta, first = there_and_back(target, start, momentum, leapfrogs=1)
    inside = np.isfinite(target.log_density(end))
    kick = 0.5 * size * np.einsum("cp,pj->cj", target.score(target.base.state(start), _slopes(start)), ROOT)
    straight = start + size * (momentum + kick) @ ROOT.T
    turned = inside & (crossings(straight, target) == 1)
    assert turned.sum() > 50
    np.testing.assert_allclose(theta[inside], start[inside], atol=1e-9)
    np.testing.assert_allclose(first[inside], momentum[inside], atol=1e-9)
    # the mirror of the straight move: as far from the bound on the other side
    bounds = np.clip(straight, 0, 1)
    j = np.argmax(np.abs(straight - bounds)[turned], axis=1)
    rows = np.arange(len(j))
    np.testing.assert_allclose((end.theta - bounds)[turned][rows, j], -(straight - bounds)[turned][rows, j], atol=1e-9)


def _slopes(theta):
    return np.stack([slope(one) for one in theta])


def test_what_is_reflected_comes_back_by_the_same_bound():
    """Also a move that began outside, in the midst of a trajectory: the opposite one leads to where it began."""
    count, root = 1000, np.array([[1.0, 0.0], [3.0, 1.0]]) / 5
    target, rng = conditional(count), np.random.default_rng(0)
    tuning, size = HMCTuning(root, 1.0), np.ones((count, 1))
    start, momentum = rng.uniform(-1, 2, (count, 2)), 2 * rng.standard_normal((count, 2))
    moved = start + momentum @ root.T
    theta, turned = _reflected(moved, momentum, size, tuning, target)
    again, _ = _reflected(theta - turned @ root.T, -turned, size, tuning, target)
    reflected = (theta != moved).any(axis=1)
    assert reflected.sum() > 50
    np.testing.assert_allclose(again[reflected], start[reflected], atol=1e-9)


@pytest.mark.parametrize("freedom", [4.0, np.inf])
def test_the_density_of_a_proposal_is_that_of_student(freedom):
    """In two dimensions, up to a constant."""
    z = np.random.default_rng(3).standard_normal((20, 2))
    law = stats.multivariate_normal(np.zeros(2)) if freedom == np.inf else stats.multivariate_t(np.zeros(2), df=freedom)
    found, exact = _log_kernel(z, freedom), law.logpdf(z)
    np.testing.assert_allclose(found - found[0], exact - exact[0], atol=1e-12)


def test_proposals_with_heavy_tails_follow_student_in_two_dimensions():
    """|z|^2 / 2 ~ F(2, 4), by Kolmogorov and Smirnov at level 1e-4."""
    z = _standard(np.random.default_rng(4), 20_000, 2, 4.0)
    assert stats.kstest(np.sum(z**2, axis=1) / 2, stats.f(2, 4).cdf).pvalue > 1e-4


@pytest.mark.parametrize("freedom", [4.0, np.inf])
def test_a_proposal_is_what_its_own_z_says(freedom):
    """theta = centre + root z, also where it was drawn again to lie inside, with each chain's own root."""
    target, rng = conditional(300), np.random.default_rng(5)
    centre = rng.uniform(0, 1, (300, 2))
    root = np.tril(rng.uniform(0.3, 1.0, (300, 2, 2)))
    theta, scaled = _proposal(generators(300), centre, root, freedom, target)
    np.testing.assert_allclose(theta, centre + np.einsum("cij,cj->ci", root, scaled), atol=1e-12)
    first = _proposal(generators(300), centre, root, freedom, conditional(300, -1e6, 2e6))[0]
    outside = ~target.base.parameters.inside(first)
    assert outside.sum() > 100
    assert target.base.parameters.inside(theta).mean() > 0.9


class Flat:
    """The uniform law on [0, 1], in the shape of a conditional density."""

    def part(self, _):
        return self

    @property
    def base(self):
        return self

    def state(self, theta):
        return ThetaState(theta, theta, theta[:, 0])

    def log_density(self, state):
        return np.where((state.theta[:, 0] > 0) & (state.theta[:, 0] < 1), 0.0, -np.inf)


def moved_by_slices(start, width):
    """Where one update leads from each of the starts (c,), by a bracket of this width."""
    rng, target = np.random.default_rng(6), Flat()
    state, _ = slice.swept([rng] * len(start), target.state(start[:, None]), target, np.array([[width]]), 1)
    return state.theta[:, 0]


def test_slice_sampling_leaves_a_uniform_law_where_widening_is_limited(monkeypatch):
    """From a regular grid of starts: tenths of the line are alike, chi-squared at level 1e-4; and every one moves."""
    monkeypatch.setattr(slice, "MOST_WIDENINGS", 3)
    start = (np.arange(4000) + 0.5) / 4000
    moved = moved_by_slices(start, 0.45)
    # a start on a grid makes the counts vary less than chance would
    assert stats.chisquare(np.histogram(moved, np.linspace(0, 1, 11))[0]).pvalue > 1e-4
    assert (moved != start).all()


def test_the_bracket_lies_anywhere_around_its_start(monkeypatch):
    """Its place and the point in it are uniform, so the way is their difference: triangular, at level 1e-4."""
    monkeypatch.setattr(slice, "MOST_WIDENINGS", 1)
    way = (moved_by_slices(np.full(1000, 0.5), 0.1) - 0.5) / 0.1
    assert stats.kstest(way, stats.triang(0.5, loc=-1, scale=2).cdf).pvalue > 1e-4


def test_the_score_is_the_slope_of_the_density():
    """By differences, with priors that have a slope of their own."""
    parameters = Parameters({"a": stats.norm(0.5, 0.7), "b": stats.norm(-1, 0.4)})
    target = Conditional(ThetaModel(parameters, curved, slope, np.full((2, 1), 4.0)), np.full((1, 2, 1), 0.3))
    theta, step = np.array([[0.2, -0.6]]), 1e-5
    score = target.score(target.base.state(theta), slope(theta[0])[None])
    for j, move in enumerate(step * np.eye(2)):
        ahead, behind = (target.log_density(target.base.state(theta + sign * move)) for sign in (1, -1))
        np.testing.assert_allclose(score[:, j], (ahead - behind) / (2 * step), rtol=1e-6)


class Drawn:
    """A generator with one number."""

    def __init__(self, uniform):
        self.random = lambda: uniform


def test_a_move_is_made_with_the_probability_of_its_ratio():
    uniform = np.array([0.0, 0.3, 0.49, 0.51, 0.7, 0.74, 0.76, 0.99])
    state = conditional(len(uniform)).base.state(np.full((len(uniform), 2), 0.5))
    moved_to = conditional(len(uniform)).base.state(np.full((len(uniform), 2), 0.6))
    density = np.zeros(len(uniform))
    for ratio in (0.5, 0.25):
        *_, moved = accept([Drawn(one) for one in uniform], state, density, moved_to, density, np.log(ratio) + density)
        np.testing.assert_array_equal(moved, 1 - uniform < ratio)

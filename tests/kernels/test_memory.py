"""The memory of the theta step: what it conditions on, and what it says when it cannot tell."""

import numpy as np
from scipy import stats

from orthocal.kernels.base import Conditional, ThetaModel
from orthocal.methods.projected import Centre, memory
from orthocal.problem.prior.parameters import Parameters

N, CHAINS = 30, 3
X = np.linspace(0, 1, N)[:, None]


def line():
    """f = theta x with two outcomes of different size, a prior that hardly matters, and noise of precision one."""
    slopes = np.stack([X[:, 0], 3 * X[:, 0] ** 2], axis=1)
    return slopes, ThetaModel(
        Parameters({"t": stats.norm(0, 1e4)}),
        lambda theta: theta[:, :, None] * slopes,
        lambda theta: slopes[:, :, None],
        np.ones((N, 2)),
    )


def test_the_centre_knows_the_noise_of_each_chain():
    """For a linear simulator the centre is weighted least squares, with the chain's own precision as weight."""
    slopes, model = line()
    rng = np.random.default_rng(0)
    offset = rng.standard_normal((CHAINS, N, 2)) + 2 * slopes
    root = rng.standard_normal((CHAINS, 2, 2))
    precision = root @ root.swapaxes(1, 2) + 0.1 * np.eye(2)
    centre = Centre.at(model, np.array([2.0]))(Conditional(model, offset, precision[:, None]))
    for c in range(CHAINS):
        weighted = slopes @ precision[c]
        exact = np.sum(weighted * offset[c]) / np.sum(weighted * slopes)
        np.testing.assert_allclose(centre[c], exact, rtol=1e-6)
    # with the noise that the chains began with it is another one
    assert np.abs(Centre.at(model, np.array([2.0]))(Conditional(model, offset)) - centre).min() > 1e-3


def test_exact_draws_remember_nothing_and_one_small_step_does():
    """4000 draws of theta ~ N(centre, 1): the correlation has a standard error of 0.016, the limit is five of these."""
    rng = np.random.default_rng(1)
    centre = rng.standard_normal((4000, 1))
    before, after = centre + rng.standard_normal((2, 4000, 1))
    assert memory(before, after, centre) < 0.08
    sticky = centre + 0.9 * (before - centre) + np.sqrt(1 - 0.81) * rng.standard_normal((4000, 1))
    assert memory(before, sticky, centre) > 0.85


def test_too_few_draws_are_no_knowledge():
    draws = np.random.default_rng(2).standard_normal((3, 11, 1))
    assert memory(*draws) is None

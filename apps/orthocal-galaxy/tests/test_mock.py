"""The mock galaxy: a truth that looks like a galaxy, and a best theta inside of the box."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from orthocal.errors import InputError
from orthocal_galaxy import PARAMETERS, mock_galaxy, theta_star


def test_truth_looks_like_a_fast_rotator(galaxy):
    v, sigma, h3, h4 = galaxy.truth.T
    x = galaxy.bins.centres[:, 0]
    assert np.corrcoef(v, x)[0, 1] > 0.8
    assert 80 < np.abs(v).max() < 300
    assert 100 < sigma.min() < sigma.max() < 350
    # h3 opposes v, as in disc galaxies
    assert np.corrcoef(v, h3)[0, 1] < -0.5
    assert np.abs(h4).max() < 0.15
    assert (galaxy.errors[:, :2] > 2.9).all()
    assert (galaxy.errors[:, :2] < 8).all()


def test_the_truths_mass_to_light_ratio_varies(galaxy):
    factors = galaxy.mass_factors
    assert galaxy.light.shares @ factors == pytest.approx(1)
    assert factors[0] > 1.15
    assert factors[-1] < 0.92
    assert np.array_equal(galaxy.light.mass_factors, np.ones(6))


def test_noise(galaxy):
    """Mean and sd of 160 scaled residuals within 4 standard errors: false alarms 1e-4."""
    scaled = (galaxy.noisy(np.random.default_rng(4)) - galaxy.truth) / galaxy.errors
    assert abs(scaled.mean()) < 4 / np.sqrt(160)
    assert abs(scaled.std() - 1) < 4 / np.sqrt(320)
    assert np.array_equal(galaxy.noisy(np.random.default_rng(4)), galaxy.noisy(np.random.default_rng(4)))
    assert galaxy.noise_var == pytest.approx((galaxy.errors**2).mean(axis=0))


class Curved:
    """A stand-in for the model, smooth and cheap: 4 outcomes in 30 bins, with roughness of a given size."""

    theta_0 = np.array([8.0, 2.5, 0.3])

    def __init__(self, rough):
        rng = np.random.default_rng(0)
        self.x, self.slope, self.bend = rng.random((30, 2)), rng.normal(size=(30, 4, 3)), rng.normal(size=(30, 4))
        self.rough = rough

    def __call__(self, x, theta):
        unit = (np.asarray(theta) - [8.5, 3.0, 0.2]) / [1.0, 1.0, 0.2]
        wiggle = self.rough * np.sin(300 * unit.sum() + 50 * self.bend)
        return self.slope @ unit + self.bend * (unit**2).sum() + wiggle


@pytest.mark.parametrize("rough", [0.0, 0.05])
def test_best_theta_of_a_known_model(rough):
    """The truth is the smooth model at a theta plus something orthogonal to its gradient there."""
    model, smooth = Curved(rough), Curved(0.0)
    best = np.array([8.8, 2.7, 0.16])
    h = 1e-6 * np.eye(3)
    gradient = np.stack([(smooth(0, best + e) - smooth(0, best - e)).ravel() / 2e-6 for e in h], axis=1)
    bias = np.random.default_rng(1).normal(size=120)
    bias -= gradient @ np.linalg.lstsq(gradient, bias, rcond=None)[0]
    found = theta_star(model, smooth(0, best) + 0.3 * bias.reshape(30, 4), np.ones(4))
    assert found.theta == pytest.approx(best, abs=2e-3 if rough == 0 else 0.02)
    assert found.loss == pytest.approx(0.09 * (bias**2).sum() / 30, rel=0.05)
    assert found.curvature == pytest.approx(gradient.T @ gradient / 30, rel=0.2, abs=0.3)


@pytest.mark.slow
def test_best_theta_is_inside_of_the_box(galaxy):
    found = theta_star(galaxy.model, galaxy.truth, np.sqrt(galaxy.noise_var), starts=1)
    low, high = np.array([galaxy.prior_box[name] for name in PARAMETERS]).T
    assert (found.theta > low + 0.02 * (high - low)).all()
    assert (found.theta < high - 0.02 * (high - low)).all()
    # the loss says something about each of the three parameters
    sds = np.sqrt(np.diag(np.linalg.inv(found.curvature * len(galaxy.bins))))
    assert (sds < 0.1 * (high - low)).all()

    def loss(theta):
        difference = galaxy.model(galaxy.x, theta) - galaxy.truth
        return float((difference**2 / galaxy.noise_var).sum(axis=1).mean())

    best = loss(found.theta)
    assert best == pytest.approx(found.loss, rel=0.15)
    for k, step in enumerate((0.4, 0.4, 0.08)):
        for sign in (-1, 1):
            assert loss(found.theta + sign * step * np.eye(3)[k]) > best


@pytest.mark.slow
def test_starts_agree():
    galaxy = mock_galaxy("small")
    found = theta_star(galaxy.model, galaxy.truth, np.sqrt(galaxy.noise_var))
    for theta, _ in found.minima:
        assert np.abs(theta - found.theta) == pytest.approx(0, abs=0.3)
        assert (np.abs(theta - found.theta) < [0.15, 0.15, 0.03]).all()


def test_mistakes(galaxy):
    with pytest.raises(InputError, match=r"give \(low, high\) for each of log10_mbh, ml, f_dm"):
        theta_star(galaxy.model, galaxy.truth, galaxy.errors, {"ml": (1, 2)})
    with pytest.raises(InputError, match="f_DM"):
        mock_galaxy(galaxy.model.settings, 20, theta_true=(8, 3, 2))


def test_it_is_the_same_whatever_the_number_of_blas_threads(galaxy):
    """Runs of it that are kept belong to it by a digest of all its numbers."""
    with threadpool_limits(2, "blas"):
        again = mock_galaxy(galaxy.model.settings, nbin=40)
    assert again.model.identity() == galaxy.model.identity()

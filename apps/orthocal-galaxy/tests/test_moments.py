"""Gauss-Hermite moments: what is put in comes out."""

import numpy as np
import pytest

from orthocal.errors import InputError
from orthocal_galaxy import gauss_hermite, losvd
from orthocal_galaxy.moments import hermite

VELOCITY = np.linspace(-2000, 2000, 161)


def test_known_moments_come_back():
    rng = np.random.default_rng(0)
    moments = np.column_stack(
        [
            rng.uniform(-250, 250, 60),
            rng.uniform(70, 260, 60),
            rng.uniform(-0.15, 0.15, 60),
            rng.uniform(-0.1, 0.15, 60),
        ]
    )
    light = losvd(moments, VELOCITY) * rng.uniform(0.1, 10, (60, 1))
    assert gauss_hermite(light, VELOCITY) == pytest.approx(moments, rel=1e-6, abs=1e-6)
    assert losvd(moments, VELOCITY).sum(axis=1) * 25 == pytest.approx(1.0, abs=1e-6)


def test_the_basis_is_orthogonal():
    w = np.linspace(-9, 9, 2001)
    basis = hermite(w)
    product = np.einsum("mw,nw->mn", basis, basis) * (w[1] - w[0])
    assert product == pytest.approx(np.eye(5) / (2 * np.sqrt(np.pi)), abs=1e-9)


def test_a_sum_of_two_gaussians_by_least_squares():
    """h1 = h2 = 0 is the least-squares fit of a Gaussian: an independent fit of V and sigma agrees."""
    from scipy.optimize import least_squares

    light = np.exp(-0.5 * ((VELOCITY - 60) / 120) ** 2) + 0.4 * np.exp(-0.5 * ((VELOCITY + 150) / 80) ** 2)

    def misfit(p):
        return light - p[2] * np.exp(-0.5 * ((VELOCITY - p[0]) / p[1]) ** 2)

    fitted = least_squares(misfit, [0, 150, 1], xtol=1e-12, ftol=1e-12).x
    assert gauss_hermite(light[None], VELOCITY)[0, :2] == pytest.approx(fitted[:2], rel=1e-5)


def test_blur_is_taken_out():
    wide = losvd(np.array([[10.0, 130.0, 0.0, 0.0]]), VELOCITY)
    assert gauss_hermite(wide, VELOCITY, 50.0**2)[0] == pytest.approx([10, 120, 0, 0], abs=1e-6)


def test_what_has_no_moments_is_nan():
    light = np.zeros((3, len(VELOCITY)))
    light[1] = losvd(np.array([[0.0, 100.0, 0.0, 0.0]]), VELOCITY)
    light[2] = np.nan
    out = gauss_hermite(light, VELOCITY)
    assert np.isnan(out[[0, 2]]).all()
    assert out[1] == pytest.approx([0, 100, 0, 0], abs=1e-6)


def test_mistakes():
    with pytest.raises(InputError, match=r"give \(n, 161\)"):
        gauss_hermite(np.ones((2, 5)), VELOCITY)
    with pytest.raises(InputError, match="sigma must be positive"):
        losvd(np.array([[0.0, -1.0, 0, 0]]), VELOCITY)

"""The light, and the gravity of stars, black hole and halo, against independent integrals and closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad

from orthocal.errors import InputError
from orthocal_galaxy import MassModel, MultiGaussian, fit_light

DISTANCE, INCLINATION = 16.0, 75.0
PC = DISTANCE * 1e6 * np.pi / 648000
G = 0.004300917 / PC
NO_BLACK_HOLE = -10.0


@pytest.fixture(scope="module")
def mass(light):
    return MassModel(light, DISTANCE, INCLINATION)


def homoeoid_forces(mass, R, z):
    """F_i = -2 pi G q x_i int_0^inf rho(m^2(u)) / ((1 + u) D_i(u)) du, summed: Binney and Tremaine (2.125)."""
    total = np.zeros(2)
    for body, sd, q in zip(mass.unit_masses, mass.sds, mass.ratios, strict=True):
        peak = body / ((2 * np.pi) ** 1.5 * sd**3 * q)

        def density(s, peak=peak, sd=sd, q=q):
            # u = a^2 (1 / s^2 - 1) with a = 1 (unit of the axes)
            u = 1 / s**2 - 1
            return peak * np.exp(-0.5 * (R**2 / (1 + u) + z**2 / (q**2 + u)) / sd**2), u

        def across(s, q=q, density=density):
            rho, u = density(s)
            return rho / ((1 + u) ** 2 * np.sqrt(q**2 + u)) * 2 / s**3

        def up(s, q=q, density=density):
            rho, u = density(s)
            return rho / ((1 + u) * (q**2 + u) ** 1.5) * 2 / s**3

        kinks = [min(0.9, sd / np.hypot(R, z))]
        total[0] -= 2 * np.pi * G * q * R * quad(across, 0, 1, epsrel=1e-9, epsabs=0, limit=300, points=kinks)[0]
        total[1] -= 2 * np.pi * G * q * z * quad(up, 0, 1, epsrel=1e-9, epsabs=0, limit=300, points=kinks)[0]
    return total


def test_forces_of_the_stars_agree_with_quadrature(mass):
    gravity = mass.gravity((NO_BLACK_HOLE, 2.0, 0.0))
    rng = np.random.default_rng(1)
    for radius in np.geomspace(0.03, 150, 25):
        latitude = rng.uniform(0.02, 1.55)
        R, z = radius * np.cos(latitude), -radius * np.sin(latitude)
        _, across, up = gravity.at(R, z)
        expected = 2 * homoeoid_forces(mass, R, z)
        assert np.hypot(across - expected[0], up - expected[1]) < 1e-3 * np.hypot(*expected)


def test_gauss_theorem_by_brute_force(mass):
    """The flux of the force through a sphere is -4 pi G times the mass of the stars that lie inside."""
    gravity = mass.gravity((NO_BLACK_HOLE, 1.0, 0.0))
    node, weight = np.polynomial.legendre.leggauss(60)
    for radius in (0.7, 3.0, 15.0):
        _, across, up = gravity.at(radius * np.sqrt(1 - node**2), radius * node)
        flux = 2 * np.pi * radius**2 * np.sum(weight * (across * np.sqrt(1 - node**2) + up * node))
        # the density on a 3-D grid, an octant
        side = (np.arange(160) + 0.5) / 160 * radius
        x, y, z = np.meshgrid(side, side, side, indexing="ij", sparse=True)
        inside = x**2 + y**2 + z**2 < radius**2
        density = sum(
            body / ((2 * np.pi) ** 1.5 * sd**3 * q) * np.exp(-0.5 * (x**2 + y**2 + (z / q) ** 2) / sd**2)
            for body, sd, q in zip(mass.unit_masses, mass.sds, mass.ratios, strict=True)
        )
        enclosed = 8 * density[inside].sum() * (radius / 160) ** 3
        assert flux == pytest.approx(-4 * np.pi * G * enclosed, rel=1e-3)
        assert mass.stellar_mass(radius) == pytest.approx(enclosed, rel=1e-3)


def test_forces_are_the_slope_of_the_potential(mass):
    gravity = mass.gravity((8.5, 3.0, 0.2))
    R, z = np.array([0.02, 0.3, 2.0, 9.0, 40.0]), np.array([0.03, -0.1, 1.0, -8.0, 3.0])
    _, across, up = gravity.at(R, z)
    h = 1e-5 * np.hypot(R, z)
    assert across == pytest.approx(-(gravity.at(R + h, z)[0] - gravity.at(R - h, z)[0]) / (2 * h), rel=1e-5)
    assert up == pytest.approx(-(gravity.at(R, z + h)[0] - gravity.at(R, z - h)[0]) / (2 * h), rel=1e-5)


def test_black_hole_and_halo_in_closed_form(mass):
    r = np.geomspace(0.01, 200, 30)
    R, z = r * 0.6, r * 0.8
    stars = mass.gravity((NO_BLACK_HOLE, 1.0, 0.0)).at(R, z)
    holed = mass.gravity((8.0, 1.0, 0.0)).at(R, z)
    assert holed[0] - stars[0] == pytest.approx(-G * 1e8 / np.sqrt(r**2 + 1e-6), rel=1e-9)
    assert holed[2] - stars[2] == pytest.approx(-G * 1e8 * z / (r**2 + 1e-6) ** 1.5, rel=1e-6)
    halo = mass.gravity((NO_BLACK_HOLE, 1.0, 0.3)).at(R, z)
    rs = 20e3 / PC
    scale = mass.halo_mass(1.0, 0.3)
    force = -G * scale * (np.log1p(r / rs) - r / (r + rs)) / r**2
    assert halo[0] - stars[0] == pytest.approx(-G * scale * np.log1p(r / rs) / r, rel=1e-5)
    radial = 0.6 * (halo[1] - stars[1]) + 0.8 * (halo[2] - stars[2])
    # the halo's force is tiny against its potential in the centre: the table's error is seen only there
    assert radial[r > 0.1] == pytest.approx(force[r > 0.1], rel=1e-3)


def test_the_halo_has_its_share_within_the_half_light_radius(mass):
    radius, rs = mass.half_light_radius, 20e3 / PC
    dark = mass.halo_mass(3.0, 0.25) * (np.log1p(radius / rs) - radius / (radius + rs))
    assert dark / (dark + 3.0 * mass.stellar_mass(radius)) == pytest.approx(0.25)


def test_half_light_radius_and_luminosity(light):
    one = MultiGaussian(np.array([100.0]), np.array([5.0]), np.array([0.36]))
    # half of a Gaussian's light is within 1.17741 sd, the isophote's area is pi sd^2 q 1.17741^2
    assert one.half_light_radius() == pytest.approx(1.17741 * 5 * 0.6, rel=2e-3)
    assert one.luminosities(DISTANCE) == pytest.approx(2 * np.pi * 100 * (5 * PC) ** 2 * 0.36)
    axis = np.linspace(-60, 60, 1201)
    image = light.brightness(axis[:, None], axis)
    assert image.sum() * 0.01 * PC**2 == pytest.approx(light.luminosities(DISTANCE).sum(), rel=1e-3)


def test_sampled_stars_have_the_gaussians_moments(light):
    """Each second moment within 4 standard errors: false alarms 2e-4."""
    stars = light.sample(200_000, INCLINATION, np.random.default_rng(3))
    q = light.intrinsic_axis_ratio(INCLINATION)
    for k, scale in ((0, 1.0), (2, q)):
        expected = (light.shares * (light.sd * scale) ** 2).sum()
        assert abs((stars[:, k] ** 2).mean() - expected) < 4 * (stars[:, k] ** 2).std() / np.sqrt(len(stars))


def test_fit_of_the_light(light):
    axis = np.arange(-15, 15.1, 0.5)
    x, y = (one.ravel() for one in np.meshgrid(axis, axis))
    inside = (x / 15) ** 2 + (y / 9) ** 2 < 1
    x, y = x[inside], y[inside]
    flux = 7.0 * light.brightness(x, y, 0.6)
    fitted = fit_light(x, y, flux, 1e10, DISTANCE, psf_sd=0.6)
    assert fitted.luminosities(DISTANCE).sum() == pytest.approx(1e10)
    image = fitted.brightness(x, y, 0.6)
    ratio = image / flux
    assert np.std(ratio / ratio.mean()) < 0.02
    # the light itself, not only what the blurred map shows of it
    unblurred = fitted.brightness(x, y) / light.brightness(x, y) / ratio.mean() / 7.0
    assert np.median(np.abs(unblurred - 1)) < 0.03


def test_mass_factors_change_the_mass_alone(light):
    factors = np.array([1.2, 1.0, 0.8])
    varied = MultiGaussian(light.surface_brightness, light.sd, light.axis_ratio, factors)
    assert np.array_equal(varied.luminosities(DISTANCE), light.luminosities(DISTANCE))
    heavy = MassModel(varied, DISTANCE, INCLINATION)
    assert heavy.unit_masses == pytest.approx(factors * light.luminosities(DISTANCE))


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ((8.0, -1.0, 0.1), "M/L = -1: give a mass-to-light ratio above 0"),
        ((8.0, 0.0, 0.1), "M/L = 0"),
        ((8.0, 3.0, 1.0), "f_DM = 1: give a dark-matter fraction from 0 to below 1"),
        ((8.0, 3.0, -0.1), "f_DM = -0.1"),
        ((np.nan, 3.0, 0.1), "three finite numbers"),
        ((8.0, 3.0), "three finite numbers"),
        ((1e8, 3.0, 0.1), "give the logarithm"),
    ],
)
def test_impossible_theta(mass, theta, message):
    with pytest.raises(InputError, match=message):
        mass.gravity(theta)


def test_impossible_light(light):
    with pytest.raises(InputError, match=r"no oblate body seen at 60 degrees has the axis ratio 0.4: .* above 66.4"):
        MassModel(light, DISTANCE, 60.0)
    with pytest.raises(InputError, match="inclination=0"):
        light.intrinsic_axis_ratio(0)
    with pytest.raises(InputError, match="distance=-1"):
        light.luminosities(-1)
    with pytest.raises(InputError, match="axis ratio is more than 1"):
        MultiGaussian(np.ones(1), np.ones(1), np.array([1.2]))
    with pytest.raises(InputError, match="sd must be positive"):
        MultiGaussian(np.ones(2), np.array([1.0, 0.0]), np.ones(2))
    with pytest.raises(InputError, match="one number a Gaussian"):
        MultiGaussian(np.ones(2), np.ones(3), np.ones(2))
    with pytest.raises(InputError, match="flux positive"):
        fit_light(np.arange(4.0), np.arange(4.0), np.zeros(4), 1e9, DISTANCE)
    with pytest.raises(InputError, match="halo_radius"):
        MassModel(light, DISTANCE, INCLINATION, halo_radius=0.0)

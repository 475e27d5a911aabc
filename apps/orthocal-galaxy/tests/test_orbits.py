"""Orbits: what they conserve, what they leave on the sky, and an isotropic sphere with a known profile."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq, nnls

from orthocal.errors import InputError
from orthocal_galaxy import MassModel, MultiGaussian, OrbitLibrary, OrbitSettings

DISTANCE, INCLINATION = 16.0, 75.0
PC = DISTANCE * 1e6 * np.pi / 648000
G = 0.004300917 / PC


@pytest.fixture(scope="module")
def gravity(light):
    return MassModel(light, DISTANCE, INCLINATION).gravity((8.7, 3.0, 0.2))


@pytest.fixture(scope="module")
def orbits(light, ring_bins, few):
    # one orbit a cell: its light can be compared with its path
    return OrbitLibrary(light, ring_bins, INCLINATION, 0.0, replace(few, dithers=1))


def energy(gravity, path, Lz):
    potential, _, _ = gravity.at(path[:, 0], path[:, 1])
    return potential + 0.5 * (path[:, 2] ** 2 + path[:, 3] ** 2 + (Lz / path[:, 0]) ** 2)


def test_energy_is_conserved_by_all_orbits(light, ring_bins, few):
    for log_mbh in (7.0, 9.2):
        heavy = MassModel(light, DISTANCE, INCLINATION).gravity((log_mbh, 3.0, 0.2))
        library = OrbitLibrary(light, ring_bins, INCLINATION, 0.0, few).run(heavy)
        assert library.drift.max() < 1e-3


def test_interpolated_points_have_the_energy_too(gravity, orbits):
    starts = orbits.launch(gravity)
    for number in (0, 30, 60, 95):
        path, drift = orbits.trace(gravity, number, orbits.settings.times)
        # L_z is the number that the motion is computed with: it cannot drift
        assert np.abs(energy(gravity, path, starts[number, 2]) / starts[number, 4] - 1).max() < 1e-3
        assert drift < 1e-3


def test_an_orbit_against_scipy(gravity, orbits):
    """The same orbit in three dimensions, by another integrator."""
    R, z, Lz, period, _ = orbits.launch(gravity)[50]

    def motion(_, state):
        r = np.hypot(state[0], state[1])
        _, across, up = gravity.at(r, state[2])
        return [*state[3:], across * state[0] / r, across * state[1] / r, up]

    times = np.linspace(0.05, 1.0, 12)
    exact = solve_ivp(motion, (0, period), [R, 0, z, 0, Lz / R, 0], "DOP853", times * period, rtol=1e-10, atol=1e-9).y
    path, _ = orbits.trace(gravity, 50, times)
    assert path[:, 0] == pytest.approx(np.hypot(exact[0], exact[1]), rel=2e-4)
    assert path[:, 1] == pytest.approx(exact[2], abs=2e-4 * R)
    assert exact[0] * exact[4] - exact[1] * exact[3] == pytest.approx(Lz, rel=1e-7)


def test_starts_lie_on_the_zero_velocity_curve(gravity, orbits):
    starts = orbits.launch(gravity)
    assert energy(gravity, np.column_stack([starts[:, :2], np.zeros((len(starts), 2))]), starts[:, 2]) == pytest.approx(
        starts[:, 4], rel=1e-6
    )
    # no point further out on the same latitude is allowed
    beyond = np.column_stack([1.02 * starts[:, :2], np.zeros((len(starts), 2))])
    assert (energy(gravity, beyond, starts[:, 2]) > starts[:, 4]).all()


def test_the_light_of_an_orbit_is_where_the_orbit_is(gravity, orbits):
    """Shares in bins and cells against the path itself, put at random azimuths."""
    library, rng = orbits.run(gravity), np.random.default_rng(5)
    starts, i = orbits.launch(gravity), np.radians(INCLINATION)
    for number in (20, 45, 70):
        path, _ = orbits.trace(gravity, number, orbits.settings.times)
        R, z, vR, vz = np.repeat(path, 100, axis=0).T
        angle = 2 * np.pi * rng.random(len(R))
        x, y = R * np.cos(angle), -R * np.sin(angle) * np.cos(i) + z * np.sin(i)
        v = (vR * np.sin(angle) + starts[number, 2] / R * np.cos(angle)) * np.sin(i) + vz * np.cos(i)
        # blurred as the bins are
        ring = np.hypot(*([x, y] + 0.1 * rng.standard_normal((2, len(x))))).astype(int)
        found = library.seen[number].sum(axis=1)
        expected = np.bincount(ring[ring < 8], minlength=8) / len(R)
        assert found == pytest.approx(expected, abs=0.02)
        velocity = orbits.settings.velocity
        for b in np.flatnonzero(expected > 0.1):
            spread = np.sqrt(library.seen[number, b] @ velocity**2 / found[b])
            assert spread == pytest.approx(np.sqrt((v[ring == b] ** 2).mean()), rel=0.06)
        assert library.inside[number].sum() == pytest.approx(1.0, abs=1e-6)


def test_superposition_is_the_weighted_sum_of_the_library(gravity, orbits):
    weights = np.random.default_rng(0).random(2 * orbits.settings.cells)
    weights[::7] = 0
    seen = orbits.run(gravity).seen.astype(float)
    forward, backward = (np.tensordot(part, seen, 1) for part in np.split(weights, 2))
    assert orbits.superpose(gravity, weights) == pytest.approx(forward + backward[:, ::-1], rel=1e-4, abs=1e-5)


def plummer_sphere(a, total):
    """Plummer's sphere of scale a and luminosity ``total`` as round Gaussians: relative error of the density 1e-3."""
    sds = np.geomspace(0.25 * a, 25 * a, 24)
    r = np.geomspace(0.03 * a, 30 * a, 200)
    density = (1 + (r / a) ** 2) ** -2.5
    columns = np.exp(-0.5 * (r[:, None] / sds) ** 2)
    peak, _ = nnls(columns / density[:, None], np.ones(len(r)), maxiter=10_000)
    assert np.abs(columns @ peak / density - 1)[r < 10 * a].max() < 5e-3
    kept = peak > 0
    # the surface brightness of a Gaussian of density p is p sqrt(2 pi) sd
    surface = peak[kept] * np.sqrt(2 * np.pi) * sds[kept]
    light = MultiGaussian(surface, sds[kept], np.ones(kept.sum()))
    return MultiGaussian(surface * total / light.luminosities(DISTANCE).sum(), light.sd, light.axis_ratio)


def isotropic_weights(orbits, a, mass):
    """f(E) times the phase-space volume of each cell; nothing is fitted.

    d^3x d^3v = 4 pi^2 T_r(E, L) dE dL dL_z, f ~ (-E)^(7/2) for Plummer's sphere. The cells are boxes in ln R_c,
    s = L_z / L_c and the latitude b = t arccos(s) of the start, where L = L_z / cos(b).
    """

    def potential(r):
        return -G * mass / np.hypot(r, a)

    def circular(r):
        return np.sqrt(G * mass * r**2 / (r**2 + a**2) ** 1.5)

    def energy_at(r):
        return potential(r) + 0.5 * circular(r) ** 2

    def period(E, L, inner):
        spare = lambda r: 2 * (E - potential(r)) - (L / r) ** 2  # noqa: E731
        low, high = brentq(spare, 1e-6 * inner, inner), brentq(spare, inner, 1e4 * inner)
        # r = middle - half cos(u) takes the ends' singularities away
        middle, half = (high + low) / 2, (high - low) / 2
        u = (np.arange(40) + 0.5) / 40 * np.pi
        r = middle - half * np.cos(u)
        return 2 * np.sum(half * np.sin(u) / np.sqrt(np.maximum(spare(r), 1e-12))) * np.pi / 40

    weights = []
    for Rc, s, t in orbits.starts:
        E, Lc = energy_at(Rc), Rc * circular(Rc)
        b = t * np.arccos(s)
        L = s * Lc / np.cos(b)
        h = 1e-4
        dE = (energy_at(Rc * np.exp(h)) - energy_at(Rc * np.exp(-h))) / (2 * h)
        # dL_z = L_c ds at fixed E, dL = L tan(b) arccos(s) dt at fixed E and L_z
        weights.append((-E) ** 3.5 * period(E, L, Rc) * dE * Lc * L * np.tan(b) * np.arccos(s))
    return np.array(weights)


@pytest.mark.slow
def test_isotropic_sphere_has_its_analytic_profile(ring_bins):
    """sigma^2(R) = 3 pi G M / (64 sqrt(R^2 + a^2)), and the light (1 + R^2 / a^2)^-2, each ring by itself."""
    a, total, ml = 3.0, 4e9, 3.0
    light = plummer_sphere(a, total)
    # one orbit a cell, so that its weight is exact, and long enough that the nearly closed orbits of the core turn
    settings = OrbitSettings(energies=40, momenta=14, latitudes=12, dithers=1, periods=20.0, samples=800, seed=3)
    orbits = OrbitLibrary(light, ring_bins, 90.0, 0.0, settings, radii=(0.05, 60.0))
    # the library has no orbits with L_z > 0.995 L_c or L_z < 0.01 L_c, 2 % of the volume
    weights = isotropic_weights(orbits, a, total * ml)
    weights /= weights.sum()
    seen = orbits.superpose(
        MassModel(light, DISTANCE, 90.0).gravity((-10.0, ml, 0.0)), np.concatenate([weights, weights]) / 2
    )
    velocity = settings.velocity
    light_in_rings = seen.sum(axis=1)
    sd = np.sqrt(seen @ velocity**2 / light_in_rings - settings.channel**2 / 6)

    def ring(b, power):
        """Mean of (R^2 + a^2)^(power / 2) over a ring's light."""
        inside = lambda r, p: r * (1 + (r / a) ** 2) ** -2 * (r**2 + a**2) ** (p / 2)  # noqa: E731
        return quad(inside, b, b + 1, args=(power,))[0] / quad(inside, b, b + 1, args=(0,))[0]

    expected = np.array([np.sqrt(3 * np.pi * G * total * ml / 64 * ring(b, -1)) for b in range(8)])
    assert sd == pytest.approx(expected, rel=0.02)
    edges = np.arange(9.0)
    inside = np.diff(edges**2 / (edges**2 + a**2))
    assert light_in_rings / light_in_rings.sum() == pytest.approx(inside / inside.sum(), rel=0.05)


def test_settings():
    assert OrbitSettings.preset("full").cells == 840
    assert OrbitSettings.preset("small").cells == 240
    settings = OrbitSettings()
    places, times = settings.places, settings.times
    assert places.shape == (6720, 3)
    assert (places > 0).all()
    assert (places < 1).all()
    assert (np.diff(times) > 0).all()
    assert 0 <= times[0] < times[-1] <= settings.periods
    other = replace(settings, seed=2)
    assert not np.array_equal(other.places, places)
    assert other.turn != settings.turn
    for wrong in ({"energies": 0}, {"samples": 1.5}, {"velocities": 5}, {"tolerance": 1.0}, {"max_velocity": -1.0}):
        with pytest.raises(InputError):
            replace(settings, **wrong)
    with pytest.raises(InputError, match='give "full", "small"'):
        OrbitSettings.preset("large")


def test_radii_must_make_sense(light, ring_bins, few):
    with pytest.raises(InputError, match="smallest and the largest radius"):
        OrbitLibrary(light, ring_bins, INCLINATION, 0.0, few, radii=(2.0, 1.0))
    with pytest.raises(InputError, match="no oblate body"):
        OrbitLibrary(light, ring_bins, 30.0, 0.0, few)

"""The gravity of stars, black hole and dark halo.

Stars: M/L times the deprojected Gaussians. With M_j the mass, sd_j the width, q_j the axis ratio, e_j^2 = 1 - q_j^2
(Emsellem, Monnet, Bacon 1994):

Phi(R, z) = -sqrt(2/pi) G sum_j M_j / sd_j int_0^1 exp(-T^2 (R^2 + z^2 / (1 - e_j^2 T^2)) / (2 sd_j^2))
            / sqrt(1 - e_j^2 T^2) dT.

Black hole: Phi = -G M_BH / sqrt(r^2 + eps^2). Halo (NFW): M(r) = M_s (ln(1 + r/r_s) - (r/r_s) / (1 + r/r_s)), with
M_s such that the halo has the share f of all mass of stars and halo within a sphere of the half-light radius.
Lengths are in arcsec, velocities in km/s, masses in Msun.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import RectBivariateSpline
from scipy.special import erf

from orthocal.applications import Array, as_floats
from orthocal.errors import InputError

from .light import MultiGaussian, parsec_per_arcsec
from .mass_kernels import potentials_and_forces

#: Newton's constant, pc (km/s)^2 / Msun
NEWTON = 0.004300917
PARAMETERS = ("log10_mbh", "ml", "f_dm")
#: radius of the black hole's Plummer sphere, arcsec: small against what is observed
BLACK_HOLE_RADIUS = 1e-3

# the cubic polynomial on [0, 1] with values f0, f1 and slopes d0, d1: coefficients of 1, a, a^2, a^3
_HERMITE = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], dtype=float)


class Gravity(NamedTuple):
    """A potential for the compiled orbits: see ``mass_kernels``."""

    table: Array
    shape: Array

    def at(self, R: ArrayLike, z: ArrayLike) -> tuple[Array, Array, Array]:
        """Phi [(km/s)^2] and the accelerations along R and z [(km/s)^2 / arcsec] at points (n,)."""
        across, up = np.broadcast_arrays(np.asarray(R, dtype=float), np.asarray(z, dtype=float))
        out = potentials_and_forces(across.ravel(), up.ravel(), self.table, self.shape)
        potential, radial, vertical = (column.reshape(across.shape) for column in out.T)
        return potential, radial, vertical


class MassModel:
    """The gravity at theta = (log10 M_BH [Msun], M/L [Msun / Lsun], dark-matter fraction within the half-light radius).

    Parameters
    ----------
    light
        The light.
    distance
        Mpc.
    inclination
        Degrees, 90 is edge-on.
    halo_radius
        Scale radius r_s of the halo, kpc.
    half_light_radius
        Arcsec; default: that of ``light``.
    black_hole_radius
        Plummer radius of the black hole, arcsec.
    """

    def __init__(
        self,
        light: MultiGaussian,
        distance: float,
        inclination: float,
        halo_radius: float = 20.0,
        half_light_radius: float | None = None,
        black_hole_radius: float = BLACK_HOLE_RADIUS,
    ) -> None:
        if not np.isfinite(halo_radius) or halo_radius <= 0:
            raise InputError(f"halo_radius={halo_radius!r}: give kpc, more than 0")
        if not np.isfinite(black_hole_radius) or black_hole_radius <= 0:
            raise InputError(f"black_hole_radius={black_hole_radius!r}: give arcsec, more than 0")
        scale = parsec_per_arcsec(distance)
        self.newton = NEWTON / scale
        self.ratios = light.intrinsic_axis_ratio(inclination)
        self.sds = light.sd
        #: mass of each Gaussian for M/L = 1
        self.unit_masses = light.luminosities(distance) * light.mass_factors
        self.half_light_radius = light.half_light_radius() if half_light_radius is None else float(half_light_radius)
        if not np.isfinite(self.half_light_radius) or self.half_light_radius <= 0:
            raise InputError(f"half_light_radius={half_light_radius!r}: give arcsec, more than 0")
        self.halo_radius = halo_radius * 1e3 / scale
        self.black_hole_radius = float(black_hole_radius)
        self._grid = _grid(self.sds)
        self._stars = _bicubic(self._grid, self._star_potential())

    def gravity(self, theta: ArrayLike) -> Gravity:
        """The potential at ``theta`` (3,)."""
        log_mbh, ml, fraction = checked_theta(theta)
        log_r, c = self._grid
        table = ml * self._stars
        if fraction > 0:
            table += _bicubic(self._grid, self._halo_potential(ml, fraction)[:, None] * np.ones(len(c)))
        step = log_r[1] - log_r[0]
        return Gravity(table, np.array([log_r[0], step, self.newton * 10.0**log_mbh, self.black_hole_radius**2]))

    def stellar_mass(self, radius: float) -> float:
        """Mass of the stars within a sphere of ``radius`` arcsec for M/L = 1."""
        node, weight = np.polynomial.legendre.leggauss(64)
        c, weight = 0.5 * (node + 1)[:, None], 0.5 * weight[:, None]
        # along a direction the density is Gaussian with this width
        width = self.sds / np.sqrt(1 - c**2 + (c / self.ratios) ** 2)
        u = radius / width
        inside = erf(u / np.sqrt(2)) - np.sqrt(2 / np.pi) * u * np.exp(-0.5 * u**2)
        share = (weight * inside * width**3).sum(axis=0) / (self.sds**3 * self.ratios)
        return float((self.unit_masses * share).sum())

    def halo_mass(self, ml: float, fraction: float) -> float:
        """M_s = f / (1 - f) M/L M_stars(Re) / (ln(1 + u) - u / (1 + u)) with u = Re / r_s."""
        u = self.half_light_radius / self.halo_radius
        dark = fraction / (1 - fraction) * ml * self.stellar_mass(self.half_light_radius)
        return float(dark / (np.log1p(u) - u / (1 + u)))

    def _halo_potential(self, ml: float, fraction: float) -> Array:
        radius = np.exp(self._grid[0])
        return np.asarray(-self.newton * self.halo_mass(ml, fraction) * np.log1p(radius / self.halo_radius) / radius)

    def _star_potential(self, nodes: int = 96) -> Array:
        """Phi of the stars on the grid for M/L = 1, by Gauss-Legendre in ln T where r is large against sd."""
        log_r, c = self._grid
        radius = np.exp(log_r)[:, None]
        node, weight = np.polynomial.legendre.leggauss(nodes)
        total = np.zeros((len(log_r), len(c)))
        for mass, sd, ratio in zip(self.unit_masses, self.sds, self.ratios, strict=True):
            spread = np.log1p(6 * np.maximum(radius / sd, 1e-3))
            for place, share in zip(0.5 * (node + 1), 0.5 * weight, strict=True):
                T = np.expm1(spread * place) / np.expm1(spread)
                dT = share * spread * np.exp(spread * place) / np.expm1(spread)
                k2 = 1 - (1 - ratio**2) * T**2
                exponent = -((T * radius / sd) ** 2) / 2 * (1 - c**2 + c**2 / k2)
                total -= mass / sd * dT / np.sqrt(k2) * np.exp(exponent)
        return np.asarray(np.sqrt(2 / np.pi) * self.newton * total)


def checked_theta(theta: ArrayLike) -> tuple[float, float, float]:
    """theta as three numbers, or an error that says which is not possible."""
    values = as_floats(theta, "theta")
    if values.shape != (3,) or not np.isfinite(values).all():
        raise InputError(f"theta={theta!r}: give three finite numbers, log10 of the black hole's mass, M/L, f_DM")
    log_mbh, ml, fraction = map(float, values)
    if not -10 <= log_mbh <= 12:
        raise InputError(f"log10 M_BH = {log_mbh:g}: give the logarithm of a mass in Msun, at most 12")
    if ml <= 0:
        raise InputError(f"M/L = {ml:g}: give a mass-to-light ratio above 0")
    if not 0 <= fraction < 1:
        raise InputError(f"f_DM = {fraction:g}: give a dark-matter fraction from 0 to below 1")
    return log_mbh, ml, fraction


def _grid(sds: Array) -> tuple[Array, Array]:
    """ln r and c of the table's nodes: the light is flat inside of the first, and has ended at the last."""
    low, high = np.log(sds.min() / 300), np.log(sds.max() * 20)
    return np.linspace(low, high, 1 + int(np.ceil((high - low) / 0.06))), np.linspace(0, 1, 49)


def _bicubic(grid: tuple[Array, Array], values: Array) -> Array:
    """Coefficients of the cubic spline through ``values`` (nl + 1, nc + 1), even in c, in each cell: (nl, nc, 16)."""
    log_r, c = grid
    mirrored = np.concatenate([values[:, :0:-1], values], axis=1)
    spline = RectBivariateSpline(log_r, np.concatenate([-c[:0:-1], c]), mirrored)
    step_l, step_c = log_r[1] - log_r[0], c[1] - c[0]
    f, f_l, f_c, f_lc = (
        spline(log_r, c, dx=dx, dy=dy) * step_l**dx * step_c**dy for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1))
    )
    corners = np.empty((len(log_r) - 1, len(c) - 1, 4, 4))
    for m, (first, second) in enumerate(((f, f_c), (f, f_c), (f_l, f_lc), (f_l, f_lc))):
        rows = slice(m % 2, len(log_r) - 1 + m % 2)
        for n, block in enumerate((first, first, second, second)):
            corners[:, :, m, n] = block[rows, n % 2 : len(c) - 1 + n % 2]
    cells = np.einsum("am,ijmn,bn->ijab", _HERMITE, corners, _HERMITE, optimize=True)
    return np.ascontiguousarray(cells.reshape(len(log_r) - 1, len(c) - 1, 16))

"""The light of a galaxy as a sum of Gaussians (Emsellem, Monnet, Bacon 1994; Cappellari 2002).

On the sky, x' along the major axis: I(x', y') = sum_j I_j exp(-(x'^2 + y'^2 / q'_j^2) / (2 sd_j^2)). Seen at the
inclination i (90 degrees is edge-on) this is an oblate body, axis ratio q_j = sqrt(q'_j^2 - cos^2 i) / sin i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from orthocal.applications import Array, as_floats
from orthocal.errors import InputError

#: axis ratios that ``fit_light`` offers, where none are given
AXIS_RATIOS = (0.12, 0.2, 0.3, 0.42, 0.56, 0.72, 0.9)
#: number of widths that ``fit_light`` offers, where none are given
WIDTHS = 14


def parsec_per_arcsec(distance: float) -> float:
    """Length of an arc second at ``distance`` Mpc, in pc."""
    if not np.isfinite(distance) or distance <= 0:
        raise InputError(f"distance={distance!r}: give Mpc, more than 0")
    return float(distance) * 1e6 * np.pi / 648000


@dataclass(frozen=True, eq=False)
class MultiGaussian:
    """Gaussians of the light, one number each.

    Parameters
    ----------
    surface_brightness
        At the peak, Lsun / pc^2, (k,).
    sd
        Along the major axis, arcsec, (k,).
    axis_ratio
        On the sky, 0 < q' <= 1, (k,).
    mass_factor
        Mass-to-light ratio of each Gaussian in units of the galaxy's M/L, (k,): ones, where it is the same everywhere.
    """

    surface_brightness: Array
    sd: Array
    axis_ratio: Array
    mass_factor: Array | None = None

    def __post_init__(self) -> None:
        for name in ("surface_brightness", "sd", "axis_ratio", "mass_factor"):
            given = getattr(self, name)
            array = np.ones(len(self.sd)) if given is None else np.atleast_1d(as_floats(given, name))
            if array.ndim != 1 or len(array) != np.size(self.surface_brightness) or not len(array):
                raise InputError(f"{name} has shape {array.shape}: give one number a Gaussian")
            if not np.isfinite(array).all() or (array <= 0).any():
                raise InputError(f"{name} must be positive for every Gaussian")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if (self.axis_ratio > 1).any():
            raise InputError("an axis ratio is more than 1: sd is the width along the major axis, axis_ratio at most 1")

    @property
    def mass_factors(self) -> Array:
        """Mass-to-light ratio of each Gaussian in units of the galaxy's, (k,)."""
        assert self.mass_factor is not None
        return self.mass_factor

    def intrinsic_axis_ratio(self, inclination: float) -> Array:
        """q_j = sqrt((q'_j^2 - cos^2 i) / sin^2 i), (k,); the inclination in degrees."""
        if not np.isfinite(inclination) or not 0 < inclination <= 90:
            raise InputError(f"inclination={inclination!r}: give degrees, more than 0 and at most 90 (edge-on)")
        cosine, sine = np.cos(np.radians(inclination)), np.sin(np.radians(inclination))
        squared = (self.axis_ratio**2 - cosine**2) / sine**2
        if (squared <= 1e-4).any():
            least = float(np.degrees(np.arccos(self.axis_ratio.min())))
            raise InputError(
                f"no oblate body seen at {inclination:g} degrees has the axis ratio {self.axis_ratio.min():.3g}: "
                f"give an inclination well above {least:.1f} degrees, or rounder Gaussians"
            )
        return np.asarray(np.sqrt(squared))

    def luminosities(self, distance: float) -> Array:
        """L_j = 2 pi I_j sd_j^2 q'_j in Lsun, (k,), at ``distance`` Mpc."""
        widths = self.sd * parsec_per_arcsec(distance)
        return np.asarray(2 * np.pi * self.surface_brightness * widths**2 * self.axis_ratio)

    @property
    def shares(self) -> Array:
        """Share of each Gaussian in the light, (k,)."""
        light = self.surface_brightness * self.sd**2 * self.axis_ratio
        return np.asarray(light / light.sum())

    def brightness(self, x: Array, y: Array, psf_sd: float = 0.0) -> Array:
        """Surface brightness at x along the major and y along the minor axis, blurred by a Gaussian of ``psf_sd``."""
        total = np.zeros(np.broadcast(x, y).shape)
        for peak, sd, ratio in zip(self.surface_brightness, self.sd, self.axis_ratio, strict=True):
            var_x, var_y = sd**2 + psf_sd**2, (sd * ratio) ** 2 + psf_sd**2
            scale = peak * sd**2 * ratio / np.sqrt(var_x * var_y)
            total += scale * np.exp(-0.5 * (x**2 / var_x + y**2 / var_y))
        return total

    def half_light_radius(self) -> float:
        """Re = sqrt(area / pi) of the isophote that holds half of the light, arcsec."""
        radius, share = self._growth()
        return float(np.interp(0.5, share, radius))

    def share_within(self, radius: float) -> float:
        """Share of the light within the isophote of the area pi ``radius``^2 [arcsec]."""
        return float(np.interp(radius, *self._growth()))

    def _growth(self) -> tuple[Array, Array]:
        """Isophotes from the brightest on: sqrt(area / pi) [arcsec], and the share of the light within."""
        log_r = np.linspace(np.log(self.sd.min() / 30), np.log(self.sd.max() * 8), 1200)
        angle = (np.arange(60) + 0.5) / 60 * np.pi / 2
        radius = np.exp(log_r)[:, None]
        image = self.brightness(radius * np.cos(angle), radius * np.sin(angle)).ravel()
        area = np.broadcast_to(radius**2, (len(log_r), len(angle))).ravel()
        order = np.argsort(-image, kind="stable")
        light, covered = np.cumsum((image * area)[order]), np.cumsum(area[order])
        # four quadrants, each cell of the grid r^2 dlnr dphi
        radii = np.sqrt(4 * covered * (log_r[1] - log_r[0]) * (np.pi / 2 / len(angle)) / np.pi)
        return radii, light / light[-1]

    def sample(self, n: int, inclination: float, rng: np.random.Generator) -> Array:
        """Positions of ``n`` stars, (n, 3) in arcsec: x, y in the galaxy's plane and z along its axis."""
        ratio = self.intrinsic_axis_ratio(inclination)
        which = rng.choice(len(self.sd), size=n, p=self.shares)
        position = rng.standard_normal((n, 3)) * self.sd[which, None]
        position[:, 2] *= ratio[which]
        return position


def fit_light(
    x: ArrayLike,
    y: ArrayLike,
    flux: ArrayLike,
    total_luminosity: float,
    distance: float,
    *,
    half_light_radius: float | None = None,
    psf_sd: float = 0.0,
    pixel: float = 0.0,
    sds: ArrayLike | None = None,
    axis_ratios: ArrayLike = AXIS_RATIOS,
) -> MultiGaussian:
    """The non-negative sum of Gaussians that fits a map of the flux best, in relative residuals.

    Parameters
    ----------
    x, y
        Arcsec along the major and the minor axis, from the centre, (n,).
    flux
        Surface brightness there in any units, (n,), positive.
    total_luminosity
        Lsun: it sets the scale.
    distance
        Mpc.
    half_light_radius
        Arcsec. Where given, half of the luminosity lies within the isophote of this radius; otherwise all of it is in
        the Gaussians, however much of them lies outside of the map.
    psf_sd, pixel
        Width of the point-spread function and side of a pixel, arcsec: both have blurred the map.
    sds, axis_ratios
        Widths (arcsec) and axis ratios on offer; default: 14 widths from 0.3 pixels to twice the field.
    """
    across, up, target = (as_floats(value, name) for value, name in ((x, "x"), (y, "y"), (flux, "flux")))
    if across.ndim != 1 or across.shape != up.shape or across.shape != target.shape or len(target) < 3:
        raise InputError(f"x, y and flux have shapes {across.shape}, {up.shape}, {target.shape}: give (n,) each")
    if not all(np.isfinite(one).all() for one in (across, up, target)) or (target <= 0).any():
        raise InputError("x and y must be finite and flux positive: leave out what is not")
    if not np.isfinite(total_luminosity) or total_luminosity <= 0:
        raise InputError(f"total_luminosity={total_luminosity!r}: give Lsun, more than 0")
    if sds is None:
        reach = float(np.hypot(across, up).max())
        sds = np.geomspace(max(0.3 * pixel, 0.3 * psf_sd, reach / 300), 2 * reach, WIDTHS)
    widths, ratios = (one.ravel() for one in np.meshgrid(as_floats(sds, "sds"), axis_ratios, indexing="ij"))
    # a pixel blurs like a Gaussian of its variance
    blur = psf_sd**2 + pixel**2 / 12
    var_x, var_y = widths**2 + blur, (widths * ratios) ** 2 + blur
    shapes = np.exp(-0.5 * (across[:, None] ** 2 / var_x + up[:, None] ** 2 / var_y))
    columns = shapes * (widths**2 * ratios / np.sqrt(var_x * var_y))
    peak, _ = nnls(columns / target[:, None], np.ones(len(target)), maxiter=100 * columns.shape[1])
    kept = peak > 0
    light = MultiGaussian(peak[kept], widths[kept], ratios[kept])
    scale = total_luminosity / light.luminosities(distance).sum()
    if half_light_radius is not None:
        if not np.isfinite(half_light_radius) or half_light_radius <= 0:
            raise InputError(f"half_light_radius={half_light_radius!r}: give arcsec, more than 0")
        scale *= 0.5 / light.share_within(half_light_radius)
    return MultiGaussian(light.surface_brightness * scale, light.sd, light.axis_ratio)

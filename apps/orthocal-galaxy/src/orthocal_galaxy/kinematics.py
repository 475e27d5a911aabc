"""Kinematics at bins of the sky: v, sigma, h3 and h4 with their errors, and the pixels of the bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial import cKDTree

from orthocal.applications import Array, BoolArray, IntArray, as_floats
from orthocal.errors import InputError

from .moments import MOMENTS

UNITS: Mapping[str, str] = {"v": "km/s", "sigma": "km/s", "x": "arcsec", "y": "arcsec"}


@dataclass(frozen=True)
class PixelMap:
    """Which bin each pixel of a regular grid of squares belongs to.

    Attributes
    ----------
    x, y
        Centres of the columns (nx,) and rows (ny,) of pixels [arcsec].
    label
        The bin of each pixel, (nx, ny); -1 where there is none.
    angle
        The grid lies turned by this angle [degree, counter clockwise] about the origin of the bins' coordinates.
    """

    x: Array
    y: Array
    label: IntArray
    angle: float = 0.0

    def corners(self) -> tuple[Array, Array]:
        """Corners of the pixels in the coordinates of the bins, each (nx + 1, ny + 1)."""
        size = next((float(axis[1] - axis[0]) for axis in (self.x, self.y) if len(axis) > 1), 1.0)
        edges = [np.append(axis - size / 2, axis[-1] + size / 2) for axis in (self.x, self.y)]
        x, y = np.meshgrid(*edges, indexing="ij")
        return turned(x, y, self.angle)

    def counts(self, n: int) -> IntArray:
        """Number of pixels of each of n bins, (n,)."""
        return np.bincount(self.label[self.label >= 0], minlength=n).astype(np.intp)


@dataclass(frozen=True)
class Kinematics:
    """Gauss-Hermite moments of the line-of-sight velocity distribution in n bins of the sky.

    Attributes
    ----------
    x, y
        Centres of the bins, (n,) [arcsec].
    values, errors
        v, sigma, h3, h4 and their standard deviations, (n, 4); NaN where a cell is missing.
    flux
        Surface brightness, per pixel, (n,).
    pixels
        Number of pixels in each bin, (n,).
    names, units
        Names of the four outcomes; name -> unit.
    flagged
        What was left out: outcome -> number of missing cells, and "bins" -> number of bins that are not here.
    angle
        How far the coordinates have been turned from those of the file [degree, counter clockwise].
    pixel_map
        The pixels of each bin, where the files gave them.
    """

    x: Array
    y: Array
    values: Array
    errors: Array
    flux: Array
    pixels: Array
    names: tuple[str, ...] = MOMENTS
    units: Mapping[str, str] = field(default_factory=lambda: dict(UNITS))
    flagged: Mapping[str, int] = field(default_factory=dict)
    angle: float = 0.0
    pixel_map: PixelMap | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y", "values", "errors", "flux", "pixels"):
            array = as_floats(getattr(self, name), name)
            shape = (self.n, 4) if name in ("values", "errors") else (self.n,)
            if array.shape != shape:
                raise InputError(f"{name} has shape {array.shape} for {self.n} bins: give {shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n(self) -> int:
        """Number of bins."""
        return len(self.x)

    @property
    def points(self) -> Array:
        """Centres of the bins, (n, 2)."""
        return np.column_stack([self.x, self.y])

    @property
    def observed(self) -> BoolArray:
        """Which cells are there, (n, 4)."""
        return ~np.isnan(self.values)

    def systemic_velocity(self, within: float | None = None) -> float:
        """The velocity about which the map is antisymmetric: v(-x, -y) - v0 = -(v(x, y) - v0).

        Each bin is paired with the one nearest to the opposite point, not farther from it than ``within`` arcsec
        (0.6 of the usual distance between bins where not given); the mean of the pairs has weights 1 / variance.
        """
        there = np.flatnonzero(self.observed[:, 0])
        if len(there) > 2:
            tree = cKDTree(self.points[there])
            if within is None:
                spacing, _ = tree.query(self.points[there], k=[2])
                within = 0.6 * float(np.median(spacing))
            distance, other = map(np.asarray, tree.query(-self.points[there]))
            paired = distance <= within
            first, second = there[paired], there[other[paired]]
            if len(first) > 2:
                var = self.errors[first, 0] ** 2 + self.errors[second, 0] ** 2
                return float(np.average((self.values[first, 0] + self.values[second, 0]) / 2, weights=1 / var))
        raise InputError(
            "the systemic velocity cannot be estimated: fewer than three bins have one opposite to the centre (0, 0); "
            "give the velocity, or a larger `within`"
        )

    def shifted(self, velocity: float | None = None) -> Kinematics:
        """The same with a velocity subtracted, by default the systemic one."""
        values = self.values.copy()
        values[:, 0] -= self.systemic_velocity() if velocity is None else velocity
        return replace(self, values=values)

    def rotated(self, position_angle: float, x_axis: str = "west") -> Kinematics:
        """The same in coordinates whose x runs along the major axis.

        Parameters
        ----------
        position_angle
            Of the major axis, from north through east [degree].
        x_axis
            Where +x points now, "west" (ATLAS3D, DYNAMITE) or "east"; +y points north.
        """
        if x_axis not in ("west", "east"):
            raise InputError(f'x_axis={x_axis!r}: give "west" or "east", the direction of +x on the sky')
        angle = 90 - position_angle if x_axis == "west" else position_angle - 90
        x, y = turned(self.x, self.y, angle)
        pixel_map = self.pixel_map and replace(self.pixel_map, angle=self.pixel_map.angle + angle)
        return replace(self, x=x, y=y, angle=self.angle + angle, pixel_map=pixel_map)


def turned(x: Array, y: Array, angle: float) -> tuple[Array, Array]:
    """Points turned counter clockwise about the origin by an angle in degrees."""
    cosine, sine = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    return cosine * x - sine * y, sine * x + cosine * y

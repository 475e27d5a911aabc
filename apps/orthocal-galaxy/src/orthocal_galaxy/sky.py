"""From the galaxy to the sky: pixels, bins, blurring, and the light that each bin should get.

A star at cylindrical (R, phi, z) is seen at x' = R cos(phi) along the major axis and y' = -R sin(phi) cos(i) + z sin(i)
along the minor one, with the velocity (v_R sin(phi) + v_phi cos(phi)) sin(i) + v_z cos(i). The pixels' first axis is
turned by the position angle: pixel coordinates are (x' cos(pa) - y' sin(pa), x' sin(pa) + y' cos(pa)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree
from scipy.special import ndtr

from orthocal.applications import Array, IntArray, as_floats
from orthocal.errors import InputError

from .light import MultiGaussian

#: smaller shares of a node's light in a bin are left out
LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Bins:
    """Pixels of an integral-field spectrograph, joined to bins.

    Parameters
    ----------
    bin_map
        (nx, ny) whole numbers: which bin each pixel belongs to, -1 for none. The first axis is x, the second y.
    start
        x and y of the middle of pixel (0, 0), arcsec from the galaxy's centre.
    pixel
        Side of a pixel, arcsec.
    psf_sd
        Width of the Gaussian point-spread function, arcsec.
    centres
        (nbin, 2), arcsec: the x of each bin, along the major and the minor axis for instance.
    """

    bin_map: IntArray
    start: Array
    pixel: float
    psf_sd: float
    centres: Array

    def __post_init__(self) -> None:
        centres, start = as_floats(self.centres, "centres"), as_floats(self.start, "start")
        bin_map = np.asarray(self.bin_map)
        if bin_map.ndim != 2 or bin_map.dtype.kind not in "iu":
            raise InputError("bin_map must be a table of whole numbers, -1 where a pixel belongs to no bin")
        if centres.ndim != 2 or centres.shape[1] != 2 or not np.isfinite(centres).all():
            raise InputError(f"centres has shape {centres.shape}: give finite x and y of every bin, (nbin, 2)")
        counts = np.bincount(bin_map[bin_map >= 0], minlength=len(centres))
        if len(counts) != len(centres) or (counts == 0).any():
            raise InputError(f"bin_map must use each of the numbers 0..{len(centres) - 1}, one for each of the centres")
        if start.shape != (2,) or not np.isfinite(start).all():
            raise InputError("start must be x and y of the first pixel's middle")
        if not (np.isfinite(self.pixel) and np.isfinite(self.psf_sd) and self.pixel > 0 and self.psf_sd > 0):
            raise InputError(f"pixel={self.pixel!r} and psf_sd={self.psf_sd!r}: give arcsec, more than 0")
        object.__setattr__(self, "bin_map", bin_map.astype(np.intp))
        for name, array in (("centres", centres), ("start", start)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def scale(self) -> float:
        """The largest coordinate of a bin, arcsec: ``x`` is in units of it."""
        return float(np.abs(self.centres).max())

    @property
    def x(self) -> Array:
        """The centres in [-1, 1]^2, (nbin, 2)."""
        return np.asarray(self.centres / self.scale)

    @property
    def areas(self) -> Array:
        """Area of each bin, arcsec^2, (nbin,)."""
        return np.asarray(np.bincount(self.bin_map[self.bin_map >= 0]) * self.pixel**2)

    @property
    def axes(self) -> tuple[Array, Array]:
        """x and y of the pixels' middles, (nx,) and (ny,)."""
        across, up = (self.start[k] + self.pixel * np.arange(self.bin_map.shape[k]) for k in (0, 1))
        return across, up

    @property
    def reach(self) -> float:
        """Distance of the outermost corner of a binned pixel from the galaxy's centre, arcsec."""
        x, y = np.meshgrid(*self.axes, indexing="ij")
        inside = self.bin_map >= 0
        return float(np.hypot(np.abs(x[inside]) + self.pixel / 2, np.abs(y[inside]) + self.pixel / 2).max())


def make_bins(
    nbin: int, light: MultiGaussian, field: tuple[float, float], pixel: float, psf_sd: float, seed: int = 0
) -> Bins:
    """Bins over an elliptical field of half-axes ``field`` (arcsec), smaller where the galaxy is brighter.

    A centroidal tessellation (Lloyd) with the density flux^0.6, in pixels along the galaxy's axes.
    """
    half = [int(np.ceil(side / pixel)) for side in field]
    x, y = np.meshgrid(*(np.arange(-n, n + 1) * pixel for n in half), indexing="ij")
    inside = (x / field[0]) ** 2 + (y / field[1]) ** 2 <= 1
    if nbin < 1 or nbin > inside.sum():
        raise InputError(f"nbin={nbin}: the field has {inside.sum()} pixels, give 1 to that many bins")
    place = np.column_stack([x[inside], y[inside]])
    density = light.brightness(place[:, 0], place[:, 1], psf_sd) ** 0.6
    rng = np.random.default_rng(seed)
    centres = place[rng.choice(len(place), nbin, replace=False, p=density / density.sum())]
    label: IntArray = np.zeros(len(place), dtype=np.intp)
    for _ in range(200):
        label = np.asarray(cKDTree(centres).query(place)[1], dtype=np.intp)
        mass = np.bincount(label, density, nbin)
        sums = np.column_stack([np.bincount(label, density * column, nbin) for column in place.T])
        # a bin that has lost all its pixels stays where it is, and is left out in the end
        moved: Array = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1e-300)[:, None], centres)
        if np.allclose(moved, centres):
            break
        centres = moved
    used, label = np.unique(label, return_inverse=True)
    bin_map = np.full(x.shape, -1, dtype=np.intp)
    bin_map[inside] = label.ravel()
    return Bins(bin_map, np.array([x[0, 0], y[0, 0]]), pixel, psf_sd, centres[used])


class SkyGrid(NamedTuple):
    """Nodes in the quadrant x', y' >= 0, denser in the middle, that orbits are spread on before they reach the bins.

    The k-th node of an axis is at bend k / (steps - k), ``nodes`` (n,). ``bins`` says for node (k, l), row k n + l of a
    sparse matrix in CSR form, which bins its light falls into: ``starts``, ``columns``, and the shares of the two
    images at positive x' (``ahead``) and of the two at negative x' (``behind``), where the velocity is reversed.
    """

    bend: float
    steps: float
    nodes: Array
    starts: IntArray
    columns: IntArray
    ahead: Array
    behind: Array

    def matrices(self, nbin: int) -> tuple[Any, Any]:
        """``ahead`` and ``behind`` as sparse matrices, (nbin, n^2)."""
        shape = (len(self.nodes) ** 2, nbin)
        ahead, behind = (csr_matrix((data, self.columns, self.starts), shape).T.tocsr() for data in self[-2:])
        return ahead, behind


def sky_grid(bins: Bins, position_angle: float, fineness: float = 0.75) -> SkyGrid:
    """The grid for ``bins``; its inner spacing is ``fineness`` widths of the point-spread function."""
    if not np.isfinite(position_angle):
        raise InputError(f"position_angle={position_angle!r}: give degrees")
    reach, spacing = bins.reach + 4 * bins.psf_sd, fineness * bins.psf_sd
    # the spacing grows like (1 + x' / bend)^2, fourfold at the edge
    bend = reach
    steps = bend / spacing
    count = int(np.ceil(steps / 2)) + 1
    nodes = bend * np.arange(count) / (steps - np.arange(count))
    gaps = np.gradient(nodes)
    # light spread linearly between nodes is blurred by gap^2 / 6 already
    sd = np.sqrt(np.maximum(bins.psf_sd**2 - gaps**2 / 6, (bins.psf_sd / 2) ** 2))
    x, y = (one.ravel() for one in np.meshgrid(nodes, nodes, indexing="ij"))
    sd = np.sqrt(np.outer(sd, sd)).ravel()
    shares = [
        (_shares(bins, sign * x, y, sd, position_angle) + _shares(bins, sign * x, -y, sd, position_angle)) / 4
        for sign in (1, -1)
    ]
    kept = (shares[0] + shares[1]).tocsr()
    kept.data[kept.data < LEAST_SHARE] = 0
    kept.eliminate_zeros()
    rows = np.repeat(np.arange(len(x)), np.diff(kept.indptr))
    ahead, behind = (np.asarray(one[rows, kept.indices]).ravel() for one in shares)
    return SkyGrid(bend, steps, nodes, kept.indptr.astype(np.intp), kept.indices.astype(np.intp), ahead, behind)


def _shares(bins: Bins, x: Array, y: Array, sd: Array, position_angle: float) -> csr_matrix:
    """Share of the light of point sources at (x', y') (n,), blurred by ``sd`` (n,), in each bin: sparse (n, nbin)."""
    cosine, sine = np.cos(np.radians(position_angle)), np.sin(np.radians(position_angle))
    place = (cosine * x - sine * y, sine * x + cosine * y)
    # the pixels within five widths of the point-spread function
    window = np.arange(int(np.ceil(10 * bins.psf_sd / bins.pixel)) + 2)
    pixels, light = [], []
    for at, start, count in zip(place, bins.start, bins.bin_map.shape, strict=True):
        edge = start - bins.pixel / 2
        first = np.floor((at - 5 * bins.psf_sd - edge) / bins.pixel).astype(np.intp)
        edges = edge + bins.pixel * (first[:, None] + np.arange(len(window) + 1))
        share = np.diff(ndtr((edges - at[:, None]) / sd[:, None]), axis=1)
        pixel = first[:, None] + window
        light.append(np.where((pixel >= 0) & (pixel < count), share, 0.0))
        pixels.append(np.clip(pixel, 0, count - 1))
    label = bins.bin_map[pixels[0][:, :, None], pixels[1][:, None, :]]
    image = np.where(label >= 0, light[0][:, :, None] * light[1][:, None, :], 0.0)
    rows, _, _ = np.nonzero(image)
    kept = image > 0
    return csr_matrix((image[kept], (rows, label[kept])), shape=(len(x), len(bins)))


def aperture_light(light: MultiGaussian, bins: Bins, position_angle: float) -> Array:
    """Share of the galaxy's light, blurred by the point-spread function, in each bin, (nbin,)."""
    cosine, sine = np.cos(np.radians(position_angle)), np.sin(np.radians(position_angle))
    # five Gauss-Legendre points a pixel and axis
    node, weight = np.polynomial.legendre.leggauss(5)
    x, y = np.meshgrid(*bins.axes, indexing="ij")
    inside = bins.bin_map >= 0
    x, y = x[inside], y[inside]
    flux = np.zeros(len(x))
    for dx, wx in zip(node * bins.pixel / 2, weight / 2, strict=True):
        for dy, wy in zip(node * bins.pixel / 2, weight / 2, strict=True):
            u, v = x + dx, y + dy
            flux += wx * wy * light.brightness(cosine * u + sine * v, -sine * u + cosine * v, bins.psf_sd)
    total = 2 * np.pi * (light.surface_brightness * light.sd**2 * light.axis_ratio).sum()
    return np.asarray(np.bincount(bins.bin_map[inside], flux * bins.pixel**2) / total)


class Cells(NamedTuple):
    """Cells of the meridional plane in ln r, from ``low`` in steps of ``step``, and in |z| / r."""

    low: float
    step: float
    radii: int
    angles: int


def cell_light(light: MultiGaussian, inclination: float, cells: Cells) -> Array:
    """Share of the light in each cell, (radii, angles); the innermost cells reach to the centre."""
    ratio = light.intrinsic_axis_ratio(inclination)
    node, weight = np.polynomial.legendre.leggauss(12)
    c = ((np.arange(cells.angles)[:, None] + 0.5 * (node + 1)) / cells.angles)[..., None]
    width = light.sd / np.sqrt(1 - c**2 + (c / ratio) ** 2)
    edges = np.exp(cells.low + cells.step * np.arange(1, cells.radii + 1))
    u = edges[:, None, None, None] / width
    # int_0^u t^2 exp(-t^2 / 2) dt as a share of its limit
    inside = 2 * ndtr(u) - 1 - np.sqrt(2 / np.pi) * u * np.exp(-0.5 * u**2)
    share = inside * width**3 / (light.sd**3 * ratio) * light.shares
    within = (share.sum(axis=-1) * 0.5 * weight).sum(axis=-1) / cells.angles
    return np.diff(within, axis=0, prepend=0.0)

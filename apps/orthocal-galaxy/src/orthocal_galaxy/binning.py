"""Larger bins from small ones: their shapes, their velocity distributions, and the pixels they cover."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from orthocal.applications import Array, BoolArray, IntArray
from orthocal.errors import InputError, OrthocalWarning

from .kinematics import Kinematics, PixelMap, turned
from .moments import gauss_hermite, losvd

#: least errors of v, sigma [km/s], h3 and h4: what template mismatch leaves even where photons abound
FLOORS = (2.0, 2.0, 0.01, 0.01)
#: velocities at which distributions are compared, in standard deviations about the mean
_GRID = np.linspace(-5.0, 5.0, 61)


class CoarseBins(NamedTuple):
    """Larger bins, and which of them each small bin went into, (n,)."""

    kinematics: Kinematics
    label: IntArray


def coarse_bins(
    kinematics: Kinematics,
    n_bins: int,
    seed: int | np.random.Generator = 0,
    draws: int = 100,
    floors: Sequence[float] = FLOORS,
    least_sigma: float = 30.0,
) -> CoarseBins:
    """Group the bins into ``n_bins`` larger ones and measure the moments of these.

    The bins are grouped by a centroidal tessellation with weights (total flux)^0.6, so that bright parts get smaller
    bins; the distributions of a group are added, weighted by flux, and Gauss-Hermite moments are fitted to the sum.

    Parameters
    ----------
    kinematics
        The small bins. One without v or sigma adds nothing; a missing h3 or h4 is taken to be as in the rest of the
        group, and stays missing where the whole group lacks it.
    n_bins
        Number of larger bins.
    seed
        Of the first centres and of the draws.
    draws
        Number of draws of the small bins' moments from their errors; the standard deviation of the moments fitted to
        them is the error of the larger bin.
    floors
        Least errors of v, sigma, h3, h4.
    least_sigma
        Draws of a smaller sigma [km/s] are raised to this, since the spectrograph cannot resolve less.
    """
    if draws < 2 or len(floors) != 4 or least_sigma <= 0:
        raise InputError("give at least 2 draws, four floors (v, sigma, h3, h4) and a least_sigma above 0")
    usable = _usable(kinematics, n_bins)
    points = kinematics.points[usable]
    rng = np.random.default_rng(seed)
    light = (kinematics.flux * kinematics.pixels)[usable]
    centres, used_label = _tessellate(points, light**0.6, n_bins, rng)
    label = np.array(cKDTree(centres).query(kinematics.points)[1], dtype=np.intp)
    label[usable] = used_label

    total = np.bincount(used_label, light, n_bins)
    pixels = np.asarray(np.bincount(used_label, kinematics.pixels[usable], n_bins), dtype=float)
    x, y = (np.bincount(used_label, light * points[:, j], n_bins) / total for j in range(2))
    values, errors = _combined(
        kinematics.values[usable], kinematics.errors[usable], light, used_label, rng, draws, least_sigma
    )
    errors = np.maximum(errors, floors)
    coarse = replace(
        kinematics,
        x=x,
        y=y,
        values=values,
        errors=errors,
        flux=total / pixels,
        pixels=pixels,
        flagged=_missing(values, kinematics.names),
        pixel_map=None if kinematics.pixel_map is None else pixel_map(kinematics, label),
    )
    return CoarseBins(coarse, label)


def _usable(kinematics: Kinematics, n_bins: int) -> IntArray:
    """Which bins have v and sigma, of which there must be enough."""
    usable = np.flatnonzero(kinematics.observed[:, :2].all(axis=1))
    distinct = len(np.unique(kinematics.points[usable], axis=0))
    if not 1 <= n_bins <= distinct:
        raise InputError(f"n_bins={n_bins}: give 1 to {distinct}, the number of bins that have v and sigma")
    return usable


def _missing(values: Array, names: Sequence[str]) -> dict[str, int]:
    """In how many bins a moment is missing, with a warning to who called for the bins."""
    counts = zip(names, np.isnan(values).sum(axis=0), strict=True)
    missing = {name: int(count) for name, count in counts if count}
    if missing:
        said = ", ".join(f"{name} in {count}" for name, count in missing.items())
        warnings.warn(f"moments are missing: {said} of {len(values)} bins", OrthocalWarning, stacklevel=3)
    return missing


def pixel_map(kinematics: Kinematics, label: IntArray | None = None, pixel: float | None = None) -> PixelMap:
    """The bin of each pixel of a regular grid.

    Parameters
    ----------
    kinematics
        The small bins, whose own pixels are used where they are known. Otherwise each bin gets as many pixels as it
        has, those nearest to its centre.
    label
        The larger bin that each small one went into, (n,), for a map of the larger bins.
    pixel
        Size of a pixel [arcsec]; by default the usual distance between bins of one pixel.
    """
    groups = np.arange(kinematics.n) if label is None else np.asarray(label, dtype=np.intp)
    if groups.shape != (kinematics.n,):
        raise InputError(f"label has shape {groups.shape} for {kinematics.n} bins: give the larger bin of each")
    known = kinematics.pixel_map
    if known is not None:
        return replace(known, label=_relabelled(known.label, groups))
    points = np.column_stack(turned(kinematics.x, kinematics.y, -kinematics.angle))
    single = points[kinematics.pixels == 1]
    if pixel is None:
        if len(single) < 2:
            raise InputError("the size of a pixel is not known: there are no bins of one pixel, so give `pixel`")
        spacing, _ = cKDTree(single).query(single, k=[2])
        pixel = float(np.median(spacing))
    if pixel <= 0:
        raise InputError(f"pixel={pixel}: give the size of a pixel in arcsec")
    gx, gy = (_grid_through(points[:, j], single[:, j], pixel, kinematics.pixels) for j in range(2))
    at = np.stack(np.meshgrid(gx, gy, indexing="ij"), axis=-1)
    nearest = _nearest_pixels(points, kinematics.pixels, at.reshape(-1, 2), pixel).reshape(at.shape[:2])
    return PixelMap(gx, gy, _relabelled(nearest, groups), kinematics.angle)


def _nearest_pixels(points: Array, pixels: Array, at: Array, pixel: float) -> IntArray:
    """The bin of each pixel (m,): each bin takes as many as it has, the closest pairs of bin and pixel first."""
    reach = pixel * (1.2 * np.sqrt(pixels) + 0.5)
    near = [np.array(one, dtype=np.intp) for one in cKDTree(at).query_ball_point(points, reach)]
    bins, places = np.repeat(np.arange(len(points)), [len(one) for one in near]), np.concatenate(near)
    label, left = np.full(len(at), -1, dtype=np.intp), np.rint(pixels)
    order = np.argsort(((points[bins] - at[places]) ** 2).sum(axis=1), kind="stable")
    for one, place in zip(bins[order].tolist(), places[order].tolist(), strict=True):
        if left[one] > 0 and label[place] < 0:
            label[place] = one
            left[one] -= 1
    return label


def _relabelled(label: IntArray, groups: IntArray) -> IntArray:
    return np.where(label >= 0, groups[np.maximum(label, 0)], -1).astype(np.intp)


def _grid_through(at: Array, single: Array, pixel: float, pixels: Array) -> Array:
    """Centres of pixels along one axis that cover all bins, in step with the bins of one pixel."""
    phase = np.angle(np.exp(2j * np.pi * single / pixel).sum()) / (2 * np.pi) if len(single) else 0.0
    margin = np.ceil(np.sqrt(pixels.max()))
    first = np.floor(at.min() / pixel - phase) - margin
    last = np.ceil(at.max() / pixel - phase) + margin
    return np.asarray((np.arange(first, last + 1) + phase) * pixel)


def _tessellate(points: Array, weight: Array, n_bins: int, rng: np.random.Generator) -> tuple[Array, IntArray]:
    """Lloyd's algorithm: centres (b, 2) that are the weighted means of the points nearest to them, and these (n,)."""
    centres = points[rng.choice(len(points), n_bins, replace=False, p=weight / weight.sum())]
    for _ in range(500):
        distance, nearest = map(np.asarray, cKDTree(centres).query(points))
        label = nearest.astype(np.intp)
        for empty in np.setdiff1d(np.arange(n_bins), label):
            # the worst placed point of those that have company founds the cell anew
            shared = np.bincount(label, minlength=n_bins)[label] > 1
            label[np.argmax(np.where(shared, weight * distance**2, -1.0))] = empty
        total = np.bincount(label, weight, n_bins)
        new = np.column_stack([np.bincount(label, weight * points[:, j], n_bins) / total for j in range(2)])
        if np.allclose(new, centres):
            break
        centres = new
    return new, label


def _combined(
    values: Array,
    errors: Array,
    light: Array,
    label: IntArray,
    rng: np.random.Generator,
    draws: int,
    least_sigma: float,
) -> tuple[Array, Array]:
    """Moments (b, 4) of the summed distributions, and their standard deviations."""
    order = np.argsort(label, kind="stable")
    values, errors, light, label = values[order], errors[order], light[order], label[order]
    starts = np.flatnonzero(np.r_[True, np.diff(label) > 0])
    values, errors, lacking = _filled(values, errors, light, starts, label)
    total = np.add.reduceat(light, starts)
    mean = np.add.reduceat(light * values[:, 0], starts) / total
    square = np.add.reduceat(light * (values[:, 1] ** 2 + (values[:, 0] - mean[label]) ** 2), starts) / total
    scale = np.sqrt(square)
    # each group in units of its own mean and standard deviation, so that one grid of velocities suits all
    shift = np.column_stack([mean, np.zeros((len(mean), 3))])
    units = np.column_stack([scale, scale, np.ones((len(mean), 2))])

    def fitted(moments: Array) -> Array:
        parts = light[:, None] * losvd((moments - shift[label]) / units[label], _GRID)
        return gauss_hermite(np.add.reduceat(parts, starts), _GRID)

    centre = fitted(values)
    fits = np.empty((draws, *centre.shape))
    for i in range(draws):
        drawn = values + errors * rng.standard_normal(values.shape)
        drawn[:, 1] = np.maximum(drawn[:, 1], least_sigma)
        fits[i] = fitted(drawn)
    enough = ~np.isnan(centre[:, 0]) & (np.isfinite(fits[:, :, 0]).mean(axis=0) > 0.5)
    sd = np.full(centre.shape, np.nan)
    sd[enough] = np.nanstd(fits[:, enough], axis=0, ddof=1)
    centre[~enough] = np.nan
    centre[lacking], sd[lacking] = np.nan, np.nan
    return centre * units + shift, sd * units


def _filled(
    values: Array, errors: Array, light: Array, starts: IntArray, label: IntArray
) -> tuple[Array, Array, BoolArray]:
    """Missing h3 and h4 as in the rest of the group, with its scatter; and which groups (b, 4) lack them wholly."""
    values, errors = values.copy(), errors.copy()
    lacking = np.zeros((len(starts), 4), dtype=np.bool_)
    for j in (2, 3):
        there = ~np.isnan(values[:, j])
        weight = np.where(there, light, 0.0)
        total = np.add.reduceat(weight, starts)
        lacking[:, j] = total == 0
        total = np.where(total > 0, total, 1.0)
        value, error = (np.where(there, array[:, j], 0.0) for array in (values, errors))
        mean = np.add.reduceat(weight * value, starts) / total
        var = np.add.reduceat(weight * ((value - mean[label]) ** 2 + error**2), starts) / total
        values[~there, j] = mean[label][~there]
        errors[~there, j] = np.sqrt(var[label][~there])
    return values, errors, lacking

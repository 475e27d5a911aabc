"""Bins, blurring and target light, against brute force."""

import numpy as np
import pytest

from orthocal.errors import InputError
from orthocal_galaxy import Bins, make_bins
from orthocal_galaxy.sky import Cells, aperture_light, cell_light, sky_grid

INCLINATION, ANGLE = 75.0, 25.0


@pytest.fixture(scope="module")
def stars(light):
    """Positions of stars, and their blurred places on the sky along the galaxy's axes."""
    rng = np.random.default_rng(2)
    place = light.sample(400_000, INCLINATION, rng)
    i = np.radians(INCLINATION)
    x, y = place[:, 0], -place[:, 1] * np.cos(i) + place[:, 2] * np.sin(i)
    return place, x + 0.3 * rng.standard_normal(len(x)), y + 0.3 * rng.standard_normal(len(x))


@pytest.fixture(scope="module")
def bins(light):
    return make_bins(30, light, (9.0, 6.0), 0.5, 0.3, seed=1)


def counted(bins, x, y, angle):
    """Share of the points in each bin."""
    a = np.radians(angle)
    u, v = np.cos(a) * x - np.sin(a) * y, np.sin(a) * x + np.cos(a) * y
    i = np.floor((u - bins.start[0]) / bins.pixel + 0.5).astype(int)
    j = np.floor((v - bins.start[1]) / bins.pixel + 0.5).astype(int)
    ok = (i >= 0) & (j >= 0) & (i < bins.bin_map.shape[0]) & (j < bins.bin_map.shape[1])
    label = bins.bin_map[i[ok], j[ok]]
    return np.bincount(label[label >= 0], minlength=len(bins)) / len(x)


def within(found, expected, n):
    """Within 4.5 standard errors in every bin: false alarms 3e-4 for 40 bins."""
    return (np.abs(found - expected) < 4.5 * np.sqrt(expected / n)).all()


def test_light_in_bins_against_sampled_stars(light, bins, stars):
    _, x, y = stars
    expected = aperture_light(light, bins, ANGLE)
    assert within(counted(bins, x, y, ANGLE), expected, len(x))
    # the check notices a wrong angle
    assert not within(counted(bins, x, y, ANGLE), aperture_light(light, bins, -ANGLE), len(x))


def test_light_in_cells_against_sampled_stars(light, stars):
    place, _, _ = stars
    cells = Cells(np.log(0.5), 0.4, 8, 5)
    r = np.linalg.norm(place, axis=1)
    i = np.maximum(((np.log(r) - cells.low) / cells.step).astype(int), 0)
    j = np.minimum((np.abs(place[:, 2]) / r * 5).astype(int), 4)
    found = np.bincount((i * 5 + j)[i < 8], minlength=40).reshape(8, 5) / len(r)
    assert within(found, cell_light(light, INCLINATION, cells), len(r))


def test_the_grid_blurs_and_bins_as_the_spectrograph_does(light, bins, stars):
    """Points spread linearly on the nodes reach the bins like blurred points."""
    place, x, _ = stars
    i = np.radians(INCLINATION)
    grid = sky_grid(bins, ANGLE)
    sharp = np.abs([place[:, 0], -place[:, 1] * np.cos(i) + place[:, 2] * np.sin(i)])
    n = len(grid.nodes)
    sharp = sharp[:, (sharp < grid.nodes[-1]).all(axis=0)]
    cell = np.searchsorted(grid.nodes, sharp, side="right") - 1
    assert np.array_equal(cell, (grid.steps * sharp / (sharp + grid.bend)).astype(int))
    a, b = (sharp - grid.nodes[cell]) / np.diff(grid.nodes)[cell]
    spread = np.zeros(n * n)
    for corner in range(4):
        weight = (a if corner > 1 else 1 - a) * (b if corner % 2 else 1 - b)
        np.add.at(spread, (cell[0] + corner // 2) * n + cell[1] + corner % 2, weight / len(x))
    ahead, behind = grid.matrices(len(bins))
    found = (ahead + behind) @ spread
    expected = aperture_light(light, bins, ANGLE)
    assert np.abs(found / expected - 1).max() < 0.03


def test_reversed_images_go_to_the_other_side(bins):
    """A source at x' > 0 puts half of its folded images at negative x', with the velocity reversed."""
    grid = sky_grid(bins, 0.0)
    ahead, behind = grid.matrices(len(bins))
    node = int(np.argmin(np.abs(grid.nodes - 5.0))) * len(grid.nodes)
    right = bins.centres[:, 0] > 0.8
    assert ahead[:, [node]].toarray()[right].sum() == pytest.approx(0.5, abs=0.01)
    assert behind[:, [node]].toarray()[right].sum() == pytest.approx(0.0, abs=1e-3)


def test_made_bins(light, bins):
    assert len(bins) == 30
    assert bins.areas.sum() == pytest.approx(np.pi * 9 * 6, rel=0.05)
    assert np.abs(bins.x).max() == 1
    order = np.argsort(np.hypot(*bins.centres.T))
    assert bins.areas[order[:8]].mean() < 0.7 * bins.areas[order[-8:]].mean()
    assert len(make_bins(105, light, (18, 11), 0.5, 0.3)) == 105


def test_mistakes(light, bins):
    with pytest.raises(InputError, match=r"use each of the numbers 0..30"):
        Bins(bins.bin_map, bins.start, 0.5, 0.3, np.vstack([bins.centres, [[0, 0]]]))
    with pytest.raises(InputError, match="table of whole numbers"):
        Bins(bins.bin_map * 1.0, bins.start, 0.5, 0.3, bins.centres)
    with pytest.raises(InputError, match=r"psf_sd=0: give arcsec"):
        Bins(bins.bin_map, bins.start, 0.5, 0, bins.centres)
    with pytest.raises(InputError, match="finite x and y"):
        Bins(bins.bin_map, bins.start, 0.5, 0.3, bins.centres * np.nan)
    with pytest.raises(InputError, match="nbin=100000: the field has"):
        make_bins(100000, light, (9.0, 6.0), 0.5, 0.3)
    with pytest.raises(InputError, match="position_angle=nan"):
        sky_grid(bins, np.nan)

"""Larger bins: their moments against exact sums, missing cells, and the pixels they cover."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orthocal.errors import InputError, OrthocalWarning
from orthocal_galaxy.binning import FLOORS, coarse_bins, pixel_map
from orthocal_galaxy.kinematics import Kinematics, PixelMap
from orthocal_galaxy.moments import gauss_hermite, losvd
from orthocal_galaxy.readers import read_atlas3d

SHARED = Path(__file__).parents[4] / "shared" / "galaxy"


def disc(side=15, error=(4.0, 5.0, 0.02, 0.03)):
    """A rotating disc on pixels of 0.8 arcsec."""
    x, y = (axis.ravel() for axis in np.meshgrid(*2 * [0.8 * (np.arange(side) - side // 2)], indexing="ij"))
    r = np.hypot(x, y)
    v = 150 * x / (2 + r)
    values = np.column_stack([v, 180 - 8 * r, -v / 2000, 0.02 + 0 * r])
    one = np.ones(side**2)
    return Kinematics(x, y, values, np.tile(error, (side**2, 1)), 100 * np.exp(-r / 2), one)


def test_every_bin_alone_keeps_its_moments_and_errors():
    fine = disc(7)
    coarse, label = coarse_bins(fine, fine.n, seed=1, draws=200, floors=(0, 0, 0, 0))
    assert sorted(label) == list(range(fine.n))
    np.testing.assert_allclose(coarse.values[label], fine.values, atol=1e-4)
    np.testing.assert_allclose(coarse.points[label], fine.points)
    np.testing.assert_allclose(coarse.flux[label], fine.flux)
    # the relative error of an sd from 200 draws is 0.05, and the largest of 196 is within 5 of them (1e-4)
    ratio = coarse.errors[label] / fine.errors
    assert np.abs(ratio - 1).max() < 0.25


def test_one_bin_is_the_flux_weighted_sum():
    fine = disc(9)
    coarse, label = coarse_bins(fine, 1, seed=0, draws=2)
    assert not label.any()
    velocity = np.linspace(-1500, 1500, 1501)
    exact = gauss_hermite((fine.flux @ losvd(fine.values, velocity))[None], velocity)
    np.testing.assert_allclose(coarse.values, exact, atol=2e-3)
    assert coarse.pixels.tolist() == [81]
    assert coarse.flux[0] == pytest.approx(fine.flux.mean())
    np.testing.assert_allclose(coarse.points, [[0, 0]], atol=1e-12)


def test_errors_shrink_with_the_number_of_bins_and_stop_at_the_floors():
    fine = replace(disc(11), flux=np.ones(121), values=np.tile([0.0, 150, 0, 0], (121, 1)))
    errors = coarse_bins(fine, 1, seed=2, draws=200, floors=(0, 0, 0, 0)).kinematics.errors
    # 5 standard errors of a standard deviation from 200 draws: a false alarm in 1e6
    np.testing.assert_allclose(errors[0, :3], fine.errors[0, :3] / 11, rtol=0.25)
    floored = coarse_bins(fine, 1, seed=2, draws=20).kinematics.errors
    np.testing.assert_allclose(floored[0], FLOORS)


def test_the_same_seed_gives_the_same_bins():
    fine = disc()
    first, second = (coarse_bins(fine, 20, seed=3, draws=5) for _ in range(2))
    assert np.array_equal(first.label, second.label)
    assert np.array_equal(first.kinematics.errors, second.kinematics.errors)
    assert not np.array_equal(first.label, coarse_bins(fine, 20, seed=4, draws=5).label)


def test_bins_are_compact_and_smaller_where_it_is_bright():
    fine = disc()
    coarse, label = coarse_bins(fine, 20, seed=3, draws=2)
    assert set(label) == set(range(20))
    # nearest centre of the tessellation: at most a pixel farther than the nearest centre of light
    distance = np.hypot(*(fine.points[:, None] - coarse.points).T)
    own = distance[label, np.arange(fine.n)]
    assert (own <= distance.min(axis=0) + 0.8).all()
    r = np.hypot(*coarse.points.T)
    assert coarse.pixels[np.argsort(r)[:5]].mean() < 0.7 * coarse.pixels[np.argsort(r)[-5:]].mean()
    assert coarse.pixels.sum() == fine.n


def test_missing_cells():
    fine = disc(9)
    values = fine.values.copy()
    values[0] = np.nan
    values[1, :2] = np.nan
    values[40:50, 2] = np.nan
    values[fine.x < -1, 3] = np.nan
    holed = replace(fine, values=values, errors=np.where(np.isnan(values), np.nan, fine.errors))
    with pytest.warns(OrthocalWarning, match=r"moments are missing: h4 in \d+ of 12 bins"):
        coarse, label = coarse_bins(holed, 12, seed=5, draws=50)
    assert len(label) == fine.n
    assert coarse.observed[:, :3].all()
    assert np.array_equal(np.isnan(coarse.errors), ~coarse.observed)
    lost = [one for one in range(12) if np.isnan(values[label == one, 3]).all()]
    assert np.array_equal(np.flatnonzero(~coarse.observed[:, 3]), lost)
    assert coarse.flagged == {"h4": len(lost)}
    assert coarse.pixels.sum() == fine.n - 2


def test_missing_h3_is_taken_from_the_rest_of_the_group():
    fine = disc(9)
    values = fine.values.copy()
    values[::3, 2] = np.nan
    values[1::4, 3] = np.nan
    holed = replace(fine, values=values, errors=np.where(np.isnan(values), np.nan, fine.errors))
    whole, full = (coarse_bins(one, 8, seed=5, draws=100, floors=(0, 0, 0, 0)) for one in (fine, holed))
    assert np.array_equal(whole.label, full.label)
    assert full.kinematics.observed.all()
    assert (np.abs(full.kinematics.values - whole.kinematics.values) < whole.kinematics.errors).all()
    # fewer measured cells, larger errors
    assert (full.kinematics.errors[:, 2] / whole.kinematics.errors[:, 2]).mean() > 1


def test_settings_are_checked():
    fine = disc(5)
    for n_bins in (0, 26):
        with pytest.raises(InputError, match=f"n_bins={n_bins}: give 1 to 25"):
            coarse_bins(fine, n_bins)
    with pytest.raises(InputError, match="at least 2 draws"):
        coarse_bins(fine, 3, draws=1)
    with pytest.raises(InputError, match="label has shape"):
        pixel_map(fine, np.zeros(3, dtype=np.intp))
    with pytest.raises(InputError, match="give `pixel`"):
        pixel_map(replace(fine, pixels=np.full(25, 2.0)))
    with pytest.raises(InputError, match="pixel=-1"):
        pixel_map(fine, pixel=-1)


def test_pixels_of_a_turned_galaxy():
    fine = disc(9)
    fine = replace(fine, x=fine.x + 0.13, y=fine.y - 0.21)
    coarse, label = coarse_bins(fine.rotated(50), 10, seed=1, draws=2)
    pixels = pixel_map(fine.rotated(50), label)
    assert pixels.angle == fine.rotated(50).angle == 40
    assert pixels.counts(10).tolist() == coarse.pixels.tolist()
    # the middle of each pixel lies in the bin of the fine one that is there
    x, y = pixels.corners()
    middle = np.stack([(axis[1:, 1:] + axis[:-1, :-1]) / 2 for axis in (x, y)], axis=-1)
    for one in range(10):
        expected = np.sort(fine.rotated(50).points[label == one], axis=0)
        np.testing.assert_allclose(np.sort(middle[pixels.label == one], axis=0), expected, atol=1e-9)


def test_bins_of_several_pixels_get_their_number():
    """Two bins of six pixels between single ones."""
    single = disc(9)
    far = np.abs(single.x) < 1.3
    x = np.r_[single.x[far], -2.4, 2.4]
    y = np.r_[single.y[far], 0.4, -0.4]
    n = len(x)
    pixels = np.r_[np.ones(n - 2), 6, 6]
    found = pixel_map(Kinematics(x, y, np.ones((n, 4)), np.ones((n, 4)), np.ones(n), pixels))
    assert found.counts(n).tolist() == pixels.tolist()
    at = np.stack(np.meshgrid(found.x, found.y, indexing="ij"), axis=-1)
    for one in (n - 2, n - 1):
        assert np.hypot(*(at[found.label == one].mean(axis=0) - [x[one], y[one]])) < 0.4


def test_known_pixels_are_kept():
    fine = disc(3)
    known = PixelMap(np.arange(3.0), np.arange(4.0), np.array([[0, 1, 2, -1], [3, 4, 5, -1], [6, 7, 8, -1]]))
    coarse, label = coarse_bins(replace(fine, pixel_map=known), 4, seed=0, draws=2)
    assert np.array_equal(coarse.pixel_map.label[:, :3].ravel(), label)
    assert (coarse.pixel_map.label[:, 3] == -1).all()


@pytest.mark.skipif(not (SHARED / "ngc4570.npz").is_file(), reason="the table of NGC 4570 is not here")
def test_ngc4570():
    galaxy = read_atlas3d(SHARED / "NGC4570_4moments_ATLAS3d.fits").shifted().rotated(159.3)
    start = time.process_time()
    coarse, label = coarse_bins(galaxy, 105, seed=4570, draws=40)
    assert time.process_time() - start < 20
    assert pixel_map(galaxy, label).counts(105).tolist() == coarse.pixels.tolist()
    with np.load(SHARED / "ngc4570.npz") as stored:
        earlier, sd, at = stored["kin"], stored["ekin"], np.column_stack([stored["xb"], stored["yb"]])
    near = np.argmin(np.hypot(*(at[:, None] - coarse.points).T), axis=0)
    same = np.hypot(*(at - coarse.points[near]).T) < 0.1
    assert same.sum() > 50
    # that fit was by least squares, this one by projection: they differ by less than the noise
    assert (np.abs(coarse.values[near] - earlier)[same] < 0.6 * sd[same]).all()
    np.testing.assert_allclose(np.median(coarse.errors[near][same] / sd[same], axis=0), 1, atol=0.1)

"""Figures of maps: panels, colour scales, missing bins, and what is refused."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PathCollection

from orthocal.errors import InputError
from orthocal_galaxy.kinematics import Kinematics, PixelMap
from orthocal_galaxy.maps import COLUMNS, map_figure
from orthocal_galaxy.moments import MOMENTS


def galaxy(side=6, pixel_map=None):
    x, y = (axis.ravel() for axis in np.meshgrid(*2 * [np.arange(side) - side / 2 + 0.5]))
    values = np.column_stack([30 * x, 100 + y, x / 100, 0.05 + y / 100])
    one = np.ones(side**2)
    return Kinematics(x, y, values, np.ones_like(values), one, one, pixel_map=pixel_map)


def pixels(side=6):
    centres = np.arange(side) - side / 2 + 0.5
    label = np.arange(side**2).reshape(side, side).T
    return PixelMap(centres, centres, label.astype(np.intp), angle=20.0)


def maps_of(bins):
    observed = bins.values.copy()
    observed[3, :2] = np.nan
    model = 0.5 * bins.values
    return {"observed": observed, "model": model, "model + bias": 1.1 * model, "residual": observed - 1.1 * model}


def panels(figure):
    """Panels by row and column; colour bars have no equal aspect."""
    axes = [axis for axis in figure.axes if axis.get_aspect() == 1.0]
    return np.array(axes, dtype=object).reshape(-1, 4)


def painted(axis):
    """The collection with colours, and that of the missing bins or None."""
    found = [one for one in axis.collections if isinstance(one, PathCollection)]
    return found[0], found[1] if len(found) > 1 else None


def test_a_notebook_shows_the_figure_without_pyplot():
    bins = galaxy()
    figure = map_figure(bins, {"observed": bins.values})
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("known", [True, False], ids=["pixels", "cells"])
def test_one_row_an_outcome_and_shared_scales(known):
    bins = galaxy(pixel_map=pixels() if known else None)
    figure = map_figure(bins, maps_of(bins))
    grid = panels(figure)
    assert grid.shape == (4, 4)
    assert [axis.get_title() for axis in grid[0]] == list(COLUMNS)
    for k, row in enumerate(grid):
        limits = [painted(axis)[0].get_clim() for axis in row]
        assert limits[0] == limits[1] == limits[2]
        assert limits[3][0] == -limits[3][1]
        assert (limits[0][0] == -limits[0][1]) == (MOMENTS[k] in ("v", "h3"))
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_aspect() != 1.0]
    assert labels == [name for label in ("v [km/s]", "sigma [km/s]", "h3", "h4") for name in (label, label)]
    assert grid[3, 0].get_xlabel() == "x [arcsec]"
    assert grid[1, 0].get_ylabel() == "y [arcsec]"
    assert not grid[1, 1].get_ylabel()


@pytest.mark.parametrize("known", [True, False], ids=["pixels", "cells"])
def test_colours_are_those_of_the_bins_and_missing_ones_are_hatched(known):
    bins = galaxy(pixel_map=pixels() if known else None)
    maps = maps_of(bins)
    grid = panels(map_figure(bins, maps))
    colours, grey = painted(grid[0, 0])
    assert grey.get_hatch()
    assert len(grey.get_paths()) == 1
    assert painted(grid[2, 0])[1] is None
    assert painted(grid[0, 1])[1] is None
    there = np.delete(np.arange(36), 3)
    np.testing.assert_allclose(colours.get_array(), maps["observed"][there, 0])
    middles = np.array([path.vertices[:4].mean(axis=0) for path in colours.get_paths()])
    if known:
        angle = np.radians(20)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(middles, bins.points[there] @ turn.T, atol=1e-9)
    else:
        inside = [path.contains_point(bins.points[i]) for path, i in zip(colours.get_paths(), there, strict=True)]
        assert all(inside)


def test_cells_end_near_the_outermost_bins():
    bins = galaxy(8)
    corners = np.concatenate(
        [path.vertices for path in painted(panels(map_figure(bins, maps_of(bins)))[2, 1])[0].get_paths()]
    )
    assert 3.8 < np.abs(corners).max() < 4.6


def test_wild_bins_do_not_take_all_colours():
    bins = galaxy(12)
    observed = bins.values.copy()
    observed[5] = 1e6
    figure = map_figure(bins, {"observed": observed})
    colours = painted(figure.axes[0])[0]
    assert colours.get_clim()[1] < 200
    assert colours.colorbar.extend == "max" or colours.colorbar.extend == "both"


def test_degenerate_maps_are_drawn():
    bins = galaxy(4)
    empty, same = np.full((16, 1), np.nan), np.full((16, 1), 7.0)
    for value in (empty, same, 0 * same):
        figure = map_figure(
            bins.points, {"observed": value, "residual": value, "residual / error": value}, units={"y": "m"}
        )
        figure.savefig(io.BytesIO())
        labels = [axis.get_ylabel() for axis in figure.axes if axis.get_aspect() != 1.0]
        assert labels == ["y [m]", "y [m]", "y"]
    for points in (bins.points[:1], bins.points[:2], bins.points[::4]):
        map_figure(points, np.ones((1, len(points), 2))).savefig(io.BytesIO())


def test_no_global_state_is_touched(tmp_path):
    before = dict(mpl.rcParams)
    bins = galaxy(pixel_map=pixels())
    for name in ("a.svg", "b.png", "c.pdf"):
        map_figure(bins, np.stack(list(maps_of(bins).values()))[..., :1], names=["v"]).savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert dict(mpl.rcParams) == before


def test_what_does_not_fit_is_refused():
    bins = galaxy()
    with pytest.raises(InputError, match=r"the same 36 bins, .* not observed \(5, 4\)"):
        map_figure(bins, {"observed": bins.values[:5]})
    with pytest.raises(InputError, match="the same 36 bins"):
        map_figure(bins, {"observed": bins.values, "model": bins.values[:, :2]})
    with pytest.raises(InputError, match="not nothing"):
        map_figure(bins, {})
    with pytest.raises(InputError, match="with c at most 4"):
        map_figure(bins, bins.values)
    with pytest.raises(InputError, match=r"give Kinematics, or finite centres \(n, 2\)"):
        map_figure(bins.values, {"observed": bins.values})
    with pytest.raises(InputError, match="names has 4 names"):
        map_figure(bins, {"observed": bins.values[:, :2]})
    with pytest.raises(InputError, match="pixel map has bins up to 35, but the maps have 9"):
        map_figure(galaxy(3), {"observed": galaxy(3).values}, pixels())

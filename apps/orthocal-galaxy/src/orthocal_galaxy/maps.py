"""Maps of the outcomes on the sky: observed, model, model + bias and residual, one row an outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from scipy.spatial import Delaunay, QhullError, Voronoi, cKDTree

from orthocal.applications import Array, BoolArray, IntArray, ShownFigure, as_columns, as_floats, style
from orthocal.errors import InputError

from .kinematics import Kinematics, PixelMap

COLUMNS = ("observed", "model", "model + bias", "residual")
RESIDUAL = "residual"
DIVERGING, SEQUENTIAL = "RdBu_r", "viridis"
#: limits of a colour scale are these quantiles, so that a few wild bins do not take all colours
QUANTILES = (0.02, 0.98)
#: room for a colour bar and its labels [inch]
_BAR = 0.85


class _Cells(NamedTuple):
    """Shapes on the sky, one a bin, and the bin of each."""

    shapes: Sequence[Path]
    label: IntArray


def map_figure(
    bins: Kinematics | ArrayLike,
    maps: Mapping[str, ArrayLike] | ArrayLike,
    pixel_map: PixelMap | None = None,
    names: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    diverging: Sequence[str] = ("v", "h3"),
) -> Figure:
    """Maps of each outcome (rows) in several versions (columns).

    Parameters
    ----------
    bins
        Kinematics, or centres of bins (n, 2) [arcsec].
    maps
        Title -> outcomes (n, q); or an array (c, n, q) of at most four: observed, model, model + bias, residual. NaN
        is drawn grey and hatched. Titles that begin with "residual" have a colour scale of their own, symmetric about
        0, and "residual / error" has no unit; the other columns of a row share their scale.
    pixel_map
        The pixels of the bins, by default those of ``bins``. Where neither is there, the cells of points nearest to
        each centre are drawn.
    names, units
        Of the outcomes, by default those of ``bins``.
    diverging
        Outcomes whose scale is symmetric about 0.
    """
    points, pixel_map, names, units = _described(bins, pixel_map, names, units)
    drawn = _checked_maps(maps, len(points))
    q = next(iter(drawn.values())).shape[1]
    if names is None:
        names = ["y"] if q == 1 else [f"y{k + 1}" for k in range(q)]
    if len(names) != q:
        raise InputError(f"names has {len(names)} names but there are {q} outcomes: give one name each")
    cells = _voronoi_cells(points) if pixel_map is None else _pixel_cells(pixel_map, len(points))
    with mpl.rc_context(style.STYLE):
        return _draw(cells, drawn, names, units, diverging)


def _described(
    bins: Kinematics | ArrayLike,
    pixel_map: PixelMap | None,
    names: Sequence[str] | None,
    units: Mapping[str, str] | None,
) -> tuple[Array, PixelMap | None, Sequence[str] | None, Mapping[str, str]]:
    if isinstance(bins, Kinematics):
        pixel_map = bins.pixel_map if pixel_map is None else pixel_map
        names = bins.names if names is None else names
        return bins.points, pixel_map, names, bins.units if units is None else units
    points = as_columns(bins, "bins")
    if points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
        raise InputError(f"bins has shape {points.shape}: give Kinematics, or finite centres (n, 2)")
    return points, pixel_map, names, units or {}


def _checked_maps(maps: Mapping[str, ArrayLike] | ArrayLike, n: int) -> dict[str, Array]:
    if not isinstance(maps, Mapping):
        stack = as_floats(maps, "maps")
        if stack.ndim != 3 or not 1 <= len(stack) <= len(COLUMNS):
            raise InputError(f"maps has shape {stack.shape}: give (c, n, q) with c at most 4, or title -> (n, q)")
        maps = dict(zip(COLUMNS, stack, strict=False))
    drawn = {str(title): as_columns(value, f"map {title!r}") for title, value in maps.items()}
    shapes = {value.shape for value in drawn.values()}
    if len(shapes) != 1 or next(iter(shapes))[0] != n or not next(iter(shapes))[1]:
        found = ", ".join(f"{title} {value.shape}" for title, value in drawn.items()) or "nothing"
        raise InputError(f"maps must be outcomes of the same {n} bins, (n, q) each, not {found}")
    return {title: np.where(np.isfinite(value), value, np.nan) for title, value in drawn.items()}


def _draw(
    cells: _Cells,
    maps: Mapping[str, Array],
    names: Sequence[str],
    units: Mapping[str, str],
    diverging: Sequence[str],
) -> Figure:
    shared = [title for title in maps if not title.startswith(RESIDUAL)]
    own = [title for title in maps if title.startswith(RESIDUAL)]
    titles = shared + own
    with_bar = [*shared[-1:], *own]
    corners = np.concatenate([shape.vertices for shape in cells.shapes])
    margin = 0.03 * float(np.ptp(corners, axis=0).max())
    low, high = corners.min(axis=0) - margin, corners.max(axis=0) + margin
    panels = _Panels.of(len(names), titles, with_bar, *(high - low))
    for k, name in enumerate(names):
        together = np.concatenate([maps[title][:, k] for title in shared]) if shared else np.empty(0)
        for j, title in enumerate(titles):
            axis = panels.axis(k, j)
            axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
            if k == 0:
                axis.set_title(style.text(title))
            values = maps[title][:, k]
            scaled = values if title in own else together
            centred = title in own or name in diverging
            norm = _norm(scaled, centred)
            painted = _paint(axis, cells, values, norm, DIVERGING if centred else SEQUENTIAL)
            if title in with_bar:
                unit = f" [{style.text(units[name])}]" if name in units and not title.endswith("/ error") else ""
                panels.bar(k, j, painted, style.text(name) + unit, _beyond(scaled, norm))
    return panels.figure


class _Panels(NamedTuple):
    """A figure whose panels have the shape of the field; lengths in inches."""

    figure: Figure
    left: Sequence[float]
    rows: int
    width: float
    height: float

    @classmethod
    def of(cls, rows: int, titles: Sequence[str], with_bar: Sequence[str], width: float, height: float) -> _Panels:
        ratio = float(np.clip(height / width, 0.2, 5.0))
        # panels of about 4 square inches, high enough for the labels of a colour bar
        high = max(2.0 * np.sqrt(ratio), 0.9)
        wide = high / ratio
        left = [0.65]
        for title in titles:
            left.append(left[-1] + wide + (_BAR + 0.12 if title in with_bar else 0.12))
        size = (left[-1], rows * (high + 0.15) + 0.67)
        return cls(ShownFigure(figsize=size), left, rows, wide, high)

    def axis(self, k: int, j: int) -> Axes:
        axis = self._axes(k, self.left[j], self.width)
        axis.set(aspect="equal")
        for one in (axis.xaxis, axis.yaxis):
            one.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        bottom = k == self.rows - 1
        axis.tick_params(length=2, labelbottom=bottom, labelleft=j == 0)
        axis.set(xlabel="x [arcsec]" if bottom else "", ylabel="" if j else "y [arcsec]")
        return axis

    def bar(self, k: int, j: int, painted: PathCollection, label: str, extend: str) -> None:
        axis = self._axes(k, self.left[j] + self.width + 0.06, 0.1)
        self.figure.colorbar(
            painted, cax=axis, label=label, extend=extend, ticks=MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
        )
        axis.tick_params(length=2)
        # labels below each other, however long the numbers are
        axis.yaxis.set_label_coords((_BAR - 0.2) / 0.1, 0.5)

    def _axes(self, k: int, left: float, width: float) -> Axes:
        whole = self.figure.get_size_inches()
        bottom = 0.52 + (self.rows - 1 - k) * (self.height + 0.15)
        place = (left / whole[0], bottom / whole[1], width / whole[0], self.height / whole[1])
        return self.figure.add_axes(place)


def _norm(values: Array, centred: bool) -> Normalize:
    seen = values[np.isfinite(values)]
    if not seen.size:
        return Normalize(-1.0, 1.0)
    if centred:
        top = float(np.quantile(np.abs(seen), QUANTILES[1])) or float(np.abs(seen).max()) or 1.0
        return Normalize(-top, top)
    low, high = np.quantile(seen, QUANTILES)
    if high <= low:
        low, high = seen.min(), seen.max()
    # one value alone needs some room too
    room = 0.0 if high > low else max(abs(float(low)), 1.0) * 1e-3
    return Normalize(float(low) - room, float(high) + room)


def _beyond(values: Array, norm: Normalize) -> str:
    """Which ends of the colour bar get an arrow."""
    seen = values[np.isfinite(values)]
    mapped = norm(seen)
    below, above = bool((mapped < 0).any()), bool((mapped > 1).any())
    return {(True, True): "both", (True, False): "min", (False, True): "max", (False, False): "neither"}[below, above]


def _paint(axis: Axes, cells: _Cells, values: Array, norm: Normalize, colours: str) -> PathCollection:
    of_cell = values[cells.label]
    there = np.isfinite(of_cell)
    # edges of the colour of the face close the seams between neighbours
    painted = PathCollection(
        [shape for shape, ok in zip(cells.shapes, there, strict=True) if ok],
        array=of_cell[there],
        cmap=colours,
        norm=norm,
        edgecolors="face",
        linewidths=0.3,
        rasterized=True,
    )
    axis.add_collection(painted, autolim=False)
    missing = [shape for shape, ok in zip(cells.shapes, there, strict=True) if not ok]
    if missing:
        grey = PathCollection(missing, facecolors=style.SHADE, edgecolors=style.GUIDE, hatch="/////", linewidths=0.0)
        axis.add_collection(grey, autolim=False)
    return painted


def _pixel_cells(pixel_map: PixelMap, n: int) -> _Cells:
    """The pixels of a bin as one shape, so that no seams show between them."""
    inside = pixel_map.label >= 0
    if not inside.any() or pixel_map.label.max() >= n:
        raise InputError(f"the pixel map has bins up to {pixel_map.label.max()}, but the maps have {n} bins from 0")
    corners = np.stack(pixel_map.corners(), axis=-1)
    around = [corners[:-1, :-1], corners[1:, :-1], corners[1:, 1:], corners[:-1, 1:], corners[:-1, :-1]]
    squares, label = np.stack(around, axis=2)[inside], pixel_map.label[inside]
    square = np.array([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], dtype=Path.code_type)
    bins = np.unique(label)
    members = [squares[label == one] for one in bins]
    return _Cells([Path(one.reshape(-1, 2), np.tile(square, len(one))) for one in members], bins)


def _voronoi_cells(points: Array) -> _Cells:
    """The part of the plane nearest to each centre; outwards a cell ends at about half the distance to its neighbours.

    Points put around the outermost centres end their cells.
    """
    n = len(points)
    if n == 1:
        return _Cells([Path(points + np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]))], np.arange(1))
    tree = cKDTree(points)
    spacing = np.asarray(tree.query(points, k=list(range(2, min(n, 4) + 1)))[0]).mean(axis=1)
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = points[:, None] + spacing[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    ring = ring.reshape(-1, 2)
    distance, nearest = map(np.asarray, tree.query(ring))
    outside = ring[(distance > 0.9 * spacing[nearest]) & _outside_hull(points, ring)]
    middle, size = points.mean(axis=0), 20 * float(np.ptp(points, axis=0).max() + spacing.max())
    frame = middle + size * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    voronoi = Voronoi(np.concatenate([points, outside, frame]))
    regions = [voronoi.regions[voronoi.point_region[i]] for i in range(n)]
    return _Cells([Path(voronoi.vertices[region]) for region in regions], np.arange(n))


def _outside_hull(points: Array, at: Array) -> BoolArray:
    """Which places (m,) lie outside the convex hull of the points; all where these lie on a line."""
    try:
        return np.asarray(Delaunay(points).find_simplex(at) < 0)
    except QhullError:
        return np.ones(len(at), dtype=np.bool_)

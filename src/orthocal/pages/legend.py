"""The legend of a picture as HTML, which wraps where a figure's own would be cut."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, Container, ErrorbarContainer
from matplotlib.lines import Line2D

from .style import COLOURS

_VARIABLES = {shade.light: f"var(--{shade.name})" for shade in COLOURS}
_DASHES = {"--": "5 3", ":": "1.5 2.5", "-.": "5 2 1.5 2"}


class Entry(NamedTuple):
    """A name in a legend, and how what it names is drawn."""

    label: str
    swatch: Markup


def entries(named: dict[str, Any]) -> list[Entry]:
    """Label -> artist as what a page shows."""
    return [Entry(label.replace(r"\$", "$"), _swatch(handle)) for label, handle in named.items()]


def _swatch(handle: Any) -> Markup:
    """A small picture of an artist."""
    parts = "".join(_parts(handle.patches[0] if isinstance(handle, BarContainer) else handle))
    return Markup(f'<svg class="swatch" viewBox="0 0 24 12" aria-hidden="true">{parts}</svg>')


def _parts(handle: Any) -> list[str]:
    if isinstance(handle, ErrorbarContainer):
        line, _, bars = handle
        colour = line.get_color() if line is not None else bars[0].get_colors()[0]
        return [_line(colour, 1.6), *([_dot(colour)] if line is not None and line.get_marker() == "o" else [])]
    if isinstance(handle, PathCollection):
        return [_dot(handle.get_facecolor()[0])]
    if isinstance(handle, Line2D):
        return _of_line(handle)
    if isinstance(handle, Container):
        return []
    faces = handle.get_facecolor()
    face = faces[0] if getattr(faces, "ndim", 1) == 2 else faces
    fill = f"fill:{_css(face)};fill-opacity:{_opacity(face)};stroke:var(--guide);stroke-width:.5"
    return [f'<rect x="1" y="1" width="22" height="10" style="{fill}"/>']


def _of_line(line: Line2D) -> list[str]:
    marker, colour = line.get_marker(), line.get_color()
    if marker == "|":
        return [f'<path d="M12 1V11" style="stroke:{_css(colour)};stroke-width:2"/>']
    style = str(line.get_linestyle())
    drawn = [] if style in ("None", "none", "", " ") else [_line(colour, line.get_linewidth(), _DASHES.get(style, ""))]
    return [*drawn, *([_dot(colour)] if marker == "o" else [])]


def _line(colour: Any, width: float, dashes: str = "") -> str:
    dashed = f";stroke-dasharray:{dashes}" if dashes else ""
    return f'<path d="M1 6H23" style="stroke:{_css(colour)};stroke-width:{max(width, 1):.1f}{dashed}"/>'


def _dot(colour: Any) -> str:
    return f'<circle cx="12" cy="6" r="3" style="fill:{_css(colour)}"/>'


def _css(colour: Any) -> str:
    plain = to_hex(colour)
    return _VARIABLES.get(plain, plain)


def _opacity(colour: Any) -> float:
    return round(float(colour[3]), 2) if len(colour) == 4 else 1.0

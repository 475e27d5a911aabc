"""Pictures in a page: figures as SVG inside of the HTML, so that the page is one file."""

from __future__ import annotations

import io
import re
import zlib
from typing import NamedTuple

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from .style import STYLE


class Picture(NamedTuple):
    """A figure of a page: heading, what it shows, and the SVG itself."""

    title: str
    caption: str
    svg: Markup


def picture(title: str, caption: str, figure: Figure) -> Picture:
    """A figure with its heading and what it shows."""
    return Picture(title, caption, inline_svg(figure, _prefix(title)))


def _prefix(title: str) -> str:
    """A title as the beginning of ids: names of the user's in it may hold anything."""
    plain = title.lower().replace(" ", "-")
    if re.fullmatch("[a-z0-9-]+", plain):
        return plain
    return f"{re.sub('[^a-z0-9]+', '-', plain)}-{zlib.crc32(title.encode()):x}"


def inline_svg(figure: Figure, prefix: str) -> Markup:
    """The figure as an SVG element; ids get a prefix, since several figures share a page."""
    stream = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    # matplotlib escapes every text it draws
    return Markup(svg)

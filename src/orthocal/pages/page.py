"""Our HTML pages: each is a template of its package, built on ``pages/templates/page.html``."""

from __future__ import annotations

import re
import zlib
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, Container, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .panels import Drawing
from .style import COLOURS
from .svg import inline_svg

# The legend of a picture as HTML, which wraps where a figure's own would be cut.

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


# Pictures in a page: figures as SVG inside of the HTML, so that the page is one file.

__all__ = ["Picture", "inline_svg", "picture"]

#: a figure with a natural width above this, in inches, is scrolled on a narrow screen, because it would not be read
WIDEST = 5.5


class Picture(NamedTuple):
    """A figure of a page: heading, what it shows, its panels by block, how many stand side by side, and its legend.

    A ``wide`` one keeps its size where the page is narrow, and is scrolled.
    """

    title: str
    caption: str
    blocks: tuple[tuple[Markup, ...], ...]
    columns: int = 1
    key: tuple[Entry, ...] = ()
    wide: bool = False

    @property
    def svg(self) -> Markup:
        """All its panels."""
        return Markup("").join(panel for block in self.blocks for panel in block)


def picture(title: str, caption: str, drawn: Figure | Drawing, seen: str = "") -> Picture:
    """A figure with its heading and what it shows; ``seen`` describes a figure to those who do not see it."""
    prefix = slug(title)
    if isinstance(drawn, Figure):
        alone = ((inline_svg(drawn, prefix, seen or f"{title}. {caption}"),),)
        return Picture(title, caption, alone, wide=float(drawn.get_size_inches()[0]) > WIDEST)
    apart = list(drawn.apart())
    key = tuple(entries(drawn.named(apart)))
    blocks = tuple(
        tuple(inline_svg(panel.figure, f"{prefix}-{b}-{i}", panel.seen) for i, panel in enumerate(block))
        for b, block in enumerate(apart)
    )
    return Picture(title, caption, blocks, drawn.columns, key)


def slug(title: str) -> str:
    """A title as the beginning of ids: names of the user's in it may hold anything."""
    plain = title.lower().replace(" ", "-")
    if re.fullmatch("[a-z0-9-]+", plain):
        return plain
    return f"{re.sub('[^a-z0-9]+', '-', plain).strip('-') or 'part'}-{zlib.crc32(title.encode()):x}"


_CONTENTS = "<!-- contents -->"
_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


def rendered(template: str, package: str, **values: Any) -> str:
    """A page as HTML. Names and texts are escaped by the template, never trusted."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return _with_contents(environment.get_template(template).render(colours=COLOURS, **values))


def _with_contents(page: str) -> str:
    """The page with a table of contents made of its headings: the two cannot differ.

    A user's text cannot be taken for a heading, since it is escaped by now.
    """
    found: dict[str, str] = {}

    def numbered(heading: re.Match[str]) -> str:
        title = heading[1].strip()
        name = own = f"to-{slug(Markup(title).unescape())}"
        while own in found:
            own = f"{name}-{len(found)}"
        found[own] = title
        return f'<h2 id="{own}">{title}</h2>'

    page = _HEADING.sub(numbered, page)
    links = "\n".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in found.items())
    return page.replace(_CONTENTS, f"<ul>\n{links}\n</ul>", 1)

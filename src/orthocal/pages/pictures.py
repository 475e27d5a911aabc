"""Pictures in a page: figures as SVG inside of the HTML, so that the page is one file."""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from .legend import Entry, entries
from .panels import Drawing
from .svg import inline_svg

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

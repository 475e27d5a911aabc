"""The look of our figures: colours, fonts. It is put on for one figure at a time, and changes nothing else.

Each colour has a counterpart on dark pages: there it is a CSS variable, see ``pages/svg.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# Okabe and Ito's palette can be told apart by colour-blind readers; their yellow, unseen on white, is darker here
DATA, MODEL, TOTAL, BIAS = "#333333", "#d55e00", "#0072b2", "#009e73"
CHAINS = (TOTAL, "#e69f00", BIAS, "#cc79a7", "#56b4e9", MODEL, "#a39500", "#000000")
#: texts and axes; a second line beside coloured ones; the prior; lines that guide the eye; the grid; areas that are
#: set apart
INK, SECOND, PRIOR, GUIDE, GRID, SHADE = "#1d2733", "#404a55", "#737c87", "#b0b7bf", "#e3e6ea", "#ebedf0"


class Shade(NamedTuple):
    """A colour of the figures: the name of its variable, and what it is on a light and on a dark page."""

    name: str
    light: str
    dark: str


COLOURS = (
    Shade("data", DATA, "#cfd6de"),
    Shade("model", MODEL, "#ff8a3d"),
    Shade("total", TOTAL, "#4fabec"),
    Shade("bias", BIAS, "#2fc795"),
    Shade("orange", CHAINS[1], "#f5bb3d"),
    Shade("pink", CHAINS[3], "#e79cc6"),
    Shade("sky", CHAINS[4], "#a9dcff"),
    Shade("yellow", CHAINS[6], "#e5d93b"),
    Shade("strong", CHAINS[7], "#ffffff"),
    Shade("axis", INK, "#dbe2e9"),
    Shade("second", SECOND, "#b9c2cc"),
    Shade("prior", PRIOR, "#98a3af"),
    Shade("guide", GUIDE, "#5f6b78"),
    Shade("grid", GRID, "#2c343d"),
    Shade("shade", SHADE, "#262d35"),
)
STYLE: dict[str, Any] = {
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "grid.color": GRID,
    "hatch.color": GUIDE,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": 100,
    "savefig.dpi": 150,
    # texts stay texts: they can be searched and read aloud, and are small
    "svg.fonttype": "none",
    # the same figure gives the same file
    "svg.hashsalt": "orthocal",
}
#: a page with more panels than this is not read
MOST_PANELS = 12


def text(name: str) -> str:
    """A name as plain text: a dollar sign would start a formula."""
    return name.replace("$", r"\$")


def shortened(name: str, most: int) -> str:
    """A name that fits, with its end left out where it does not."""
    return text(name if len(name) <= most else f"{name[: most - 1]}…")

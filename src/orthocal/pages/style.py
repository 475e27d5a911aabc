"""The look of our figures: colours, fonts, panels. It is put on for one figure at a time, and changes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# Okabe and Ito's palette can be told apart by colour-blind readers
DATA, MODEL, TOTAL, BIAS = "#333333", "#D55E00", "#0072B2", "#009E73"
CHAINS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "svg.fonttype": "path",
    # the same figure gives the same file
    "svg.hashsalt": "orthocal",
}
#: a page with more panels than this is not read
MOST_PANELS = 12


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in our style without changing the user's."""

    @wraps(draw)
    def wrapper(*args: Any, **options: Any) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **options)

    return wrapper


def text(name: str) -> str:
    """A name as plain text: a dollar sign would start a formula."""
    return name.replace("$", r"\$")


def panels(rows: int, columns: int, width: float = 4.4, height: float = 3.0, share: bool = False) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey="row" if share else False)

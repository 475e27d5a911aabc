"""Figures as panels: one figure with all of them for a notebook, and an SVG for each on a page, where they stack."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import STYLE

#: names in a row of a legend
LEGEND_COLUMNS = 4


class ShownFigure(Figure):
    """A figure that a notebook shows, whether or not pyplot was imported."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(stream, format="png")
        return stream.getvalue()


class Panel(NamedTuple):
    """How one panel is drawn, and what is seen in it, in words for those who do not see it."""

    draw: Callable[[Axes], None]
    seen: str


class DrawnPanel(NamedTuple):
    """A panel as a figure of its own, and what is seen in it."""

    figure: Figure
    seen: str


class Drawing(NamedTuple):
    """Panels in rows: each block begins a new one, and its panels share the y axis where ``share`` says so.

    ``width`` and ``height`` are those of a panel, in inches; ``legend`` is one for all.
    """

    blocks: tuple[tuple[Panel, ...], ...]
    columns: int = 1
    width: float = 4.4
    height: float = 3.0
    share: bool = False
    legend: bool = True

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for block in self.blocks for panel in block)

    def figure(self) -> Figure:
        """All panels in one figure."""
        rows = [-(-len(block) // self.columns) for block in self.blocks]
        with mpl.rc_context(STYLE):
            figure = ShownFigure((self.width * self.columns, self.height * sum(rows)), layout="constrained")
            grid = figure.add_gridspec(sum(rows), self.columns)
            for b, block in enumerate(self.blocks):
                first: Axes | None = None
                for i, panel in enumerate(block):
                    row, column = divmod(i, self.columns)
                    axis = figure.add_subplot(grid[sum(rows[:b]) + row, column], sharey=first)
                    panel.draw(axis)
                    first = axis if self.share and first is None else first
            if self.legend:
                named = self._named(figure.axes)
                if named:
                    figure.legend(
                        list(named.values()),
                        list(named),
                        loc="outside lower center",
                        ncols=min(LEGEND_COLUMNS, len(named)),
                    )
        return figure

    def apart(self) -> Iterator[list[DrawnPanel]]:
        """Each panel as a figure of its own, block by block; those that share an axis have the same limits."""
        for block in self.blocks:
            drawn = [DrawnPanel(self._alone(panel), panel.seen) for panel in block]
            axes = [one.figure.axes[0] for one in drawn]
            if self.share:
                limits = [axis.get_ylim() for axis in axes]
                for axis in axes:
                    axis.set_ylim(min(min(one) for one in limits), max(max(one) for one in limits))
            yield drawn

    def _alone(self, panel: Panel) -> Figure:
        with mpl.rc_context(STYLE):
            figure = Figure((self.width, self.height), layout="constrained")
            panel.draw(figure.subplots())
        return figure

    def named(self, drawn: list[list[DrawnPanel]]) -> dict[str, Any]:
        """What the legend names: label -> the artist that has it, of panels drawn apart."""
        return (
            self._named([axis for block in drawn for one in block for axis in one.figure.axes]) if self.legend else {}
        )

    @staticmethod
    def _named(axes: list[Axes]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for axis in axes:
            if axis.get_legend() is None:
                for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                    found.setdefault(label, handle)
        return found


def one_panel(draw: Callable[[Axes], None], seen: str, width: float = 4.4, height: float = 3.0) -> Drawing:
    """A drawing of a single panel."""
    return Drawing(((Panel(draw, seen),),), 1, width, height)


def columns_of(count: int) -> int:
    """How many panels stand side by side: three at most, and four in a square."""
    return 2 if count == 4 else min(count, 3)

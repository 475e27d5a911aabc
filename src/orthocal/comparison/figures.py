"""The figures of comparisons: methods, outcomes or simulators side by side, and their scores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from ..arrays import Array
from ..pages.style import CHAINS, MODEL, MOST_PANELS, TOTAL, panels, styled, text
from ..results.posterior import Posterior


def compared_posteriors_figure(posteriors: dict[str, Posterior]) -> Figure:
    """Posteriors of the same parameters from several fits: one panel a parameter, one row a fit, first on top."""
    names = next(iter(posteriors.values())).parameter_names
    return fits_figure(
        {
            fit: {name: posterior.theta[:, :, j].ravel() for j, name in enumerate(names)}
            for fit, posterior in posteriors.items()
        },
        each=0.55,
    )


@styled
def fits_figure(fits: Mapping[str, Mapping[str, Array | None]], each: float = 0.45) -> Figure:
    """Fits that need not have all parameters: name of a fit -> parameter -> its draws, or None.

    ``each`` is the height of a fit's row, in inches.
    """
    names = list(next(iter(fits.values())))
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    figure, axes = panels(rows, columns, width=3.4 if columns > 1 else 5.5, height=1.0 + each * len(fits))
    levels = np.arange(len(fits), 0, -1.0)
    for j, axis in enumerate(axes.ravel()):
        if j >= len(names):
            axis.set_visible(False)
            continue
        for c, (level, draws) in enumerate(zip(levels, fits.values(), strict=True)):
            values = draws[names[j]]
            if values is not None:
                _ridge(axis, values, level, CHAINS[c % len(CHAINS)])
        _of_fits(axis, names[j], levels, list(fits) if j % columns == 0 else [])
    return figure


def _of_fits(axis: Axes, title: str, levels: Array, labels: list[str]) -> None:
    """An axis with a row a fit."""
    axis.set(title=text(title), yticks=levels, ylim=(0.7, len(levels) + 1.0))
    axis.set_yticklabels([text(name) for name in labels])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.locator_params(axis="x", nbins=5)
    axis.grid(axis="x", color="0.9", lw=0.8, zorder=0)


def _ridge(axis: Axes, values: Array, level: float, colour: str) -> None:
    """A density on the line ``level``, with its mean and central 95 %."""
    low, high = np.quantile(values, [0.025, 0.975])
    if np.ptp(values) > 0:
        left, right = np.quantile(values, [0.001, 0.999])
        grid = np.linspace(left, right, 300)
        density = gaussian_kde(values)(grid)
        axis.fill_between(grid, level, level + 0.8 * density / density.max(), color=colour, alpha=0.35, lw=0)
    axis.plot([low, high], [level, level], color=colour, lw=2, solid_capstyle="butt")
    axis.plot(values.mean(), level, "o", color=colour, ms=4)


def closer_posteriors_figure(posteriors: dict[str, Posterior], wide: float) -> Figure | None:
    """The same, closer: posteriors over ``wide`` times as wide as the narrowest are cut; None if there are none."""
    figure = compared_posteriors_figure(posteriors)
    cut = False
    for j, axis in enumerate(axis for axis in figure.axes if axis.get_visible()):
        draws = [posterior.theta[:, :, j].ravel() for posterior in posteriors.values()]
        sds = np.array([values.std() for values in draws])
        if not (sds > wide * sds.min()).any() or sds.min() == 0:
            continue
        cut = True
        ends = np.array([np.quantile(values, [0.001, 0.999]) for values in draws])[sds <= wide * sds.min()]
        left, right = ends[:, 0].min(), ends[:, 1].max()
        axis.set_xlim(left - 0.15 * (right - left), right + 0.15 * (right - left))
    return figure if cut else None


@styled
def distances_figure(distances: dict[str, Array], squared: bool) -> Figure:
    """Distances of several simulators from the same draws of the real process, and how much farther the others are."""
    best = min(distances, key=lambda name: float(distances[name].mean()))
    figure, axes = panels(1, 2, width=4.2, height=1.0 + 0.55 * len(distances))
    levels = np.arange(len(distances), 0, -1.0)
    for axis, title in zip(axes[0], ("distance" if squared else "loss", f"farther than {text(best)} by"), strict=True):
        for c, (level, (name, values)) in enumerate(zip(levels, distances.items(), strict=True)):
            if axis is axes[0, 0]:
                _ridge(axis, values, level, CHAINS[c % len(CHAINS)])
            elif name != best:
                _ridge(axis, values - distances[best], level, CHAINS[c % len(CHAINS)])
        axis.set(title=title, yticks=levels, ylim=(0.7, len(distances) + 1.0))
        axis.set(xlabel="noise standard deviations" if squared else "loss")
        axis.set_yticklabels([text(name) for name in distances] if axis is axes[0, 0] else [])
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        axis.grid(axis="x", color="0.9", lw=0.8, zorder=0)
    axes[0, 1].axvline(0.0, color="0.6", lw=1, ls="--", zorder=0)
    return figure


@styled
def scores_figure(scores: pd.DataFrame) -> Figure:
    """Scores by method and outcome, with two standard errors: one row an outcome; RMSE, CRPS and coverage."""
    outcomes = list(scores.index.unique("outcome"))[:MOST_PANELS]
    methods = list(scores.index.unique("method"))
    height = 1.1 + 0.42 * len(methods)
    figure, axes = panels(len(outcomes), 3, width=3.2, height=height)
    levels = np.arange(len(methods), 0, -1.0)
    shown = (("rmse", "RMSE"), ("crps", "CRPS"), ("coverage", "95 % coverage"))
    for row, outcome in zip(axes, outcomes, strict=True):
        table = scores.xs(outcome, level="outcome").loc[methods]
        for axis, (name, title) in zip(row, shown, strict=True):
            for prefix, shift, colour, label in (
                ("", 0.13, TOTAL, "model + bias"),
                ("model_", -0.13, MODEL, "model alone"),
            ):
                values, errors = table[prefix + name], 2 * table[f"{prefix}{name}_se"]
                axis.errorbar(
                    values, levels + shift, xerr=errors, fmt="o", ms=4, color=colour, elinewidth=1.2, label=label
                )
            if name == "coverage":
                axis.axvline(0.95, color="0.6", lw=1, ls="--", zorder=0)
                axis.set_xlim(right=1.02)
            else:
                axis.set_xlim(left=0)
            axis.set(title=title if len(outcomes) == 1 else f"{text(str(outcome))}: {title}")
            axis.set(yticks=levels, ylim=(0.4, len(methods) + 0.6))
            axis.set_yticklabels([text(str(one)) for one in methods] if axis is row[0] else [])
            axis.tick_params(axis="y", length=0)
            axis.grid(axis="x", color="0.9", lw=0.8, zorder=0)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure

"""The figures of a galaxy's fit: maps, and the posteriors of each outcome alone beside all together."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.stats import gaussian_kde

from orthocal.applications import Array, style

from ..maps import map_figure
from .data import LABELS, TOGETHER
from .fit import GalaxyFit

#: where the densities are drawn
GRID = 256


def fit_maps(fit: GalaxyFit, method: str) -> Figure:
    """Observed, model, model + bias and residual in units of the errors, one row an outcome."""
    kinematics = fit.data.kinematics
    predicted = fit.posteriors[TOGETHER, method].predict()
    model, total = (predicted[name].mean(("chain", "draw")).values for name in ("model", "mean"))
    maps = {
        "observed": kinematics.values,
        "model": model,
        "model + bias": total,
        "residual / error": (kinematics.values - total) / kinematics.errors,
    }
    return map_figure(kinematics, maps)


def posteriors_figure(fit: GalaxyFit) -> Figure:
    """One panel a parameter over its prior's range; one row an outcome, all together on top; one colour a method."""
    methods = [method for method in fit.settings.methods if any(key[1] == method for key in fit.posteriors)]
    colours = dict(zip(methods, style.CHAINS, strict=False))
    targets = [TOGETHER, *fit.data.kinematics.names]
    names = list(fit.data.box)
    with mpl.rc_context(style.STYLE):
        figure = Figure(figsize=(3.5 * len(names), 1.3 + 0.85 * len(targets)), layout="constrained")
        axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for j, (axis, name) in enumerate(zip(axes, names, strict=True)):
            for level, target in zip(range(len(targets), 0, -1), targets, strict=True):
                _row(axis, fit, target, j, level, colours)
            _frame(axis, fit, j, name)
            axis.set_yticks(np.arange(len(targets), 0, -1) + 0.25, [style.text(one) for one in targets])
            axis.tick_params(axis="y", length=0)
        # below the lowest row there is room for its intervals
        axes[0].set_ylim(0.62, len(targets) + 0.8)
        figure.legend(handles=_legend(fit, colours), loc="outside lower center", ncols=6)
    return figure


def _row(axis: Axes, fit: GalaxyFit, target: str, j: int, level: int, colours: dict[str, str]) -> None:
    low, high = list(fit.data.box.values())[j]
    drawn = [method for method in colours if (target, method) in fit.posteriors]
    axis.axhline(level, color=style.GUIDE, lw=0.6, zorder=0)
    tallest = 0.0
    curves = {}
    grid = np.linspace(low, high, GRID)
    for method in drawn:
        values = fit.posteriors[target, method].theta[:, :, j].ravel()
        curves[method] = reflected_density(values, grid)
        tallest = max(tallest, float(curves[method].max()))
    for i, method in enumerate(drawn):
        colour, values = colours[method], fit.posteriors[target, method].theta[:, :, j].ravel()
        height = level + 0.62 * curves[method] / tallest
        axis.fill_between(grid, level, height, color=colour, alpha=0.18, lw=0)
        axis.plot(grid, height, color=colour, lw=1.1)
        ends, below = np.quantile(values, [0.025, 0.975]), level - 0.07 - 0.07 * i
        axis.plot(ends, [below, below], color=colour, lw=2, solid_capstyle="butt")
        axis.plot(values.mean(), below, "o", color=colour, ms=3.2)
    if target in fit.stars and not fit.star_on_bound(target):
        star = fit.stars[target][j]
        axis.plot([star, star], [level - 0.27, level + 0.66], color=style.CHAINS[7], lw=1.3, zorder=5)


def reflected_density(values: Array, grid: Array) -> Array:
    """A kernel density on ``grid`` (m,), mirrored at its ends, beyond which there are no draws."""
    if np.ptp(values) == 0:
        return np.where(np.arange(len(grid)) == np.argmin(np.abs(grid - values[0])), 1.0, 0.0)
    density = gaussian_kde(values)
    low, high = grid[0], grid[-1]
    return np.asarray(density(grid) + density(2 * low - grid) + density(2 * high - grid))


def _frame(axis: Axes, fit: GalaxyFit, j: int, name: str) -> None:
    low, high = fit.data.box[name]
    room = 0.04 * (high - low)
    axis.axvspan(low - room, low, color=style.SHADE, lw=0, zorder=0)
    axis.axvspan(high, high + room, color=style.SHADE, lw=0, zorder=0)
    axis.set(xlim=(low - room, high + room), xlabel=style.text(LABELS.get(name, name)))
    axis.spines["left"].set_visible(False)
    axis.locator_params(axis="x", nbins=6)
    if fit.data.truth is not None:
        axis.axvline(fit.data.truth.theta[j], color=style.MODEL, lw=1.1, ls="--", zorder=1)


def _legend(fit: GalaxyFit, colours: dict[str, str]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=colour, marker="o", ms=3.2, lw=2, label=f"{method}: density, mean, 95 %")
        for method, colour in colours.items()
    ]
    handles.append(Patch(color=style.SHADE, label="outside of the prior"))
    if fit.data.truth is not None:
        handles.append(Line2D([], [], color=style.MODEL, ls="--", lw=1.1, label="true theta"))
    if fit.stars:
        handles.append(Line2D([], [], color=style.CHAINS[7], lw=1.3, label="best theta (theta_star)"))
    return handles

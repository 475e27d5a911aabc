"""The figures of a record. Each function returns a matplotlib Figure and touches no global state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom, gaussian_kde, rankdata

from ..arrays import Array, IntArray
from ..pages.style import BIAS, CHAINS, DATA, MODEL, MOST_PANELS, TOTAL, panels, styled, text
from ..projection import ProjectionKind
from ..regression.gaussian_process import sample_of_points
from .coverage import DomainCoverage
from .curves import central_band
from .label_figures import has_label_curves, label_bias_figure, label_fit_figure
from .output_figures import MOST_SHOWN, outputs_bias_figure, outputs_fit_figure
from .record import Record

#: more field data than this are shown by a sample: they would hide each other, and make a page that no browser opens
MOST_POINTS = 1000
#: largest over smallest observation from which on an axis is logarithmic
LOG_AXIS = 100.0

#: letters of a label that an axis has room for
LONGEST_LABEL = 12

_POINTS = {"color": DATA, "s": 10, "alpha": 0.7, "linewidths": 0, "zorder": 3, "label": "field data"}


def shown_outcomes(record: Record) -> tuple[str, ...]:
    """The outcomes that get a panel: all, or the first ones where there are very many."""
    return record.outcome_names[: MOST_SHOWN if record.without_inputs else MOST_PANELS]


def shown_rows(record: Record) -> IntArray:
    """The rows that get a point: all, or some of very many, always the same ones."""
    return np.sort(sample_of_points(len(record.x), MOST_POINTS))


class _Bands(NamedTuple):
    """Mean, lower and upper (3, m, q) of each quantity along one input x (m,)."""

    x: Array
    values: dict[str, Array]


@styled
def fit_figure(record: Record) -> Figure:
    """Data and fit: the model alone and model + bias, one row an outcome."""
    if record.without_inputs:
        return outputs_fit_figure(record)
    if has_label_curves(record):
        return label_fit_figure(record, shown_rows(record))
    if not record.along_one_input:
        return _observed_against_fitted(record)
    bands = _bands(record)
    shown = shown_outcomes(record)
    figure, axes = panels(len(shown), 2, share=True)
    rows = shown_rows(record)
    x, y = record.x[rows], record.native_y[rows]
    for k, name in enumerate(shown):
        for axis, quantity, colour, title in (
            (axes[k, 0], "model", MODEL, "model alone"),
            (axes[k, 1], "mean", TOTAL, "model + bias"),
        ):
            axis.scatter(x[:, 0], y[:, k], **_POINTS)
            if quantity == "mean" and "observation" in bands.values:
                _band(axis, bands, "observation", k, colour, 0.15, "95 % of observations")
            _band(axis, bands, quantity, k, colour, 0.4, "95 % band")
            axis.plot(bands.x, bands.values[quantity][0, :, k], color=colour, lw=1.5, label="posterior mean")
            _shade_holes(axis, record)
            axis.set(title=title, xlabel=text(record.input_names[0]), ylabel=text(name), yscale=_axis_scale(record, k))
            axis.legend()
    return figure


@styled
def bias_figure(record: Record) -> Figure:
    """The bias and its projection, one row an outcome."""
    if record.without_inputs:
        return outputs_bias_figure(record)
    if has_label_curves(record):
        return label_bias_figure(record, shown_rows(record))
    if not record.along_one_input:
        return _bias_by_input(record)
    bands = _bands(record)
    shown = shown_outcomes(record)
    figure, axes = panels(len(shown), 1, width=6.5)
    rows = shown_rows(record)
    x, y = record.x[rows], record.y[rows]
    model = record.at_data("model")[:, :, rows].mean(axis=(0, 1))
    for k in range(len(shown)):
        axis = axes[k, 0]
        axis.scatter(x[:, 0], y[:, k] - model[:, k], **{**_POINTS, "label": "field data - model"})
        if "unprojected" in bands.values:
            for edge in bands.values["unprojected"][1:, :, k]:
                axis.plot(bands.x, edge, color="0.25", lw=0.8, ls=":", zorder=4)
            middle = bands.values["unprojected"][0, :, k]
            axis.plot(bands.x, middle, color="0.25", lw=1, ls="--", zorder=4, label="before projection (mean, 95 %)")
        kinds = (ProjectionKind.NONE, ProjectionKind.JOINT)
        label = "bias" if record.projection in kinds else "projected"
        _band(axis, bands, "bias", k, BIAS, 0.35, f"{label}, 95 %")
        axis.plot(bands.x, bands.values["bias"][0, :, k], color=BIAS, lw=1.5, label=f"{label}, mean")
        axis.axhline(0, color="0.7", lw=0.8, zorder=0)
        _shade_holes(axis, record)
        axis.set(xlabel=text(record.input_names[0]), ylabel=f"bias of {text(record.scale_names[k])}")
        axis.legend()
    return figure


@styled
def posterior_figure(record: Record) -> Figure:
    """The posterior of each parameter, with its mean, 95 % interval and theta_tilde."""
    names = record.parameter_names
    columns = min(len(names), 3)
    figure, axes = panels(-(-len(names) // columns), columns, width=3.2 if columns > 1 else 5.0, height=2.6)
    draws = record.theta.reshape(-1, len(names))
    tilde = record.constant("theta_tilde")
    for j, axis in enumerate(axes.ravel()):
        if j >= len(names):
            axis.set_visible(False)
            continue
        values = draws[:, j]
        low, high = np.quantile(values, [0.025, 0.975])
        axis.hist(values, bins=50, density=True, color=TOTAL, alpha=0.25)
        if np.ptp(values) > 0:
            grid = np.linspace(values.min(), values.max(), 300)
            density = gaussian_kde(values)(grid)
            axis.plot(grid, density, color=TOTAL, lw=1.5)
            inside = (grid >= low) & (grid <= high)
            axis.fill_between(grid[inside], density[inside], color=TOTAL, alpha=0.3, lw=0, label="95 % interval")
            _prior_density(axis, record, j, grid)
        axis.axvline(tilde[j], color=MODEL, lw=1.2, ls="--", label="best fit")
        axis.set(title=text(names[j]), yticks=[], ylim=(0, None))
        axis.spines["left"].set_visible(False)
        axis.margins(y=0.25)
        axis.locator_params(axis="x", nbins=5)
        if j == 0:
            axis.legend(loc="upper left")
    return figure


@styled
def pairs_figure(record: Record) -> Figure:
    """Joint posterior of every two parameters."""
    names = record.parameter_names
    p = len(names)
    draws = record.theta.reshape(-1, p)
    figure = Figure(figsize=(1.9 * (p - 1) + 1.6, 1.9 * (p - 1) + 1.2), layout="constrained")
    axes = figure.subplots(p - 1, p - 1, squeeze=False, sharex="col", sharey="row")
    for row in range(1, p):
        for column in range(p - 1):
            axis = axes[row - 1, column]
            if column >= row:
                axis.set_visible(False)
                continue
            axis.scatter(draws[:, column], draws[:, row], s=3, alpha=0.2, color=TOTAL, lw=0, rasterized=True)
            correlation = np.corrcoef(draws[:, column], draws[:, row])[0, 1]
            axis.set_title(f"correlation {correlation:.2f}", fontsize=8, fontweight="normal")
            axis.locator_params(nbins=4)
            if row == p - 1:
                axis.set_xlabel(text(names[column]))
            if column == 0:
                axis.set_ylabel(text(names[row]))
    return figure


@styled
def trace_figure(record: Record) -> Figure:
    """The draws of each parameter in their order, one colour a chain."""
    names = record.parameter_names
    figure, axes = panels(len(names), 1, width=8.0, height=1.7)
    for j, name in enumerate(names):
        for c, chain in enumerate(record.theta[:, :, j]):
            axes[j, 0].plot(chain, color=CHAINS[c % len(CHAINS)], lw=0.5, alpha=0.8, rasterized=True)
        axes[j, 0].set(ylabel=text(name), xlim=(0, record.theta.shape[1]))
    axes[-1, 0].set_xlabel("draw")
    return figure


@styled
def rank_figure(record: Record, bins: int = 20) -> Figure:
    """Ranks of each chain's draws among all draws; chains that agree give flat histograms within the band."""
    names = record.parameter_names
    figure, axes = panels(len(names), 1, width=8.0, height=1.7)
    chains, draws = record.theta.shape[:2]
    low, high = (float(binom.ppf(u, draws, 1 / bins)) for u in (0.005, 0.995))
    for j, name in enumerate(names):
        axis = axes[j, 0]
        ranks = rankdata(record.theta[:, :, j]).reshape(chains, draws)
        edges = np.linspace(0.5, chains * draws + 0.5, bins + 1)
        axis.fill_between(edges[[0, -1]], low, high, color="0.9", lw=0, label="99 % if the chains agree")
        for c in range(chains):
            counts, _ = np.histogram(ranks[c], edges)
            axis.stairs(counts, edges, color=CHAINS[c % len(CHAINS)], lw=1.2)
        axis.set(ylabel=text(name), xlim=(edges[0], edges[-1]), ylim=(0, 2 * draws / bins))
        if j == 0:
            axis.legend(loc="lower right")
    axes[-1, 0].set_xlabel("rank among all draws")
    return figure


def _shade_holes(axis: Axes, record: Record) -> None:
    """Grey where the curves leave the data, or cross a hole in them."""
    label = "no data nearby"
    for hole in DomainCoverage(record).holes:
        axis.axvspan(hole.lower, hole.upper, color="0.93", lw=0, zorder=-1, label=label)
        label = "_"


def _band(axis: Axes, bands: _Bands, quantity: str, k: int, colour: str, alpha: float, label: str) -> None:
    _, lower, upper = bands.values[quantity][:, :, k]
    axis.fill_between(bands.x, lower, upper, color=colour, alpha=alpha, lw=0, label=label)


def _axis_scale(record: Record, k: int) -> str:
    """Logarithmic for an outcome whose logarithm was fitted, where it varies so much that little else could be seen."""
    y = record.native_y[:, k]
    log = bool(record.transforms) and record.transforms.names[k] == "log"
    return "log" if log and np.nanmax(y) > LOG_AXIS * np.nanmin(y) else "linear"


def _bands(record: Record) -> _Bands:
    """Bands along the domain, or at the data points where no curves are kept."""
    curves = record.curves
    if curves is not None:
        return _Bands(curves["x"].values, {str(name): curves[name].values for name in curves.data_vars})
    rows = shown_rows(record)
    x = record.x[rows]
    order = np.argsort(x[:, 0], kind="stable")
    values = {name: central_band(drawn[:, :, order]) for name, drawn in _drawn(record, rows).items()}
    return _Bands(x[order, 0], values)


def _drawn(record: Record, rows: IntArray) -> dict[str, Array]:
    """Draws at data points, (c, s, n, q): the bias on the transformed scale, the others on the outcomes' own."""
    model, bias = (record.at_data(name)[:, :, rows] for name in ("model", "bias"))
    back = record.transforms.inverse
    return {"model": back(model), "bias": bias, "mean": back(model + bias)}


def _prior_density(axis: Axes, record: Record, j: int, grid: Array) -> None:
    """The prior, where it is not flat over the record."""
    draws = record.constant("prior_quantiles")[:, j]
    if np.ptp(grid) > 0.3 * np.ptp(np.quantile(draws, [0.025, 0.975])):
        axis.plot(grid, gaussian_kde(draws)(grid), color="0.5", lw=1, ls=":", label="prior")


def _observed_against_fitted(record: Record) -> Figure:
    """For several inputs: observed values against the fitted ones, model alone and with bias."""
    shown = shown_outcomes(record)
    figure, axes = panels(len(shown), 2, width=3.8, height=3.6)
    rows = shown_rows(record)
    y = record.native_y[rows]
    drawn = _drawn(record, rows)
    for k, name in enumerate(shown):
        for axis, quantity, colour, title in (
            (axes[k, 0], "model", MODEL, "model alone"),
            (axes[k, 1], "mean", TOTAL, "model + bias"),
        ):
            middle, lower, upper = central_band(drawn[quantity])[:, :, k]
            seen = y[~np.isnan(y[:, k]), k]
            ends = np.array([min(seen.min(), lower.min()), max(seen.max(), upper.max())])
            axis.plot(ends, ends, color="0.7", lw=1, zorder=0)
            axis.errorbar(
                middle,
                y[:, k],
                xerr=[middle - lower, upper - middle],
                fmt="o",
                ms=3,
                color=colour,
                elinewidth=0.7,
            )
            error = np.sqrt(np.nanmean((y[:, k] - middle) ** 2))
            axis.set(
                title=f"{title} (rms error {error:.3g})",
                xlabel=f"fitted {text(name)}",
                ylabel=f"observed {text(name)}",
                xscale=_axis_scale(record, k),
                yscale=_axis_scale(record, k),
            )
    return figure


def _places(axis: Axes, record: Record, j: int, column: Array) -> Array:
    """Where points stand along input j: its numbers, or side by side above their label, which the axis shows."""
    own = record.labels.of(j)
    if own is None:
        return column
    shown = [label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…" for label in own.labels]
    axis.set_xticks(range(len(shown)), [text(label) for label in shown], rotation=90 if len(shown) > 6 else 0)
    codes, places = own.codes(column), np.zeros(len(column))
    for code in range(len(shown)):
        rows = np.flatnonzero(codes == code)
        places[rows] = code + 0.3 * np.linspace(-1, 1, len(rows)) * (len(rows) > 1)
    axis.set_xlim(-0.6, len(shown) - 0.4)
    return places


def _bias_by_input(record: Record) -> Figure:
    """For several inputs: the bias at the data points against each input."""
    inputs = record.input_names
    columns = min(len(inputs), 3)
    rows = -(-len(inputs) // columns)
    shown = shown_outcomes(record)
    figure, axes = panels(rows * len(shown), columns, width=3.2, height=2.6)
    rows_of_data = shown_rows(record)
    x = record.x[rows_of_data]
    drawn = central_band(record.at_data("bias")[:, :, rows_of_data])
    for k, name in enumerate(record.scale_names[: len(shown)]):
        middle, lower, upper = drawn[:, :, k]
        for j, axis in enumerate(axes[k * rows : (k + 1) * rows].ravel()):
            if j >= len(inputs):
                axis.set_visible(False)
                continue
            errors = [middle - lower, upper - middle]
            at = _places(axis, record, j, x[:, j])
            axis.errorbar(at, middle, yerr=errors, fmt="o", ms=2.5, color=BIAS, elinewidth=0.5, alpha=0.7)
            axis.axhline(0, color="0.7", lw=0.8, zorder=0)
            axis.set(xlabel=text(inputs[j]), ylabel=f"bias of {text(name)}")
    return figure

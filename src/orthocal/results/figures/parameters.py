"""Figures of the parameters: posterior beside prior, and pairs."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom, gaussian_kde, rankdata

from ...arrays import Array
from ...errors import InputError
from ...pages.panels import Drawing, Panel, ShownFigure, columns_of
from ...pages.style import CHAINS, MODEL, MOST_PANELS, PRIOR, SHADE, STYLE, TOTAL
from ..record import Record
from .axes import with_unit

#: a prior more than so many times as wide as the posterior is wider, and far wider
WIDER, FAR_WIDER = 2.0, 20.0
#: a prior at most so many times as wide is shown whole
SHOWN_WHOLE = 6.0
#: draws of all pairs on a page together, and of one
DRAWS_OF_ALL, DRAWS_OF_PAIR = 8000, 1000
#: draws of a pair in the triangle
DRAWS_OF_TRIANGLE = 1500


def posterior_panels(record: Record, parameters: Sequence[str] | None = None) -> Drawing:
    """The posterior of each parameter with its prior, 95 % interval and theta_tilde."""
    names = record.parameter_names
    unknown = [name for name in parameters or () if name not in names]
    if unknown:
        raise InputError(f"there is no parameter {unknown[0]!r}: there are {', '.join(names)}")
    numbers = range(len(names)) if parameters is None else [names.index(name) for name in parameters]
    panels = []
    for j in numbers:

        def draw(axis: Axes, j: int = j) -> None:
            _posterior_panel(axis, record, j)

        panels.append(Panel(draw, posterior_seen(record, j)))
    columns = columns_of(len(panels))
    return Drawing((tuple(panels),), columns, 3.4 if columns > 2 else 4.4, 2.8 if columns < 3 else 2.6)


def posterior_seen(record: Record, j: int) -> str:
    """The posterior of a parameter in words."""
    values, prior = record.theta[:, :, j].ravel(), _prior_draws(record, j)
    low, high = np.quantile(values, [0.025, 0.975])
    before = np.quantile(prior, [0.025, 0.975])
    words = f"{record.parameter_names[j]}: posterior mean {values.mean():.4g}, 95 % from {low:.4g} to {high:.4g}"
    if high == low:
        return f"{words}; all draws are the same."
    ratio = float(np.ptp(before) / (high - low))
    wide = "far wider" if ratio > FAR_WIDER else "wider" if ratio > WIDER else "about as wide"
    return f"{words}; the prior is {wide}, 95 % from {before[0]:.4g} to {before[1]:.4g}."


def _posterior_panel(axis: Axes, record: Record, j: int) -> None:
    values, prior = record.theta[:, :, j].ravel(), _prior_draws(record, j)
    low, high = np.quantile(values, [0.025, 0.975])
    before = np.quantile(prior, [0.025, 0.975])
    if np.ptp(values) > 0:
        ends = [values.min(), values.max()]
        if np.ptp(before) < SHOWN_WHOLE * (high - low):
            ends = [min(ends[0], prior.min()), max(ends[1], prior.max())]
        grid = np.linspace(ends[0], ends[1], 300)
        own = prior_density(record, j, grid)
        axis.fill_between(grid, own, color=PRIOR, alpha=0.15, lw=0)
        axis.plot(grid, own, color=PRIOR, lw=1.2, ls=":", label="prior")
        density = gaussian_kde(values)(grid)
        inside = (grid >= low) & (grid <= high)
        axis.fill_between(grid[inside], density[inside], color=TOTAL, alpha=0.3, lw=0, label="95 % interval")
        axis.plot(grid, density, color=TOTAL, lw=1.5, label="posterior")
    else:
        axis.axvline(values[0], color=TOTAL, lw=1.5, label="posterior")
    axis.axvline(record.constant("theta_tilde")[j], color=MODEL, lw=1.2, ls="--", label="best fit")
    axis.set(title=with_unit(record, record.parameter_names[j]), yticks=[], ylim=(0, None))
    axis.set_xlabel(f"prior, 95 %: {before[0]:.4g} to {before[1]:.4g}", fontsize=8)
    axis.spines["left"].set_visible(False)
    axis.margins(y=0.1)
    axis.locator_params(axis="x", nbins=5)


def _prior_draws(record: Record, j: int) -> Array:
    return record.constant("prior_quantiles")[:, j]


def prior_density(record: Record, j: int, grid: Array) -> Array:
    """A prior's density on ``grid`` (m,) from its draws, mirrored at its bounds, where it may end abruptly."""
    draws = _prior_draws(record, j)
    if np.ptp(draws) == 0:
        return np.zeros(len(grid))
    density = gaussian_kde(draws)
    lower, upper = record.support.lower[j], record.support.upper[j]
    found = density(grid)
    for bound in (lower, upper):
        if np.isfinite(bound):
            found = found + density(2 * bound - grid)
    return np.where((grid >= lower) & (grid <= upper), found, 0.0)


def pairs_panels(record: Record) -> Drawing:
    """Joint posterior of every two parameters, a panel each; of very many those that depend on each other most."""
    draws = record.theta.reshape(-1, len(record.parameter_names))
    correlation = _correlations(draws)
    pairs = [(a, b) for b in range(draws.shape[1]) for a in range(b)]
    if len(pairs) > MOST_PANELS:
        pairs = sorted(pairs, key=lambda pair: -abs(correlation[pair]))[:MOST_PANELS]
    most = min(DRAWS_OF_PAIR, DRAWS_OF_ALL // len(pairs))
    some = draws[np.linspace(0, len(draws) - 1, min(len(draws), most)).round().astype(int)]
    panels = []
    for a, b in pairs:

        def draw(axis: Axes, a: int = a, b: int = b) -> None:
            axis.scatter(some[:, a], some[:, b], s=5, alpha=0.4 if len(some) > 500 else 0.6, color=TOTAL, lw=0)
            axis.set(title=f"correlation {correlation[a, b]:.2f}")
            axis.set(xlabel=with_unit(record, record.parameter_names[a]))
            axis.set(ylabel=with_unit(record, record.parameter_names[b]))
            axis.locator_params(nbins=4)

        names = f"{record.parameter_names[a]} and {record.parameter_names[b]}"
        panels.append(Panel(draw, f"joint posterior of {names}: correlation {correlation[a, b]:.2f}."))
    columns = columns_of(len(panels))
    return Drawing((tuple(panels),), columns, 3.4 if columns > 2 else 4.2, 3.4 if columns < 3 else 3.0)


def pairs_figure(record: Record) -> Figure:
    """Joint posterior of every two parameters, as a triangle."""
    names = record.parameter_names
    p = len(names)
    draws = record.theta.reshape(-1, p)
    correlation, some = _correlations(draws), draws[:: max(1, len(draws) // DRAWS_OF_TRIANGLE)]
    pale = 0.3 if len(some) > 500 else 0.6
    with mpl.rc_context(STYLE):
        figure = ShownFigure(figsize=(1.9 * (p - 1) + 1.6, 1.9 * (p - 1) + 1.2), layout="constrained")
        axes = figure.subplots(p - 1, p - 1, squeeze=False, sharex="col", sharey="row")
        for row in range(1, p):
            for column in range(p - 1):
                axis = axes[row - 1, column]
                if column >= row:
                    axis.set_visible(False)
                    continue
                axis.scatter(some[:, column], some[:, row], s=5, alpha=pale, color=TOTAL, lw=0)
                axis.set_title(f"correlation {correlation[column, row]:.2f}", fontsize=8, fontweight="normal")
                axis.locator_params(nbins=4)
                if row == p - 1:
                    axis.set_xlabel(with_unit(record, names[column]))
                if column == 0:
                    axis.set_ylabel(with_unit(record, names[row]))
    return figure


def _correlations(draws: Array) -> Array:
    """Of the columns of draws; 0 where one never moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.corrcoef(draws, rowvar=False).reshape(draws.shape[1], draws.shape[1]))


# Figures of the chains: traces and ranks.

#: draws of all traces of a page together, and the fewest of a chain
TRACE_POINTS, FEWEST_TRACED = 8000, 60


def traced(record: Record) -> int:
    """Every how many draws one is shown: a page has no room for all of them."""
    chains, draws, p = record.theta.shape
    most = max(FEWEST_TRACED, TRACE_POINTS // (chains * p))
    return max(1, int(-(-draws // most)))


def trace_panels(record: Record) -> Drawing:
    """The draws of each parameter in their order, one colour a chain."""
    step, rhat = traced(record), record.summary()["r_hat"].to_numpy()
    at = np.arange(0, record.theta.shape[1], step)
    panels = []
    for j, name in enumerate(record.parameter_names):

        def draw(axis: Axes, j: int = j, name: str = name) -> None:
            for c, chain in enumerate(record.theta[:, at, j]):
                axis.plot(at, chain, color=CHAINS[c % len(CHAINS)], lw=0.6, alpha=0.8, label=f"chain {c + 1}")
            axis.set(ylabel=with_unit(record, name), xlabel="draw", xlim=(0, record.theta.shape[1]))

        means = record.theta[:, :, j].mean(axis=1)
        seen = f"traces of {name} in {record.chains} chains: their means lie between {means.min():.4g} and "
        panels.append(Panel(draw, f"{seen}{means.max():.4g}; R-hat {rhat[j]:.3f}."))
    return _chain_drawing(panels)


def rank_panels(record: Record, bins: int = 20) -> Drawing:
    """Ranks of each chain's draws among all draws; chains that agree give flat histograms within the band."""
    chains, draws = record.theta.shape[:2]
    low, high = (float(binom.ppf(u, draws, 1 / bins)) for u in (0.005, 0.995))
    edges = np.linspace(0.5, chains * draws + 0.5, bins + 1)
    panels = []
    for j, name in enumerate(record.parameter_names):
        ranks = rankdata(record.theta[:, :, j]).reshape(chains, draws)
        counts = np.array([np.histogram(one, edges)[0] for one in ranks])

        def draw(axis: Axes, name: str = name, counts: np.ndarray = counts) -> None:
            axis.fill_between(edges[[0, -1]], low, high, color=SHADE, lw=0, label="99 % if the chains agree")
            for c, own in enumerate(counts):
                axis.stairs(own, edges, color=CHAINS[c % len(CHAINS)], lw=1.2)
            axis.set(ylabel=with_unit(record, name), xlabel="rank among all draws")
            axis.set(xlim=(edges[0], edges[-1]), ylim=(0, max(2 * draws / bins, 1.05 * counts.max())))

        outside = int(np.sum((counts < low) | (counts > high)))
        seen = f"ranks of {name}: {outside} of {counts.size} bins lie outside of the band of chains that agree."
        panels.append(Panel(draw, seen))
    return _chain_drawing(panels)


def _chain_drawing(panels: list[Panel]) -> Drawing:
    several = len(panels) > 1
    return Drawing((tuple(panels),), 2 if several else 1, 4.4, 1.9)

"""Figures of the chains: traces and ranks."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binom, rankdata

from ..pages.panels import Drawing, Panel
from ..pages.style import CHAINS, SHADE
from .figure_parts import with_unit
from .record import Record

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

"""Pictures of the residuals, in standard deviations of the noise: against the fitted values, and along each input.

The predictive check stands with them: replicated data beside the observed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binom, gaussian_kde

from ...arrays import Array
from ...pages.panels import Drawing, Panel, columns_of, one_panel
from ...pages.style import DATA, GRID, GUIDE, SHADE, TOTAL, shortened
from ..predict.predictive_data import levels_of, replicated
from ..record import Record
from .axes import (
    MOST_OUTPUTS,
    NORMAL_95,
    dots,
    fitted,
    is_log,
    places,
    rms,
    scale_label,
    shown_rows,
    tips_of,
    with_unit,
    zero_line,
)

#: inputs that have a panel where none was chosen
MOST_INPUTS = 5
#: letters of an output's name that an axis has room for
LONGEST_OUTPUT = 24


def residual_panels(record: Record, outcomes: Sequence[int], inputs: Sequence[int] | None = None) -> Drawing:
    """(y - model - bias) / noise sd, with the posterior means: against fitted values and inputs, one block an outcome.

    With ``inputs``, along these alone.
    """
    if record.without_inputs:
        return _of_outputs(record)
    along: list[int | None] = [None, *range(min(len(record.input_names), MOST_INPUTS))]
    chosen = along if inputs is None else list(inputs)
    rows = shown_rows(record, len(outcomes) * len(chosen))
    means = fitted(record, rows)["mean"]
    left = (record.y[rows] - means) / record.noise_sds[rows]
    blocks = []
    for k in outcomes:
        block = []
        for j in chosen:
            column = means[:, k] if j is None else record.x[rows, j]
            name = f"fitted {record.scale_names[k]}" if j is None else record.input_names[j]

            def draw(axis: Axes, k: int = k, j: int | None = j, column: Array = column, name: str = name) -> None:
                at = column if j is None else places(axis, record, j, column)
                dots(axis, at, left[:, k], "residual", tips_of((name, "residual"), (column, left[:, k])), TOTAL)
                _frame(axis)
                label = f"fitted {scale_label(record, k)}" if j is None else with_unit(record, record.input_names[j])
                axis.set(xlabel=label, ylabel=f"residual of {scale_name(record, k)} [noise sd]")

            block.append(Panel(draw, _seen(record, left[:, k], column, k, j, name)))
        blocks.append(tuple(block))
    columns = columns_of(len(chosen))
    return Drawing(tuple(blocks), columns, 3.4 if columns > 2 else 4.4, 2.8 if columns < 3 else 2.7)


def scale_name(record: Record, k: int) -> str:
    """The name of an outcome's scale, short enough for an axis."""
    return shortened(record.scale_names[k], LONGEST_OUTPUT)


def _frame(axis: Axes) -> None:
    zero_line(axis)
    for edge in (-NORMAL_95, NORMAL_95):
        label = "95 % of noise" if edge > 0 else "_"
        axis.axhline(edge, color=GUIDE, lw=1, ls="--", zorder=0, label=label)
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, -3.0), max(high, 3.0))


def _seen(record: Record, left: Array, column: Array, k: int, j: int | None, name: str) -> str:
    there = np.isfinite(left)
    inside, count = int(np.sum(np.abs(left[there]) < NORMAL_95)), int(there.sum())
    words = (
        f"residuals of {record.scale_names[k]} against {name}, in noise standard deviations: {inside} of {count} lie "
        f"between -1.96 and 1.96, root mean square {rms(left):.2g}"
    )
    numeric = j is None or record.labels.of(j) is None
    if not numeric or count < 3 or np.ptp(column[there]) == 0 or np.ptp(left[there]) == 0:
        return f"{words}."
    return f"{words}; correlation {np.corrcoef(column[there], left[there])[0, 1]:.2f}."


def _of_outputs(record: Record) -> Drawing:
    """One line an output without inputs, a point a replicate."""
    names = record.outcome_names[:MOST_OUTPUTS]
    rows = np.arange(len(record.y))
    left = ((record.y - fitted(record, rows)["mean"]) / record.noise_sds[rows])[:, : len(names)]
    levels = np.arange(len(names), 0, -1.0)

    def draw(axis: Axes) -> None:
        at = np.broadcast_to(levels, left.shape)
        seen = np.isfinite(left)
        drawn = axis.scatter(left[seen], at[seen], color=TOTAL, s=12, alpha=0.7, linewidths=0, zorder=3)
        drawn.set_label("residual")
        for edge in (-NORMAL_95, 0.0, NORMAL_95):
            label = "95 % of noise" if edge > 0 else "_"
            axis.axvline(edge, color=GUIDE, lw=1, ls="--" if edge else "-", zorder=0, label=label)
        axis.set(yticks=levels, ylim=(0.4, len(levels) + 0.6), xlabel="residual [noise sd]")
        axis.set_yticklabels([shortened(name, LONGEST_OUTPUT) for name in names])
        axis.tick_params(axis="y", length=0)

    inside, count = int(np.sum(np.abs(left) < NORMAL_95)), int(np.isfinite(left).sum())
    seen = f"residuals of the outputs in noise standard deviations: {inside} of {count} lie between -1.96 and 1.96."
    return one_panel(draw, seen, 4.6, 1.0 + 0.3 * len(names))


# The posterior predictive check: the data beside data that the fit would give again.

#: curves of replicated data, and points of a curve
CURVES, GRID_POINTS = 20, 80
#: bins of the histogram: at least so many observations are expected in each
MOST_BINS, LEAST_IN_BIN = 20, 5
#: with fewer observations there is no histogram to look at
LEAST_ROWS = 10


def predictive_panels(record: Record, outcomes: Sequence[int]) -> Drawing:
    """Densities of the data and of replicated data, and where each observation lies in its prediction."""
    rows = np.arange(1) if record.without_inputs else shown_rows(record)
    drawn = replicated(record, rows)
    if record.without_inputs:
        return _replicated_outputs(record, drawn[:, 0])
    blocks = []
    for k in outcomes:
        y = record.native_y[rows, k]
        there = ~np.isnan(y)
        blocks.append(_of_outcome(record, k, y[there], drawn[:, there, k]))
    return Drawing(tuple(blocks), 2, 4.4, 2.8)


def _of_outcome(record: Record, k: int, y: Array, drawn: Array) -> tuple[Panel, ...]:
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    inside = int(np.sum((low <= y) & (y <= high)))
    name = record.outcome_names[k]
    words = f"{inside} of {len(y)} observations lie in their 95 % predictive intervals"
    means, sds = drawn.mean(axis=1), drawn.std(axis=1)
    seen = (
        f"{name} of the data, mean {y.mean():.3g} and standard deviation {y.std():.3g}, beside replicated data, mean "
        f"{means.mean():.3g} and standard deviation {sds.mean():.3g}; {words}."
    )

    def densities(axis: Axes) -> None:
        _densities(axis, y, drawn, is_log(record, k))
        label = with_unit(record, name)
        axis.set(xlabel=f"log10 of {label}" if is_log(record, k) else label, yticks=[], ylim=(0, None))
        axis.set(title="data and replicated data")
        axis.spines["left"].set_visible(False)

    if len(y) < LEAST_ROWS:
        return (Panel(densities, seen),)

    def histogram(axis: Axes) -> None:
        _histogram(axis, levels_of(y, drawn))
        axis.set(
            title=f"{inside} of {len(y)} in 95 % intervals",
            xlabel=f"place of {shortened(name, LONGEST_OUTPUT)} in its prediction",
        )

    levels = levels_of(y, drawn)
    middle = int(np.sum((levels > 0.25) & (levels < 0.75)))
    return (
        Panel(densities, seen),
        Panel(histogram, f"places of {name} in their predictions: {words}, {middle} in the middle half."),
    )


def _densities(axis: Axes, y: Array, drawn: Array, log: bool) -> None:
    y, drawn = (np.log10(y), np.log10(drawn)) if log else (y, drawn)
    ends = np.quantile(drawn, [0.001, 0.999])
    grid = np.linspace(min(ends[0], y.min()), max(ends[1], y.max()), GRID_POINTS)
    some = drawn[np.linspace(0, len(drawn) - 1, min(len(drawn), CURVES)).round().astype(int)]
    label = "replicated data"
    for one in some:
        if np.ptp(one) > 0:
            axis.plot(grid, gaussian_kde(one)(grid), color=TOTAL, lw=0.7, alpha=0.35, label=label)
            label = "_"
    if np.ptp(y) > 0:
        axis.plot(grid, gaussian_kde(y)(grid), color=DATA, lw=1.8, label="field data")


def _histogram(axis: Axes, levels: Array) -> None:
    bins = int(np.clip(len(levels) // LEAST_IN_BIN, 4, MOST_BINS))
    counts, edges = np.histogram(levels, bins=bins, range=(0, 1))
    low, high = (float(binom.ppf(u, len(levels), 1 / bins)) for u in (0.005, 0.995))
    axis.fill_between([0, 1], low, high, color=SHADE, lw=0, label="99 % if predicted well")
    axis.stairs(counts, edges, color=DATA, lw=1.4)
    axis.set(xlim=(0, 1), ylim=(0, max(1.25 * high, 1.05 * counts.max())), ylabel="observations")


def _replicated_outputs(record: Record, drawn: Array) -> Drawing:
    """95 % of a new observation of each output without inputs, and what was observed, in noise sds."""
    names = record.outcome_names[:MOST_OUTPUTS]
    noise_sd = np.sqrt(np.diag(record.noise_cov))[: len(names)]
    middle = np.median(drawn, axis=0)[: len(names)]
    low, high = ((one[: len(names)] - middle) / noise_sd for one in np.quantile(drawn, [0.025, 0.975], axis=0))
    seen = (record.native_y[:, : len(names)] - middle) / noise_sd
    levels = np.arange(len(names), 0, -1.0)

    def draw(axis: Axes) -> None:
        axis.barh(levels, high - low, left=low, height=0.5, color=TOTAL, alpha=0.3, label="95 % of new observations")
        there = np.isfinite(seen)
        at = np.broadcast_to(levels, seen.shape)[there]
        axis.scatter(seen[there], at, color=DATA, s=14, linewidths=0, zorder=3, label="observed")
        axis.grid(axis="x", color=GRID, lw=0.8, zorder=0)
        axis.set(yticks=levels, ylim=(0.4, len(levels) + 0.6), xlabel="from the middle [noise sd]")
        axis.set_yticklabels([shortened(name, LONGEST_OUTPUT) for name in names])
        axis.tick_params(axis="y", length=0)

    inside, count = int(np.sum((low <= seen) & (seen <= high))), int(np.isfinite(seen).sum())
    words = f"{inside} of {count} observations of the outputs lie in their 95 % predictive intervals."
    return one_panel(draw, words, 4.6, 1.0 + 0.3 * len(names))

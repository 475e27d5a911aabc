"""Figures of outputs without inputs: a line or a bar for each, in units of its noise, since their own units differ."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import Array
from ..pages.style import BIAS, DATA, MODEL, TOTAL, text
from .outputs import OutputBands, output_bands
from .record import Record

#: with a wider range, in noise sds, the axis is stretched around zero
WIDE_RANGE = 40.0
#: outputs that a figure has room for
MOST_SHOWN = 60


def outputs_fit_figure(record: Record) -> Figure:
    """Model alone and model + bias less what was observed, one line an output."""
    bands, names, figure, axis = _prepared(record)
    levels = np.arange(len(names), 0, -1.0)
    seen = ~np.isnan(bands.observed)
    # a missing output is shown around its prediction
    centre = np.where(seen, bands.observed, bands.total[0])
    half = 1.96 * bands.mean_sd / bands.noise_sd
    axis.barh(levels[seen], 2 * half[seen], left=-half[seen], height=0.7, color="0.88", zorder=0, label="noise, 95 %")
    for band, shift, colour, label in (
        (bands.model, 0.15, MODEL, "model alone"),
        (bands.total, -0.15, TOTAL, "model + bias"),
    ):
        _intervals(axis, (band - centre) / bands.noise_sd, levels + shift, colour, label)
    axis.plot(np.zeros(int(seen.sum())), levels[seen], "|", color=DATA, ms=11, mew=1.6, label="observed")
    axis.set(xlabel="difference from the observation, in noise standard deviations")
    labels = [
        f"{text(name)} = {value:.4g}" if there else f"{text(name)}, missing"
        for name, value, there in zip(names, bands.observed, seen, strict=True)
    ]
    return finished(figure, axis, levels, labels)


def outputs_bias_figure(record: Record) -> Figure:
    """The bias of each output as a bar with its 95 % interval."""
    bands, names, figure, axis = _prepared(record)
    levels = np.arange(len(names), 0, -1.0)
    sds = bands.bias / bands.noise_sd
    axis.barh(levels, sds[0], height=0.6, color=BIAS, alpha=0.45, label="mean")
    ends = [sds[0] - sds[1], sds[2] - sds[0]]
    axis.errorbar(sds[0], levels, xerr=ends, fmt="none", ecolor=BIAS, elinewidth=1.5, capsize=3, label="95 %")
    axis.axvline(0, color="0.4", lw=0.9)
    axis.set(xlabel="bias, in noise standard deviations")
    return finished(figure, axis, levels, [text(name) for name in names])


def _prepared(record: Record) -> tuple[OutputBands, tuple[str, ...], Figure, Axes]:
    names = record.outcome_names[:MOST_SHOWN]
    bands = OutputBands(*(values[..., : len(names)] for values in output_bands(record)))
    figure = Figure(figsize=(7.6, 1.3 + 0.34 * len(names)), layout="constrained")
    return bands, names, figure, figure.subplots()


def _intervals(axis: Axes, band: Array, levels: Array, colour: str, label: str) -> None:
    middle, lower, upper = band
    ends = [middle - lower, upper - middle]
    axis.errorbar(middle, levels, xerr=ends, fmt="o", ms=4, color=colour, elinewidth=1.6, label=label)


def finished(figure: Figure, axis: Axes, levels: Array, labels: list[str]) -> Figure:
    """The figure with a label for each level, and one legend below."""
    axis.set(yticks=levels, ylim=(0.4, len(levels) + 0.6))
    axis.set_yticklabels(labels)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="0.9", lw=0.8, zorder=0)
    axis.set_axisbelow(True)
    if np.ptp(axis.get_xlim()) > WIDE_RANGE:
        axis.set_xscale("asinh", linear_width=2.0)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure

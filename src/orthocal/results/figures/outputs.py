"""Figures of outputs without inputs: a line or a bar for each, in units of its noise, since their own units differ."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ...arrays import Array
from ...pages.panels import Drawing, one_panel
from ...pages.style import BIAS, DATA, GRID, MODEL, SHADE, TOTAL, shortened
from ..predict.outputs import OutputBands, output_bands
from ..record import Record
from .axes import MOST_OUTPUTS, rms

#: with a wider range, in noise sds, the axis is stretched around zero
WIDE_RANGE = 40.0
#: letters of a name that a figure has room for
LONGEST_OUTPUT = 24


def outputs_fit(record: Record) -> Drawing:
    """Model alone and model + bias less what was observed, one line an output."""
    bands, names = _shown(record)
    levels = np.arange(len(names), 0, -1.0)
    seen = ~np.isnan(bands.observed)
    # a missing output is shown around its prediction
    centre = np.where(seen, bands.observed, bands.total[0])
    model, total = ((band - centre) / bands.noise_sd for band in (bands.model, bands.total))

    def draw(axis: Axes) -> None:
        half = 1.96 * bands.mean_sd / bands.noise_sd
        axis.barh(
            levels[seen], 2 * half[seen], left=-half[seen], height=0.7, color=SHADE, zorder=0, label="noise, 95 %"
        )
        for band, shift, colour, label in ((model, 0.15, MODEL, "model alone"), (total, -0.15, TOTAL, "model + bias")):
            _intervals(axis, band, levels + shift, colour, label)
        axis.plot(np.zeros(int(seen.sum())), levels[seen], "|", color=DATA, ms=11, mew=1.6, label="observed")
        axis.set(xlabel="from the observation [noise sd]")
        each = zip(names, bands.observed, seen, strict=True)
        texts = [(name, f" = {value:.4g}" if there else ", missing") for name, value, there in each]
        finished(axis, levels, [shortened(name, LONGEST_OUTPUT) + ending for name, ending in texts])

    words = (
        f"{len(names)} outputs less their observations, in noise standard deviations: root mean square "
        f"{rms(model[0][seen]):.2g} by the model alone, {rms(total[0][seen]):.2g} with its bias."
    )
    return one_panel(draw, words, 4.6, 1.2 + 0.34 * len(names))


def outputs_bias(record: Record) -> Drawing:
    """The bias of each output as a bar with its 95 % interval."""
    bands, names = _shown(record)
    levels = np.arange(len(names), 0, -1.0)
    sds = bands.bias / bands.noise_sd

    def draw(axis: Axes) -> None:
        axis.barh(levels, sds[0], height=0.6, color=BIAS, alpha=0.45, label="mean")
        ends = [sds[0] - sds[1], sds[2] - sds[0]]
        axis.errorbar(sds[0], levels, xerr=ends, fmt="none", color=BIAS, elinewidth=1.5, capsize=3, label="95 %")
        axis.axvline(0, color=DATA, lw=0.9)
        axis.set(xlabel="bias [noise sd]")
        finished(axis, levels, [shortened(name, LONGEST_OUTPUT) for name in names])

    largest = int(np.abs(sds[0]).argmax())
    away = int(np.sum((sds[1] > 0) | (sds[2] < 0)))
    words = (
        f"bias of {len(names)} outputs in noise standard deviations: the largest is {sds[0, largest]:.2g}, of "
        f"{names[largest]}; {away} of the 95 % intervals exclude zero."
    )
    return one_panel(draw, words, 4.6, 1.2 + 0.34 * len(names))


def _shown(record: Record) -> tuple[OutputBands, tuple[str, ...]]:
    names = record.outcome_names[:MOST_OUTPUTS]
    return OutputBands(*(values[..., : len(names)] for values in output_bands(record))), names


def _intervals(axis: Axes, band: Array, levels: Array, colour: str, label: str) -> None:
    middle, lower, upper = band
    ends = [middle - lower, upper - middle]
    axis.errorbar(middle, levels, xerr=ends, fmt="o", ms=4, color=colour, elinewidth=1.6, label=label)


def finished(axis: Axes, levels: Array, labels: list[str]) -> None:
    """A label for each level."""
    axis.set(yticks=levels, ylim=(0.4, len(levels) + 0.6))
    axis.set_yticklabels(labels)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color=GRID, lw=0.8, zorder=0)
    axis.set_axisbelow(True)
    if np.ptp(axis.get_xlim()) > WIDE_RANGE:
        axis.set_xscale("asinh", linear_width=2.0)

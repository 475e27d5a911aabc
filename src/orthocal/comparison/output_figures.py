"""The biases of outputs without inputs by several methods."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ..pages.style import CHAINS, styled, text
from ..results.output_figures import MOST_SHOWN, finished
from ..results.outputs import output_bands
from ..results.posterior import Posterior


@styled
def compared_outputs_figure(posteriors: dict[str, Posterior]) -> Figure:
    """One line an output, one colour a method: mean and 95 % of its bias, in noise sds."""
    # a method without bias has nothing to show
    posteriors = {name: one for name, one in posteriors.items() if one.record.samplers} or posteriors
    names = next(iter(posteriors.values())).outcome_names[:MOST_SHOWN]
    figure = Figure(figsize=(7.6, 1.3 + (0.14 + 0.12 * len(posteriors)) * len(names)), layout="constrained")
    axis = figure.subplots()
    levels = np.arange(len(names), 0, -1.0)
    shifts = np.linspace(0.28, -0.28, len(posteriors)) if len(posteriors) > 1 else [0.0]
    for c, (shift, (label, posterior)) in enumerate(zip(shifts, posteriors.items(), strict=True)):
        bands = output_bands(posterior.record)
        middle, lower, upper = (bands.bias / bands.noise_sd)[:, : len(names)]
        colour = CHAINS[c % len(CHAINS)]
        ends = [middle - lower, upper - middle]
        axis.errorbar(
            middle, levels + shift, xerr=ends, fmt="o", ms=3.5, color=colour, elinewidth=1.2, label=text(label)
        )
    axis.axvline(0, color="0.4", lw=0.9)
    axis.set(xlabel="bias, in noise standard deviations")
    return finished(figure, axis, levels, [text(name) for name in names])

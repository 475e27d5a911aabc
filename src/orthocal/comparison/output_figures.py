"""The biases of outputs without inputs by several methods."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ..pages.panels import Drawing, one_panel
from ..pages.style import CHAINS, DATA, shortened, text
from ..results.figures.outputs import LONGEST_OUTPUT, finished
from ..results.figures.parts import MOST_OUTPUTS
from ..results.posterior import Posterior
from ..results.predict.outputs import output_bands


def compared_outputs(posteriors: dict[str, Posterior]) -> Drawing:
    """One line an output, one colour a method: mean and 95 % of its bias, in noise sds."""
    # a method without bias has nothing to show
    posteriors = {name: one for name, one in posteriors.items() if one.record.samplers} or posteriors
    names = next(iter(posteriors.values())).outcome_names[:MOST_OUTPUTS]
    levels = np.arange(len(names), 0, -1.0)
    shifts = np.linspace(0.28, -0.28, len(posteriors)) if len(posteriors) > 1 else [0.0]
    bands = {label: output_bands(one.record) for label, one in posteriors.items()}
    sds = {label: (one.bias / one.noise_sd)[:, : len(names)] for label, one in bands.items()}

    def draw(axis: Axes) -> None:
        for c, (shift, (label, (middle, lower, upper))) in enumerate(zip(shifts, sds.items(), strict=True)):
            colour, ends = CHAINS[c % len(CHAINS)], [middle - lower, upper - middle]
            axis.errorbar(
                middle, levels + shift, xerr=ends, fmt="o", ms=3.5, color=colour, elinewidth=1.2, label=text(label)
            )
        axis.axvline(0, color=DATA, lw=0.9)
        axis.set(xlabel="bias [noise sd]")
        finished(axis, levels, [shortened(name, LONGEST_OUTPUT) for name in names])

    largest = {label: int(np.abs(band[0]).argmax()) for label, band in sds.items()}
    words = [f"{label} at most {sds[label][0, k]:.2g}, of {names[k]}" for label, k in largest.items()]
    seen = f"bias of {len(names)} outputs in noise standard deviations: {'; '.join(words)}."
    return one_panel(draw, seen, 4.6, 1.3 + (0.14 + 0.12 * len(posteriors)) * len(names))

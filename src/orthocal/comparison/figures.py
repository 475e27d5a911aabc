"""The figures of comparisons: methods, outcomes or simulators side by side, and their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from ..arrays import Array
from ..pages.panels import Drawing, Panel, one_panel
from ..pages.style import CHAINS, DATA, GRID, GUIDE, MODEL, MOST_PANELS, TOTAL, shortened, text
from ..results.figures.axes import MOST_OUTPUTS, with_unit
from ..results.figures.outputs import LONGEST_OUTPUT, finished
from ..results.posterior import Posterior
from ..results.predict.outputs import output_bands

#: letters of a fit's name that an axis has room for
LONGEST_NAME = 22
_SCORES = (("rmse", "RMSE"), ("crps", "CRPS"), ("coverage", "95 % coverage"))

Fits = Mapping[str, Mapping[str, Array | None]]


def compared_drawing(posteriors: dict[str, Posterior]) -> Drawing:
    """Posteriors of the same parameters from several fits: one panel a parameter, one row a fit, first on top."""
    return fits_drawing(_draws(posteriors), each=0.55, titles=_titles(posteriors))


def closer_drawing(posteriors: dict[str, Posterior], wide: float) -> Drawing | None:
    """The same, closer: posteriors over ``wide`` times as wide as the narrowest are cut; None if there are none."""
    fits = _draws(posteriors)
    limits = {name: found for name in _names(fits) if (found := _closer(fits, name, wide)) is not None}
    return fits_drawing(fits, each=0.55, titles=_titles(posteriors), limits=limits) if limits else None


def compared_posteriors_figure(posteriors: dict[str, Posterior]) -> Figure:
    """The same as one figure."""
    return compared_drawing(posteriors).figure()


def fits_figure(fits: Fits) -> Figure:
    """Fits that need not have all parameters, as one figure."""
    return fits_drawing(fits).figure()


def fits_drawing(
    fits: Fits,
    each: float = 0.45,
    titles: Mapping[str, str] | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Drawing:
    """Fits that need not have all parameters: name of a fit -> parameter -> its draws, or None.

    ``each`` is the height of a fit's row, in inches; ``titles`` have units; ``limits`` are those of parameters' panels.
    """
    names, levels = _names(fits), np.arange(len(fits), 0, -1.0)
    panels = []
    for name in names:

        def draw(axis: Axes, name: str = name) -> None:
            for c, (level, draws) in enumerate(zip(levels, fits.values(), strict=True)):
                values = draws[name]
                if values is not None:
                    _ridge(axis, values, level, CHAINS[c % len(CHAINS)])
            _of_fits(axis, (titles or {}).get(name, text(name)), levels, list(fits))
            if limits and name in limits:
                axis.set_xlim(*limits[name])

        panels.append(Panel(draw, "; ".join(_means(fits, name))))
    columns = min(len(panels), 2)
    return Drawing((tuple(panels),), columns, 4.4, 1.0 + each * len(fits))


def _names(fits: Fits) -> list[str]:
    return list(next(iter(fits.values())))


def _draws(posteriors: dict[str, Posterior]) -> dict[str, dict[str, Array]]:
    names = next(iter(posteriors.values())).parameter_names
    return {
        fit: {name: posterior.theta[:, :, j].ravel() for j, name in enumerate(names)}
        for fit, posterior in posteriors.items()
    }


def _titles(posteriors: dict[str, Posterior]) -> dict[str, str]:
    record = next(iter(posteriors.values())).record
    return {name: with_unit(record, name) for name in record.parameter_names}


def _means(fits: Fits, name: str) -> Iterator[str]:
    """What is seen of a parameter, fit by fit."""
    for fit, draws in fits.items():
        values = draws[name]
        if values is not None:
            low, high = np.quantile(values, [0.025, 0.975])
            yield f"{name} by {fit}: mean {values.mean():.4g}, 95 % from {low:.4g} to {high:.4g}"


def _closer(fits: Fits, name: str, wide: float) -> tuple[float, float] | None:
    draws = [one for fit in fits.values() if (one := fit[name]) is not None]
    sds = np.array([values.std() for values in draws])
    if not (sds > wide * sds.min()).any() or sds.min() == 0:
        return None
    ends = np.array([np.quantile(values, [0.001, 0.999]) for values in draws])[sds <= wide * sds.min()]
    left, right = float(ends[:, 0].min()), float(ends[:, 1].max())
    return left - 0.15 * (right - left), right + 0.15 * (right - left)


def _of_fits(axis: Axes, title: str, levels: Array, labels: Sequence[str]) -> None:
    """An axis with a row a fit."""
    axis.set(title=title, ylim=(0.7, len(levels) + 1.0))
    _rows(axis, levels, labels)
    axis.spines["left"].set_visible(False)
    axis.locator_params(axis="x", nbins=5)


def _rows(axis: Axes, levels: Array, labels: Sequence[str]) -> None:
    """A name for each level."""
    axis.set_yticks(levels, [shortened(name, LONGEST_NAME) for name in labels])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color=GRID, lw=0.8, zorder=0)
    axis.set_axisbelow(True)


def _ridge(axis: Axes, values: Array, level: float, colour: str) -> None:
    """A density on the line ``level``, with its mean and central 95 %."""
    low, high = np.quantile(values, [0.025, 0.975])
    if np.ptp(values) > 0:
        left, right = np.quantile(values, [0.001, 0.999])
        grid = np.linspace(left, right, 150)
        density = gaussian_kde(values)(grid)
        axis.fill_between(grid, level, level + 0.8 * density / density.max(), color=colour, alpha=0.35, lw=0)
    axis.plot([low, high], [level, level], color=colour, lw=2, solid_capstyle="butt")
    axis.plot(values.mean(), level, "o", color=colour, ms=4)


def distances_figure(distances: dict[str, Array], squared: bool) -> Figure:
    """Distances of several simulators from the same draws of the real process, and how much farther the others are."""
    best = min(distances, key=lambda name: float(distances[name].mean()))
    levels, unit = np.arange(len(distances), 0, -1.0), "noise standard deviations" if squared else "loss"

    def own(axis: Axes) -> None:
        for c, (level, values) in enumerate(zip(levels, distances.values(), strict=True)):
            _ridge(axis, values, level, CHAINS[c % len(CHAINS)])
        _of_fits(axis, "distance" if squared else "loss", levels, list(distances))
        axis.set(xlabel=unit)

    def farther(axis: Axes) -> None:
        for c, (level, (name, values)) in enumerate(zip(levels, distances.items(), strict=True)):
            if name != best:
                _ridge(axis, values - distances[best], level, CHAINS[c % len(CHAINS)])
        _of_fits(axis, f"farther than {text(best)} by", levels, list(distances))
        axis.set(xlabel=unit)
        axis.axvline(0.0, color=GUIDE, lw=1, ls="--", zorder=0)

    seen = "; ".join(f"{name}: {values.mean():.3g} {unit}" for name, values in distances.items())
    panels = (Panel(own, seen), Panel(farther, f"differences from {best}, the closest"))
    return Drawing((panels,), 2, 4.2, 1.0 + 0.55 * len(distances)).figure()


def scores_figure(scores: pd.DataFrame) -> Figure:
    """The scores as one figure."""
    return scores_drawing(scores).figure()


def scores_drawing(scores: pd.DataFrame) -> Drawing:
    """Scores by method and outcome, with two standard errors: one row an outcome; RMSE, CRPS and coverage."""
    outcomes = list(scores.index.unique("outcome"))[:MOST_PANELS]
    methods = list(scores.index.unique("method"))
    blocks = []
    for outcome in outcomes:
        table: pd.DataFrame = scores.loc[[(method, outcome) for method in methods]]
        block = []
        for name, title in _SCORES:
            whole = title if len(outcomes) == 1 else f"{outcome}: {title}"

            def draw(axis: Axes, table: pd.DataFrame = table, name: str = name, whole: str = whole) -> None:
                _scores_panel(axis, table, name, methods)
                axis.set(title=text(whole))

            each = zip(methods, table[name], strict=True)
            block.append(Panel(draw, f"{whole}: " + ", ".join(f"{method} {value:.3g}" for method, value in each)))
        blocks.append(tuple(block))
    return Drawing(tuple(blocks), 3, 3.4, 1.1 + 0.42 * len(methods))


def _scores_panel(axis: Axes, table: pd.DataFrame, name: str, methods: list[str]) -> None:
    levels = np.arange(len(methods), 0, -1.0)
    for prefix, shift, colour, label in (("", 0.13, TOTAL, "model + bias"), ("model_", -0.13, MODEL, "model alone")):
        values, errors = table[prefix + name], 2 * table[f"{prefix}{name}_se"]
        axis.errorbar(values, levels + shift, xerr=errors, fmt="o", ms=4, color=colour, elinewidth=1.2, label=label)
    if name == "coverage":
        axis.axvline(0.95, color=GUIDE, lw=1, ls="--", zorder=0)
        axis.set_xlim(right=1.02)
    else:
        axis.set_xlim(left=0)
    axis.set(ylim=(0.4, len(methods) + 0.6))
    _rows(axis, levels, [str(one) for one in methods])


# The biases of outputs without inputs by several methods.


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

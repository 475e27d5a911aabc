"""The tables of a galaxy's fit: each outcome alone, all together, emulators, held-out bins; and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from orthocal.applications import Array, Grid, summary_rows

from .data import TOGETHER
from .fit import BY_EMULATOR, FitKey, GalaxyFit

#: beyond these a fit's draws are not to be trusted
MOST_RHAT, LEAST_ESS = 1.05, 100.0


def fit_frame(fit: GalaxyFit, together: bool) -> pd.DataFrame:
    """One row an outcome, method and parameter: mean, sd, 95 % interval, effective draws and R-hat."""
    rows = []
    for target, method in fit.posteriors:
        if (target == TOGETHER) != together:
            continue
        table = fit.summary((target, method))
        for parameter, row in table.iterrows():
            low, high = (column for column in table.columns if str(column).startswith("eti"))
            rows.append(
                {
                    "outcome": target,
                    "method": method,
                    "parameter": str(parameter),
                    "mean": row["mean"],
                    "sd": row["sd"],
                    "lower": row[low],
                    "upper": row[high],
                    "ess": row["ess_bulk"],
                    "rhat": row["r_hat"],
                }
            )
    return pd.DataFrame(rows)


def grids(fit: GalaxyFit) -> Iterator[Grid]:
    """The tables as texts: all together, each outcome alone, held-out bins, emulators, times."""
    yield _joint(fit)
    yield _alone(fit)
    if len(fit.held_out):
        yield _held_out(fit)
    if len(fit.emulators):
        yield _emulators(fit)
    if fit.seconds:
        rows = [[stage, f"{seconds:.1f}"] for stage, seconds in _grouped(fit.seconds).items()]
        yield Grid("Times", "Of what this call has made; the rest was there.", ["stage", "seconds"], rows, 1)


def _grouped(seconds: Mapping[str, float]) -> dict[str, float]:
    """The times with all fits, and all predictions of held-out bins, in one row each."""
    total: dict[str, float] = {}
    for stage, spent in seconds.items():
        name = "fits" if stage.startswith("fit of") else "held-out bins" if stage.startswith("held-out") else stage
        total[name] = total.get(name, 0.0) + spent
    return total


def _joint(fit: GalaxyFit) -> Grid:
    rows = [_fit_cells(fit, key) for key in fit.posteriors if key[0] == TOGETHER]
    if fit.stars:
        rows.append(_theta_cells(_star_name(fit, TOGETHER), fit.stars[TOGETHER]))
        if BY_EMULATOR in fit.stars:
            rows.append(_theta_cells("theta_star of the emulator", fit.stars[BY_EMULATOR]))
        if fit.data.truth is not None:
            rows.append(_theta_cells("theta_true", fit.data.truth.theta))
    caption = (
        "Posterior mean ± sd of each parameter, and its 95 % interval; the smallest number of effective draws and the "
        "largest R-hat of the three."
    )
    return Grid("All outcomes together", caption, _header(fit), rows, 1)


def _alone(fit: GalaxyFit) -> Grid:
    rows = []
    for outcome in fit.data.kinematics.names:
        keys = [key for key in fit.posteriors if key[0] == outcome]
        rows += [[outcome, *_fit_cells(fit, key)] for key in keys]
        if keys and outcome in fit.stars:
            rows.append([outcome, *_theta_cells(_star_name(fit, outcome), fit.stars[outcome])])
    caption = "The same from one of v, sigma, h3 and h4 at a time."
    return Grid("Each outcome alone", caption, ["outcome", *_header(fit)], rows, 2)


def _header(fit: GalaxyFit) -> list[str]:
    parameters = [cell for name in fit.data.box for cell in (name, "95 % interval")]
    return ["method", *parameters, "effective draws", "R-hat"]


def _fit_cells(fit: GalaxyFit, key: FitKey) -> list[str]:
    summary = fit.summary(key)
    cells = [
        cell
        for row in summary_rows(summary)
        for cell in (f"{row['mean']} ± {row['sd']}", f"{row['lower']} to {row['upper']}")
    ]
    return [key[1], *cells, f"{summary['ess_bulk'].min():.0f}", f"{summary['r_hat'].max():.2f}"]


def _theta_cells(name: str, theta: Array) -> list[str]:
    return [name, *(cell for one in theta for cell in (f"{one:.3f}", "")), "", ""]


def _star_name(fit: GalaxyFit, target: str) -> str:
    return "theta_star (on a bound)" if fit.star_on_bound(target) else "theta_star"


def _held_out(fit: GalaxyFit) -> Grid:
    table = fit.held_out
    rows = [
        [
            str(row["outcome"]),
            str(row["method"]),
            f"{row['with_bias']:.3f}",
            f"{row['without_bias']:.3f}",
            f"{row['paper']:.3g}",
        ]
        for name in fit.data.kinematics.names
        for _, row in table[table["outcome"] == name].iterrows()
    ]
    caption = (
        f"{int(table['bins'].max())} bins were left out of a fit to all outcomes and predicted by it. The error is the "
        "sum of squared errors of the posterior mean over the sum of squares about the mean of the other bins: 0 is "
        "perfect, 1 is no better than that mean. Model + bias, the model alone, and the mean of (1 - predicted / "
        "observed)², which the paper has, and which explodes where an outcome is near 0."
    )
    header = ["outcome", "method", "model + bias", "model alone", "(1 - ratio)²"]
    return Grid("Held-out bins", caption, header, rows, 2)


def _emulators(fit: GalaxyFit) -> Grid:
    rows = []
    for _, row in fit.emulators.iterrows():
        coverage = f"{row['coverage']:.2f}" if np.isfinite(row["coverage"]) else "-"
        error, seconds = f"{row['relative_rmse']:.2g}", f"{row['fit_seconds']:.1f}"
        rows.append([str(row["emulator"]), str(row["outcome"]), error, coverage, seconds])
    caption = (
        "How well emulators predict runs that they have not seen: rms error relative to the spread of the runs, and "
        "coverage of their 95 % intervals."
    )
    return Grid("Emulators", caption, ["emulator", "outcome", "relative error", "coverage", "seconds"], rows, 2)


def remarks(fit: GalaxyFit) -> list[str]:
    """What the tables say, in words."""
    said = []
    joint = {method: posterior for (target, method), posterior in fit.posteriors.items() if target == TOGETHER}
    for method, posterior in joint.items():
        draws = posterior.theta.reshape(-1, len(fit.data.box))
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        intervals = [f"{name} {a:.3g} to {b:.3g}" for name, a, b in zip(fit.data.box, low, high, strict=True)]
        text = f"All together, {method}: {', '.join(intervals)}."
        for what, theta in (
            ("theta_star", fit.stars.get(TOGETHER)),
            ("theta_true", None if fit.data.truth is None else fit.data.truth.theta),
        ):
            if theta is not None:
                inside = [name for name, a, b, t in zip(fit.data.box, low, high, theta, strict=True) if a <= t <= b]
                text += f" {what} lies inside for {', '.join(inside) or 'none'}."
        said.append(text)
        narrower = _narrower(fit, method, draws.std(axis=0))
        said += [narrower] if narrower else []
        said += list(_apart(fit, method, low, high))
    said += list(_doubts(fit))
    return said


def _narrower(fit: GalaxyFit, method: str, sd: Array) -> str | None:
    """How much narrower the joint posterior is than the narrowest of the outcomes alone."""
    alone = [
        posterior.theta.reshape(-1, len(sd)).std(axis=0)
        for (target, own), posterior in fit.posteriors.items()
        if own == method and target != TOGETHER
    ]
    if not alone:
        return None
    ratio = sd / np.min(alone, axis=0)
    words = ", ".join(f"{name} {one:.2g}" for name, one in zip(fit.data.box, ratio, strict=True))
    return f"The sd of the joint posterior by {method} relative to that of the best single outcome: {words}."


def _apart(fit: GalaxyFit, method: str, low: Array, high: Array) -> Iterator[str]:
    """Outcomes whose 95 % interval alone does not meet that of all together."""
    for j, name in enumerate(fit.data.box):
        apart = []
        for outcome in fit.data.kinematics.names:
            if (outcome, method) in fit.posteriors:
                ends = np.quantile(fit.posteriors[outcome, method].theta[:, :, j], [0.025, 0.975])
                apart += [outcome] if ends[0] > high[j] or ends[1] < low[j] else []
        if apart:
            yield (
                f"{name} by {method}: the interval of {', '.join(apart)} alone does not meet that of all together. The "
                "outcomes want different values, as they do of a model with a bias."
            )


def _doubts(fit: GalaxyFit) -> Iterator[str]:
    joint = [(method, posterior) for (target, method), posterior in fit.posteriors.items() if target == TOGETHER]
    for method, posterior in joint:
        for one in posterior.check():
            # mixing is told of every fit, below
            if (one.level == "problem" and one.topic != "mixing") or (one.level, one.topic) == ("note", "curvature"):
                yield f"{TOGETHER} by {method}, {one.topic}: {one.message}."
    for target, method in fit.posteriors:
        table = fit.summary((target, method))
        if table["r_hat"].max() > MOST_RHAT or table["ess_bulk"].min() < LEAST_ESS:
            yield (
                f"{target} by {method} has not mixed (R-hat {table['r_hat'].max():.2f}, "
                f"{table['ess_bulk'].min():.0f} effective draws): take more draws before its figures are used."
            )


def as_markdown(grid: Grid) -> str:
    """A table in Markdown, with its title and caption."""
    rule = ["---" if j < grid.labels else "---:" for j in range(len(grid.header))]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in [grid.header, rule, *grid.rows]]
    return "\n".join([f"## {grid.title}", "", grid.caption, "", *lines])

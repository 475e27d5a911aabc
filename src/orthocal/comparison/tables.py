"""The tables of a comparison, as numbers and as texts: parameters, scores, leave-one-out, times, method by method."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..arrays import IntArray
from ..pages.tables import Grid, summary_rows, with_error
from ..problem.data.field_data import Groups
from ..results.posterior import Posterior
from ..results.predict.scores import loo as psis_loo, mean_and_error, score_table
from .fits import HeldOutScores

#: groups in a printed table, the worst ones; all are in ``group_scores()`` and in the CSV file
MOST_SHOWN = 12


def by_parameter(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables by method as one, parameter by parameter."""
    names = list(next(iter(tables.values())).index)
    order = [(parameter, method) for parameter in names for method in tables]
    rows = pd.concat(tables, names=["method", "parameter"]).swaplevel()
    return rows.reindex(pd.MultiIndex.from_tuples(order, names=["parameter", "method"]))


def scores_table(
    held_out: Mapping[str, HeldOutScores], names: tuple[str, ...], groups: IntArray | None
) -> pd.DataFrame:
    """One row a method and outcome, as in ``Comparison.scores``; standard errors are over ``groups`` (n,), if any."""
    tables = {name: _score_columns(one, names, groups) for name, one in held_out.items()}
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, names=["method", "outcome"])
    for k, outcome in enumerate(names):
        cells = {name: one.with_bias.crps[:, k] for name, one in held_out.items()}
        # a fold may have failed by some methods: the best is that of the cells that all have, where there are any
        shared = ~np.isnan(np.array(list(cells.values()))).any(axis=0)
        means = {name: np.mean(own[shared]) if shared.any() else np.nanmean(own) for name, own in cells.items()}
        best = cells[min(means, key=lambda name: means[name])]
        for name, own in cells.items():
            table.loc[(name, outcome), ["crps_gap", "gap_se"]] = mean_and_error(own - best, groups)
    return table


def _score_columns(held_out: HeldOutScores, outcome_names: tuple[str, ...], groups: IntArray | None) -> pd.DataFrame:
    alone = score_table(held_out.model_alone, outcome_names, groups)
    return score_table(held_out.with_bias, outcome_names, groups).join(alone.add_prefix("model_"))


def loo_table(posteriors: Mapping[str, Posterior]) -> pd.DataFrame:
    """One row a method, as in ``Comparison.loo``."""
    rows = {}
    for name, posterior in posteriors.items():
        found = psis_loo(posterior.record)
        rows[name] = {
            "elpd_loo": found.elpd,
            "se": found.se,
            "p_loo": found.p,
            "high_k": found.high_k,
            "rows": len(found.pareto_k),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def times_table(posteriors: Mapping[str, Posterior], summary: pd.DataFrame) -> pd.DataFrame:
    """One row a method, as in ``Comparison.times``."""
    rows = {}
    for name, posterior in posteriors.items():
        notes = posterior.record.run_facts
        size = float(summary.xs(name, level="method")["ess_bulk"].min())
        rows[name] = {
            "seconds": notes.seconds,
            "cpu_seconds": float(posterior.times()["cpu"].iloc[-1]),
            "simulator_calls": notes.simulator_calls,
            "ess": size,
            "ess_per_second": size / max(notes.seconds, 1e-9),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def group_scores(held_out: Mapping[str, HeldOutScores], outcomes: tuple[str, ...], groups: Groups) -> pd.DataFrame:
    """One row a group, outcome and method."""
    rows = {}
    for code, label in enumerate(groups.labels):
        held = groups.codes == code
        for k, outcome in enumerate(outcomes):
            for name, scores in held_out.items():
                error, crps, covered, interval = (part[held, k] for part in scores.with_bias)
                rows[label, outcome, name] = {
                    "cells": int((~np.isnan(error)).sum()),
                    "rmse": np.sqrt(mean_and_error(error**2)[0]),
                    "crps": mean_and_error(crps)[0],
                    "coverage": mean_and_error(covered)[0],
                    "interval_score": mean_and_error(interval)[0],
                    "model_rmse": np.sqrt(mean_and_error(scores.model_alone.error[held, k] ** 2)[0]),
                }
    index = pd.MultiIndex.from_tuples(rows, names=[groups.name, "outcome", "method"])
    return pd.DataFrame(list(rows.values()), index=index)


def row_rmse(
    held_out: Mapping[str, HeldOutScores], row_wise: Mapping[str, HeldOutScores], outcomes: tuple[str, ...]
) -> dict[tuple[str, str], float]:
    """RMSE by method and outcome where rows were held out one by one, of the cells that were held out in groups too."""
    found = {}
    for name in (one for one in held_out if one in row_wise):
        for k, outcome in enumerate(outcomes):
            both = ~np.isnan(held_out[name].with_bias.error[:, k])
            square = row_wise[name].with_bias.error[both, k] ** 2
            found[name, outcome] = float(np.sqrt(mean_and_error(square)[0]))
    return found


# The same as texts.

_OUTPUT_LEFT_OUT = "Each output was predicted from the others, by a fit that had not seen it"
_SCORES = {"rmse": "RMSE", "crps": "CRPS", "coverage": "coverage"}


def parameter_grid(posteriors: Mapping[str, Posterior]) -> Grid:
    """One row a parameter and method."""
    texts = {method: summary_rows(posterior.summary()) for method, posterior in posteriors.items()}
    rows = [
        [parameter, method, row["mean"], row["sd"], f"{row['lower']} to {row['upper']}", row["ess"], row["rhat"]]
        for j, parameter in enumerate(next(iter(posteriors.values())).parameter_names)
        for method in posteriors
        for row in [texts[method][j]]
    ]
    header = ["parameter", "method", "mean", "sd", "95 % interval", "effective draws", "R-hat"]
    return Grid("Parameters", "The posterior of each parameter by every method.", header, rows, 2)


def score_grid(
    table: pd.DataFrame, scored_names: tuple[str, ...], outcomes: tuple[str, ...], groups: Groups | None
) -> Grid:
    """One row an outcome and method."""
    several, whole = len(scored_names) > 1, scored_names == outcomes
    rows = []
    for outcome in scored_names:
        for method in dict.fromkeys(table.index.get_level_values("method")):
            row = {str(name): float(value) for name, value in table.loc[[(method, outcome)]].iloc[0].items()}
            cells = [
                with_error(row[prefix + name], row[f"{prefix}{name}_se"], 1 if name == "coverage" else 2)
                for prefix in ("", "model_")
                for name in _SCORES
            ]
            gap = "best" if row["crps_gap"] == 0 else with_error(row["crps_gap"], row["gap_se"], 1)
            rows.append([*([outcome] if several else []), method, *cells[:3], gap, *cells[3:]])
    header = [*_SCORES.values(), "CRPS above best", *(f"model: {title}" for title in _SCORES.values())]
    unit = "both in the outcome's unit" if whole else "both in standard deviations of the output's noise"
    caption = (
        f"{_held_words(whole, groups)} RMSE is the error of the predictive mean, CRPS that of the whole predictive "
        f"distribution, {unit}: smaller is better. Coverage is the share of 95 % intervals that hold the observation: "
        "it should be 0.95. The last three columns are those of the model alone, without its bias. ± is one standard "
        "error; that of the CRPS above the best is from the differences cell by cell."
    )
    return Grid(
        "Held-out observations", caption, [*(["outcome"] if several else []), "method", *header], rows, 1 + several
    )


def _held_words(whole: bool, groups: Groups | None) -> str:
    if not whole:
        return f"{_OUTPUT_LEFT_OUT}."
    if groups is None:
        return "Each row of the data was predicted by a fit that had not seen it."
    return f"Each row of the data was predicted by a fit that had not seen any row of its group ({groups.name})."


def group_grid(table: pd.DataFrame, outcomes: tuple[str, ...], groups: Groups) -> Grid:
    """Scores group by group as texts, for each outcome the groups that are hardest to predict."""
    several = len(outcomes) > 1
    rows = []
    for outcome in outcomes:
        own = table.xs(outcome, level="outcome")
        worst = own["rmse"].groupby(level=0).max().nlargest(MOST_SHOWN).index
        for label in (one for one in groups.labels if one in worst):
            for name, row in own.loc[label].iterrows():
                numbers = [f"{row[score]:.3g}" for score in ("rmse", "crps", "interval_score", "model_rmse")]
                numbers.insert(2, f"{row['coverage']:.2f}")
                texts = [f"{row['cells']:.0f}", *numbers] if row["cells"] else ["0", *["–"] * len(numbers)]
                rows.append([label, *([outcome] if several else []), str(name), *texts])
    shown = f" The {MOST_SHOWN} groups with the largest errors." if groups.count > MOST_SHOWN else ""
    caption = (
        "Each group was predicted by a fit that had seen none of its rows. The interval score is the mean width of the "
        f"95 % intervals, plus 40 times what observations are beyond them: smaller is better.{shown}"
    )
    header = ["method", "cells", "RMSE", "CRPS", "coverage", "interval score", "model: RMSE"]
    first = [groups.name, *(["outcome"] if several else [])]
    return Grid(f"Held out by {groups.name}", caption, [*first, *header], rows, len(first) + 1)


def loo_grid(table: pd.DataFrame) -> Grid:
    """One row a method."""
    rows = []
    for name, row in table.iterrows():
        doubt = "no" if row["high_k"] else "yes"
        figures = [f"{row['elpd_loo']:.1f} ± {row['se']:.1f}", f"{row['p_loo']:.1f}"]
        rows.append([str(name), *figures, f"{row['high_k']:.0f} of {row['rows']:.0f}", doubt])
    caption = (
        "Expected log predictive density of a row that is left out, estimated from the fit to all data by importance "
        "sampling: larger is better. Where a row has a Pareto k above 0.7, the estimate is not to be trusted."
    )
    header = ["method", "elpd", "effective parameters", "rows with k > 0.7", "to be trusted"]
    return Grid("Leave-one-out", caption, header, rows, 1)


def times_grid(table: pd.DataFrame, preparation: tuple[float, int]) -> Grid:
    """One row a method; ``preparation`` is what they share."""
    seconds, calls = preparation
    rows = [
        [
            str(name),
            f"{row['seconds']:.2f}",
            f"{row['cpu_seconds']:.2f}",
            f"{row['simulator_calls']:.0f}",
            f"{row['ess']:.0f}",
            _three_digits(row["ess_per_second"]),
        ]
        for name, row in table.iterrows()
    ]
    caption = (
        "Of the fit to all data; effective draws are those of the worst parameter. Before it, the methods share the "
        f"search for the best fit: {seconds:.2g} s and {calls} simulator calls. The first use of trees or splines in a "
        "process includes the time to load or compile them."
    )
    header = ["method", "seconds", "CPU seconds", "simulator calls", "effective draws", "these a second"]
    return Grid("Work", caption, header, rows, 1)


def _three_digits(value: float) -> str:
    """Large ones without an exponent: they are compared down a column."""
    return f"{float(f'{value:.3g}'):.0f}" if value >= 100 else f"{value:.3g}"

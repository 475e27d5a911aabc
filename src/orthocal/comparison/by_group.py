"""Scores group by group, and what it means where rows are easy to predict and whole groups are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ..pages.tables import Grid
from ..results.predict.scores import mean_and_error
from .tables import Compared

#: groups in a printed table, the worst ones; all are in ``group_scores()`` and in the CSV file
MOST_SHOWN = 12
#: an error for whole groups that is so many times that for rows is worth a remark
MUCH_LARGER = 1.5


def group_scores(compared: Compared) -> pd.DataFrame:
    """One row a group, outcome and method."""
    if compared.groups is None or not compared.held_out:
        return pd.DataFrame()
    rows = {}
    for code, label in enumerate(compared.groups.labels):
        held = compared.groups.codes == code
        for k, outcome in enumerate(compared.outcome_names):
            for name, scores in compared.held_out.items():
                error, crps, covered, interval = (part[held, k] for part in scores.with_bias)
                rows[label, outcome, name] = {
                    "cells": int((~np.isnan(error)).sum()),
                    "rmse": np.sqrt(mean_and_error(error**2)[0]),
                    "crps": mean_and_error(crps)[0],
                    "coverage": mean_and_error(covered)[0],
                    "interval_score": mean_and_error(interval)[0],
                    "model_rmse": np.sqrt(mean_and_error(scores.model_alone.error[held, k] ** 2)[0]),
                }
    index = pd.MultiIndex.from_tuples(rows, names=[compared.groups.name, "outcome", "method"])
    return pd.DataFrame(list(rows.values()), index=index)


def group_grid(compared: Compared) -> Grid:
    """The same as texts, for each outcome the groups that are hardest to predict."""
    assert compared.groups is not None
    table, several = group_scores(compared), len(compared.outcome_names) > 1
    rows = []
    for outcome in compared.outcome_names:
        own = table.xs(outcome, level="outcome")
        worst = own["rmse"].groupby(level=0).max().nlargest(MOST_SHOWN).index
        for label in (one for one in compared.groups.labels if one in worst):
            for name, row in own.loc[label].iterrows():
                numbers = [f"{row[score]:.3g}" for score in ("rmse", "crps", "interval_score", "model_rmse")]
                numbers.insert(2, f"{row['coverage']:.2f}")
                texts = [f"{row['cells']:.0f}", *numbers] if row["cells"] else ["0", *["–"] * len(numbers)]
                rows.append([label, *([outcome] if several else []), str(name), *texts])
    shown = f" The {MOST_SHOWN} groups with the largest errors." if compared.groups.count > MOST_SHOWN else ""
    caption = (
        "Each group was predicted by a fit that had seen none of its rows. The interval score is the mean width of the "
        f"95 % intervals, plus 40 times what observations are beyond them: smaller is better.{shown}"
    )
    header = ["method", "cells", "RMSE", "CRPS", "coverage", "interval score", "model: RMSE"]
    first = [compared.groups.name, *(["outcome"] if several else [])]
    return Grid(f"Held out by {compared.groups.name}", caption, [*first, *header], rows, len(first) + 1)


def row_rmse(compared: Compared, name: str, k: int) -> float:
    """RMSE of a method where rows were held out one by one, of the cells that were also held out in groups."""
    both = ~np.isnan(compared.held_out[name].with_bias.error[:, k])
    return float(np.sqrt(mean_and_error(compared.row_wise[name].with_bias.error[both, k] ** 2)[0]))


def group_remarks(compared: Compared) -> Iterator[str]:
    """What leaving out whole groups says, and which folds have no scores."""
    for name, missed in compared.missed.items():
        reasons = "; ".join(f"without {fold}: {why}" for fold, why in missed.items())
        yield f"{name} has no scores for some rows, and its scores are those of the others only: {reasons}."
    if compared.groups is None:
        if compared.own_groups is not None and compared.held_out:
            yield (
                f"The rows belong to groups ({compared.own_groups}), and rows of one group were both held out and "
                f"learnt from: these scores are not those of a new group. Give groups={compared.own_groups!r} to leave "
                "out whole groups."
            )
        return
    kind = compared.groups.name
    table = compared.scores()
    for k, outcome in enumerate(compared.outcome_names):
        larger = []
        for name in compared.held_out:
            if name in compared.row_wise:
                rows, whole = row_rmse(compared, name, k), float(table["rmse"][name, outcome])
                if whole > MUCH_LARGER * rows:
                    larger.append(f"{name} {rows:.3g} and {whole:.3g}")
        if larger:
            yield (
                f"{outcome}: held out row by row and by {kind}, the RMSE is {'; '.join(larger)}. Rows of one {kind} "
                f"tell much about each other, so errors row by row are too small for a new {kind}: there the second "
                f"number is the honest one. The first is that of further rows of a {kind} that was measured."
            )

"""The numbers of a comparison: parameters, scores, leave-one-out and times, method by method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ..arrays import IntArray
from ..methods.base import KINDS, ListedMethod, Method
from ..pages.tables import Grid
from ..problem.data.field_data import Groups
from ..results.posterior import Posterior
from ..results.predict.scores import loo as psis_loo
from ..results.predict.scores import mean_and_error, score_table
from .fits import HeldOut


@dataclass(frozen=True)
class Compared:
    """What ``Comparison`` holds, which explains it, and its tables: no words, figures or pages."""

    methods: dict[str, Method]
    posteriors: dict[str, Posterior]
    failures: dict[str, str]
    held_out: dict[str, HeldOut]
    fold_of_row: IntArray | None
    with_loo: bool
    preparation: tuple[float, int]
    seed: int
    groups: Groups | None = None
    row_wise: dict[str, HeldOut] = field(default_factory=dict)
    missed: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False).parameter_names
        ('theta',)
        """
        return self._first.parameter_names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the outcomes.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False).outcome_names
        ('y',)
        """
        return self._first.outcome_names

    @property
    def scored_names(self) -> tuple[str, ...]:
        """The rows of the scores: the outcomes, or all outputs without inputs together, because each is one number.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False).scored_names
        ('y',)
        """
        return ("all outputs, in noise sds",) if self._first.record.without_inputs else self.outcome_names

    @property
    def own_groups(self) -> str | None:
        """Name of the problem's own groups, or None.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> x, y = model1.simulate(np.random.default_rng(1), 20)
        >>> problem = model1.problem(x, y, groups=np.repeat(["a", "b"], 10))
        >>> oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False).own_groups
        'group'
        """
        groups = self._first.record.groups
        return None if groups is None else groups.name

    @property
    def kinds(self) -> dict[str, str]:
        """Label -> family of the method, ``"projected"`` or ``"ko"`` for instance.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.compare(problem, {"free": "none"}, folds=0, draws=20, chains=2, seed=1, progress=False).kinds
        {'free': 'none'}
        """
        return {name: str(method.describe().get("kind")) for name, method in self.methods.items()}

    def family(self, name: str) -> type[ListedMethod] | None:
        """The family of a method by its label; None for one of the user's own.

        Parameters
        ----------
        name
            The label.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> compared = oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False)
        >>> compared.family("none") is oc.methods.NoBias
        True
        """
        return KINDS.get(self.kinds[name])

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a parameter and method, as ``Posterior.summary``.

        Parameters
        ----------
        interval
            Probability of the intervals.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> compared = oc.compare(problem, ["gp", "none"], folds=0, draws=100, chains=2, seed=1, progress=False)
        >>> sd = compared.summary()["sd"]
        >>> bool(sd["theta", "gp"] > sd["theta", "none"])
        True
        """
        if interval == 0.95:
            return self._summary.copy()
        return _by_parameter({name: one.summary(interval) for name, one in self.posteriors.items()})

    def scores(self) -> pd.DataFrame:
        """One row a method and outcome: how well observations are predicted by a fit that has not seen them.

        ``rmse`` is the error of the predictive mean, ``crps`` that of the whole predictive distribution, both in the
        outcome's unit, and ``coverage`` the share of the 95 % intervals that hold the observation. With the prefix
        ``model_`` the same for the simulator without bias. ``_se`` are standard errors over the cells of y, taken as
        independent, or over groups where these were held out. ``crps_gap`` is the distance from the best method's
        CRPS, and ``gap_se`` its standard error from the differences cell by cell: it tells methods apart much better
        than the errors of the scores themselves.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> compared = oc.compare(problem, ["gp", "none"], folds=2, draws=50, chains=2, seed=1, progress=False)
        >>> rmse = compared.scores()["rmse"]
        >>> bool(rmse["gp", "y"] < rmse["none", "y"])
        True
        """
        return self._scores.copy()

    def loo(self) -> pd.DataFrame:
        """One row a method: expected log predictive density of a row left out, by importance sampling (PSIS-LOO).

        ``p_loo`` is the effective number of parameters, ``high_k`` the number of ``rows`` with a Pareto k above 0.7:
        if there are any, do not trust the line. For the projected methods it is an approximation in any case.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> compared = oc.compare(problem, ["gp", "none"], folds=0, draws=100, chains=2, seed=1, progress=False)
        >>> elpd = compared.loo()["elpd_loo"]
        >>> bool(elpd["gp"] > elpd["none"])
        True
        """
        return self._loo.copy()

    def times(self) -> pd.DataFrame:
        """One row a method: seconds, CPU seconds, simulator calls, effective draws, and these a second.

        Of the fit to all data; draws of the parameter with the fewest. What the methods share is in ``preparation``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> compared = oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False)
        >>> list(compared.times().columns)
        ['seconds', 'cpu_seconds', 'simulator_calls', 'ess', 'ess_per_second']
        """
        rows = {}
        for name, posterior in self.posteriors.items():
            notes = posterior.record.notes
            size = float(self._summary.xs(name, level="method")["ess_bulk"].min())
            rows[name] = {
                "seconds": notes.seconds,
                "cpu_seconds": float(posterior.times()["cpu"].iloc[-1]),
                "simulator_calls": notes.simulator_calls,
                "ess": size,
                "ess_per_second": size / max(notes.seconds, 1e-9),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")

    @property
    def _first(self) -> Posterior:
        return next(iter(self.posteriors.values()))

    @cached_property
    def _summary(self) -> pd.DataFrame:
        return _by_parameter({name: one.summary() for name, one in self.posteriors.items()})

    @cached_property
    def _scores(self) -> pd.DataFrame:
        codes = None if self.groups is None else self.groups.codes
        tables = {name: _score_columns(one, self.scored_names, codes) for name, one in self.held_out.items()}
        if not tables:
            return pd.DataFrame()
        table = pd.concat(tables, names=["method", "outcome"])
        for k, outcome in enumerate(self.scored_names):
            cells = {name: one.with_bias.crps[:, k] for name, one in self.held_out.items()}
            # a fold may have failed by some methods: the best is that of the cells that all have, where there are any
            shared = ~np.isnan(np.array(list(cells.values()))).any(axis=0)
            means = {name: np.mean(own[shared]) if shared.any() else np.nanmean(own) for name, own in cells.items()}
            best = cells[min(means, key=lambda name: means[name])]
            for name, own in cells.items():
                table.loc[(name, outcome), ["crps_gap", "gap_se"]] = mean_and_error(own - best, codes)
        return table

    @cached_property
    def _loo(self) -> pd.DataFrame:
        rows = {}
        for name, posterior in self.posteriors.items():
            found = psis_loo(posterior.record)
            rows[name] = {
                "elpd_loo": found.elpd,
                "se": found.se,
                "p_loo": found.p,
                "high_k": found.high_k,
                "rows": len(found.pareto_k),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def _by_parameter(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables by method as one, parameter by parameter."""
    names = list(next(iter(tables.values())).index)
    order = [(parameter, method) for parameter in names for method in tables]
    rows = pd.concat(tables, names=["method", "parameter"]).swaplevel()
    return rows.reindex(pd.MultiIndex.from_tuples(order, names=["parameter", "method"]))


def _score_columns(held_out: HeldOut, outcome_names: tuple[str, ...], groups: IntArray | None) -> pd.DataFrame:
    alone = score_table(held_out.model_alone, outcome_names, groups)
    return score_table(held_out.with_bias, outcome_names, groups).join(alone.add_prefix("model_"))


# Scores group by group, and what it means where rows are easy to predict and whole groups are not.

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

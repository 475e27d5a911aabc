"""The numbers of a comparison: parameters, scores, leave-one-out and times, method by method."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ..arrays import IntArray
from ..methods.base import KINDS, ListedMethod, Method
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

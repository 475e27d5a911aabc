"""The same problem by several methods: their posteriors, how well they predict, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from ..arrays import IntArray
from ..errors import InputError
from ..methods import Method
from ..problem.problem import Problem
from ..progress import progress_shown
from ..results.posterior import Posterior
from ..results.scores import loo as psis_loo
from ..results.scores import mean_and_error, score_table
from .figures import compared_posteriors_figure, scores_figure
from .fits import HeldOut, prepared, run_methods, split_rows
from .words import assumption, labelled, remarks

METHODS = ("pgp", "pbart", "ogp", "ko", "none")
#: draws a chain of the fits to the folds, unless told otherwise
FOLD_DRAWS = 250


@dataclass(frozen=True)
class Comparison:
    """Posteriors of one problem by several methods.

    Attributes
    ----------
    methods
        Label -> method, all that were asked for, in their order.
    posteriors
        Label -> posterior from all data.
    failures
        Label -> why a method cannot do the problem. One that failed in a fold only has a posterior, but no scores.
    held_out
        Label -> scores of every cell of y from the fit that had not seen it.
    fold_of_row
        The fold in which each row was held out, (n,); the same for every method. None without folds.
    with_loo
        Whether the page and the printed tables include leave-one-out; ``loo()`` works in any case.
    preparation
        Seconds and simulator calls that all methods share: the noise, the search for the best fit, gradients.
    seed
        Of the folds and of every fit.
    """

    methods: dict[str, Method]
    posteriors: dict[str, Posterior]
    failures: dict[str, str]
    held_out: dict[str, HeldOut]
    fold_of_row: IntArray | None
    with_loo: bool
    preparation: tuple[float, int]
    seed: int

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self._first.parameter_names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return self._first.outcome_names

    @property
    def kinds(self) -> dict[str, str]:
        """Label -> family of the method, ``"projected"`` or ``"ko"`` for instance."""
        return {name: str(method.describe().get("kind")) for name, method in self.methods.items()}

    @property
    def assumptions(self) -> dict[str, str]:
        """Label -> what the method assumes, in one sentence."""
        return {name: assumption(method) for name, method in self.methods.items()}

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a parameter and method, as ``Posterior.summary``."""
        if interval == 0.95:
            return self._summary.copy()
        return _by_parameter({name: one.summary(interval) for name, one in self.posteriors.items()})

    def scores(self) -> pd.DataFrame:
        """One row a method and outcome: how well observations are predicted by a fit that has not seen them.

        ``rmse`` is the error of the predictive mean, ``crps`` that of the whole predictive distribution, both in the
        outcome's unit, and ``coverage`` the share of the 95 % intervals that hold the observation. With the prefix
        ``model_`` the same for the simulator without bias. ``_se`` are standard errors over the cells of y, taken as
        independent. ``crps_gap`` is the distance from the best method's CRPS, and ``gap_se`` its standard error from
        the differences cell by cell: it tells methods apart much better than the errors of the scores themselves.
        """
        return self._scores.copy()

    def loo(self) -> pd.DataFrame:
        """One row a method: expected log predictive density of a row left out, by importance sampling (PSIS-LOO).

        ``p_loo`` is the effective number of parameters, ``high_k`` the number of ``rows`` with a Pareto k above 0.7:
        if there are any, do not trust the line. For the projected methods it is an approximation in any case.
        """
        return self._loo.copy()

    def times(self) -> pd.DataFrame:
        """One row a method: seconds, simulator calls, effective draws (the fewest of a parameter), these a second.

        Of the fit to all data. What the methods share is in ``preparation``.
        """
        rows = {}
        for name, posterior in self.posteriors.items():
            notes = posterior.record.notes
            size = float(self._summary.xs(name, level="method")["ess_bulk"].min())
            rows[name] = {
                "seconds": notes.seconds,
                "simulator_calls": notes.simulator_calls,
                "ess": size,
                "ess_per_second": size / max(notes.seconds, 1e-9),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")

    def remarks(self) -> list[str]:
        """What the results say, in plain sentences."""
        return list(remarks(self))

    def figure(self) -> Figure:
        """The posteriors of each parameter side by side, one panel a parameter."""
        return compared_posteriors_figure(self.posteriors)

    def score_figure(self) -> Figure:
        """RMSE, CRPS and coverage of every method, with bias and by the model alone."""
        if not self.held_out:
            raise InputError("there are no scores: compare with folds=5, say")
        return scores_figure(self._scores)

    def report(self, path: str | Path, title: str = "Comparison of methods") -> Path:
        """Write one self-contained HTML page."""
        from .page import write_page

        return write_page(self, path, title)

    def __str__(self) -> str:
        from .page import as_text

        return as_text(self)

    @property
    def _first(self) -> Posterior:
        return next(iter(self.posteriors.values()))

    @cached_property
    def _summary(self) -> pd.DataFrame:
        return _by_parameter({name: one.summary() for name, one in self.posteriors.items()})

    @cached_property
    def _scores(self) -> pd.DataFrame:
        tables = {name: _score_columns(one, self.outcome_names) for name, one in self.held_out.items()}
        if not tables:
            return pd.DataFrame()
        table = pd.concat(tables, names=["method", "outcome"])
        for k, outcome in enumerate(self.outcome_names):
            cells = {name: one.with_bias.crps[:, k] for name, one in self.held_out.items()}
            best = cells[str(table.xs(outcome, level="outcome")["crps"].idxmin())]
            for name, own in cells.items():
                table.loc[(name, outcome), ["crps_gap", "gap_se"]] = mean_and_error(own - best)
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


def compare(
    problem: Problem,
    methods: Sequence[Any] | Mapping[str, Any] | str = METHODS,
    folds: int = 5,
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    warmup: int = 200,
    fold_draws: int | None = None,
    loo: bool = False,
    progress: bool = True,
) -> Comparison:
    """Calibrate by several methods, and score how they predict observations that they have not seen.

    A method that cannot do the problem is listed in ``failures``, and the others go on. Every fit has the same priors,
    domain and noise; noise that is estimated is estimated once, from all data.

    Parameters
    ----------
    methods
        Names, objects of ``oc.methods``, or label -> name or object.
    folds
        The rows are split at random into so many parts, the same for every method. Each part is predicted from the
        others. 0 for no scores.
    draws, chains, warmup
        Of the fits to all data, as for ``oc.calibrate``.
    seed
        Of the folds and of every fit; the same seed gives the same comparison.
    fold_draws
        Draws a chain of the fits to the folds. These need fewer: by default at most 250.
    loo
        Include leave-one-out by importance sampling in what is printed and reported.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {type(problem).__name__}: give an oc.Problem")
    chosen = labelled(methods)
    given = {"draws": draws, "fold_draws": fold_draws, "chains": chains, "warmup": warmup}
    _check_plan(problem.data.n, folds, seed, given)
    short = min(draws, FOLD_DRAWS) if fold_draws is None else fold_draws
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    options = {"chains": chains, "warmup": warmup, "progress": False}
    # one BLAS thread: the result must not depend on their number
    with threadpool_limits(limits=1, user_api="blas"), progress_shown(progress):
        preparation = prepared(problem)
        split = split_rows(problem, folds, seed) if folds else None
        fits = run_methods(problem, chosen, split, seed, {**options, "draws": draws}, {**options, "draws": short})
    fold_of_row = None if split is None else split.fold_of_row
    return Comparison(chosen, *fits, fold_of_row, loo, preparation, seed)


def _check_plan(n: int, folds: int, seed: int | None, sizes: dict[str, int | None]) -> None:
    """Mistakes that would otherwise look like failures of every method."""
    least = {"draws": 4, "fold_draws": 4, "chains": 1, "warmup": 0}
    for name, value in sizes.items():
        if name == "fold_draws" and value is None:
            continue
        if not isinstance(value, int | np.integer) or value < least[name]:
            raise InputError(f"{name}={value!r}: give a whole number of at least {least[name]}")
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise InputError(f"seed={seed!r}: give a whole number that is not negative, or None")
    if not isinstance(folds, int | np.integer) or (folds != 0 and not 2 <= folds <= n):
        raise InputError(f"folds={folds!r}: give a whole number from 2 to the number of rows, {n}, or 0 for no scores")


def _by_parameter(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables by method as one, parameter by parameter."""
    names = list(next(iter(tables.values())).index)
    order = [(parameter, method) for parameter in names for method in tables]
    rows = pd.concat(tables, names=["method", "parameter"]).swaplevel()
    return rows.reindex(pd.MultiIndex.from_tuples(order, names=["parameter", "method"]))


def _score_columns(held_out: HeldOut, outcome_names: tuple[str, ...]) -> pd.DataFrame:
    alone = score_table(held_out.model_alone, outcome_names)
    return score_table(held_out.with_bias, outcome_names).join(alone.add_prefix("model_"))

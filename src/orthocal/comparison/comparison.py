"""The same problem by several methods: their posteriors, how well they predict, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import IntArray
from ..calibration import check_lengths, work_of
from ..errors import InputError
from ..execution.checkpoints.checkpoint_file import Checkpoint
from ..experiments import Experiments
from ..files import whole_file, whole_text
from ..machine.threads import one_blas_thread
from ..methods.base import KINDS, ListedMethod, Method
from ..pages.tables import Grid, Table, grid_text, shown_html
from ..problem.data.field_data import FieldData, Groups
from ..problem.fingerprint import digest
from ..problem.problem import Problem
from ..progress import progress_shown
from ..results.posterior import Posterior
from ..results.predict.likelihood import require_density
from . import tables, words
from .fits import (
    HeldOutScores,
    Split,
    SplitScores,
    checkpointed_fits,
    deduplicate_warnings,
    held_groups,
    output_folds,
    prepared,
    run_methods,
    split_groups,
    split_rows,
    with_output_priors,
)
from .words import assumption, labelled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("gp", "bart", "ogp", "ko", "none")
#: those of them that can do outputs without inputs
OUTPUT_METHODS = ("gp", "ogp", "ko", "none")
#: draws a chain of the fits to the folds, unless told otherwise
FOLD_DRAWS = 250
#: names of all tables that there may be
TABLES = ("parameters", "scores", "times", "loo", "groups")
Methods = Sequence[str | Method] | Mapping[str, str | Method] | str


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
        Label -> why a method cannot do the problem. One that failed in every fold has a posterior, but no scores.
    held_out
        Label -> scores of every cell of y from the fit that had not seen it, nor any of its group.
    fold_of_row
        The fold in which each row was held out, (n,), or each output without inputs, (q,); the same for every method.
        None without folds.
    with_loo
        Whether the page and the printed tables include leave-one-out; ``loo()`` works in any case.
    preparation
        Seconds and simulator calls that all methods share: the noise, the search for the best fit, gradients.
    seed
        Of the folds and of every fit.
    groups
        The groups that were held out, or None.
    row_wise
        With groups: the same as ``held_out``, but with rows held out at random.
    missed
        Label -> fold -> why a method has no scores there.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> compared = oc.compare(problem, ["gp", "none"], folds=2, draws=50, chains=2, seed=1, progress=False)
    >>> list(compared.posteriors), compared.failures, np.bincount(compared.fold_of_row).tolist()
    (['gp', 'none'], {}, [15, 15])
    """

    methods: dict[str, Method]
    posteriors: dict[str, Posterior]
    failures: dict[str, str]
    held_out: dict[str, HeldOutScores]
    fold_of_row: IntArray | None
    with_loo: bool
    preparation: tuple[float, int]
    seed: int
    groups: Groups | None = None
    row_wise: dict[str, HeldOutScores] = field(default_factory=dict)
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
        return tables.by_parameter({name: one.summary(interval) for name, one in self.posteriors.items()})

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
        return tables.times_table(self.posteriors, self._summary)

    @property
    def _first(self) -> Posterior:
        return next(iter(self.posteriors.values()))

    @cached_property
    def _summary(self) -> pd.DataFrame:
        return tables.by_parameter({name: one.summary() for name, one in self.posteriors.items()})

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return tables.scores_table(self.held_out, self.scored_names, None if self.groups is None else self.groups.codes)

    @cached_property
    def _loo(self) -> pd.DataFrame:
        return tables.loo_table(self.posteriors)

    @property
    def assumptions(self) -> dict[str, str]:
        """Label -> what the method assumes, in one sentence.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> compared = oc.compare(problem, ["none"], folds=0, draws=20, chains=2, seed=1, progress=False)
        >>> print(compared.assumptions["none"])
        The simulator is taken as right and all that it misses as noise: ...
        """
        return {name: assumption(method) for name, method in self.methods.items()}

    def remarks(self) -> list[str]:
        """What the results say, in plain sentences.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> compared = oc.compare(problem, ["gp", "none"], folds=2, draws=50, chains=2, seed=1, progress=False)
        >>> print(compared.remarks()[0])
        y: gp has the smallest CRPS for held-out observations; worse: none.
        """
        several, groups = len(self.posteriors) > 1, self.groups
        families = {name: self.family(name) for name in self.posteriors}
        found = list(words.posterior_remarks(self._summary, families)) if several else []
        if self.held_out:
            found += words.missed_remarks(self.missed)
            if groups is not None:
                rows = tables.row_rmse(self.held_out, self.row_wise, self.outcome_names)
                found += words.group_remarks(groups.name, rows, self._scores)
            elif self.own_groups is not None:
                found.append(words.groups_remark(self.own_groups))
            found += words.score_remarks(self._scores, self.scored_names)
        return [*found, *(words.loo_remarks(self._loo, families) if self.with_loo else [])]

    def group_scores(self) -> pd.DataFrame:
        """One row a group, outcome and method, as in ``scores()``, where whole groups were held out.

        ``interval_score`` is the mean width of the 95 % intervals, plus 40 times what observations are beyond them.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> curves = np.repeat(["a", "b", "c"], 10)
        >>> settings = {"folds": 0, "draws": 20, "chains": 2, "seed": 1, "progress": False}
        >>> compared = oc.compare(problem, ["none"], groups=curves, **settings)
        >>> compared.group_scores().index.get_level_values(0).tolist()
        ['a', 'b', 'c']
        """
        if self.groups is None or not self.held_out:
            return pd.DataFrame()
        return tables.group_scores(self.held_out, self.outcome_names, self.groups)

    def figure(self) -> Figure:
        """The posteriors of each parameter side by side, one panel a parameter.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> compared = oc.compare(problem, ["gp", "none"], folds=0, draws=20, chains=2, seed=1, progress=False)
        >>> len(compared.figure().axes)
        1
        """
        from .figures import compared_posteriors_figure

        return compared_posteriors_figure(self.posteriors)

    def score_figure(self) -> Figure:
        """RMSE, CRPS and coverage of every method, with bias and by the model alone.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> compared = oc.compare(problem, ["none"], folds=2, draws=20, chains=2, seed=1, progress=False)
        >>> len(compared.score_figure().axes)
        3
        """
        if not self.held_out:
            raise InputError("there are no scores: compare with folds=5, say")
        from .figures import scores_figure

        return scores_figure(self._scores)

    def report(self, path: str | Path, title: str = "Comparison of methods") -> Path:
        """Write one self-contained HTML page, which opens offline and runs no script.

        Parameters
        ----------
        path
            The file.
        title
            Of the page.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> compared = oc.compare(problem, ["gp", "none"], folds=2, draws=20, chains=2, seed=1, progress=False)
        >>> path = compared.report("methods.html", title="Two methods")
        >>> "Two methods" in path.read_text(encoding="utf-8")
        True
        """
        from .page import render, settings

        parts = {
            "remarks": self.remarks(),
            "assumptions": self.assumptions,
            "failures": self.failures,
            "settings": list(settings(self.posteriors, self.fold_of_row, self.groups, self.seed)),
        }
        return whole_text(path, render(title, self._grids(), self.posteriors, self._scores, parts))

    def _grids(self) -> list[Grid]:
        """The tables as texts: parameters, scores, leave-one-out, times."""
        found = [tables.parameter_grid(self.posteriors)]
        if self.held_out:
            found.append(tables.score_grid(self._scores, self.scored_names, self.outcome_names, self.groups))
            if self.groups is not None:
                found.append(tables.group_grid(self.group_scores(), self.outcome_names, self.groups))
        if self.with_loo:
            found.append(tables.loo_grid(self._loo))
        return [*found, tables.times_grid(self.times(), self.preparation)]

    def _repr_html_(self) -> str:
        shown = [Table(grid.header, grid.rows) for grid in self._grids()]
        failed = [f"{name} failed: {why}" for name, why in self.failures.items()]
        return shown_html("Comparison of methods", None, shown, [*self.remarks(), *failed])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        parts = [grid_text(grid) for grid in self._grids()]
        parts += ["\n".join(f"- {remark}" for remark in self.remarks())]
        parts += [f"{name} failed: {why}" for name, why in self.failures.items()]
        return "\n\n".join(part for part in parts if part)


def compare(
    problem: Problem,
    methods: Methods = METHODS,
    folds: int = 5,
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    warmup: int = 200,
    fold_draws: int | None = None,
    loo: bool = False,
    progress: bool = True,
    groups: ArrayLike | str | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Comparison:
    """Calibrate by several methods, and score how they predict observations that they have not seen.

    A method that cannot do the problem is listed in ``failures``, and the others go on. Every fit has the same priors,
    domain and noise; noise that is estimated is estimated once, from all data.

    Parameters
    ----------
    problem, methods
        The methods' names, objects of ``oc.methods``, or label -> name or object; for outputs without inputs by default
        without ``"bart"``.
    folds
        The rows are split at random into so many parts, the same for every method; equal rows of x stay together. Each
        part is predicted from the others. 0 for no scores. Of outputs without inputs it is the outputs that are split.
    draws, chains, warmup, progress, fold_draws
        Of the fits to all data, as for ``oc.calibrate``; draws of those to the folds, by default at most 250.
    seed
        Of the folds and of every fit; the same seed gives the same comparison.
    loo
        Include leave-one-out by importance sampling in what is printed and reported.
    groups
        Hold out whole groups: one label a row, (n,), or the name of the problem's groups or of an input. Each of up to
        10 groups is left out alone; more are put together in 10 folds. The scores are then those of new groups, and
        ``folds`` those of rows, which are set beside them (0 for none).
    checkpoint
        A file that keeps all fits while they are under way, as for ``oc.calibrate``: the same call goes on.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> compared = oc.compare(problem, ["gp", "none"], folds=2, draws=50, chains=2, seed=1, progress=False)
    >>> compared.scores()["rmse"].idxmin()
    ('gp', 'y')
    """
    chosen = _chosen(problem, methods)
    check_lengths(draws, chains, warmup, seed)
    _check_folds(problem.data, folds, fold_draws)
    held = held_groups(problem.data, groups)
    if loo:
        require_density(problem.data.transforms, problem.data.native_y)
    short = min(draws, FOLD_DRAWS) if fold_draws is None else fold_draws
    work = partial(_work, problem, chosen, (chains, warmup, folds), held)
    # one BLAS thread: the result must not depend on their number
    with (
        one_blas_thread(),
        progress_shown(progress),
        deduplicate_warnings(),
        checkpointed_fits(checkpoint, work, seed) as used_seed,
    ):
        return _compared(problem, chosen, (folds, held), used_seed, (draws, short), (chains, warmup), loo)


def _compared(
    problem: Problem,
    chosen: dict[str, Method],
    parts: tuple[int, Groups | None],
    seed: int,
    draws: tuple[int, int],
    lengths: tuple[int, int],
    loo: bool,
) -> Comparison:
    """The fits to all data, and without each of the ``parts``; ``draws`` are those of both."""
    folds, held = parts
    options = {"chains": lengths[0], "warmup": lengths[1], "progress": False}
    preparation = prepared(problem)
    splits = _splits(problem, folds, held, seed)
    fits = run_methods(problem, chosen, splits, seed, {**options, "draws": draws[0]}, {**options, "draws": draws[1]})
    *rows, last = fits.scored or [SplitScores(None, {}, {})]
    scores, row_wise = (last.held_out, last.fold_of_row), rows[0].held_out if rows else {}
    return Comparison(chosen, *fits[:2], *scores, loo, preparation, seed, held, row_wise, last.missed)


def _work(
    problem: Problem, methods: dict[str, Method], lengths: tuple[int, int, int], groups: Groups | None
) -> dict[str, str]:
    """What a checkpoint must agree in."""
    chains, warmup, folds = lengths
    described = json.dumps({label: one.describe() for label, one in methods.items()})
    grouped = "none" if groups is None else digest(groups.codes, str(groups.labels))
    return work_of(problem, chains, warmup, methods=described, folds=str(folds), groups=grouped)


def _chosen(problem: Problem, methods: Methods) -> dict[str, Method]:
    """The methods by label."""
    if isinstance(problem, Experiments):
        raise InputError(
            "methods are compared on one problem, and these are several experiments: give one of them, "
            f"experiments[{problem.names[0]!r}], or take oc.compare_experiments"
        )
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {type(problem).__name__}: give an oc.Problem")
    if not problem.data.without_inputs:
        return labelled(methods)
    return with_output_priors(problem, labelled(OUTPUT_METHODS if methods is METHODS else methods))


def _splits(problem: Problem, folds: int, groups: Groups | None, seed: int) -> list[Split]:
    """What is held out: rows at random, or outputs without inputs, and then whole groups."""
    split = output_folds if problem.data.without_inputs else split_rows
    rows = [split(problem, folds, seed)] if folds else []
    return [*rows, split_groups(problem, groups, seed)] if groups else rows


def _check_folds(data: FieldData, folds: int, fold_draws: int | None) -> None:
    """Mistakes that would otherwise look like failures of every method."""
    if fold_draws is not None and (not isinstance(fold_draws, int | np.integer) or fold_draws < 4):
        raise InputError(f"fold_draws={fold_draws!r}: give a whole number of at least 4")
    what, n = ("outputs", data.q) if data.without_inputs else ("rows", data.n)
    if not isinstance(folds, int | np.integer) or (folds != 0 and not 2 <= folds <= n):
        raise InputError(
            f"folds={folds!r}: give a whole number from 2 to the number of {what}, {n}, or 0 for no scores"
        )


def write_tables(compared: Comparison, folder: Path) -> list[Path]:
    """Write the tables as CSV files, in full precision."""
    loo = compared.loo() if compared.with_loo else pd.DataFrame()
    parts = (compared.summary(), compared.scores(), compared.times(), loo, compared.group_scores())
    paths = []
    for name, table in zip(TABLES, parts, strict=True):
        if len(table):
            paths.append(folder / f"compare-{name}.csv")
            with whole_file(paths[-1]) as draft:
                table.to_csv(draft)
    return paths

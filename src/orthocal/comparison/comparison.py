"""The same problem by several methods: their posteriors, how well they predict, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..calibration import check_lengths, work_of
from ..errors import InputError
from ..execution.checkpoints.checkpoint_file import Checkpoint
from ..experiments import Experiments
from ..machine.threads import one_blas_thread
from ..methods import Method
from ..problem.data.field_data import FieldData, Groups
from ..problem.fingerprint import digest
from ..problem.problem import Problem
from ..progress import progress_shown
from ..results.predict.likelihood import require_density
from .fits import (
    Scored,
    Split,
    held_groups,
    kept_fits,
    output_folds,
    prepared,
    run_methods,
    said_once,
    split_groups,
    split_rows,
    with_output_priors,
)
from .tables import Compared, group_scores
from .words import assumptions, labelled, remarks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("gp", "bart", "ogp", "ko", "none")
#: those of them that can do outputs without inputs
OUTPUT_METHODS = ("gp", "ogp", "ko", "none")
#: draws a chain of the fits to the folds, unless told otherwise
FOLD_DRAWS = 250
Methods = Sequence[str | Method] | Mapping[str, str | Method] | str


@dataclass(frozen=True)
class Comparison(Compared):
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
        return assumptions(self)

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
        return list(remarks(self))

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
        return group_scores(self)

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
        from .page import write_page

        return write_page(self, path, title)

    def _repr_html_(self) -> str:
        from .page import as_html

        return as_html(self)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        from .page import as_text

        return as_text(self)


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
    with one_blas_thread(), progress_shown(progress), said_once(), kept_fits(checkpoint, work, seed) as used_seed:
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
    *rows, last = fits.scored or [Scored(None, {}, {})]
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

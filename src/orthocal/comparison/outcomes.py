"""What each outcome says about theta alone, and what all say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..calibration import calibrate
from ..errors import InputError, OrthocalError
from ..methods import Method
from ..pages.tables import frame_table, shown_html
from ..problem.problem import Problem
from ..results.posterior import Posterior
from .fits import deduplicate_warnings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the name of the joint fit
TOGETHER = "all together"


@dataclass(frozen=True)
class OutcomeComparison:
    """Posteriors from each outcome alone and from all together.

    Attributes
    ----------
    posteriors
        Name of the outcome, or ``"all together"`` -> posterior, in the outcomes' order, the joint one last.
    failures
        Name of the outcome -> why it cannot be calibrated alone, for instance because a parameter has no effect on it.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> example = oc.examples.TWO_OUTCOMES
    >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
    >>> compared = oc.compare_outcomes(problem, draws=50, chains=2, seed=1, progress=False)
    >>> list(compared.posteriors), compared.failures
    (['y1', 'y2', 'all together'], {})
    """

    posteriors: dict[str, Posterior]
    failures: dict[str, str]

    @property
    def together(self) -> Posterior:
        """The posterior of all outcomes together.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> compared = oc.compare_outcomes(problem, draws=50, chains=2, seed=1, progress=False)
        >>> compared.together.outcome_names
        ('y1', 'y2')
        """
        return self.posteriors[TOGETHER]

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a parameter and fit, as ``Posterior.summary``, and ``width``: the sd over that of the joint fit.

        Parameters
        ----------
        interval
            Probability of the intervals.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> compared = oc.compare_outcomes(problem, draws=100, chains=2, seed=1, progress=False)
        >>> bool((compared.summary()["width"].round(2) >= 1).all())
        True
        """
        tables = {name: posterior.summary(interval) for name, posterior in self.posteriors.items()}
        for table in tables.values():
            table["width"] = table["sd"] / tables[TOGETHER]["sd"]
        rows = pd.concat(tables, names=["outcome", "parameter"]).swaplevel()
        order = [(name, fit) for name in self.together.parameter_names for fit in self.posteriors]
        return rows.reindex(pd.MultiIndex.from_tuples(order, names=["parameter", "outcome"]))

    def figure(self) -> Figure:
        """The posteriors of each parameter side by side, one panel a parameter.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> len(oc.compare_outcomes(problem, draws=50, chains=2, seed=1, progress=False).figure().axes)
        1
        """
        from .figures import compared_posteriors_figure

        return compared_posteriors_figure(self.posteriors)

    def _repr_html_(self) -> str:
        failed = [f"{name}: {why}" for name, why in self.failures.items()]
        return shown_html("Each outcome alone, and all together", None, [frame_table(self.summary())], failed)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        table = self.summary().to_string(float_format=lambda value: f"{value:.4g}")
        return "\n".join([table, *(f"{name}: {why}" for name, why in self.failures.items())])


def compare_outcomes(problem: Problem, method: str | Method = "gp", **options: Any) -> OutcomeComparison:
    """Calibrate with each outcome alone and with all together.

    Every fit has the same priors, domain and noise; the noise is estimated once, from all outcomes.

    Parameters
    ----------
    problem
        A problem with at least two outcomes.
    method, options
        As for ``oc.calibrate``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> example = oc.examples.TWO_OUTCOMES
    >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
    >>> compared = oc.compare_outcomes(problem, "gp", draws=50, chains=2, seed=1, progress=False)
    >>> compared.summary().index.get_level_values("outcome").tolist()
    ['y1', 'y2', 'all together']
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {type(problem).__name__}: give an oc.Problem")
    names = problem.data.outcome_names
    if len(names) < 2:
        raise InputError("the problem has one outcome: there is nothing to compare")
    if TOGETHER in names:
        raise InputError(f"an outcome is called {TOGETHER!r}, which is the name of the joint fit: call it otherwise")
    if options.get("seed") is None:
        # one seed for all fits, so that the comparison can be repeated
        options["seed"] = int(np.random.SeedSequence().generate_state(1)[0])
    posteriors, failures = {}, {}
    with deduplicate_warnings():
        for k, name in enumerate(names):
            try:
                posteriors[name] = calibrate(problem.outcome(k), method, **options)
            except OrthocalError as error:
                failures[name] = str(error)
        posteriors[TOGETHER] = calibrate(problem, method, **options)
    return OutcomeComparison(posteriors, failures)

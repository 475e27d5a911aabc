"""What a posterior says in names, numbers and tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from numpy.typing import ArrayLike

from ..arrays import Array
from ..files import whole_file
from .predictions import Predictions
from .shown import draws_frame


class Tables(Predictions):
    """The part of ``oc.Posterior`` that tells what was learnt about the parameters."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False).parameter_names
        ('theta',)
        """
        return self.record.parameter_names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the outcomes.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.TWO_OUTCOMES.problem(seed=1)
        >>> oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False).outcome_names
        ('y1', 'y2')
        """
        return self.record.outcome_names

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False).input_names
        ('x',)
        """
        return self.record.input_names

    @property
    def q(self) -> int:
        """Number of outcomes.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.TWO_OUTCOMES.problem(seed=1)
        >>> oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False).q
        2
        """
        return self.record.q

    @property
    def theta(self) -> Array:
        """The draws of theta, (chain, draw, p).

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False).theta.shape
        (2, 50, 1)
        """
        return self.record.theta

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a parameter: mean, sd, equal-tailed interval, effective sample sizes and R-hat.

        Parameters
        ----------
        interval
            Probability of the interval.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=200, chains=2, seed=1, progress=False)
        >>> print(posterior.summary(0.9)[["mean", "sd"]].round(2))
                   mean    sd
        parameter
        theta      3.54  0.03
        """
        return self.record.summary(interval)

    def times(self) -> pd.DataFrame:
        """What the calibration took, one row a stage and their total.

        ``wall`` and ``cpu`` are seconds, the second of all processes, also those that call the simulator; ``simulator``
        are the wall seconds spent waiting for it, and ``calls`` its calls. A best fit that had been searched before has
        zeros.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> list(posterior.times().index)
        ['best fit', 'sampling', 'checks', 'total']
        """
        return self.record.times()

    def to_frame(
        self, x_new: ArrayLike | None = None, draws: int | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """The draws as a table: one row a draw, ``chain``, ``draw`` and the parameters as columns.

        Parameters
        ----------
        x_new
            Points at which predictions stand beside them, ``model[0]``, ``bias[0]``, ``mean[0]`` and
            ``observation[0]`` of the first; of several outcomes ``mean[0, v]``.
        draws
            Number of draws a chain, evenly thinned; None for all.
        seed
            Of what predictions draw anew, as for ``predict``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> posterior.to_frame().columns.tolist(), len(posterior.to_frame())
        (['chain', 'draw', 'theta'], 100)
        >>> posterior.to_frame(x_new=[[0.5]], draws=10).columns.tolist()[3:]
        ['model[0]', 'bias[0]', 'mean[0]', 'observation[0]']
        """
        keep = self._kept(draws)
        if x_new is None:
            return draws_frame(self.record, keep)
        return draws_frame(self.record, keep, self.predict(x_new, draws=draws, seed=seed))

    def to_csv(self, path: str | Path, x_new: ArrayLike | None = None, draws: int | None = None) -> Path:
        """Write the table of ``to_frame`` as a CSV file, numbers with all of their digits.

        Examples
        --------
        >>> import numpy as np, orthocal as oc, pathlib, tempfile
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = posterior.to_csv(pathlib.Path(folder) / "draws.csv")
        ...     written.read_text().splitlines()[0]
        'chain,draw,theta'
        """
        table = self.to_frame(x_new, draws)
        with whole_file(path) as draft:
            table.to_csv(draft, index=False)
        return Path(path)

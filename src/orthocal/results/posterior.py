"""The result of a calibration: draws and all that is needed to understand, check and use them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from ..bias.base import BiasPrior, BiasSampler
from ..errors import InputError
from ..findings import Findings
from ..machine.threads import one_blas_thread
from ..problem.simulator.simulator import BoundSimulator
from .checks.check import findings
from .files import store
from .predict.likelihood import few_enough, likelihood_group, require_likelihood
from .predict.predictive_data import PREDICTIVE, predictive_group
from .predict.scores import Loo, loo
from .record import Record
from .shown import posterior_html
from .tables import Tables


class Posterior(Tables):
    """Draws of theta and of the bias.

    Attributes
    ----------
    data
        ``xarray.DataTree`` in ArviZ's schema. ``posterior`` holds each parameter (chain, draw), and the noise where it
        is sampled; ``model`` and ``bias`` these at the data points; ``posterior_predictive`` observations there, and
        ``log_likelihood`` that of every row; ``prior`` draws of the prior, ``log_prior`` its density;
        ``sample_stats`` the diagnostics; ``observed_data`` and ``constant_data`` what the run was given;
        ``bias_state`` and ``projection`` what ``predict`` needs. Of outcomes with a transform, ``observed_data`` and
        ``posterior_predictive`` are on their own scale, ``bias``, ``model`` and the noise on the transformed one, which
        their attribute ``scale`` names. docs/arviz.md says more.
    record
        The same as types: what checks, figures and the report look at.

    Examples
    --------
    >>> import orthocal as oc
    >>> problem = oc.examples.MODEL1.problem(seed=1)
    >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
    >>> posterior
    <Posterior of theta: 2 chains x 50 draws>
    >>> posterior.data["posterior"]["theta"].shape
    (2, 50)
    """

    def __init__(
        self,
        data: xr.DataTree,
        simulator: BoundSimulator | None = None,
        samplers: list[BiasSampler] | None = None,
        prior: BiasPrior | None = None,
        more: Callable[[int], Posterior] | None = None,
    ) -> None:
        """``more`` makes the same posterior with another number of draws a chain."""
        self.record, self._more = Record(data), more
        self._simulator, self._samplers, self._prior = simulator, samplers, prior

    def __repr__(self) -> str:
        names = ", ".join(self.parameter_names)
        return f"<Posterior of {names}: {self.record.chains} chains x {self.record.draws} draws>"

    def _repr_html_(self) -> str:
        return posterior_html(self.record, repr(self).strip("<>"))

    @property
    def data(self) -> xr.DataTree:
        """The tree; what ArviZ looks at and no file holds is drawn when it is first asked for.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> {"posterior", "prior", "posterior_predictive", "log_likelihood"} <= set(posterior.data.children)
        True
        >>> posterior.data["posterior_predictive"]["y"].dims
        ('chain', 'draw', 'point')
        """
        self._complete()
        return self.record.data

    def _complete(self) -> None:
        tree = self.record.data
        if PREDICTIVE not in tree.children:
            tree[PREDICTIVE] = xr.DataTree(predictive_group(self.record))
        if few_enough(self.record):
            _ = self.log_likelihood

    def with_tree(self, tree: xr.DataTree) -> Posterior:
        """The same with its draws in another tree: it may be a part of a larger one.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> posterior.with_tree(posterior.data.copy())
        <Posterior of theta: 2 chains x 50 draws>
        """
        return Posterior(tree, self._simulator, self._samplers, self._prior, self._more)

    def extend(self, draws: int) -> Posterior:
        """The posterior with ``draws`` more a chain: the one that a run of all of them gives, bit for bit.

        Markov chains go on where they ended. What is not a chain, and what is done with all draws together (their
        projection by the simulator, say), is done anew.

        Parameters
        ----------
        draws
            How many more.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> settings = {"chains": 2, "seed": 1, "progress": False}
        >>> longer = oc.calibrate(problem, "pgp", draws=20, **settings).extend(30)
        >>> np.array_equal(longer.theta, oc.calibrate(problem, "pgp", draws=50, **settings).theta)
        True
        """
        if not isinstance(draws, int | np.integer) or draws < 1:
            raise InputError(f"draws={draws!r}: give the number of further draws a chain, at least 1")
        total = self.record.draws + int(draws)
        if self._more is None:
            raise InputError(
                "this posterior was loaded from a file, and a file holds no problem: oc.calibrate(problem, method, "
                f"draws={total}, chains={self.record.chains}, seed={self.record.seed}, "
                f"warmup={self.record.warmup}) gives its draws and {draws} more"
            )
        return self._more(total)

    @property
    def log_likelihood(self) -> xr.Dataset:
        """log p(y_i | theta, bias, noise) of every draw and row, also in ``data["log_likelihood"]``, for ArviZ.

        Algorithm 1 has none: its draws have no joint density.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> dict(posterior.log_likelihood.sizes)
        {'chain': 2, 'draw': 50, 'point': 100}
        """
        require_likelihood(self.record)
        tree = self.record.data
        if "log_likelihood" not in tree.children:
            tree["log_likelihood"] = xr.DataTree(likelihood_group(self.record))
        return tree["log_likelihood"].to_dataset()

    @one_blas_thread()
    def loo(self) -> Loo:
        """Leave-one-out by Pareto-smoothed importance sampling: how well each row is predicted from the others.

        A flexible bias leans on single observations; ``pareto_k`` says for each row whether its estimate can be relied
        on, and printing the result says so too.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> loo = oc.calibrate(problem, draws=200, chains=2, seed=1, progress=False).loo()
        >>> loo.pareto_k.shape, bool(0 < loo.p < 20)
        ((100,), True)
        """
        require_likelihood(self.record)
        return loo(self.record)

    @one_blas_thread()
    def check(self) -> Findings:
        """What is fine, what is not, and what to do, in plain words; false where there is a problem.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> found = oc.calibrate(problem, draws=500, seed=1, progress=False).check()
        >>> bool(found)
        True
        >>> print(found[1])
        [fine]    parameters: their effects on the simulator can be told apart

        Too few draws are a problem, which comes first:

        >>> print(oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False).check()[0])
        [problem] mixing: ... -> run longer: more draws, ...
        """
        return findings(self.record)

    def save(self, path: str | Path) -> Path:
        """Write everything to a netCDF file (any program that reads HDF5 can read it); no pickle inside.

        For one input the curves of the report are written too: the simulator is called for about 400 draws once.

        Parameters
        ----------
        path
            The file, in a folder that is there. It is written whole, or not at all.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> oc.load(posterior.save("fit.nc"))
        <Posterior of theta: 2 chains x 50 draws>
        """
        _ = self.curves
        return store.save(self.record.data, path)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page, which opens offline and runs no script.

        Parameters
        ----------
        path
            The file.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> path = posterior.report("fit.html")
        >>> path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        True
        """
        from .report.report import write_report

        _ = self.curves
        return write_report(self.record, path)

"""The result of a calibration: draws and all that is needed to understand, check and use them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from ..arrays import Array, IntArray
from ..bias.base import BiasPrior, BiasSampler
from ..errors import InputError, OrthocalWarning, SimulatorError
from ..files import whole_file
from ..files.netcdf import write_netcdf
from ..findings import Findings
from ..machine.threads import one_blas_thread
from ..methods.joint.objective import domain_squares
from ..pages.tables import Table, listed, shown_html, summary_rows
from ..problem.data.field_data import new_inputs
from ..problem.simulator.emulator import EmulatorLike
from ..problem.simulator.simulator import BoundSimulator
from ..progress import progress_shown
from .checks.check import findings
from .data_tree import PREDICTIVE, saved_part
from .predict.bias_size import size_table
from .predict.data_coverage import distances
from .predict.likelihood import few_enough, likelihood_group, require_likelihood
from .predict.predict import (
    QUANTITIES,
    Predictor,
    along_labels,
    domain_curves,
    prediction_at_data,
    prepared_samplers,
    restored_samplers,
)
from .predict.predictive_data import predictive_group
from .predict.scores import Loo, loo
from .record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: draws behind the curves of the report
CURVE_DRAWS = 400


class Posterior:
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
        record = self.record
        prior = (record.method.get("bias") or {}).get("kind")
        method = str(record.method.get("kind")) + (f", bias {prior}" if prior else "")
        facts = {"method": method, "chains, draws": f"{record.chains} x {record.draws}"}
        if record.has("constant_data", "x"):
            inputs = "" if record.without_inputs else f", inputs {listed(record.input_names)}"
            facts["data"] = f"{len(record.x)} rows{inputs}, outcomes {listed(record.outcome_names)}"
        header = ["parameter", "mean", "sd", "2.5 %", "97.5 %", "ESS", "R-hat"]
        table = Table(header, [list(row.values()) for row in summary_rows(self.summary())])
        return shown_html(repr(self).strip("<>"), facts, [table], ["posterior.check() says whether to trust it"])

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
        theta      3.54  0.04
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

    @property
    def has_simulator(self) -> bool:
        """Whether predictions at new points can be made.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False)
        >>> posterior.has_simulator, oc.load(posterior.save("fit.nc")).has_simulator
        (True, False)
        """
        return self._simulator is not None

    @property
    def emulator(self) -> EmulatorLike | None:
        """The emulator that took the simulator's place, or None.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False).emulator is None
        True
        """
        return None if self._simulator is None else self._simulator.emulator

    def predict(
        self,
        x_new: ArrayLike | None = None,
        draws: int | None = None,
        seed: int | None = None,
        scale: Literal["native", "transformed"] = "native",
        warn: bool = True,
    ) -> xr.Dataset:
        """Predictions at x_new, or at the data points.

        Parameters
        ----------
        x_new
            (m, d); None for the data points. Categorical inputs are labels, or the numbers that these have in x.
        draws
            Number of draws a chain to use, evenly thinned; None for all. The simulator is called once for each. At
            the data points of large data there are only those that were kept.
        seed
            Of the parts that are drawn anew (the bias between the known points, the noise); default: the run's.
        scale
            Of outcomes with a transform: their own, or ``"transformed"``, on which bias and noise are added.
        warn
            Say so where points lie far from the data, or from the points of an emulator's runs.

        Returns
        -------
        ``model`` f(x, theta), ``bias`` b*(x), ``mean`` their sum, ``observation`` with noise; dims (chain, draw,
        point, outcome). Away from the data points ``observation`` has the noise of a typical point, and x_new counts as
        exact. Of an outcome with a transform T and on its own scale, ``model`` is f, ``mean`` is what T takes to
        T(f) + b*, the median of observations, and ``bias`` is ``mean`` - ``model``; quantiles of the draws are those of
        the transformed scale. Outputs without inputs are predicted as they are, x_new None, at one point. ``distance``
        (point,) is that to the nearest data, in length-scales of the bias; its attribute ``units`` says what stands for
        these where the bias is no Gaussian process. ``far`` (point,) says which points lie far from the data, beside
        the gaps that these have among themselves.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> predicted = posterior.predict([[0.2], [0.5]])
        >>> predicted["mean"].dims, bool((predicted["model"] + predicted["bias"] == predicted["mean"]).all())
        (('chain', 'draw', 'point', 'outcome'), True)
        """
        if self.record.without_inputs and x_new is not None:
            raise InputError("the outputs have no x: predict() without x_new gives all of them")
        if scale not in ("native", "transformed"):
            raise InputError(f'scale={scale!r}: give "native", the outcome\'s own, or "transformed"')
        native = scale == "native"
        inputs = None if x_new is None else new_inputs(x_new, self.record.input_names, self.record.labels)
        if inputs is None:
            some = self.record.stored_draws
            return prediction_at_data(self.record, some[self._thinned(draws, len(some))], self.generator(seed), native)
        # one BLAS thread: the last digits must not depend on their number
        with progress_shown(True), one_blas_thread():
            predicted = self._predictor(inputs, self._thinned(draws), self.generator(seed), native)
        for words in self.remarks_at(inputs) if warn else ():
            warnings.warn(words, OrthocalWarning, stacklevel=2)
        return predicted

    def remarks_at(self, x_new: Array) -> list[str]:
        """What is to be said of predictions at x_new (m, d): far from the data, or from the points of the runs.

        Parameters
        ----------
        x_new
            Points (m, d).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False)
        >>> posterior.remarks_at(np.array([[0.5]])), len(posterior.remarks_at(np.array([[5.0]])))
        ([], 1)
        """
        words = (distances(self.record, x_new).words, self._predictor.outside_runs(x_new))
        return [one for one in words if one is not None]

    def predict_draws(self, x_new: Array, keep: IntArray, seed: int | None = None) -> xr.Dataset:
        """Predictions for some of the draws, as those of ``predict``.

        Parameters
        ----------
        x_new
            Points (m, d).
        keep
            Numbers of the draws of every chain.
        seed
            As for ``predict``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False)
        >>> posterior.predict_draws(np.array([[0.5]]), np.array([0, 10, 19]))["mean"].shape
        (2, 3, 1, 1)
        """
        return self._predictor(x_new, keep, self.generator(seed))

    def model_at(self, x: Array, theta: Array) -> Array:
        """The simulator at x (m, d) and theta (p,), on the scale of the noise, (m, q).

        Parameters
        ----------
        x
            Points.
        theta
            The parameters.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False)
        >>> posterior.model_at(np.array([[0.5]]), np.array([3.0]))
        array([[1.5]])
        """
        return self._predictor.simulator.required(x, theta)

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
        record, keep = self.record, self._thinned(draws)
        chain, draw = np.meshgrid(np.arange(record.chains), keep, indexing="ij")
        columns = {"chain": chain.ravel(), "draw": draw.ravel()}
        theta = record.theta[:, keep].reshape(len(columns["chain"]), -1)
        columns |= dict(zip(record.parameter_names, theta.T, strict=True))
        if x_new is None:
            return pd.DataFrame(columns)
        predicted = self.predict(x_new, draws=draws, seed=seed)
        for name in QUANTITIES:
            values = predicted[name].values.reshape(len(theta), *predicted[name].shape[2:])
            for i in range(values.shape[1]):
                for k, outcome in enumerate(record.outcome_names):
                    label = f"{name}[{i}]" if record.q == 1 else f"{name}[{i}, {outcome}]"
                    columns[label] = values[:, i, k]
        return pd.DataFrame(columns)

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

    def bias_size(self, interval: float = 0.95) -> pd.DataFrame:
        """How large the bias is over the domain: one row an outcome, means with equal-tailed intervals.

        ``rms`` is its root mean square in the unit of the outcome (on the transformed scale, which is then the name of
        the row: ``log y``), ``noise_sds`` the same in standard deviations of the noise, and ``share`` its mean square
        over the variance of the real process over the domain. A bias far below the noise cannot be told from none: what
        is found there is its uncertainty. A method other than the joint projection calls the simulator at the nodes for
        about 400 draws.

        Parameters
        ----------
        interval
            Probability of the intervals.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> size = oc.calibrate(problem, draws=200, chains=2, seed=1, progress=False).bias_size()
        >>> bool(1 < size.loc["y", "noise_sds"] < 3)
        True
        """
        return size_table(self.record, interval, self._bias_squares)

    def _bias_squares(self) -> tuple[Array, Array]:
        keep = self._thinned(max(1, CURVE_DRAWS // self.record.chains))
        with progress_shown(True), one_blas_thread():
            found = self._predictor(self.record.constant("nodes"), keep, self.generator(None), native=False)
        bias, real = (found[name].values for name in ("bias", "mean"))
        return domain_squares(bias, real, self.record.constant("node_weights"))

    @cached_property
    def curves(self) -> xr.Dataset | None:
        """Means and central 95 % bands of model, bias and mean along the domain, for one input; None for more.

        Beside one numeric input there may be categorical ones: then for each combination of their labels.

        The bias is on the transformed scale, all else on the outcomes' own.

        They are kept in the file, so that its report needs no simulator.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> sorted(posterior.curves.data_vars)
        ['bias', 'mean', 'model', 'observation']
        """
        if self.record.curves is not None:
            return self.record.curves
        along = self.record.along_one_input or along_labels(self.record)
        if self._simulator is None or not along or self.record.without_inputs:
            return None
        keep = self._thinned(max(1, CURVE_DRAWS // self.record.chains))
        try:
            with progress_shown(True), one_blas_thread():
                curves = domain_curves(self._predictor, keep, self.generator(None))
        except SimulatorError:
            # a simulator that knows the data points only: the figures then show these
            return None
        self.record.data["curves"] = xr.DataTree(curves)
        return curves

    def generator(self, seed: int | None = None) -> np.random.Generator:
        """Of what predictions draw anew.

        Parameters
        ----------
        seed
            Default: the run's.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL1.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=20, chains=2, seed=1, progress=False)
        >>> bool(posterior.generator(3).random() == posterior.generator(3).random())
        True
        """
        entropy = self.record.seed if seed is None else seed
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(2**31,)))

    def _thinned(self, draws: int | None, total: int | None = None) -> IntArray:
        """Numbers of the draws to use, evenly spread over ``total``, or over all."""
        total = self.record.draws if total is None else total
        if draws is not None and (not isinstance(draws, int | np.integer) or draws < 1):
            raise InputError(f"draws={draws}: give the number of draws a chain, at least 1")
        if draws is None or draws >= total:
            return np.arange(total, dtype=np.intp)
        return np.linspace(0, total - 1, draws).round().astype(np.intp)

    @cached_property
    def _predictor(self) -> Predictor:
        if self._simulator is None:
            raise InputError(
                "this posterior was loaded from a file, and a file holds no simulator: "
                "load it with oc.load(path, simulator=f) to predict at new points"
            )
        samplers = self._samplers
        if samplers is None and self._prior is not None:
            samplers = prepared_samplers(self.record, self._simulator, self._prior)
        return Predictor(self.record, self._simulator, samplers or restored_samplers(self.record))

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

    def plot_fit(self, outcome: str | None = None, x: str | None = None) -> Figure:
        """Data and fit: the model alone, and model + bias, with bands that hold 95 % of the posterior.

        Along one input, a curve; beside it categorical inputs, a panel for each of their labels; with several inputs,
        observed against fitted values; of outputs without inputs, a line for each.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.
        x
            With several inputs, the name of the one along which data and fit are shown.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> y = 4 * x + x * np.sin(5 * x) + 0.1 * np.cos(40 * x)
        >>> problem = oc.Problem(x, y, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> [axis.get_title() for axis in posterior.plot_fit().axes]
        ['model alone', 'model + bias']
        """
        from .figures.figures import fit_drawing

        _ = self.curves
        return fit_drawing(self._drawn_record(), outcome, x).figure()

    def plot_bias(self, outcome: str | None = None, x: str | None = None) -> Figure:
        """The bias with its 95 % band, and the field data less the model.

        Along one input, a curve; with several inputs, the bias at the data points along each.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.
        x
            With several inputs, the name of the one along which the bias is shown; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> posterior.plot_bias().axes[0].get_ylabel()
        'bias of y'
        """
        from .figures.figures import bias_drawing

        _ = self.curves
        return bias_drawing(self._drawn_record(), outcome, x).figure()

    def plot_posterior(self, parameters: Sequence[str] | None = None) -> Figure:
        """The posterior of each parameter beside its prior, with 95 % interval and best fit.

        Parameters
        ----------
        parameters
            Names of some; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> posterior.plot_posterior(["slope"]).axes[0].get_title()
        'slope'
        """
        from .figures.figures import posterior_figure

        return posterior_figure(self.record, parameters)

    def plot_residuals(self, outcome: str | None = None, x: str | None = None) -> Figure:
        """What model + bias leave over, (y - model - bias) / noise sd, against the fitted values and each input.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.
        x
            The name of one input, along which alone they are shown.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> [axis.get_xlabel() for axis in posterior.plot_residuals().axes]
        ['fitted y', 'x']
        """
        from .figures.figures import residuals_drawing

        return residuals_drawing(self._drawn_record(), outcome, x).figure()

    def plot_predictive(self, outcome: str | None = None) -> Figure:
        """The posterior predictive check: the data beside replicated ones, and where each lies in its prediction.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> len(posterior.plot_predictive().axes)
        2
        """
        from .figures.figures import predictive_drawing

        return predictive_drawing(self._drawn_record(), outcome).figure()

    def pairs_figure(self) -> Figure:
        """The joint posterior of every two parameters.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL3.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> len(posterior.pairs_figure().axes)
        1
        """
        from .figures.parameters import pairs_figure

        return pairs_figure(self.record)

    def _drawn_record(self) -> Record:
        """The record whose data and fit are drawn."""
        return self.record

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
        return write_netcdf(saved_part(self.record.data), path)

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

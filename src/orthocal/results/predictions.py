"""What a posterior says of other points: predictions there, curves along the domain, and how large the bias is."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from ..arrays import Array, IntArray
from ..bias.base import BiasPrior, BiasSampler
from ..errors import InputError, OrthocalWarning, SimulatorError
from ..machine.threads import one_blas_thread
from ..methods.joint.objective import domain_squares
from ..problem.data.field_data import new_inputs
from ..problem.simulator.emulator import EmulatorLike
from ..problem.simulator.simulator import BoundSimulator
from ..progress import progress_shown
from .data_coverage import distances
from .plotting import Plots
from .predict.bias_size import size_table
from .predict.predict import (
    Predictor,
    along_labels,
    domain_curves,
    prediction_at_data,
    prepared_samplers,
    restored_samplers,
)

#: draws behind the curves of the report
CURVE_DRAWS = 400


class Predictions(Plots):
    """The part of ``oc.Posterior`` that calls the simulator, and draws the bias, where they were not in the run."""

    _simulator: BoundSimulator | None
    _samplers: list[BiasSampler] | None
    _prior: BiasPrior | None

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
            some = self.record.kept
            return prediction_at_data(self.record, some[self._kept(draws, len(some))], self.generator(seed), native)
        # one BLAS thread: the last digits must not depend on their number
        with progress_shown(True), one_blas_thread():
            predicted = self._predictor(inputs, self._kept(draws), self.generator(seed), native)
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
        keep = self._kept(max(1, CURVE_DRAWS // self.record.chains))
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
        keep = self._kept(max(1, CURVE_DRAWS // self.record.chains))
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

    def _kept(self, draws: int | None, total: int | None = None) -> IntArray:
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

"""The result of a calibration: draws and all that is needed to understand, check and use them."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..arrays import Array, IntArray
from ..bias import BiasSampler
from ..errors import InputError, SimulatorError
from ..problem.data import new_inputs
from ..problem.emulator import EmulatorLike
from ..problem.parameters import Support
from ..problem.simulator import BoundSimulator
from ..progress import progress_shown
from . import store
from .check import Findings, findings
from .curves import domain_curves
from .predict import Predictor, prediction_at_data, stored_samplers, theta_draws

#: draws behind the curves of the report
CURVE_DRAWS = 400


class Posterior:
    """Draws of theta and of the bias.

    Attributes
    ----------
    data
        ``xarray.DataTree`` in ArviZ's schema. ``posterior`` holds each parameter (chain, draw), ``bias`` and ``model``
        at the data points; ``sample_stats`` the diagnostics; ``observed_data``, ``constant_data`` and ``prior`` what
        the run was given; ``bias_state`` what ``predict`` needs.
    """

    def __init__(self, data: xr.DataTree, simulator: Any = None, samplers: list[BiasSampler] | None = None) -> None:
        self.data = data
        self._samplers = samplers
        self._simulator: BoundSimulator | None = None
        if isinstance(simulator, BoundSimulator):
            self._simulator = simulator
        elif simulator is not None:
            self._simulator = BoundSimulator(simulator, self._support, self.q, bool(data.attrs["flat_x"]))

    def __repr__(self) -> str:
        sizes = self.data["posterior"].sizes
        names = ", ".join(self.parameter_names)
        return f"<Posterior of {names}: {sizes['chain']} chains x {sizes['draw']} draws>"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self._support.names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in store.stored(self.data, "observed_data", "outcome"))

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in store.stored(self.data, "constant_data", "input"))

    @property
    def q(self) -> int:
        return int(self.data["observed_data"].sizes["outcome"])

    @property
    def emulator(self) -> EmulatorLike | None:
        """The emulator that took the simulator's place, or None."""
        return None if self._simulator is None else self._simulator.emulator

    @property
    def theta(self) -> Array:
        """The draws of theta, (chain, draw, p)."""
        return theta_draws(self.data)

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a parameter: mean, sd, equal-tailed interval, effective sample sizes and R-hat."""
        from arviz_stats import summary

        if not 0 < interval < 1:
            raise InputError(f"interval={interval}: give its probability, between 0 and 1")
        variables = json.loads(self.data.attrs["variables"])
        # constant draws have no R-hat: NaN says so, a warning would not help
        with np.errstate(divide="ignore", invalid="ignore"):
            table: pd.DataFrame = summary(
                self.data, var_names=variables, ci_prob=interval, ci_kind="eti", round_to="none"
            )
        table.index = pd.Index(self.parameter_names, name="parameter")
        return table.drop(columns=["mcse_mean", "mcse_sd"]).astype(float)

    def predict(self, x_new: Any = None, draws: int | None = None, seed: int | None = None) -> xr.Dataset:
        """Predictions at x_new, or at the data points.

        Parameters
        ----------
        x_new
            (m, d); None for the data points.
        draws
            Number of draws a chain to use, evenly thinned; None for all. The simulator is called once for each.
        seed
            Of the parts that are drawn anew (the bias between the known points, the noise); default: the run's.

        Returns
        -------
        ``model`` f(x, theta), ``bias`` b*(x), ``mean`` their sum, ``observation`` with noise; dims (chain, draw,
        point, outcome). Away from the data points ``observation`` has the noise of a typical point.
        """
        inputs = None if x_new is None else new_inputs(x_new, self.input_names)
        if inputs is None:
            return prediction_at_data(self.data, self._kept(draws), self._rng(seed))
        with progress_shown(True):
            return self._predictor(inputs, self._kept(draws), self._rng(seed))

    def check(self) -> Findings:
        """What is fine, what is not, and what to do, in plain words."""
        return findings(self)

    def save(self, path: str | Path) -> Path:
        """Write everything to a netCDF file (any program that reads HDF5 can read it); no pickle inside.

        For one input the curves of the report are written too: the simulator is called for about 400 draws once.
        """
        _ = self.curves
        return store.save(self.data, path)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page."""
        from .report import write_report

        return write_report(self, path)

    @cached_property
    def curves(self) -> xr.Dataset | None:
        """Means and central 95 % bands of model, bias and mean along the domain, for one input; None for more.

        They are kept in the file, so that its report needs no simulator.
        """
        if "curves" in self.data.children:
            return self.data["curves"].to_dataset()
        if self._simulator is None or self.data["constant_data"].sizes["input"] > 1:
            return None
        chains = self.data["posterior"].sizes["chain"]
        keep = self._kept(max(1, CURVE_DRAWS // chains))
        try:
            with progress_shown(True):
                curves = domain_curves(self._predictor, keep, self._rng(None))
        except SimulatorError:
            # a simulator that knows the data points only: the figures then show these
            return None
        self.data["curves"] = xr.DataTree(curves)
        return curves

    @cached_property
    def _predictor(self) -> Predictor:
        if self._simulator is None:
            raise InputError(
                "this posterior was loaded from a file, and a file holds no simulator: "
                "load it with oc.load(path, simulator=f) to predict at new points"
            )
        return Predictor(self.data, self._simulator, self._samplers or stored_samplers(self.data))

    def _kept(self, draws: int | None) -> IntArray:
        """Numbers of the draws to use, evenly spread."""
        total = self.data["posterior"].sizes["draw"]
        if draws is not None and (not isinstance(draws, int | np.integer) or draws < 1):
            raise InputError(f"draws={draws}: give the number of draws a chain, at least 1")
        if draws is None or draws >= total:
            return np.arange(total, dtype=np.intp)
        return np.linspace(0, total - 1, draws).round().astype(np.intp)

    def _rng(self, seed: int | None) -> np.random.Generator:
        entropy = int(self.data.attrs["seed"]) if seed is None else seed
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(2**31,)))

    @cached_property
    def _support(self) -> Support:
        constant = self.data["constant_data"].to_dataset()
        names = tuple(str(name) for name in constant["parameter"].values)
        return Support(names, *(constant[f"prior_{part}"].values for part in ("lower", "upper", "spread")))


def load(path: str | Path, simulator: Any = None) -> Posterior:
    """Read a posterior from a file that ``Posterior.save`` wrote; nothing in the file is run.

    ``simulator`` is needed only to predict at new points.
    """
    return Posterior(store.load(path), simulator)

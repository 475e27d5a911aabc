"""Predictions from a posterior: model, bias, their sum, and a new observation.

Everything is rebuilt from the stored results and the simulator, so that a posterior from a file predicts exactly
as the one that was saved.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from .arrays import Array, IntArray
from .bias import BiasSampler, restore_sampler
from .progress import progress_bar
from .simulator import BoundSimulator
from .store import stored

DIMS = ("chain", "draw", "point", "outcome")


class Predictor(NamedTuple):
    """A posterior's results with what they were made with: the simulator, and the bias samplers, one an outcome."""

    data: xr.DataTree
    simulator: BoundSimulator
    samplers: list[BiasSampler]

    def __call__(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> xr.Dataset:
        """model, bias, mean and observation at x_new (m, d), for the draws numbered ``keep``."""
        theta = theta_draws(self.data)[:, keep]
        every = progress_bar(theta.reshape(-1, theta.shape[-1]), "prediction")
        model = np.stack([self.simulator.required(x_new, one) for one in every])
        model = model.reshape(*theta.shape[:2], *model.shape[1:])
        bias = self._unwhitened(self._raw(x_new, keep, rng) - self._taken_away(x_new, keep))
        return _dataset(self.data, x_new, model, bias, np.ones(model.shape[2:]), keep, rng)

    def unprojected_bias(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """The bias b before its projection at x_new, (c, s, m, q)."""
        return self._unwhitened(self._raw(x_new, keep, rng))

    def _raw(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """b at x_new before projection, whitened, (c, s, m, q): the functions that were drawn."""
        state = self.data["bias_state"].to_dataset().isel(draw=keep)
        columns = []
        for k, sampler in enumerate(self.samplers):
            names = [str(name) for name in state.data_vars if str(name).rpartition("_")[2] == str(k)]
            records = {name.rpartition("_")[0]: _merged(state[name].values) for name in names}
            columns.append(sampler.predict(rng, records, x_new))
        merged = np.stack(columns, axis=-1)
        return merged.reshape(state.sizes["chain"], state.sizes["draw"], *merged.shape[1:])

    def _taken_away(self, x_new: Array, keep: IntArray) -> Array:
        """What the projection takes away at x_new, whitened, (c, s, m, q)."""
        coefficient = stored(self.data, "posterior", "projection_coefficient")[:, keep]
        if self.data.attrs["projection"] == "functional":
            gradient = self.simulator.gradient(x_new, stored(self.data, "constant_data", "theta_tilde"))
            directions = np.einsum("kl,mlp->mkp", stored(self.data, "constant_data", "whitener"), gradient)
        else:
            weighted = stored(self.data, "constant_data", "constraint")
            blocks = [sampler.covariance(x_new) @ weighted[:, k] for k, sampler in enumerate(self.samplers)]
            directions = np.stack(blocks, axis=1)
        return np.asarray(np.einsum("mkp,csp->csmk", directions, coefficient))

    def _unwhitened(self, values: Array) -> Array:
        return np.asarray(values @ np.linalg.inv(stored(self.data, "constant_data", "whitener")).T)


def prediction_at_data(data: xr.DataTree, keep: IntArray, rng: np.random.Generator) -> xr.Dataset:
    """The same at the data points, from the stored draws alone."""
    model, bias = (stored(data, "posterior", name)[:, keep] for name in ("model", "bias"))
    relative = stored(data, "constant_data", "noise_relative_var")
    return _dataset(data, stored(data, "constant_data", "x"), model, bias, relative, keep, rng)


def theta_draws(data: xr.DataTree) -> Array:
    """theta, (c, s, p)."""
    return np.stack([stored(data, "posterior", name) for name in json.loads(data.attrs["variables"])], axis=-1)


def stored_samplers(data: xr.DataTree) -> list[BiasSampler]:
    """The samplers of the bias, one an outcome, from their stored settings."""
    constant = data["constant_data"].to_dataset()
    x, nodes = constant["x"].values, constant["nodes"].values
    if data.attrs["projection"] != "functional":
        nodes = nodes[:0]
    return [
        restore_sampler(settings, x, nodes, constant["noise_relative_var"].values[:, k])
        for k, settings in enumerate(json.loads(data.attrs["samplers"]))
    ]


def _dataset(
    data: xr.DataTree,
    x: Array,
    model: Array,
    bias: Array,
    relative_var: Array,
    keep: IntArray,
    rng: np.random.Generator,
) -> xr.Dataset:
    root = np.linalg.cholesky(stored(data, "constant_data", "noise_cov"))
    noise = rng.standard_normal(model.shape) @ root.T * np.sqrt(relative_var)
    values = {"model": model, "bias": bias, "mean": model + bias, "observation": model + bias + noise}
    return xr.Dataset(
        {name: (DIMS, value) for name, value in values.items()},
        coords={
            "chain": stored(data, "posterior", "chain"),
            "draw": keep,
            "outcome": stored(data, "observed_data", "outcome"),
            "input": stored(data, "constant_data", "input"),
            "x": (("point", "input"), x),
        },
    )


def _merged(values: Any) -> Array:
    return np.asarray(values.reshape(-1, *values.shape[2:]))

"""Predictions from a posterior: model, bias, their sum, and a new observation.

Everything is rebuilt from the stored results and the simulator, so that a posterior from a file predicts exactly
as the one that was saved.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from .arrays import Array, IntArray
from .bias import BiasSampler, restore_sampler
from .progress import progress_bar
from .simulator import BoundSimulator
from .store import stored

DIMS = ("chain", "draw", "point", "outcome")


def prediction(
    data: xr.DataTree,
    simulator: BoundSimulator | None,
    x_new: Array | None,
    keep: IntArray,
    rng: np.random.Generator,
) -> xr.Dataset:
    """model, bias, mean and observation at x_new (m, d), or at the data points, for the draws numbered ``keep``."""
    posterior = data["posterior"].to_dataset().isel(draw=keep)
    if x_new is None or simulator is None:
        model, bias = posterior["model"].values, posterior["bias"].values
        inputs, relative = (
            stored(data, "constant_data", "x"),
            stored(data, "constant_data", "noise_relative_var"),
        )
    else:
        inputs = x_new
        theta = theta_draws(data, keep)
        every = progress_bar(theta.reshape(-1, theta.shape[-1]), "prediction")
        model = np.stack([simulator.required(x_new, one) for one in every])
        model = model.reshape(*theta.shape[:2], *model.shape[1:])
        bias = projected_bias(data, simulator, x_new, keep, rng)
        relative = np.ones((len(x_new), model.shape[-1]))
    root = np.linalg.cholesky(stored(data, "constant_data", "noise_cov"))
    noise = rng.standard_normal(model.shape) @ root.T * np.sqrt(relative)
    values = {"model": model, "bias": bias, "mean": model + bias, "observation": model + bias + noise}
    return xr.Dataset(
        {name: (DIMS, value) for name, value in values.items()},
        coords={
            "chain": posterior["chain"].values,
            "draw": posterior["draw"].values,
            "outcome": stored(data, "observed_data", "outcome"),
            "input": stored(data, "constant_data", "input"),
            "x": (("point", "input"), inputs),
        },
    )


def projected_bias(
    data: xr.DataTree, simulator: BoundSimulator, x_new: Array, keep: IntArray, rng: np.random.Generator
) -> Array:
    """The projected bias b* at x_new, (c, s, m, q): the functions that were drawn, with the same coefficients."""
    return _unwhitened(data, _raw(data, x_new, keep, rng) - _taken_away(data, simulator, x_new, keep))


def unprojected_bias(data: xr.DataTree, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
    """The bias b before its projection at x_new, (c, s, m, q)."""
    return _unwhitened(data, _raw(data, x_new, keep, rng))


def theta_draws(data: xr.DataTree, keep: IntArray | None = None) -> Array:
    """theta, (c, s, p)."""
    posterior = data["posterior"].to_dataset()
    names = json.loads(data.attrs["variables"])
    theta = np.stack([posterior[name].values for name in names], axis=-1)
    return theta if keep is None else theta[:, keep]


def bias_samplers(data: xr.DataTree) -> list[BiasSampler]:
    """The samplers of the bias, one an outcome, from their stored settings."""
    constant = data["constant_data"].to_dataset()
    x, nodes = constant["x"].values, constant["nodes"].values
    if data.attrs["projection"] != "functional":
        nodes = nodes[:0]
    return [
        restore_sampler(settings, x, nodes, constant["noise_relative_var"].values[:, k])
        for k, settings in enumerate(json.loads(data.attrs["samplers"]))
    ]


def _raw(data: xr.DataTree, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
    """b at x_new before projection, whitened, (c, s, m, q)."""
    state = data["bias_state"].to_dataset().isel(draw=keep)
    columns = []
    for k, sampler in enumerate(bias_samplers(data)):
        names = [str(name) for name in state.data_vars if str(name).rpartition("_")[2] == str(k)]
        records = {name.rpartition("_")[0]: _merged(state[name].values) for name in names}
        columns.append(sampler.predict(rng, records, x_new))
    merged = np.stack(columns, axis=-1)
    return merged.reshape(state.sizes["chain"], state.sizes["draw"], *merged.shape[1:])


def _taken_away(data: xr.DataTree, simulator: BoundSimulator, x_new: Array, keep: IntArray) -> Array:
    """What the projection takes away at x_new, whitened, (c, s, m, q)."""
    constant = data["constant_data"].to_dataset()
    coefficient = stored(data, "posterior", "projection_coefficient")[:, keep]
    if data.attrs["projection"] == "functional":
        gradient = simulator.gradient(x_new, constant["theta_tilde"].values)
        directions = np.einsum("kl,mlp->mkp", constant["whitener"].values, gradient)
    else:
        weighted = constant["constraint"].values
        blocks = [sampler.covariance(x_new) @ weighted[:, k] for k, sampler in enumerate(bias_samplers(data))]
        directions = np.stack(blocks, axis=1)
    return np.asarray(np.einsum("mkp,csp->csmk", directions, coefficient))


def _unwhitened(data: xr.DataTree, values: Array) -> Array:
    return np.asarray(values @ np.linalg.inv(stored(data, "constant_data", "whitener")).T)


def _merged(values: Any) -> Array:
    return np.asarray(values.reshape(-1, *values.shape[2:]))

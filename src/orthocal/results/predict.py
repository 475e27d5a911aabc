"""Predictions from a posterior: model, bias, their sum, and a new observation.

Everything is rebuilt from the stored results and the simulator, so that a posterior from a file predicts exactly
as the one that was saved.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from ..arrays import Array, IntArray
from ..bias import BiasSampler, restore_sampler
from ..bias.gp import GPSampler
from ..bias.outcomes import split_points
from ..problem.simulator import BoundSimulator
from ..progress import progress_bar
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
        raw = self._raw(x_new, keep, rng)
        if self.data.attrs["projection"] != "none":
            raw = raw - self._taken_away(x_new, keep, rng)
        bias = self._unwhitened(raw)
        if self.data.attrs["drawn"] == "process":
            bias = bias - model
        return _dataset(self.data, x_new, model, bias, noise_roots(self.data, keep), keep, rng)

    def unprojected_bias(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """The bias b before its projection at x_new, (c, s, m, q)."""
        return self._unwhitened(self._raw(x_new, keep, rng))

    def _raw(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """b at x_new before projection, whitened, (c, s, m, q): the functions that were drawn."""
        if not self.samplers:
            chains, outcomes = self.data["posterior"].sizes["chain"], self.data["observed_data"].sizes["outcome"]
            return np.zeros((chains, len(keep), len(x_new), outcomes))
        state = self.data["bias_state"].to_dataset().isel(draw=keep)
        merged = self._at(x_new, {str(name): _merged(state[name].values) for name in state.data_vars}, rng)
        return merged.reshape(state.sizes["chain"], state.sizes["draw"], *merged.shape[1:])

    def _at(self, x_new: Array, records: dict[str, Array], rng: np.random.Generator) -> Array:
        """The bias of records, name -> (r, ...), at x_new, whitened, (r, m, q)."""
        columns = []
        for k, sampler in enumerate(self.samplers):
            own = {name.rpartition("_")[0]: value for name, value in records.items() if name.endswith(f"_{k}")}
            columns.append(sampler.predict(rng, own, x_new))
        return np.stack(columns, axis=-1)

    def _taken_away(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """What the projection takes away at x_new, whitened, (c, s, m, q)."""
        coefficient = stored(self.data, "posterior", "projection_coefficient")[:, keep]
        if self.data.attrs["projection"] == "functional":
            gradient = self.simulator.gradient(x_new, stored(self.data, "constant_data", "theta_tilde"))
            directions = np.einsum("kl,mlp->mkp", stored(self.data, "constant_data", "whitener"), gradient)
        elif "reference_state" in self.data.children:
            directions = self._regressed_directions(x_new, rng)
        else:
            directions = self._extended_directions(x_new)
        return np.asarray(np.einsum("mkp,csp->csmk", directions, coefficient))

    def _extended_directions(self, x_new: Array) -> Array:
        """The directions of the finite projection at x_new, for Gaussian processes, (m, q, p)."""
        constant = self.data["constant_data"].to_dataset()
        x, directions = constant["x"].values, constant["projection_direction"].values
        columns = []
        for k, sampler in enumerate(self.samplers):
            assert isinstance(sampler, GPSampler)
            points = split_points(x, x[:0], constant["noise_variances"].values[:, k])
            own = np.empty_like(directions[:, k])
            own[points.order] = directions[:, k]
            columns.append(sampler.extended(own, x_new))
        return np.stack(columns, axis=1)

    def _regressed_directions(self, x_new: Array, rng: np.random.Generator) -> Array:
        """The same for any prior: the regression of b(x_new) on the constraints, over the reference draws."""
        reference = self.data["reference_state"].to_dataset()
        records = {str(name): reference[name].values for name in reference.data_vars if name != "constraint"}
        bias = self._at(x_new, records, rng)
        centred = (bias - bias.mean(axis=0)).reshape(len(bias), -1)
        constraint = reference["constraint"].values
        directions = np.linalg.lstsq(constraint, centred / np.sqrt(len(bias) - 1), rcond=None)[0]
        return np.moveaxis(directions.reshape(-1, *bias.shape[1:]), 0, -1)

    def _unwhitened(self, values: Array) -> Array:
        return np.asarray(values @ np.linalg.inv(stored(self.data, "constant_data", "whitener")).T)


def prediction_at_data(data: xr.DataTree, keep: IntArray, rng: np.random.Generator) -> xr.Dataset:
    """The same at the data points, from the stored draws alone."""
    model, bias = (stored(data, "posterior", name)[:, keep] for name in ("model", "bias"))
    roots = noise_roots(data, keep)
    if "noise_cov_by_point" in data["constant_data"]:
        roots = np.linalg.cholesky(stored(data, "constant_data", "noise_cov_by_point"))
    return _dataset(data, stored(data, "constant_data", "x"), model, bias, roots, keep, rng)


def noise_roots(data: xr.DataTree, keep: IntArray) -> Array:
    """R with R R' = Sigma_F: (q, q), or (c, s, 1, q, q) where it was sampled."""
    if "noise_cov" in data["posterior"]:
        return np.linalg.cholesky(stored(data, "posterior", "noise_cov")[:, keep])[:, :, None]
    return np.linalg.cholesky(stored(data, "constant_data", "noise_cov"))


def noise_covariance(data: xr.DataTree) -> Array:
    """Sigma_F, (q, q): given, estimated, or the mean of what was sampled."""
    if "noise_cov" in data["posterior"]:
        return np.asarray(stored(data, "posterior", "noise_cov").mean(axis=(0, 1)))
    return stored(data, "constant_data", "noise_cov")


def theta_draws(data: xr.DataTree) -> Array:
    """theta, (c, s, p)."""
    return np.stack([stored(data, "posterior", name) for name in json.loads(data.attrs["variables"])], axis=-1)


def stored_samplers(data: xr.DataTree) -> list[BiasSampler]:
    """The samplers of the bias, one an outcome, from their stored settings."""
    constant = data["constant_data"].to_dataset()
    x, nodes = constant["x"].values, constant["nodes"].values
    if not data.attrs["nodes_drawn"]:
        nodes = nodes[:0]
    samplers = []
    for k, settings in enumerate(json.loads(data.attrs["samplers"])):
        points = split_points(x, nodes, constant["noise_variances"].values[:, k])
        samplers.append(restore_sampler(settings, points.x, points.nodes, points.noise_var))
    return samplers


def _dataset(
    data: xr.DataTree,
    x: Array,
    model: Array,
    bias: Array,
    noise_root: Array,
    keep: IntArray,
    rng: np.random.Generator,
) -> xr.Dataset:
    noise = np.einsum("...ij,...j->...i", noise_root, rng.standard_normal(model.shape))
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

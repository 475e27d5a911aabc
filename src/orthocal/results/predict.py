"""Predictions from a posterior: model, bias, their sum, and a new observation.

Everything is rebuilt from the record and the simulator, so that a posterior from a file predicts exactly as the one
that was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr

from ..arrays import Array, IntArray, matrix_root
from ..bias.base import BiasPrior, BiasSampler
from ..bias.gp import PREDICTION_BLOCK, GPSampler
from ..bias.one_hot import stored_sampler
from ..bias.outcomes import OutcomesBias, Residuals, split_points, stand_ins
from ..errors import FileError
from ..methods.base import Drawn
from ..methods.joint.regress import regressed_on
from ..problem.preflight.emulator import OverX
from ..problem.simulator.simulator import BoundSimulator
from ..projection import (
    Continuation,
    ProjectionKind,
    extended_continuation,
    functional_continuation,
    regressed_continuation,
)
from .coverage import distances
from .drawn_emulator import drawn_emulator
from .record import Record

DIMS = ("chain", "draw", "point", "outcome")


class Predictor(NamedTuple):
    """A result with what it was made with: the simulator, and the bias samplers, one an outcome."""

    record: Record
    simulator: BoundSimulator
    samplers: list[BiasSampler]

    def __call__(self, x_new: Array, keep: IntArray, rng: np.random.Generator, native: bool = True) -> xr.Dataset:
        """model, bias, mean and observation at x_new (m, d), for the draws numbered ``keep``.

        They are on the outcomes' own scale, or else on the transformed one.
        """
        model = self._model(x_new, keep)
        bias = self._unwhitened(self._projected(x_new, keep, rng))
        if self.record.drawn is Drawn.PROCESS:
            bias = bias - model
        if self.record.drawn is Drawn.RESIDUAL:
            bias = bias + self.simulator.required(x_new, self.record.constant("theta_tilde")) - model
        rows = self.record.row_correlation
        between = None if rows is None or rows.kernel is None else rows.kernel.at
        roots = self.record.noise_roots(keep, x_new)
        normal = correlated_normal(rng, model.shape, between, x_new)
        return _dataset(self.record, x_new, model, bias, roots, keep, normal, native)

    def _model(self, x_new: Array, keep: IntArray) -> Array:
        """The simulator at x_new, (c, s, m, q); where the emulator's draws stood for it, that of each draw."""
        theta = self.record.theta[:, keep]
        if self.record.emulator_draws:
            model = drawn_emulator(self.record, self.simulator).models(x_new, keep)
        else:
            model = self.simulator.required_batch(x_new, _merged(theta), "prediction")
        return np.asarray(model.reshape(*theta.shape[:2], *model.shape[1:]))

    def outside_runs(self, x_new: Array) -> str | None:
        """What to say where an emulator has no points of its runs near x_new (m, d)."""
        emulator = self.simulator.emulator
        if self.record.without_inputs or not isinstance(emulator, OverX):
            return None
        outside = np.asarray(emulator.outside_x(x_new))
        if not outside.any():
            return None
        return (
            f"the emulator's runs have no points x near {outside.sum()} of {len(outside)} points of x_new: it "
            "extrapolates there, and no interval knows of it; run the simulator at such points x, too"
        )

    def _projected(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """b at x_new after projection, whitened, (c, s, m, q)."""
        raw = self._raw(x_new, keep, rng)
        if self.record.projection is ProjectionKind.NONE:
            return raw
        coefficient = self.record.values("projection", "projection_coefficient")
        continuation = self._continuation(rng)
        projected = continuation.apply(x_new, raw, coefficient[:, keep])
        if not self.record.has("projection", "prior_shift"):
            return projected
        # the prior of theta moved theta, and the real process by its regression on theta over all draws
        every = np.arange(self.record.draws)
        whole = continuation.apply(x_new, self._raw(x_new, every, rng), coefficient)
        unshifted = self.record.values("projection", "unshifted")
        slopes = regressed_on(_merged(unshifted), _merged(whole))
        shift = self.record.values("projection", "prior_shift")[:, keep]
        return np.asarray(projected + np.einsum("csp,pmk->csmk", shift, slopes))

    def unprojected_bias(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """The bias b before its projection at x_new, (c, s, m, q)."""
        return self._unwhitened(self._raw(x_new, keep, rng))

    def _raw(self, x_new: Array, keep: IntArray, rng: np.random.Generator) -> Array:
        """b at x_new before projection, whitened, (c, s, m, q): the functions that were drawn."""
        if not self.samplers:
            return np.zeros((self.record.chains, len(keep), len(x_new), self.record.q))
        state = self.record.data["bias_state"].to_dataset().isel(draw=keep)
        merged = {str(name): _merged(values.values) for name, values in state.data_vars.items()}
        drawn = self._at(x_new, merged, rng)
        return drawn.reshape(self.record.chains, len(keep), *drawn.shape[1:])

    def _at(self, x_new: Array, records: dict[str, Array], rng: np.random.Generator) -> Array:
        """The bias of records, name -> (r, ...), at x_new, whitened, (r, m, q)."""
        columns = []
        for k, sampler in enumerate(self.samplers):
            own = {name.rpartition("_")[0]: value for name, value in records.items() if name.endswith(f"_{k}")}
            columns.append(sampler.predict(rng, own, x_new))
        return np.stack(columns, axis=-1)

    def _continuation(self, rng: np.random.Generator) -> Continuation:
        record = self.record
        if record.projection in (ProjectionKind.FUNCTIONAL, ProjectionKind.JOINT):
            tilde = record.constant("theta_tilde")
            return functional_continuation(lambda x: self.simulator.gradient(x, tilde), record.constant("whitener"))
        if "reference_state" not in record.data.children:
            return extended_continuation(record.constant("projection_direction"), self._extended)
        reference = record.data["reference_state"].to_dataset()
        records = {str(name): reference[name].values for name in reference.data_vars if name != "constraint"}
        return regressed_continuation(reference["constraint"].values, lambda x: self._at(x, records, rng))

    def _extended(self, k: int, directions: Array, x_new: Array) -> Array:
        """Functions of outcome k, (n, p) at the data, as its Gaussian process continues them to x_new."""
        sampler, x = self.samplers[k], self.record.x
        assert isinstance(sampler, GPSampler)
        points = split_points(x, x[:0], self.record.constant("noise_variances")[:, k])
        own = np.empty_like(directions)
        own[points.order] = directions
        return sampler.extended(own, x_new)

    def _unwhitened(self, values: Array) -> Array:
        return np.asarray(values @ np.linalg.inv(self.record.constant("whitener")).T)


def prediction_at_data(record: Record, keep: IntArray, rng: np.random.Generator, native: bool = True) -> xr.Dataset:
    """The same at the data points, from the stored draws alone, of which ``keep`` are some."""
    model, bias = (record.at_data(name, keep) for name in ("model", "bias"))
    own, x = record.noise_by_point, record.x
    if record.without_inputs:
        # the rows are replicates: one stands for all, with the noise of a typical one
        model, bias, x = model[:, :, :1], bias[:, :, :1], x[:1]
        own = None if own is None else own.mean(axis=0, keepdims=True)
    roots = record.noise_roots(keep, x) if own is None else np.linalg.cholesky(own)
    normal, rows = rng.standard_normal(model.shape), record.row_correlation
    if rows is not None:
        normal = np.einsum("ij,csjk->csik", rows.lower, normal, optimize=True)
    return _dataset(record, x, model, bias, roots, keep, normal, native)


def correlated_normal(
    rng: np.random.Generator, shape: tuple[int, ...], between: Callable[[Array], Array | None] | None, x: Array
) -> Array:
    """Standard normal numbers (c, s, m, q), of each draw correlated ``between`` the points x as those of a new series.

    They are joint within blocks of 2000 points.
    """
    normal = rng.standard_normal(shape)
    if between is None:
        return normal
    for start in range(0, len(x), PREDICTION_BLOCK):
        block = slice(start, start + PREDICTION_BLOCK)
        own = between(x[block])
        if own is not None:
            normal[:, :, block] = np.einsum("ji,csjk->csik", matrix_root(own), normal[:, :, block], optimize=True)
    return normal


def restored_samplers(record: Record) -> list[BiasSampler]:
    """The samplers of the bias, one an outcome, from their stored settings."""
    samplers = []
    for k, settings in enumerate(record.samplers):
        points = split_points(record.x, _nodes(record), record.constant("noise_variances")[:, k])
        samplers.append(stored_sampler(settings).restore(settings, points.x, points.nodes, points.noise_var))
    return samplers


def prepared_samplers(record: Record, simulator: BoundSimulator, prior: BiasPrior) -> list[BiasSampler]:
    """The same for a prior of the user's: it is prepared again, with what it was given then."""
    described = json.loads(json.dumps(prior.describe()))
    if described != record.method.get("bias"):
        raise FileError(
            f"the prior of this file is {record.method.get('bias')}, bias is {described}: give it as it was"
        )
    noise, tilde = record.noise, record.constant("theta_tilde")
    gradient = np.einsum("kl,nlp->nkp", noise.whitener, simulator.gradient(record.x, tilde))
    span = record.span
    residual = np.where(noise.observed, record.y - simulator.required(record.x, tilde), 0.0)
    complete = stand_ins(record.x, span, residual, noise.observed, record.labels) @ noise.whitener.T
    residuals = Residuals(record.x, noise, complete, gradient, record.labels)
    return OutcomesBias(prior, residuals, _nodes(record), span).samplers


def _nodes(record: Record) -> Array:
    nodes = record.constant("nodes")
    return nodes if record.nodes_drawn else nodes[:0]


def _dataset(
    record: Record,
    x: Array,
    model: Array,
    bias: Array,
    noise_root: Array,
    keep: IntArray,
    normal: Array,
    native: bool,
) -> xr.Dataset:
    noise = np.einsum("...ij,...j->...i", noise_root, normal)
    values = {"model": model, "bias": bias, "mean": model + bias, "observation": model + bias + noise}
    if native and record.transforms:
        back = {name: record.transforms.inverse(values[name]) for name in ("model", "mean", "observation")}
        # a difference on the transformed scale is none on the outcome's own
        changed = np.array([name is not None for name in record.transforms.names])
        values |= back | {"bias": np.where(changed, back["mean"] - back["model"], bias)}
    found = xr.Dataset(
        {name: (DIMS, value) for name, value in values.items()},
        coords={
            "chain": record.values("posterior", "chain"),
            "draw": keep,
            "outcome": list(record.outcome_names),
        },
    )
    if record.without_inputs:
        return found
    away = distances(record, x)
    return found.assign(
        distance=(("point",), away.values, {"units": away.unit}), far=(("point",), away.far)
    ).assign_coords(input=list(record.input_names), x=(("point", "input"), x))


def _merged(values: Array) -> Array:
    return np.asarray(values.reshape(-1, *values.shape[2:]))

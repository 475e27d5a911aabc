"""Predictions from a posterior: model, bias, their sum, and a new observation.

Everything is rebuilt from the record and the simulator, so that a posterior from a file predicts exactly as the one
that was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import norm

from ...arrays import Array, IntArray, matrix_root
from ...bias.base import BiasPrior, BiasSampler
from ...bias.gp import PREDICTION_BLOCK, GPSampler
from ...bias.one_hot import stored_sampler
from ...bias.outcomes import OutcomesBias, Residuals, split_points, stand_ins
from ...errors import FileError, InputError
from ...methods.base import Drawn
from ...methods.joint.emulator_draws import EmulatorDraws, Shifts, stretched_draws
from ...methods.joint.regress import regressed_on
from ...problem.simulator.emulator import RunsEmulator, emulator_with_draws
from ...problem.simulator.simulator import BoundSimulator
from ...projection import (
    Continuation,
    ProjectionKind,
    extended_continuation,
    functional_continuation,
    regressed_continuation,
)
from ..record import Record
from .data_coverage import distances

# The simulator of every draw, where draws of an emulator stood for it: made again from the emulator and their seed.

#: how far the emulator's draws may be from those of the run, in noise sds: another machine rounds otherwise
ROUNDING = 1e-3


class DrawnEmulator(NamedTuple):
    """Draws of the emulator with a posterior that was made with them."""

    record: Record
    simulator: BoundSimulator
    draws: EmulatorDraws

    def models(self, x: Array, keep: IntArray) -> Array:
        """f_k(x, theta) of the draws numbered ``keep`` of each chain, all chains one after the other, (s, m, q)."""
        return self._of_rows(x, (np.arange(self.record.chains)[:, None] * self.record.draws + keep).ravel())

    def _of_rows(self, x: Array, rows: IntArray) -> Array:
        record = self.record
        models = self.draws.models(x, record.theta.reshape(-1, record.theta.shape[-1])[rows], rows, "prediction")
        if not record.has("projection", "emulator_tilt"):
            return models
        tilt, tilde = record.values("projection", "emulator_tilt"), record.constant("theta_tilde")
        errors = self.draws.errors(x, tilde, self.simulator.required(x, tilde))
        shifts = Shifts(record.constant("emulator_shift"), np.empty(0))
        return np.asarray(models + np.einsum("xqp,sp->sxq", shifts.tilts(errors), _merged(tilt)[rows]))

    def require_same(self) -> None:
        """The model of the first draw at the data is known.

        It was computed there, or there and at the nodes together: an emulator that knows its runs' own points exactly
        interpolates between them where some of the points are others.
        """
        record = self.record
        n, together = len(record.x), np.vstack([record.constant("nodes"), record.x])
        if not any(self._away(x, n) < ROUNDING for x in (record.x, together)):
            raise InputError(
                "this is not the emulator that the posterior was made with: its draws differ at the data; give the one "
                "that was fitted to the same runs, with the same settings"
            )

    def _away(self, x: Array, n: int) -> float:
        """How far its model at the last n points of x is from that of the run, in noise sds."""
        first = self.record.stored_draws[:1]
        away = self._of_rows(x, first)[0, len(x) - n :] - self.record.at_data("model", first)[0, 0]
        return float(np.abs(away @ self.record.constant("whitener").T).max(initial=0.0))


def drawn_emulator(record: Record, simulator: BoundSimulator) -> DrawnEmulator:
    """The same draws of the emulator as in the run, or an error if it is not the emulator that it was."""
    emulator, facts = emulator_with_draws(simulator.emulator), record.run_facts
    if emulator is None:
        raise InputError(
            f"{facts.emulator_draws} draws of an emulator stood for the simulator in this posterior: to predict at new "
            "points, load it with that emulator, oc.load(path, simulator=emulator)"
        )
    flat_x, transforms = simulator.flat_x, record.transforms
    bound = partial(BoundSimulator, support=record.support, q=record.q, flat_x=flat_x, transforms=transforms)
    numbers = record.values("projection", "emulator_number").ravel().astype(np.intp)
    stretch = facts.emulator_stretch
    made, tilde = emulator.draws(facts.emulator_draws, facts.emulator_seed), record.constant("theta_tilde")
    draws = stretched_draws(emulator, made, stretch, tilde)
    found = DrawnEmulator(record, simulator, EmulatorDraws(draws, numbers, bound, stretch))
    found.require_same()
    return found


def _merged(values: Array) -> Array:
    return np.asarray(values.reshape(-1, *values.shape[2:]))


#: what is predicted
QUANTITIES = ("model", "bias", "mean", "observation")
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
        if self.record.without_inputs or not isinstance(emulator, RunsEmulator):
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


# Bands along one input: what the figures draw, small enough to be kept in the result file.

#: points of the grid, and of that of each combination of labels
POINTS, LABEL_POINTS = 201, 61
#: combinations of labels that have curves, and figures a panel for
MOST_COMBINATIONS = 12
#: the noise enters the band of observations by so many quantiles instead of by draws, which keeps it smooth
NOISE_LEVELS = 25


def central_band(draws: Array) -> Array:
    """Mean and central 95 % of draws (c, s, m, q), as (3, m, q)."""
    merged = draws.reshape(-1, *draws.shape[2:])
    return np.stack([merged.mean(axis=0), *np.quantile(merged, [0.025, 0.975], axis=0)])


def along_labels(record: Record) -> bool:
    """Whether there is one numeric input beside labels with few combinations, each of which has curves."""
    numeric = len(record.input_names) - len(record.labels.columns)
    return bool(record.labels) and numeric == 1 and len(record.label_combinations) <= MOST_COMBINATIONS


def label_grid(record: Record, count: int) -> Array:
    """``count`` points along the numeric input for each combination of labels in the domain, (m, d)."""
    lower, upper = record.constant("domain")
    (j,) = record.labels.numeric(len(lower))
    combinations = record.label_combinations
    grid = np.empty((len(combinations) * count, len(lower)))
    grid[:, j] = np.tile(np.linspace(lower[j], upper[j], count), len(combinations))
    grid[:, list(record.labels.columns)] = np.repeat(combinations, count, axis=0)
    return grid


def domain_curves(predictor: Predictor, keep: IntArray, rng: np.random.Generator) -> xr.Dataset:
    """Bands of model, bias, mean, observation and the bias before projection, (band, point, outcome).

    Where there are labels, one combination of them comes after the other.

    Those of the bias are on the transformed scale, on which it is added; the others are on the outcomes' own.
    """
    record = predictor.record
    if record.labels:
        grid = label_grid(record, LABEL_POINTS)
        (j,) = record.labels.numeric(grid.shape[1])
        beside = {"labels": (("point", "label_input"), grid[:, list(record.labels.columns)])}
    else:
        lower, upper = record.constant("domain")[:, 0]
        grid, j, beside = np.linspace(lower, upper, POINTS)[:, None], 0, {}
    drawn = predictor(grid, keep, rng, native=False)
    values = {name: drawn[name].values for name in ("model", "bias", "mean")}
    noise_sd = np.sqrt(np.diag(record.noise_cov))
    levels = norm.ppf((np.arange(NOISE_LEVELS) + 0.5) / NOISE_LEVELS)
    spread = values["mean"][:, :, None] + levels[:, None, None] * noise_sd
    values["observation"] = spread.reshape(len(spread), -1, *spread.shape[3:])
    for name in ("model", "mean", "observation"):
        values[name] = record.transforms.inverse(values[name])
    if record.projection in (ProjectionKind.FUNCTIONAL, ProjectionKind.FINITE):
        values["unprojected"] = predictor.unprojected_bias(grid, keep, rng)
    return xr.Dataset(
        {name: (("band", "point", "outcome"), central_band(value)) for name, value in values.items()},
        coords={
            "band": ["mean", "lower", "upper"],
            "outcome": drawn["outcome"].values,
            "x": (("point",), grid[:, j]),
            **beside,
        },
    )

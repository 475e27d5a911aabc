"""Bands along one input: what the figures draw, small enough to be kept in the result file."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import norm

from ..arrays import Array, IntArray
from ..projection import ProjectionKind
from .predict import Predictor
from .record import Record

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

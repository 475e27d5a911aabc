"""Bands along one input: what the figures draw, small enough to be kept in the result file."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import norm

from ..arrays import Array, IntArray
from ..projection import ProjectionKind
from .predict import Predictor

#: points of the grid
POINTS = 201
#: the noise enters the band of observations by so many quantiles instead of by draws, which keeps it smooth
NOISE_LEVELS = 25


def central_band(draws: Array) -> Array:
    """Mean and central 95 % of draws (c, s, m, q), as (3, m, q)."""
    merged = draws.reshape(-1, *draws.shape[2:])
    return np.stack([merged.mean(axis=0), *np.quantile(merged, [0.025, 0.975], axis=0)])


def domain_curves(predictor: Predictor, keep: IntArray, rng: np.random.Generator) -> xr.Dataset:
    """Bands of model, bias, mean, observation and the bias before projection, (band, point, outcome).

    Those of the bias are on the transformed scale, on which it is added; the others are on the outcomes' own.
    """
    record = predictor.record
    lower, upper = record.constant("domain")[:, 0]
    grid = np.linspace(lower, upper, POINTS)[:, None]
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
        coords={"band": ["mean", "lower", "upper"], "outcome": drawn["outcome"].values, "x": (("point",), grid[:, 0])},
    )

"""A Gaussian-process bias with hyperparameters of its own in every draw.

The hyperparameters of one whitened outcome are always handled as one vector

    (log sd, log lengthscale_1, ..., log lengthscale_d)

because what is known about it has no bounds. In files of version 0.2 the log of the factor of the noise's standard
deviation may end it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..advice import RUN_LONGER
from ..arrays import Array, BoolArray, unique_rows
from ..findings import Finding
from ..progress import progress_bar
from ..regression.gaussian_process import Labelled, correlation, jittered_cholesky, label_correlation
from .base import SAMPLERS, StoredSampler

#: predictions are joint within blocks of this many points: every draw factorises a matrix of that size
PREDICTION_BLOCK = 500
#: share of the variance that is added where a conditional covariance is factorised: an error of 1e-5 sd
NUGGET = 1e-10
#: hyperparameters are nuisances: they need not mix as well as theta
RHAT_LIMIT = 1.05


class _Conditional(NamedTuple):
    """Roots of the covariance at the known points and of what they leave elsewhere, and what is between both."""

    known: Array
    cross: Array
    left: Array

    def drawn(self, values: Array, normal: Array) -> Array:
        """b elsewhere given ``values`` at the known points, from normal numbers."""
        return np.asarray(self.cross.T @ solve_triangular(self.known, values, lower=True) + self.left @ normal)


class SampledGPSampler:
    """b ~ GP(0, sd^2 k) of one outcome, where sd and length-scales are given anew for every draw.

    ``methods/joint/gaussian_model.py`` draws it; here it is predicted elsewhere.
    """

    def __init__(
        self, nu: float, x: Array, nodes: Array, noise_var: Array, unit: float = 1.0, labelled: Labelled = ()
    ) -> None:
        self.nu, self.unit, self.labelled = nu, unit, labelled
        self._summary: dict[str, Any] = {}
        self._x, self._noise_var = x, noise_var
        self._points, (self._at_data, at_nodes) = unique_rows(x, nodes)
        self._rows = np.concatenate([self._at_data, at_nodes])

    def draw(self, *given: object, **more: object) -> Any:
        raise NotImplementedError("a bias with sampled hyperparameters is drawn with them and theta, not by itself")

    def record(self, state: tuple[Array, Array]) -> dict[str, Array]:
        """From the hyperparameters (c, 1 + d) and b at the distinct points (c, u)."""
        log_values, values = state
        return {"hyperparameters": log_values, "values": values}

    def at_distinct(self, values: Array) -> Array:
        """Values at data and nodes, (s, n + m), as those at the distinct points."""
        found = np.empty((len(values), len(self._points)))
        found[:, self._rows] = values
        return found

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        """b(x_new) given b at the data, by Gaussian conditioning; joint within blocks of 500 points."""
        known, log_values = records["values"], records["hyperparameters"]
        blocks = []
        for start in range(0, len(x_new), PREDICTION_BLOCK):
            points, (at_known, place) = unique_rows(self._points, x_new[start : start + PREDICTION_BLOCK])
            # the value at a known point is known: conditioning would return it with rounding errors
            new = np.ones(len(points), dtype=bool)
            new[at_known] = False
            values = np.empty((len(known), len(points)))
            values[:, at_known] = known
            if new.any():
                normal = rng.standard_normal((len(known), int(new.sum())))
                sets, which = np.unique(log_values, axis=0, return_inverse=True)
                for number, own in enumerate(progress_bar(sets, "bias")):
                    rows = np.flatnonzero(which.ravel() == number)
                    law = self._conditional(own, points[new])
                    for s in rows:
                        values[s, new] = law.drawn(known[s], normal[s])
            blocks.append(values[:, place])
        return np.concatenate(blocks, axis=1)

    def _conditional(self, log_values: Array, x_new: Array) -> _Conditional:
        """The law of b at x_new (m, d) given values at the known points."""
        root, _ = jittered_cholesky(self._prior(self._points, self._points, log_values))
        cross = solve_triangular(root, self._prior(self._points, x_new, log_values), lower=True)
        covariance = self._prior(x_new, x_new, log_values) - cross.T @ cross
        return _Conditional(root, cross, _root(covariance, NUGGET * np.exp(2 * log_values[0])))

    def native(self, log_values: Array) -> Array:
        """sd in the outcome's unit, and the length-scales, (..., 1 + d), from log hyperparameters.

        In the place of labels' is their correlation.
        """
        own = log_values[..., : 1 + self._x.shape[1]]
        units = np.ones(own.shape[-1])
        units[0] = self.unit
        native = np.asarray(np.exp(own) / units)
        columns = [1 + j for j in self.labelled]
        native[..., columns] = label_correlation(native[..., columns])
        return native

    def named(self, log_values: Array, k: int, free: BoolArray) -> dict[str, Array]:
        """The hyperparameters that are ``free`` in native units, from (..., 1 + d), under the names of outcome k."""
        native = self.native(log_values)
        each = ["label_correlation" if j in self.labelled else "lengthscale" for j in range(native.shape[-1] - 1)]
        names = [f"sd_{k}", *(f"{name}_{k}_{j}" for j, name in enumerate(each))]
        return {name: native[..., j] for j, name in enumerate(names) if free[j]}

    def summarise(self, log_values: Array, free: BoolArray, chain: bool) -> None:
        """Take the draws, (c, s, 1 + d), of which those marked ``free`` were sampled, as what ``findings`` tells.

        Only draws of a ``chain`` may not have mixed.
        """
        from arviz_stats.base import array_stats

        native = self.native(log_values)
        values = native.reshape(-1, native.shape[-1])
        mean, (lower, upper) = values.mean(axis=0), np.quantile(values, (0.025, 0.975), axis=0)
        self._summary = {"hyperparameters": "sampled", "sd": float(mean[0])} | self._means(mean[1:])
        if free[0]:
            self._summary["sd_interval"] = [float(lower[0]), float(upper[0])]
        for j in np.flatnonzero(free[1 : values.shape[1]]) + 1:
            name = "label_correlation" if j - 1 in self.labelled else "lengthscale"
            self._summary[f"{name}_{j}_interval"] = [float(lower[j]), float(upper[j])]
        if not chain:
            return
        # chains that have not moved have no R-hat
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [float(array_stats.rhat(log_values[:, :, j])) for j in np.flatnonzero(free)]
        if ratios and np.isfinite(ratios).all():
            self._summary["hyperparameter_rhat"] = max(ratios)

    def _means(self, means: Array) -> dict[str, Any]:
        """Length-scales, and correlations between labels in the place of theirs, as ``found_scales`` names them."""
        if not self.labelled:
            return {"lengthscale": means.tolist()}
        lengths = [None if j in self.labelled else float(one) for j, one in enumerate(means)]
        return {"lengthscale": lengths, "label_correlation": means[list(self.labelled)].tolist()}

    def findings(self) -> dict[str, Any]:
        return self._summary

    def settings(self) -> dict[str, Any]:
        # JSON has no infinity
        labelled = {"labelled": list(self.labelled)} if self.labelled else {}
        return {"kind": "sampled gp", "nu": "inf" if self.nu == np.inf else self.nu, "unit": self.unit, **labelled}

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> SampledGPSampler:
        """The sampler of a stored posterior."""
        labelled = tuple(settings.get("labelled", ()))
        return cls(float(settings["nu"]), x, nodes, noise_var, float(settings["unit"]), labelled)

    def _prior(self, a: Array, b: Array, log_values: Array) -> Array:
        lengthscale = np.exp(log_values[1 : 1 + a.shape[1]])
        return np.asarray(np.exp(2 * log_values[0]) * correlation(a, b, lengthscale, self.nu, self.labelled))


def _remarks(findings: dict[str, Any]) -> Iterator[Finding]:
    rhat = findings.get("hyperparameter_rhat", 1.0)
    if rhat > RHAT_LIMIT:
        message = f"its sampled hyperparameters have not mixed (R-hat {rhat:.3f})"
        yield Finding("problem", "bias prior", message, RUN_LONGER)


SAMPLERS["sampled gp"] = StoredSampler(SampledGPSampler.restore, _remarks)


def _root(covariance: Array, nugget: float) -> Array:
    """R with R R' = covariance + nugget I; of a covariance that rounding made indefinite, the nearest one's."""
    shifted = covariance.copy()
    shifted.flat[:: len(shifted) + 1] += nugget
    try:
        return np.asarray(cholesky(shifted, lower=True))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

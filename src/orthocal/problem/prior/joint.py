"""Priors of several parameters together: a multivariate normal by its formulas, any other by its density and draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from ...arrays import Array, is_positive_definite
from ...errors import InputError
from .priors import STEP, SinglePrior

#: draws that tell where a joint prior lies
SAMPLE = 8192
#: half the width of the central 68 % of a normal distribution, in sds
HALF = float(stats.norm.ppf(0.84))


@runtime_checkable
class JointDistribution(Protocol):
    """What is needed of a prior of k parameters; a frozen multivariate ``scipy.stats`` distribution has it."""

    def logpdf(self, x: Array) -> Any:
        """(...) for x (..., k), -inf where x is impossible."""

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        """Draws, (size, k)."""


def joint_prior(names: Sequence[str], prior: object) -> NormalPrior | SampledPrior:
    """The prior of the parameters with these names, checked."""
    k, what = len(names), f"the joint prior of {', '.join(names)}"
    if not isinstance(prior, JointDistribution) or isinstance(prior, type):
        raise InputError(
            f"{what} is {type(prior).__name__}: give an object with logpdf(x) and rvs(size, random_state), for "
            "instance scipy.stats.multivariate_normal(mean, cov)"
        )
    if isinstance(prior, type(stats.multivariate_normal([0.0]))):
        mean, cov = np.atleast_1d(np.asarray(prior.mean, dtype=float)), np.atleast_2d(prior.cov)
        if mean.shape != (k,):
            raise InputError(f"{what} has {mean.size} dimensions for {k} names: give a mean and a cov of {k}")
        if not np.isfinite(mean).all() or not is_positive_definite(cov):
            raise InputError(f"{what} is not a proper distribution: its cov must be positive definite")
        return NormalPrior(mean, cov)
    return SampledPrior(what, k, prior)


class NormalPrior:
    """theta ~ N(mean, cov): r = L^-1 (theta - mean) with cov = L L'."""

    flat, within_bounds = False, True

    def __init__(self, mean: Array, cov: Array) -> None:
        k = len(mean)
        self._mean, self._lower = mean, np.linalg.cholesky(cov)
        self._whitener = solve_triangular(self._lower, np.eye(k), lower=True)
        self._precision = self._whitener.T @ self._whitener
        self._constant = -float(np.sum(np.log(np.diag(self._lower)))) - 0.5 * k * np.log(2 * np.pi)
        self.lower, self.upper = np.full(k, -np.inf), np.full(k, np.inf)
        self.median, self._sd = mean, np.sqrt(np.diag(cov))
        self.spread: Array = HALF * self._sd

    def log_density(self, theta: Array) -> Array:
        return np.asarray(self._constant - 0.5 * np.sum(((theta - self._mean) @ self._whitener.T) ** 2, axis=-1))

    def gradient(self, theta: Array) -> Array:
        return np.asarray((self._mean - theta) @ self._precision)

    def curvature(self, theta: Array) -> Array:
        return np.broadcast_to(self._precision, (*theta.shape, theta.shape[-1]))

    def root(self, theta: Array) -> Array:
        return np.asarray(self._whitener @ (theta - self._mean))

    def root_slope(self, theta: Array) -> Array:
        return self._whitener

    def filled(self, unit: Array) -> Array:
        return np.asarray(self._mean + stats.norm.ppf(unit) @ self._lower.T)

    def marginal(self, unit: Array) -> Array:
        return np.asarray(self._mean + self._sd * stats.norm.ppf(unit))

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        return np.asarray(self._mean + rng.standard_normal((count, len(self._mean))) @ self._lower.T)


class SampledPrior:
    """Any joint prior: where it lies is known from a sample of it, its slopes from differences."""

    flat, within_bounds = False, False

    def __init__(self, what: str, k: int, prior: JointDistribution) -> None:
        self._what, self._k, self._prior = what, k, prior
        self._sample = self.draws(SAMPLE, np.random.default_rng(0))
        self._by_row = not self._takes_rows()
        heights = self.log_density(self._sample)
        if not np.isfinite(heights).all() or not (np.ptp(self._sample, axis=0) > 0).all():
            raise InputError(f"{what} is not a proper distribution: its draws have no density, or no spread")
        low, self.median, high = np.quantile(self._sample, [0.16, 0.5, 0.84], axis=0)
        self.spread = (high - low) / 2
        self.lower, self.upper = self._bounds()
        # by ranks: the tails may be as heavy as they like
        scores = stats.norm.ppf(stats.rankdata(self._sample, axis=0) / (SAMPLE + 1))
        correlation = np.corrcoef(scores.T).reshape(k, k)
        if not is_positive_definite(correlation):
            raise InputError(f"{what} has draws that lie on a line or a plane: leave a parameter out")
        self._root = (self.spread / HALF)[:, None] * np.linalg.cholesky(correlation)
        self._place, self._height = self._peak(heights)

    def _takes_rows(self) -> bool:
        """Whether ``logpdf`` takes many theta at a time."""
        try:
            found = np.asarray(self._prior.logpdf(self._sample[:3]), dtype=float)
        except Exception:  # whatever it says of an array that it does not take
            return False
        each = [float(np.asarray(self._prior.logpdf(row)).ravel()[0]) for row in self._sample[:3]]
        return found.shape == (3,) and np.allclose(found, each)

    def _bounds(self) -> tuple[Array, Array]:
        support = getattr(self._prior, "support", None)
        if not callable(support):
            return np.full(self._k, -np.inf), np.full(self._k, np.inf)
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=float), self._k) for end in support())
        if (self._sample < lower).any() or (self._sample > upper).any():
            raise InputError(f"{self._what} has draws outside of its own support()")
        return lower, upper

    def _peak(self, heights: Array) -> tuple[Array, float]:
        """Where the log density is highest, from the highest of the sample on, and how high."""
        top = int(np.argmax(heights))
        start = self._sample[top]

        def depth(move: Array) -> float:
            height = float(self.log_density(start + self.spread * move))
            return -height if np.isfinite(height) else np.inf

        found = minimize(depth, np.zeros(self._k), method="Nelder-Mead", options={"maxiter": 200 * self._k})
        if found.fun < -heights[top]:
            return start + self.spread * found.x, -float(found.fun)
        return start, float(heights[top])

    def log_density(self, theta: Array) -> Array:
        if not self._by_row:
            flat = np.asarray(self._prior.logpdf(theta), dtype=float)
            return np.where(np.isnan(flat), -np.inf, flat).reshape(theta.shape[:-1])
        each = [float(np.asarray(self._prior.logpdf(row)).ravel()[0]) for row in theta.reshape(-1, self._k)]
        return np.where(np.isnan(each), -np.inf, each).reshape(theta.shape[:-1])

    def gradient(self, theta: Array) -> Array:
        steps = np.diag(STEP * self.spread)
        with np.errstate(invalid="ignore"):
            slopes = [(self.log_density(theta + h) - self.log_density(theta - h)) / (2 * h.sum()) for h in steps]
        found = np.stack(slopes, axis=-1)
        # at an edge of the support there is no slope to be had
        return np.where(np.isfinite(found), found, 0.0)

    def curvature(self, theta: Array) -> Array:
        k, steps = self._k, np.diag(STEP * self.spread)
        found = np.empty((*theta.shape, k))
        with np.errstate(invalid="ignore"):
            middle = self.log_density(theta)
            for i in range(k):
                for j in range(i + 1):
                    ends = [self.log_density(theta + a * steps[i] + b * steps[j]) for a, b in _CORNERS]
                    if i == j:
                        ends = [self.log_density(theta + steps[i]), middle, middle, self.log_density(theta - steps[i])]
                    scale = steps[i, i] * steps[j, j] * (1 if i == j else 4)
                    found[..., i, j] = found[..., j, i] = -(ends[0] - ends[1] - ends[2] + ends[3]) / scale
        found = np.where(np.isfinite(found).all(axis=(-1, -2), keepdims=True), found, 0.0)
        # in units of the spread, so that what is left of a zero is told by its size
        scale = self.spread[:, None] * self.spread
        values, vectors = np.linalg.eigh(found * scale)
        return np.asarray((vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2) / scale)

    def root(self, theta: Array) -> Array:
        """Along L^-1 (theta - peak), with L L' the covariance of the sample's middle, and as long as it must be."""
        drop = np.maximum(self._height - float(self.log_density(theta)), 0.0)
        along = solve_triangular(self._root, theta - self._place, lower=True)
        length = float(np.linalg.norm(along))
        return np.asarray(along * (np.sqrt(2 * drop) / length)) if length > 0 else np.zeros(self._k)

    def root_slope(self, theta: Array) -> Array:
        steps = np.diag(STEP * self.spread)
        slopes = np.stack([(self.root(theta + h) - self.root(theta - h)) / (2 * h.sum()) for h in steps], axis=1)
        return np.where(np.isfinite(slopes), slopes, 0.0)

    def filled(self, unit: Array) -> Array:
        """The draws of the sample that are nearest to where a normal distribution would have these points."""
        meant = (self.median + stats.norm.ppf(unit) @ self._root.T).reshape(-1, self._k)
        white = solve_triangular(self._root, np.vstack([self._sample, meant]).T, lower=True).T
        sample, goals = white[: len(self._sample)], white[len(self._sample) :]
        nearest = [int(np.argmin(np.sum((sample - goal) ** 2, axis=1))) for goal in goals]
        return self._sample[nearest].reshape(unit.shape)

    def marginal(self, unit: Array) -> Array:
        columns = [np.quantile(self._sample[:, j], unit[..., j]) for j in range(self._k)]
        return np.stack(columns, axis=-1)

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        try:
            found = np.asarray(self._prior.rvs(size=count, random_state=rng), dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(f"{self._what}: rvs(size={count}, random_state=rng) failed: {error}") from error
        if found.shape != (count, self._k) or not np.isfinite(found).all():
            raise InputError(
                f"{self._what}: rvs(size={count}, random_state=rng) gave the shape {found.shape}, or values that are "
                f"not finite: expected ({count}, {self._k}), a column a name"
            )
        return found


#: the prior of some parameters that is independent of the others'
Block: TypeAlias = SinglePrior | NormalPrior | SampledPrior

_CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))

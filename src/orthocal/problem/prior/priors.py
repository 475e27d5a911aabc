"""The prior of a parameter by itself: its density, slopes and quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import rv_continuous

from ...arrays import Array
from ...errors import InputError

#: a difference step for log densities, as a share of the spread
STEP = 5e-5


@runtime_checkable
class Distribution(Protocol):
    """What is needed of a prior; a frozen continuous ``scipy.stats`` distribution has it."""

    def logpdf(self, x: Array | float) -> Any: ...

    def ppf(self, q: Array | float) -> Any: ...

    def support(self) -> tuple[Any, Any]: ...


class SinglePrior:
    """A parameter with a prior of its own; joint priors of k parameters have the same attributes and methods.

    Attributes
    ----------
    lower, upper, median, spread
        (k,); ``spread`` is half the width of the central 68 %.
    flat
        Whether the density is the same within the bounds.
    within_bounds
        Whether the density is positive wherever theta is within the bounds.
    """

    within_bounds = True

    def __init__(self, name: str, prior: Distribution) -> None:
        lower, upper, median, spread = _checked_range(name, prior)
        self.lower, self.upper = np.array([lower]), np.array([upper])
        self.median, self.spread = np.array([median]), np.array([spread])
        self.prior, self.flat = prior, _family(prior) == "uniform"
        self._density = _log_density(prior)
        self._peak = _peak(prior, self._density)

    def log_density(self, theta: Array) -> Array:
        """(...) for theta (..., k)."""
        return self._density(theta[..., 0])

    def gradient(self, theta: Array) -> Array:
        """Of the log density, (..., k)."""
        step = STEP * self.spread
        return np.asarray((self._density(theta + step) - self._density(theta - step)) / (2 * step))

    def curvature(self, theta: Array) -> Array:
        """Minus its Hessian, (..., k, k), with no negative eigenvalue."""
        step = STEP * self.spread
        second = self._density(theta + step) - 2 * self._density(theta) + self._density(theta - step)
        return np.asarray(np.maximum(-second / step**2, 0.0))[..., None]

    def root(self, theta: Array) -> Array:
        """r (k,) with r'r = 2 (log density at its highest - that at theta (k,))."""
        place, height = self._peak
        drop = np.maximum(height - float(self._density(theta[0])), 0.0)
        return np.array([np.sign(theta[0] - place) * np.sqrt(2 * drop)])

    def root_slope(self, theta: Array) -> Array:
        """dr/dtheta, (k, k)."""
        step = STEP * self.spread
        return np.asarray((self.root(theta + step) - self.root(theta - step)) / (2 * step))[:, None]

    def filled(self, unit: Array) -> Array:
        """Points (..., k) that fill the prior as ``unit`` (..., k) fills the unit cube."""
        return np.asarray(self.prior.ppf(unit[..., 0]))[..., None]

    def marginal(self, unit: Array) -> Array:
        """Quantiles of each parameter by itself, (..., k)."""
        return self.filled(unit)

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        """(count, k)."""
        return self.filled(rng.random((count, 1)))

    def closed(self) -> tuple[bool, bool]:
        """Whether the density is positive and finite at the lower and at the upper bound."""
        with np.errstate(all="ignore"):
            low, high = (bool(np.isfinite(self.prior.logpdf(end[0]))) for end in (self.lower, self.upper))
        return low, high


def _checked_range(name: str, prior: Distribution) -> tuple[float, float, float, float]:
    if not isinstance(prior, Distribution) or isinstance(prior, type | rv_continuous):
        raise InputError(
            f"the prior of {name!r} is {type(prior).__name__}: give a frozen continuous "
            "scipy.stats distribution of one number, for instance scipy.stats.norm(0, 10)"
        )
    with np.errstate(all="ignore"):
        quantiles = [np.asarray(prior.ppf(u)) for u in (0.16, 0.5, 0.84)]
        height = np.asarray(prior.logpdf(quantiles[1]))
    if quantiles[1].shape != ():
        raise InputError(
            f"the prior of {name!r} has length {quantiles[1].size}: each parameter is one number with one prior, "
            "give a distribution a parameter"
        )
    low, median, high = map(float, quantiles)
    lower, upper = (float(bound) for bound in prior.support())
    if not np.isfinite([low, median, high, float(height)]).all() or high <= low:
        raise InputError(f"the prior of {name!r} is not a proper distribution: check its location and scale")
    return lower, upper, median, (high - low) / 2


def _family(prior: Distribution) -> str | None:
    return getattr(getattr(prior, "dist", None), "name", None)


def _peak(prior: Distribution, density: Callable[[Array], Array]) -> tuple[float, float]:
    """Where the log density is highest, looked for between the prior's outermost thousandths, and how high."""
    if _family(prior) in ("norm", "uniform"):
        middle = float(prior.ppf(0.5))
        return middle, float(density(np.asarray(middle)))
    grid = np.asarray(prior.ppf(np.linspace(0.001, 0.999, 101)), dtype=float)
    heights = np.array([float(density(np.asarray(one))) for one in grid])
    top = int(np.nanargmax(heights))
    ends = grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)]
    found = minimize_scalar(lambda value: -float(density(np.asarray(value))), bounds=ends, method="bounded")
    if -found.fun > heights[top]:
        return float(found.x), float(-found.fun)
    return float(grid[top]), float(heights[top])


def _log_density(prior: Distribution) -> Callable[[Array], Array]:
    """The prior's log density; the two commonest by formula, because scipy's own takes 60 µs a call."""
    family = _family(prior)
    if family == "norm":
        middle, sd = float(prior.ppf(0.5)), float(prior.std())  # type: ignore[attr-defined]
        constant = -np.log(sd) - 0.5 * np.log(2 * np.pi)
        return lambda theta: constant - 0.5 * ((theta - middle) / sd) ** 2
    if family == "uniform":
        lower, upper = (float(bound) for bound in prior.support())
        height = -np.log(upper - lower)
        return lambda theta: np.where((theta >= lower) & (theta <= upper), height, -np.inf)
    return lambda theta: np.asarray(prior.logpdf(theta))

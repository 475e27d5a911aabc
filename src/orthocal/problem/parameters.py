"""The calibration parameters theta: their names and independent priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import qmc, rv_continuous

from ..arrays import Array, BoolArray
from ..errors import InputError

#: what is stored beside the parameters, with its dimensions. Nothing else can be (results/labelled.py takes the
#: dimensions from here), so these names, and only these, cannot be a parameter's
STORED_BESIDE = {
    "model": ("chain", "draw", "point", "outcome"),
    "bias": ("chain", "draw", "point", "outcome"),
    "projection_coefficient": ("chain", "draw", "parameter"),
    "prior_shift": ("chain", "draw", "parameter"),
    "unshifted": ("chain", "draw", "parameter"),
    "bias_square": ("chain", "draw", "outcome"),
    "process_square": ("chain", "draw", "outcome"),
    "noise_cov": ("chain", "draw", "outcome", "other_outcome"),
}
#: quantile of the priors' centre, as a start of the search
CENTRE = 0.51
RESERVED_NAMES = frozenset(STORED_BESIDE) | {dim for dims in STORED_BESIDE.values() for dim in dims}


@runtime_checkable
class Distribution(Protocol):
    """What is needed of a prior; a frozen continuous ``scipy.stats`` distribution has it."""

    def logpdf(self, x: Array | float) -> Any: ...

    def ppf(self, q: Array | float) -> Any: ...

    def support(self) -> tuple[Any, Any]: ...


class Support(NamedTuple):
    """What the simulator's side needs to know of theta.

    Attributes
    ----------
    lower, upper
        The bounds, (p,); infinite where the prior is unbounded.
    spread
        Half the width of the prior's central 68 %, (p,): the parameter's natural scale.
    """

    names: tuple[str, ...]
    lower: Array
    upper: Array
    spread: Array

    def describe(self, theta: Array, digits: int = 6) -> str:
        """theta with its names, for messages."""
        return ", ".join(f"{name} = {value:.{digits}g}" for name, value in zip(self.names, theta, strict=True))


class Parameters:
    """Names, priors and supports of theta; ``median`` (p,) is the prior's, the rest as in ``Support``."""

    def __init__(self, priors: Mapping[str, Distribution]) -> None:
        if not isinstance(priors, Mapping) or not priors:
            raise InputError('parameters must be a dictionary of name and prior: {"g": scipy.stats.norm(0, 10)}')
        self.names = tuple(_checked_name(name) for name in priors)
        self.variables = tuple(variable_name(name) for name in self.names)
        if len(set(self.variables)) != len(self.variables):
            raise InputError(f"two parameters would be stored under one name: {', '.join(self.names)}")
        self.priors = tuple(priors.values())
        ranges = [_checked_range(name, prior) for name, prior in priors.items()]
        self.lower, self.upper, self.median, self.spread = np.array(ranges).T
        self._log_densities = [_log_density(prior) for prior in self.priors]
        self._peaks = [_peak(prior, density) for prior, density in zip(self.priors, self._log_densities, strict=True)]

    @property
    def p(self) -> int:
        return len(self.names)

    def inside(self, theta: Array) -> BoolArray:
        """Whether theta (..., p) lies in the interior of the support."""
        return np.asarray(((theta > self.lower) & (theta < self.upper)).all(axis=-1))

    def log_prior(self, theta: Array) -> Array:
        """log pi(theta) = sum_j log pi_j(theta_j), for theta (..., p)."""
        total = self._log_densities[0](theta[..., 0])
        for j in range(1, self.p):
            total = total + self._log_densities[j](theta[..., j])
        return np.asarray(total)

    def log_prior_gradient(self, theta: Array) -> Array:
        """d log pi / d theta, (..., p), by central differences; on a bound, that just inside of it."""
        theta = self.clipped(theta, 1e-4)
        return np.asarray((self._shifted(theta, +1) - self._shifted(theta, -1)) / (2 * self._step))

    def log_prior_curvature(self, theta: Array) -> Array:
        """-d2 log pi / d theta2, (..., p), never negative: a prior's share of a Laplace precision."""
        theta = self.clipped(theta, 1e-4)
        second = self._shifted(theta, +1) - 2 * self._shifted(theta, 0) + self._shifted(theta, -1)
        return np.asarray(np.maximum(-second / self._step**2, 0.0))

    @property
    def flat(self) -> bool:
        """Whether every prior is uniform."""
        return all(_family(prior) == "uniform" for prior in self.priors)

    def prior_root(self, theta: Array) -> Array:
        """r (p,) with r_j^2 = 2 (log pi_j at its highest - log pi_j), r_j of the sign of theta_j - there.

        For a Gaussian prior (theta - mean) / sd. Where a density goes to infinity, r is zero beside it.
        """
        root = np.zeros(self.p)
        for j, (density, (place, height)) in enumerate(zip(self._log_densities, self._peaks, strict=True)):
            drop = np.maximum(height - float(density(theta[j])), 0.0)
            root[j] = np.sign(theta[j] - place) * np.sqrt(2 * drop)
        return root

    def prior_root_slope(self, theta: Array) -> Array:
        """The derivative of each r_j, (p,), by central differences."""
        theta = self.clipped(theta, 1e-4)
        return np.asarray(
            (self.prior_root(theta + self._step) - self.prior_root(theta - self._step)) / (2 * self._step)
        )

    def clipped(self, theta: Array, margin: float) -> Array:
        """theta, moved inside the support by ``margin`` (relative to the spread) where it is not."""
        room = margin * self.spread
        return np.asarray(np.clip(theta, self.lower + room, self.upper - room))

    def quantile(self, u: Array) -> Array:
        """The priors' quantiles at u (..., p)."""
        return np.stack([np.asarray(prior.ppf(u[..., j])) for j, prior in enumerate(self.priors)], axis=-1)

    def starts(self, count: int) -> Array:
        """``count`` points, (count, p): the centre, then some that fill the priors (scrambled Sobol), and their bulk.

        Where p is large, hardly any point that fills the priors is near to the middle of all of them.
        """
        sobol = qmc.Sobol(self.p, rng=np.random.default_rng(0))
        unit = sobol.random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]
        # the bulk of a uniform prior is the whole of it
        peaked = np.array([_family(prior) != "uniform" for prior in self.priors])
        half = -(-count // 2)
        unit[half:] = np.where(peaked, 0.25 + 0.5 * unit[half:], unit[half:])
        # the very centre is often a place of symmetry, where nothing leads away
        unit[0] = CENTRE
        return self.quantile(np.clip(unit, 1e-3, 1 - 1e-3))

    @property
    def support(self) -> Support:
        return Support(self.names, self.lower, self.upper, self.spread)

    @property
    def _step(self) -> Array:
        """A difference step for the log density; half of the margin of ``log_prior_gradient``."""
        return np.asarray(5e-5 * self.spread)

    def _shifted(self, theta: Array, sign: int) -> Array:
        moved = theta + sign * self._step
        return np.stack([logpdf(moved[..., j]) for j, logpdf in enumerate(self._log_densities)], axis=-1)


def variable_name(name: str) -> str:
    """The name of a parameter's variable in the results: netCDF cannot hold a slash."""
    return name.replace("/", "\N{DIVISION SLASH}")


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
        raise InputError(f"parameter name {name!r}: give a non-empty printable text without spaces around it")
    if name in RESERVED_NAMES or not name.strip("."):
        raise InputError(f"parameter name {name!r} is used by the results: choose another")
    return name


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

"""Priors as users have them: scipy's distributions, old and new, and kernel densities of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from scipy import stats
from scipy.interpolate import PchipInterpolator

from ...arrays import Array
from ...errors import InputError
from .joint import JointDistribution, joint_prior
from .priors import Distribution

#: places at which the distribution function of a kernel density is known, and how far beyond its points, in bandwidths
PLACES, BEYOND = 4001, 9.0
#: points of a kernel density that are looked at together
TOGETHER = 2_000_000


@runtime_checkable
class WithInverse(Protocol):
    """What scipy's new distributions have where the older ones have ``ppf``."""

    def logpdf(self, x: Array | float, /) -> Any: ...

    def icdf(self, p: Array | float, /) -> Any: ...

    def support(self) -> tuple[Any, Any]: ...


class NewDistribution:
    """One of the new ones: ``stats.Normal(mu=0, sigma=1)``, ``stats.truncate(...)``, ``stats.exp(...)``."""

    def __init__(self, given: WithInverse) -> None:
        self.given = given

    def __repr__(self) -> str:
        return repr(self.given)

    def logpdf(self, x: Array | float) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(self.given.logpdf(x))

    def ppf(self, q: Array | float) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(self.given.icdf(q))

    def support(self) -> tuple[Any, Any]:
        lower, upper = self.given.support()
        return lower, upper


class KernelDensity:
    """p(x) = sum_i w_i N(x; x_i, h^2): a ``stats.gaussian_kde`` of one number."""

    def __init__(self, given: stats.gaussian_kde) -> None:
        self.given = given
        points, sd = np.asarray(given.dataset[0], dtype=float), float(np.sqrt(given.covariance[0, 0]))
        grid = np.linspace(points.min() - BEYOND * sd, points.max() + BEYOND * sd, PLACES)
        each = max(1, TOGETHER // len(points))
        below = np.concatenate(
            [stats.norm.cdf((grid[s : s + each, None] - points) / sd) @ given.weights for s in range(0, PLACES, each)]
        )
        rising = np.concatenate([[True], np.diff(np.maximum.accumulate(below)) > 0])
        self._quantile = PchipInterpolator(below[rising], grid[rising])
        self._ends = below[rising][[0, -1]]

    def logpdf(self, x: Array | float) -> Any:
        place = np.asarray(x, dtype=float)
        return np.asarray(self.given.logpdf(place.ravel())).reshape(place.shape)

    def ppf(self, q: Array | float) -> Any:
        return np.asarray(self._quantile(np.clip(q, *self._ends)))

    def support(self) -> tuple[Any, Any]:
        return -np.inf, np.inf


class JointKernelDensity:
    """The same for several numbers at a time."""

    def __init__(self, given: stats.gaussian_kde) -> None:
        self.given = given

    def logpdf(self, x: Array) -> Any:
        places = np.asarray(x, dtype=float)
        return np.asarray(self.given.logpdf(places.reshape(-1, self.given.d).T)).reshape(places.shape[:-1])

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        return self.given.resample(size, seed=random_state).T


def single_prior(name: str, given: object) -> Distribution:
    """What a user gave for one parameter as what the methods look at."""
    if isinstance(given, stats.gaussian_kde):
        if given.d != 1:
            raise InputError(f"the prior of {name!r} is a gaussian_kde of {given.d} numbers: {_JOINTLY}")
        return KernelDensity(given)
    if isinstance(given, type | Distribution) or not isinstance(given, WithInverse):
        if isinstance(given, JointDistribution) and not isinstance(given, Distribution | type):
            raise InputError(f"the prior of {name!r} is {type(given).__name__}, of several numbers: {_JOINTLY}")
        # what is none is refused with the others
        return cast(Distribution, given)
    if any(one.__name__ == "DiscreteDistribution" for one in type(given).__mro__):
        raise InputError(f"the prior of {name!r} is discrete, {given!r}: give a continuous one")
    # by formula: scipy's own densities are slow
    if type(given) is stats.Normal and np.ndim(given.mu) == 0 and np.ndim(given.sigma) == 0:
        return stats.norm(float(given.mu), float(given.sigma))
    if type(given) is stats.Uniform and np.ndim(given.a) == 0 and np.ndim(given.b) == 0:
        return stats.uniform(float(given.a), float(given.b) - float(given.a))
    return NewDistribution(given)


def several_prior(names: Sequence[str], given: object) -> JointDistribution:
    """The same for a joint prior."""
    if not isinstance(given, stats.gaussian_kde):
        return cast(JointDistribution, given)
    if given.d != len(names):
        raise InputError(
            f"the joint prior of {', '.join(names)} is a gaussian_kde of {given.d} numbers: its data set must have "
            f"{len(names)} rows, one a parameter"
        )
    return JointKernelDensity(given)


_JOINTLY = 'give it to a tuple of names, {("a", "b"): prior}, or as oc.JointPrior(("a", "b"), prior)'


class JointPrior(Mapping[Any, Any]):
    """A prior of several parameters together, to be given as ``parameters``, alone or among others.

    Parameters
    ----------
    names
        Of the parameters, in the order of the distribution's numbers.
    distribution
        ``stats.multivariate_normal(mean, cov)``, ``stats.multivariate_t(...)``, a ``stats.gaussian_kde`` of several
        numbers, or any object with ``logpdf(x)`` and ``rvs(size, random_state)``.

    Examples
    --------
    It is a dictionary of one key, the tuple of names, and goes into others:

    >>> import orthocal as oc
    >>> from scipy import stats
    >>> both = oc.JointPrior(("a", "b"), stats.multivariate_normal([1.0, 0.5], [[0.04, -0.01], [-0.01, 0.09]]))
    >>> both.names
    ('a', 'b')
    >>> parameters = {**both, "c": stats.norm(2, 0.3)}
    >>> list(parameters)
    [('a', 'b'), 'c']
    """

    def __init__(self, names: Sequence[str], distribution: object) -> None:
        if isinstance(names, str) or not isinstance(names, Sequence) or len(names) < 2:
            raise InputError(f"names={names!r} of oc.JointPrior: give two names or more, for instance ('a', 'b')")
        self.names = tuple(names)
        self.distribution = several_prior([str(name) for name in names], distribution)
        joint_prior([str(name) for name in names], self.distribution)

    def __repr__(self) -> str:
        given = getattr(self.distribution, "given", self.distribution)
        return f"<JointPrior of {', '.join(map(str, self.names))}: {type(given).__name__}>"

    def __getitem__(self, key: object) -> Any:
        if key != self.names:
            raise KeyError(key)
        return self.distribution

    def __iter__(self) -> Iterator[Any]:
        return iter((self.names,))

    def __len__(self) -> int:
        return 1

    def __or__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**other, **self}

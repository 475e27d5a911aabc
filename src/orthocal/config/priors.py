"""Priors in words: a continuous distribution of scipy.stats by its name and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from ..errors import ConfigError, shortened
from ..problem.prior.joint import JointDistribution
from ..problem.prior.priors import Distribution
from ..problem.prior.user_priors import single_prior

#: parameter -> ``distribution`` and its arguments, as a file has them; "a, b" is the key of a joint prior
Settings = Mapping[str, Mapping[str, Any]]
#: what scipy's new continuous distributions have in common
NEW = stats.Normal.__mro__[1]
#: joint distributions, and the arguments that each must have
JOINT: dict[str, tuple[str, ...]] = {"multivariate_normal": ("mean", "cov"), "multivariate_t": ("loc", "shape", "df")}


def priors_of(parameters: Settings) -> dict[Any, Distribution | JointDistribution]:
    """The prior of each parameter; several with a joint prior have the tuple of their names as the key."""
    found: dict[Any, Distribution | JointDistribution] = {}
    for name, settings in parameters.items():
        if settings.get("distribution") in JOINT:
            found[tuple(one.strip() for one in name.split(","))] = _joint(name, dict(settings))
        else:
            found[name] = _prior(name, dict(settings))
    return found


def names_of(priors: Mapping[Any, Any]) -> list[str]:
    """The parameters' names, one by one."""
    return [name for key in priors for name in (key if isinstance(key, tuple) else (key,))]


def _joint(names: str, arguments: dict[str, Any]) -> JointDistribution:
    family = arguments.pop("distribution")
    needed = JOINT[family]
    if set(arguments) != set(needed):
        raise ConfigError(f"parameters {names!r}: {family} takes {', '.join(needed)}, not {', '.join(arguments)}")
    try:
        values = {name: np.asarray(value, dtype=float) for name, value in arguments.items()}
        prior: JointDistribution = getattr(stats, family)(**values)
    except (TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise ConfigError(f"parameters {names!r}: {family} cannot be made of these values: {error}") from None
    return prior


def _prior(name: str, arguments: dict[str, Any]) -> Distribution:
    family = arguments.pop("distribution", None)
    found = getattr(stats, str(family), None)
    if isinstance(found, type) and issubclass(found, NEW):
        return _new(name, found, arguments)
    if not isinstance(found, stats.rv_continuous):
        raise ConfigError(
            f"parameter {name!r}: distribution {shortened(repr(family))} is not a continuous distribution of "
            'scipy.stats, write for instance { distribution = "norm", loc = 0, scale = 10 }; joint ones, with a key '
            f'"a, b", are {", ".join(JOINT)}'
        )
    shapes = [one.strip() for one in (found.shapes or "").split(",") if one.strip()]
    unknown = set(arguments) - {"loc", "scale", *shapes}
    missing = set(shapes) - set(arguments)
    if unknown or missing:
        problem = f"unknown: {', '.join(sorted(unknown))}" if unknown else f"missing: {', '.join(sorted(missing))}"
        raise ConfigError(f"parameter {name!r}: {family} takes {', '.join([*shapes, 'loc', 'scale'])} ({problem})")
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in arguments.values()):
        raise ConfigError(f"parameter {name!r}: the values of its prior must be numbers")
    prior: Distribution = found(**arguments)
    return prior


def _new(name: str, family: type[Any], arguments: dict[str, Any]) -> Distribution:
    """One of scipy's new distributions, between the two ends of ``truncate``."""
    ends = arguments.pop("truncate", None)
    try:
        prior = family(**{key: float(value) for key, value in arguments.items()})
        if ends is not None:
            lower, upper = (float(end) for end in ends)
            prior = stats.truncate(prior, lb=lower, ub=upper)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"parameter {name!r}: {family.__name__} cannot be made of these values ({error}): write for instance "
            '{ distribution = "Normal", mu = 0, sigma = 10, truncate = [0, inf] }'
        ) from None
    return single_prior(name, prior)

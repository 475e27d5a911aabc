"""Priors in words: a continuous distribution of scipy.stats by its name and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy import stats

from ..errors import ConfigError
from ..problem.parameters import Distribution

#: parameter -> ``distribution`` and its arguments, as a file has them
Settings = Mapping[str, Mapping[str, Any]]


def priors_of(parameters: Settings) -> dict[str, Distribution]:
    """The prior of each parameter."""
    return {name: _prior(name, dict(settings)) for name, settings in parameters.items()}


def _prior(name: str, arguments: dict[str, Any]) -> Distribution:
    family = arguments.pop("distribution", None)
    found = getattr(stats, str(family), None)
    if not isinstance(found, stats.rv_continuous):
        raise ConfigError(
            f"parameter {name!r}: distribution {family!r} is not a continuous distribution of scipy.stats, "
            'write for instance { distribution = "norm", loc = 0, scale = 10 }'
        )
    shapes = [one.strip() for one in (found.shapes or "").split(",") if one.strip()]
    unknown = set(arguments) - {"loc", "scale", *shapes}
    missing = set(shapes) - set(arguments)
    if unknown or missing:
        problem = f"unknown: {', '.join(sorted(unknown))}" if unknown else f"missing: {', '.join(sorted(missing))}"
        raise ConfigError(f"parameter {name!r}: {family} takes {', '.join([*shapes, 'loc', 'scale'])} ({problem})")
    if not all(isinstance(value, int | float) for value in arguments.values()):
        raise ConfigError(f"parameter {name!r}: the values of its prior must be numbers")
    prior: Distribution = found(**arguments)
    return prior

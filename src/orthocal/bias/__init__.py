"""Priors on the unknown bias."""

from __future__ import annotations

from typing import Any

from ..arrays import Array
from ..errors import FileError
from .base import BiasPrior, BiasSampler, Setting
from .gp import GP, GPSampler

__all__ = ["GP", "BiasPrior", "BiasSampler", "Setting", "restore_sampler"]

_SAMPLERS = {"gp": GPSampler}


def restore_sampler(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BiasSampler:
    """The sampler of a stored posterior, from its settings."""
    kind = settings.get("kind")
    if kind not in _SAMPLERS:
        raise FileError(f"the bias prior {kind!r} of this file is not known to this version of orthocal")
    return _SAMPLERS[kind].restore(settings, x, nodes, noise_var)

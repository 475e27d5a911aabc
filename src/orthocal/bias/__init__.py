"""Priors on the unknown bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array
from ..errors import FileError
from .bart import BART, BARTSampler
from .base import BiasPrior, BiasSampler, ChainwiseSampler, Setting
from .bmars import BMARS, BMARSSampler
from .bnn import BNN, BNNSampler
from .gp import GP, GPSampler
from .sampled_gp import SampledGPSampler
from .softbart import SoftBART, SoftBARTSampler

__all__ = [
    "BART",
    "BMARS",
    "BNN",
    "GP",
    "BiasPrior",
    "BiasSampler",
    "ChainwiseSampler",
    "Setting",
    "SoftBART",
    "restore_sampler",
]

_RESTORE: dict[str, Callable[[dict[str, Any], Array, Array, Array], BiasSampler]] = {
    "gp": GPSampler.restore,
    "sampled gp": SampledGPSampler.restore,
    "bart": BARTSampler.restore,
    "bmars": BMARSSampler.restore,
    "softbart": SoftBARTSampler.restore,
    "bnn": BNNSampler.restore,
}


def restore_sampler(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BiasSampler:
    """The sampler of a stored posterior, from its settings."""
    kind = settings.get("kind")
    if kind not in _RESTORE:
        raise FileError(f"the bias prior {kind!r} of this file is not known to this version of orthocal")
    return _RESTORE[kind](settings, x, nodes, noise_var)

"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""

from importlib.metadata import version as _version

from . import bias, errors, kernels, methods
from .calibrate import calibrate
from .compare_outcomes import OutcomeComparison, compare_outcomes
from .domain import Box, Points
from .errors import OrthocalError, OrthocalWarning
from .noise_estimate import LowRankNoise
from .posterior import Posterior, load
from .problem import Problem
from .simulator import Simulator

__version__ = _version("orthocal")

__all__ = [
    "Box",
    "LowRankNoise",
    "OrthocalError",
    "OrthocalWarning",
    "OutcomeComparison",
    "Points",
    "Posterior",
    "Problem",
    "Simulator",
    "bias",
    "calibrate",
    "compare_outcomes",
    "errors",
    "kernels",
    "load",
    "methods",
]

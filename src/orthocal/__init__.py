"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""

from importlib.metadata import version as _version

from . import bias, errors, kernels, methods
from .calibrate import calibrate
from .domain import Box, Points
from .errors import OrthocalError, OrthocalWarning
from .posterior import Posterior, load
from .problem import Problem
from .simulator import Simulator

__version__ = _version("orthocal")

__all__ = [
    "Box",
    "OrthocalError",
    "OrthocalWarning",
    "Points",
    "Posterior",
    "Problem",
    "Simulator",
    "bias",
    "calibrate",
    "errors",
    "kernels",
    "load",
    "methods",
]

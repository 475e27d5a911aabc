"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""

from importlib.metadata import version as _version

from . import bias, errors, kernels, methods
from .calibrate import calibrate
from .campaign import campaign
from .compare import Comparison, compare
from .compare_outcomes import OutcomeComparison, compare_outcomes
from .design import design
from .domain import Box, Points
from .errors import OrthocalError, OrthocalWarning
from .external import Program
from .noise_estimate import LowRankNoise
from .posterior import Posterior, load
from .problem import Problem
from .runs import RunTable
from .simulator import Simulator

__version__ = _version("orthocal")

__all__ = [
    "Box",
    "Comparison",
    "LowRankNoise",
    "OrthocalError",
    "OrthocalWarning",
    "OutcomeComparison",
    "Points",
    "Posterior",
    "Problem",
    "Program",
    "RunTable",
    "Simulator",
    "bias",
    "calibrate",
    "campaign",
    "compare",
    "compare_outcomes",
    "design",
    "errors",
    "kernels",
    "load",
    "methods",
]

"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""

from importlib.metadata import version as _version

from . import bias, emulators, errors, kernels, methods
from .calibrate import calibrate
from .campaign import campaign
from .compare import Comparison, compare
from .compare_emulators import EmulatorComparison, compare_emulators
from .compare_outcomes import OutcomeComparison, compare_outcomes
from .design import design
from .domain import Box, Points
from .emulate import emulate
from .errors import OrthocalError, OrthocalWarning
from .external import Program
from .next_runs import next_runs
from .noise_estimate import LowRankNoise
from .posterior import Posterior, load
from .problem import Problem
from .runs import RunTable
from .simulator import Simulator

__version__ = _version("orthocal")

__all__ = [
    "Box",
    "Comparison",
    "EmulatorComparison",
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
    "compare_emulators",
    "compare_outcomes",
    "design",
    "emulate",
    "emulators",
    "errors",
    "kernels",
    "load",
    "methods",
    "next_runs",
]

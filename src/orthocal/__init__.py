"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    __version__: str

    from . import bias as bias
    from . import emulators as emulators
    from . import errors as errors
    from . import examples as examples
    from . import kernels as kernels
    from . import losses as losses
    from . import methods as methods
    from .calibration import calibrate as calibrate
    from .comparison import Comparison as Comparison
    from .comparison import ExperimentComparison as ExperimentComparison
    from .comparison import OutcomeComparison as OutcomeComparison
    from .comparison import SimulatorComparison as SimulatorComparison
    from .comparison import compare as compare
    from .comparison import compare_experiments as compare_experiments
    from .comparison import compare_outcomes as compare_outcomes
    from .comparison import compare_simulators as compare_simulators
    from .emulators import EmulatorComparison as EmulatorComparison
    from .emulators import compare_emulators as compare_emulators
    from .emulators import emulate as emulate
    from .errors import OrthocalError as OrthocalError
    from .errors import OrthocalWarning as OrthocalWarning
    from .execution import Program as Program
    from .execution.fmu import FMU as FMU
    from .execution.servers.umbridge import UMBridge as UMBridge
    from .experiments import Experiments as Experiments
    from .experiments import Pooled as Pooled
    from .problem import Box as Box
    from .problem import CorrelatedNoise as CorrelatedNoise
    from .problem import GroupNoise as GroupNoise
    from .problem import JointPrior as JointPrior
    from .problem import Labels as Labels
    from .problem import LowRankNoise as LowRankNoise
    from .problem import Points as Points
    from .problem import Problem as Problem
    from .problem import Simulator as Simulator
    from .problem import VaryingNoise as VaryingNoise
    from .refinement import next_runs as next_runs
    from .results import Posterior as Posterior
    from .results import load as load
    from .runs import RunTable as RunTable
    from .runs import campaign as campaign
    from .runs import campaign_status as campaign_status
    from .runs import design as design

# What is not asked for is not loaded: a program that only reads a posterior needs no emulators and no compiler.
_PUBLIC = {
    "calibration": ("calibrate",),
    "comparison": (
        "Comparison",
        "ExperimentComparison",
        "OutcomeComparison",
        "SimulatorComparison",
        "compare",
        "compare_experiments",
        "compare_outcomes",
        "compare_simulators",
    ),
    "emulators": (
        "EmulatorComparison",
        "compare_emulators",
        "emulate",
    ),
    "errors": (
        "OrthocalError",
        "OrthocalWarning",
    ),
    "execution": ("Program",),
    "execution.fmu": ("FMU",),
    "execution.servers.umbridge": ("UMBridge",),
    "experiments": (
        "Experiments",
        "Pooled",
    ),
    "problem": (
        "Box",
        "CorrelatedNoise",
        "GroupNoise",
        "JointPrior",
        "Labels",
        "LowRankNoise",
        "Points",
        "Problem",
        "Simulator",
        "VaryingNoise",
    ),
    "refinement": ("next_runs",),
    "results": (
        "Posterior",
        "load",
    ),
    "runs": (
        "RunTable",
        "campaign",
        "campaign_status",
        "design",
    ),
}
_FAMILIES = ("bias", "emulators", "errors", "examples", "kernels", "losses", "methods")
_PLACES = {name: place for place, names in _PUBLIC.items() for name in names}

__all__ = [*_PLACES, *_FAMILIES]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("orthocal")
    if name in _FAMILIES:
        return _import_module(f".{name}", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})

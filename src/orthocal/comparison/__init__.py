"""Fits side by side: several methods, each outcome or experiment alone, or several simulators."""

from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .experiments import ExperimentComparison as ExperimentComparison
from .experiments import compare_experiments as compare_experiments
from .outcomes import OutcomeComparison as OutcomeComparison
from .outcomes import compare_outcomes as compare_outcomes
from .simulators import SimulatorComparison as SimulatorComparison
from .simulators import compare_simulators as compare_simulators

"""Fits side by side: several methods, each outcome or experiment alone, or several simulators."""

from .comparison import Comparison as Comparison, compare as compare
from .experiments import ExperimentComparison as ExperimentComparison, compare_experiments as compare_experiments
from .outcomes import OutcomeComparison as OutcomeComparison, compare_outcomes as compare_outcomes
from .simulators import SimulatorComparison as SimulatorComparison, compare_simulators as compare_simulators

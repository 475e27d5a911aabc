"""Fits side by side: several methods, or each outcome alone."""

from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .outcomes import OutcomeComparison as OutcomeComparison
from .outcomes import compare_outcomes as compare_outcomes

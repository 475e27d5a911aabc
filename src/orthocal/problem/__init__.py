"""What is known before the bias is modelled: data, simulator, parameters, domain, noise, and the best fit."""

from .domain.domain import Box as Box, Points as Points
from .domain.labels import Labels as Labels
from .noise.kinds import (
    CorrelatedNoise as CorrelatedNoise,
    GroupNoise as GroupNoise,
    LowRankNoise as LowRankNoise,
    VaryingNoise as VaryingNoise,
)
from .prior.user_priors import JointPrior as JointPrior
from .problem import Problem as Problem
from .simulator.simulator_function import Simulator as Simulator

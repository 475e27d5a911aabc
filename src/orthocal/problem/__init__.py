"""What is known before the bias is modelled: data, simulator, parameters, domain, noise, and the best fit."""

from .domain import Box as Box
from .domain import Points as Points
from .given_priors import JointPrior as JointPrior
from .given_simulator import Simulator as Simulator
from .label_domain import Labels as Labels
from .noise_kinds import CorrelatedNoise as CorrelatedNoise
from .noise_kinds import GroupNoise as GroupNoise
from .noise_kinds import LowRankNoise as LowRankNoise
from .noise_kinds import VaryingNoise as VaryingNoise
from .problem import Problem as Problem

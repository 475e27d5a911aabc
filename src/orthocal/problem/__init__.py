"""What is known before the bias is modelled: data, simulator, parameters, domain, noise, and the best fit."""

from .domain import Box as Box
from .domain import Points as Points
from .noise_estimate import LowRankNoise as LowRankNoise
from .problem import Problem as Problem
from .simulator import Simulator as Simulator

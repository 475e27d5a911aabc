"""Ways to draw theta from Pi(theta | b*, y)."""

from .adaptive import AdaptiveMetropolis
from .base import Kernel
from .hmc import HMC
from .laplace import Laplace
from .slice import Slice

__all__ = ["HMC", "AdaptiveMetropolis", "Kernel", "Laplace", "Slice"]

"""Ways to draw theta from Pi(theta | b*, y). A new one is a file, and a line here, in messages' order."""
# ruff: noqa: I001

from .base import Kernel as Kernel
from .laplace import Laplace as Laplace
from .adaptive import AdaptiveMetropolis as AdaptiveMetropolis
from .slice import Slice as Slice
from .hmc import HMC as HMC

"""Several experiments that share parameters, calibrated together."""

from .experiments import Experiments as Experiments
from .pooled import Pooled as Pooled

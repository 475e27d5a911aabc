"""What is expected of the hyperparameters of a Gaussian process."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array


class LogPrior(NamedTuple):
    """Normal priors of log sd, log length-scales and log noise variance, (d + 2,); with ``below`` on that side only."""

    mean: Array
    sd: Array
    below: bool = False

    def deviance(self, values: Array) -> tuple[Array, Array]:
        """-2 log density of each, and its slope, (d + 2,) each."""
        away = (values - self.mean) / self.sd
        away = np.minimum(away, 0.0) if self.below else away
        return away**2, 2 * away / self.sd

"""A study's simulator that cannot be called: an emulator, learnt from a grid of its runs, stands in for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Array
from ..emulators import Emulator
from ..emulators.choice import emulate
from ..examples import Example
from ..problem.parameters import Distribution
from ..runs.designs import design
from ..runs.table import RunTable

#: values of each parameter in the grid of runs, ends included (the paper has 7^2 runs)
VALUES = 7


def emulated(model: Example, parameters: Mapping[str, Distribution], x: Array, emulator: Any) -> Emulator:
    """The emulator from runs at the points x (n, d), at a grid of theta over the priors' supports."""
    theta = design(parameters, VALUES, kind="grid")
    output = np.stack([model.simulator(x, one) for one in theta.to_numpy()])
    return emulate(RunTable(theta, output, x), emulator, progress=False)

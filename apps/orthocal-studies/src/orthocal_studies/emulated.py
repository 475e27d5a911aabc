"""A study's simulator that cannot be called: an emulator, learnt from a grid of its runs, stands in for it.

It stands alone: a benchmark asks for it without a study.
"""

from __future__ import annotations

import numpy as np

import orthocal as oc
from orthocal.applications import Array
from orthocal.examples import Example

#: values of each parameter in the grid of runs, ends included (the paper has 7^2 runs)
VALUES = 7


def emulated(model: Example, x: Array, emulator: str | oc.emulators.Regressor) -> oc.emulators.Emulator:
    """The emulator from runs at the points x (n, d), at a grid of theta over the priors' supports."""
    theta = oc.design(model.parameters, VALUES, kind="grid")
    output = np.stack([model.simulator(x, one) for one in theta.to_numpy()])
    return oc.emulate(oc.RunTable(theta, output, x), emulator, progress=False)

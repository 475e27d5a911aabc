"""Problems that the tests share."""

from __future__ import annotations

import numpy as np
import pytest

import orthocal as oc
from orthocal.examples import MODEL1


@pytest.fixture(scope="session")
def model1_posterior() -> oc.Posterior:
    """A posterior of Model 1 with everything fixed; read it, do not change it."""
    x, y = MODEL1.simulate(np.random.default_rng(1))
    method = oc.methods.Projected(oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.5))
    return oc.calibrate(MODEL1.problem(x, y), method, draws=500, seed=1)

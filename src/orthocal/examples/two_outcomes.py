"""The model with two outcomes of the paper's supplement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats
from scipy.special import ndtr

from ..arrays import Array
from .base import Example, listed
from .paper import PAPER


def _two_outcomes(x: Array, theta: Array) -> Array:
    return np.column_stack([theta[0] * x[:, 0], ndtr(theta[0] * (x[:, 0] - 0.5))])


def _two_outcomes_gradient(x: Array, theta: Array) -> Array:
    centred = x[:, 0] - 0.5
    density = np.exp(-0.5 * (theta[0] * centred) ** 2) / np.sqrt(2 * np.pi)
    return np.stack([x, (density * centred)[:, None]], axis=1)


#: theta* with W = Sigma_F^-1, and that of the second outcome alone
TWO_OUTCOMES_PRECISION = 3.5758891
TWO_OUTCOMES_SECOND = 3.5724563

#: y_R = (4 x + x sin 5x, 1 / (1 + exp(-6 (x - 1/2)))),  f = (theta x, Phi(theta (x - 1/2)))
#: theta* is for the identity as W, which ``problem`` must be given; the listed one has the default, W = Sigma_F^-1
TWO_OUTCOMES = Example(
    name="two-outcomes-identity",
    title="two outcomes",
    words="Two outcomes that share one parameter; the second says little about it alone.",
    d=1,
    truth=lambda x: np.column_stack([4 * x + x * np.sin(5 * x), 1 / (1 + np.exp(-6 * (x - 0.5)))]),
    simulator=_two_outcomes,
    gradient=_two_outcomes_gradient,
    theta_star=(3.5653350,),
    parameters={"theta": stats.norm(0, 10)},
    noise_correlation=0.3,
    q=2,
    nodes=15,
    source=f"{PAPER}, supplement",
    tags=("several outcomes",),
)
listed(replace(TWO_OUTCOMES, name="two-outcomes", theta_star=(TWO_OUTCOMES_PRECISION,)))

"""Gu and Wang's example whose L2 loss has two minima; it stands alone because every example is a file."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .base import Example, listed

#: y_R = x cos(3x/2) + x on [0, 5],  f = sin(theta x) + x,  theta in [0, 3]
GU_WANG = listed(
    Example(
        name="gu-wang",
        title="Gu and Wang's two minima",
        words="A bias many times the noise, and a second minimum at 0.261756 whose loss is 29 % larger.",
        d=1,
        truth=lambda x: x[:, 0] * np.cos(1.5 * x[:, 0]) + x[:, 0],
        simulator=lambda x, theta: np.sin(theta[0] * x[:, 0]) + x[:, 0],
        gradient=lambda x, theta: x * np.cos(theta[0] * x),
        theta_star=(1.87720203,),
        parameters={"theta": stats.uniform(0, 3)},
        box=(0.0, 5.0),
        design=lambda rng, n: np.linspace(0, 5, n)[:, None],
        n=15,
        noise_sd=0.1,
        source="M. Gu, L. Wang (2018): Scaled Gaussian stochastic process for computer model calibration and "
        "prediction, SIAM/ASA JUQ 6, 1555–1583; as in the R package RobustCalibration",
        tags=("curved", "two minima"),
    )
)

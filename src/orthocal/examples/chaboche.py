"""Chaboche's law of a metal under strain, ten measurements."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, Published, listed


def _stress(x: Array, theta: Array) -> Array:
    R, C, gamma = theta
    return np.asarray(R - C * np.expm1(-gamma * x[:, 0]) / gamma)


def _stress_gradient(x: Array, theta: Array) -> Array:
    strain = x[:, 0]
    _, C, gamma = theta
    decay = np.exp(-gamma * strain)
    slope = C * (strain * decay / gamma + np.expm1(-gamma * strain) / gamma**2)
    return np.column_stack([np.ones(len(x)), -np.expm1(-gamma * strain) / gamma, slope])


#: f = R + C (1 - exp(-gamma e)) / gamma
CHABOCHE = listed(
    Example(
        name="chaboche",
        title="Chaboche's law",
        words="Stress in a metal under strain; the data say next to nothing about gamma, which keeps its prior.",
        d=1,
        simulator=_stress,
        gradient=_stress_gradient,
        parameters={"R": stats.norm(7e8, 7e7), "C": stats.norm(2.5e9, 2.5e8), "gamma": stats.norm(8, 0.8)},
        noise_sd=1e7,
        box=None,
        file="chaboche.csv",
        settings={"input_names": "strain", "outcome_names": "stress_Pa"},
        published=(
            Published(
                "OpenTURNS, Gaussian linear calibration",
                {"R": (748.5e6, 5.3e6), "C": (2691e6, 154e6), "gamma": (7.78, 0.78)},
            ),
        ),
        source="OpenTURNS, its use case of the Chaboche model; J. Lemaitre, J.-L. Chaboche (1990): Mechanics of solid "
        "materials",
        licence="published measurements, cited",
        tags=("real", "weak data"),
    )
)

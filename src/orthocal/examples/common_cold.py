"""An epidemic of the common cold on Tristan da Cunha."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.integrate import odeint

from ..arrays import Array
from .base import Example, Published, listed


def _rates(state: Array, _: float, g: float, v: float) -> tuple[float, float, float]:
    new, healed = g * state[0] * state[1], v * state[1]
    return -new, new - healed, healed


def _epidemic(x: Array, theta: Array) -> Array:
    g, v, susceptible = theta
    times, place = np.unique(np.append(1.0, x[:, 0]), return_inverse=True)
    # eight times as fast as solve_ivp, whose steps are Python's
    states = odeint(_rates, (susceptible, 1.0, 0.0), times, (g, v), rtol=1e-8, atol=1e-8)
    return np.asarray(states[place[1:], 1:])


#: S' = -g S I,  I' = g S I - v I,  R' = v I,  S = S0, I = 1, R = 0 on day 1;  f = (I, R)
COMMON_COLD = listed(
    Example(
        name="common-cold",
        title="common cold",
        words="Infected and recovered people on 21 days; who leaves one count enters the other: opposite errors.",
        d=1,
        simulator=_epidemic,
        parameters={"g": stats.uniform(0, 1), "v": stats.uniform(0, 1), "S0": stats.uniform(20, 80)},
        noise_sd=None,
        box=None,
        q=2,
        file="common_cold.csv",
        settings={"input_names": "day", "outcome_names": ("infected", "recovered")},
        published=(Published("PINTS, without a bias", {"v": (0.270, 0.016), "S0": (41.0, 1.3)}),),
        source="B. J. Hammond, D. A. J. Tyrrell (1971): A mathematical model of common-cold epidemics on Tristan da "
        "Cunha, J. Hygiene 69, 423–433; as in PINTS",
        licence="published measurements, cited",
        tags=("real", "several outcomes", "curved"),
    )
)

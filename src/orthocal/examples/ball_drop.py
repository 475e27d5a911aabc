"""Balls dropped from known heights, timed by hand."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, Published, listed


def _fall(x: Array, theta: Array) -> Array:
    return np.asarray(np.sqrt(2 * x[:, 0] / theta[0]))


#: f = sqrt(2 h / g), the time of a fall in a vacuum; there are 9.8 m/s^2 and air
BALL_DROP = listed(
    Example(
        name="ball-drop",
        title="ball drop",
        words="The time that a ball takes to fall from heights up to four metres; the simulator knows no air.",
        d=1,
        simulator=_fall,
        gradient=lambda x, theta: -_fall(x, theta)[:, None] / (2 * theta[0]),
        parameters={"g": stats.uniform(6, 9)},
        noise_sd=None,
        box=None,
        file="ball_drop.csv",
        settings={"input_names": "height_m", "outcome_names": "time_s"},
        published=(Published("surmise, without a bias", {"g": (8.16, 0.20)}),),
        source="surmise (M. Plumlee, Ö. Sürer, S. M. Wild, M. Chan), its example of a falling ball",
        licence="MIT",
        tags=("real",),
    )
)

"""The borehole function, calibrated with its simpler version, which is known from a table of runs."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, listed

#: the middles of the usual ranges: radius of influence r, transmissivities Tu and Tl, length L
RADIUS, UPPER_T, LOWER_T, LENGTH = 25050.0, 89335.0, 89.55, 1400.0


def _flow(x: Array, theta: Array, factor: float, offset: float) -> Array:
    """factor Tu (Hu - Hl) / (log(r/rw) (offset + 2 L Tu / (log(r/rw) rw^2 Kw) + Tu / Tl)), x = (rw, Hl)."""
    (rw, Hl), (Hu, Kw) = x.T, theta
    log = np.log(RADIUS / rw)
    below = log * (offset + 2 * LENGTH * UPPER_T / (log * rw**2 * Kw) + UPPER_T / LOWER_T)
    return np.asarray(factor * UPPER_T * (Hu - Hl) / below)


def _simple(x: Array, theta: Array) -> Array:
    return _flow(x, theta, 5.0, 1.5)


#: y_R = flow with factor 2 pi and offset 1 at Hu = 1050, Kw = 10950; f has factor 5 and offset 1.5
BOREHOLE = listed(
    Example(
        name="borehole",
        title="borehole, from 40 runs",
        words="Water flow through a borehole; a simpler version makes up for its factor by a larger conductivity.",
        d=2,
        truth=lambda x: _flow(x, np.array([1050.0, 10950.0]), 2 * np.pi, 1.0),
        simulator=_simple,
        theta_star=(1050.038838, 13788.6774),
        parameters={"Hu": stats.uniform(950, 200), "Kw": stats.uniform(8000, 12000)},
        box=((0.05, 700.0), (0.15, 820.0)),
        n=40,
        noise_sd=1.0,
        runs=40,
        source="M. D. Morris, T. J. Mitchell, D. Ylvisaker (1993), Technometrics 35, 243–255; the simpler version: "
        "S. Xiong, P. Z. G. Qian, C. F. J. Wu (2013), Technometrics 55, 37–46",
        tags=("emulator",),
    )
)

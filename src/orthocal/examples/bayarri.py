"""The pedagogic example of Bayarri and others: their data, and the process from which they came."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, listed

SOURCE = (
    "M. J. Bayarri, J. O. Berger, R. Paulo, J. Sacks, J. A. Cafeo, J. Cavendish, C.-H. Lin, J. Tu (2007): A framework "
    "for validation of computer models, Technometrics 49, 138–154"
)
LICENCE = "published figures, cited"
#: three measurements at each
POINTS = np.array([0.110, 0.432, 0.754, 1.077, 1.399, 1.721, 2.043, 2.366, 2.688, 3.010])
#: sd of simulated noise; the replicates of the published data have .21
NOISE_SD = 0.3


def _design(rng: np.random.Generator, n: int) -> Array:
    return np.repeat(POINTS, -(-n // len(POINTS)))[:n, None]


def _truth(x: Array) -> Array:
    return np.asarray(3.5 * np.exp(-1.7 * x[:, 0]) + 1.5)


def _decay(x: Array, theta: Array) -> Array:
    return np.asarray(theta[0] + 5 * np.exp(-theta[1] * x[:, 0]))


def _decay_gradient(x: Array, theta: Array) -> Array:
    return np.column_stack([np.ones(len(x)), -5 * x[:, 0] * np.exp(-theta[1] * x[:, 0])])


#: y_R = 3.5 exp(-1.7 x) + 1.5 on [0, 3.01],  f = 5 exp(-u x)
BAYARRI = listed(
    Example(
        name="bayarri",
        title="Bayarri et al.",
        words="A decay to zero for one that stops above it; three measurements at each of ten points.",
        d=1,
        truth=_truth,
        simulator=lambda x, theta: 5 * np.exp(-theta[0] * x[:, 0]),
        gradient=lambda x, theta: -5 * x * np.exp(-theta[0] * x),
        theta_star=(0.64059425,),
        parameters={"u": stats.uniform(0, 10)},
        box=(0.0, 3.01),
        design=_design,
        n=30,
        noise_sd=NOISE_SD,
        file="bayarri.csv",
        settings={"noise_cov": "unknown"},
        source=SOURCE,
        licence=LICENCE,
        tags=("curved",),
    )
)

#: y_R as before,  f = M + 5 exp(-U x)
BAYARRI_2 = listed(
    Example(
        name="bayarri-2",
        title="Bayarri et al., two parameters",
        words="A decay whose level is free and whose start is not; a second minimum lies at the bound M = 0.",
        d=1,
        truth=_truth,
        simulator=_decay,
        gradient=_decay_gradient,
        theta_star=(1.55990853, 2.67845645),
        parameters={"M": stats.uniform(0, 7), "U": stats.uniform(0, 7)},
        box=(0.0, 3.01),
        design=_design,
        n=30,
        noise_sd=NOISE_SD,
        file="bayarri.csv",
        settings={"noise_cov": "unknown"},
        source=f"{SOURCE}; the second parameter is ours",
        licence=LICENCE,
        tags=("curved", "two minima"),
    )
)

"""The population of the United States, which grew logistically for a while."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, Published, listed

#: millions in 1790
START = 3.9


def _growth(x: Array, theta: Array) -> Array:
    a, b = theta[0], np.exp(theta[1]) * START * 1e6
    return np.asarray(START * a / (b + (a - b) * np.exp(-a * (x[:, 0] - 1790))))


#: y' = a y - b y^2, y(1790) = 3.9 million, c = log b:  f = a y0 / (b y0 + (a - b y0) exp(-a (t - 1790)))
POPULATION = listed(
    Example(
        name="us-population",
        title="population of the USA",
        words="Twenty-two censuses and a logistic curve, whose errors come in waves: a bias, not noise.",
        d=1,
        simulator=_growth,
        parameters={"a": stats.norm(0.03, 0.01), "c": stats.norm(-22.6, 1)},
        noise_sd=None,
        box=None,
        file="us_population.csv",
        settings={"input_names": "year", "outcome_names": "millions"},
        published=(
            Published("least squares", {"a": (0.0274, None)}),
            Published("with correlated errors", {"a": (0.0262, None)}),
        ),
        source="US Census Bureau, 1790 to 2000; the problem is a use case of OpenTURNS",
        licence="public domain",
        tags=("real", "curved"),
    )
)

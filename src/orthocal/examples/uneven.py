"""A saturation curve measured at uneven points."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, listed


def _saturation(x: Array, theta: Array) -> Array:
    return np.asarray(theta[0] * (1 - np.exp(-x[:, 0] / theta[1])))


def saturation(a: float, b: float) -> Example:
    """A saturating simulator beside a bias of five noise sds, at points from Beta(a, b), which are uneven.

        f = t1 (1 - exp(-x / t2)),  y_R = f(., 5, 0.3) + 2.2 exp(-((x - .35) / .25)^2) - 1.2 tanh(2.5 x)

    Parameters
    ----------
    a, b
        Of the beta distribution of x.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> x, y = oc.examples.saturation(2, 5).field_data(seed=1)
    >>> bool(x.mean() < 0.4)
    True
    """
    return Example(
        name=f"saturation-{a:g}-{b:g}",
        title=f"saturation, x from Beta({a:g}, {b:g})",
        words="A large bias at uneven points, so that the best fit to the data is not the best one over the domain.",
        d=1,
        # it overshoots, and comes to a lower level
        truth=lambda x: (
            _saturation(x, np.array([5.0, 0.3]))
            + 2.2 * np.exp(-(((x[:, 0] - 0.35) / 0.25) ** 2))
            - 1.2 * np.tanh(2.5 * x[:, 0])
        ),
        simulator=_saturation,
        theta_star=(4.0923793, 0.1076265),
        parameters={"top": stats.norm(5, 5), "rate": stats.uniform(0.02, 3)},
        noise_sd=0.1,
        n=200,
        design=lambda rng, n: rng.beta(a, b, (n, 1)),
        source="orthocal",
        tags=("curved",),
    )


for _shape in ((1.0, 2.0), (0.5, 0.5)):
    listed(saturation(*_shape))

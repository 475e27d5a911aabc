"""A cooling fin of thirty measurements."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, listed


def _fin(x: Array, theta: Array) -> Array:
    m = np.sqrt(theta[0])
    return np.asarray(20 + theta[1] * np.cosh(m * (1 - x[:, 0])) / np.cosh(m))


def fin_truth(x: Array, bias: float) -> Array:
    """The real fin's temperature.

    Parameters
    ----------
    x
        Places along the fin, (m, 1).
    bias
        Its size, in degrees.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> oc.examples.fin_truth(np.array([[0.0], [1.0]]), bias=4.0).round(0)
    array([100.,  34.])
    """
    u = x[:, 0]
    return _fin(x, np.array([2.4**2, 80.0])) + bias * u * (1 - u) * (1.2 - 2 * u)


#: f = 20 + T cosh(m (1 - x)) / cosh m,  y_R = f(., 2.4^2, 80) + 4 x (1 - x) (1.2 - 2x);  theta = (m^2, T)
FIN = listed(
    Example(
        name="cooling-fin",
        title="cooling fin",
        words="Temperature along a fin that loses heat unevenly; a nearly linear bias and a shifted theta fit as well.",
        d=1,
        truth=lambda x: fin_truth(x, 4.0),
        simulator=_fin,
        theta_star=(5.7949412, 80.5899134),
        parameters={"m2": stats.uniform(0.5, 20), "base": stats.norm(80, 50)},
        noise_sd=0.7,
        n=30,
        source="orthocal",
        tags=("curved",),
    )
)

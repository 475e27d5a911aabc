"""The models of the paper (Chakraborty, Walsh, Strigari, Mallick, Bhattacharya)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, listed

PAPER = (
    "A. Chakraborty, J. Walsh, L. Strigari, B. Mallick, A. Bhattacharya: Orthogonal calibration via posterior "
    "projections with applications to the Schwarzschild model"
)


def _model2(x: Array, theta: Array) -> Array:
    wave = np.sin(2 * np.pi * x[:, 0] - np.pi)
    return np.asarray(7 * np.sin(2 * np.pi * theta[0] - np.pi) ** 2 + 2 * (2 * np.pi * theta[1] - np.pi) ** 2 * wave)


def _model2_gradient(x: Array, theta: Array) -> Array:
    wave = np.sin(2 * np.pi * x[:, 0] - np.pi)
    first = np.full(len(x), 14 * np.pi * np.sin(4 * np.pi * theta[0] - 2 * np.pi))
    return np.column_stack([first, 8 * np.pi * (2 * np.pi * theta[1] - np.pi) * wave])


#: y_R = 4 x + x sin 5x,  f = theta x
MODEL1 = listed(
    Example(
        name="model-1",
        title="Model 1",
        words="A straight line through the origin for a process that bends.",
        d=1,
        truth=lambda x: 4 * x[:, 0] + x[:, 0] * np.sin(5 * x[:, 0]),
        simulator=lambda x, theta: theta[0] * x[:, 0],
        gradient=lambda x, theta: x,
        # 4 + 3 ∫ x^2 sin(5x) dx, in closed form
        theta_star=(4 + 3 * ((2 / 125 - 1 / 5) * np.cos(5) + 2 / 25 * np.sin(5) - 2 / 125),),
        parameters={"theta": stats.norm(0, 10)},
        # the paper's
        nodes=15,
        linear=True,
        source=f"{PAPER}, Model 1; after M. Plumlee (2017), JASA 112, 1274–1285",
    )
)

#: f = 7 sin^2(2 pi t1 - pi) + 2 (2 pi t2 - pi)^2 sin(2 pi x - pi),  y_R = f(., 0.2, 0.3)
#: f has the symmetries t1 -> 1 - t1, t1 -> 1/2 - t1 and t2 -> 1 - t2, so the loss has 8 equal minima in the unit
#: square; with the paper's prior N(0, 10^2) there would be infinitely many. It is not on the list, because no
#: theta* is the one answer.
MODEL2 = Example(
    name="model-2-square",
    title="Model 2",
    words="A simulator that is right, with eight equal minima in the unit square.",
    d=1,
    truth=lambda x: _model2(x, np.array([0.2, 0.3])),
    simulator=_model2,
    gradient=_model2_gradient,
    theta_star=(0.2, 0.3),
    parameters={"theta1": stats.uniform(0, 1), "theta2": stats.uniform(0, 1)},
    nodes=15,
    source=f"{PAPER}, Model 2",
    tags=("two minima",),
)

#: one of the eight parts of the unit square that these symmetries make alike: theta* is its only minimum
MODEL2_PART = listed(
    replace(
        MODEL2,
        name="model-2",
        title="Model 2, one part of the square",
        words="A simulator that is right, strongly curved in both parameters.",
        parameters={"theta1": stats.uniform(0, 0.25), "theta2": stats.uniform(0, 0.5)},
        tags=("curved",),
    )
)


def _model3(x: Array, theta: Array) -> Array:
    return np.asarray(
        theta[0] * np.sin(x[:, 0] * x[:, 1]) + theta[1] * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    )


#: f = t1 sin(x1 x2) + t2 (x3 - 1/2)^2 + 10 x4 + 5 x5,  y_R = f(., 10, 20)
MODEL3 = listed(
    Example(
        name="model-3",
        title="Model 3",
        words="A simulator that is right, of five inputs and two parameters.",
        d=5,
        truth=lambda x: _model3(x, np.array([10.0, 20.0])),
        simulator=_model3,
        gradient=lambda x, theta: np.column_stack([np.sin(x[:, 0] * x[:, 1]), (x[:, 2] - 0.5) ** 2]),
        theta_star=(10.0, 20.0),
        parameters={"theta1": stats.norm(0, 10), "theta2": stats.norm(0, 10)},
        linear=True,
        source=f"{PAPER}, Model 3 as printed; after J. H. Friedman (1991), Ann. Statist. 19, 1–67",
    )
)

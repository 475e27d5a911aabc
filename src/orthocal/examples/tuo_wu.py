"""The examples of Tuo and Wu's papers on L2 calibration."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from .base import Example, Published, listed

SOURCE = (
    "R. Tuo, C. F. J. Wu (2015): Efficient calibration for imperfect computer models, Ann. Statist. 43, 2331–2352; "
    "(2016): A theoretical framework for calibration in computer models, SIAM/ASA JUQ 4, 767–795"
)


def _truth(x: Array) -> Array:
    return np.asarray(np.exp(x[:, 0] / 10) * np.sin(x[:, 0]))


def _tuo_wu(x: Array, theta: Array) -> Array:
    t, u = theta[0], theta[0] * x[:, 0]
    return np.asarray(_truth(x) - np.sqrt(t**2 - t + 1) * (np.sin(u) + np.cos(u)))


def _tuo_wu_gradient(x: Array, theta: Array) -> Array:
    t, u = theta[0], theta[0] * x[:, 0]
    root = np.sqrt(t**2 - t + 1)
    slope = (2 * t - 1) / (2 * root) * (np.sin(u) + np.cos(u)) + root * x[:, 0] * (np.cos(u) - np.sin(u))
    return np.asarray(-slope[:, None])


#: y_R = exp(x/10) sin x on (0, 2 pi),  f = y_R - sqrt(t^2 - t + 1) (sin tx + cos tx),  t in [-1, 1]
TUO_WU = listed(
    Example(
        name="tuo-wu",
        title="Tuo and Wu",
        words="A simulator that is wrong for every theta, with four local minima between -1 and 1.",
        d=1,
        truth=_truth,
        simulator=_tuo_wu,
        gradient=_tuo_wu_gradient,
        theta_star=(-0.17892537,),
        parameters={"theta": stats.uniform(-1, 2)},
        box=(0.0, 2 * np.pi),
        # 2 pi i / 50, as in the first paper
        design=lambda rng, n: np.linspace(0, 2 * np.pi, n)[:, None],
        n=51,
        # the smaller of its two variances, 0.1
        noise_sd=float(np.sqrt(0.1)),
        published=(Published("theta* of the first paper", {"theta": (-0.1789, None)}),),
        source=SOURCE,
        tags=("curved", "two minima"),
    )
)


def _tuo_wu_2(x: Array, theta: Array) -> Array:
    return np.asarray(2 / 3 * np.exp(x[:, 0] + theta[0]) - x[:, 1] * np.sin(theta[1]) + theta[1])


def _bias_2(x: Array) -> Array:
    """The second factor is orthogonal to 1 and x2, so that the whole is orthogonal to the gradients at any theta."""
    u, v = x.T
    return np.asarray(10 * np.exp(-u) * (u - 0.5) * (v**2 - v + 1 / 6))


#: f = 2/3 exp(x1 + t1) - x2 sin t2 + t2,  y_R = f(., 0.2, 0.4) + 10 exp(-x1) (x1 - 1/2) (x2^2 - x2 + 1/6)
TUO_WU_2 = listed(
    Example(
        name="tuo-wu-2",
        title="Tuo and Wu, two inputs",
        words="The simulator of their second example, which is right there, beside a bias orthogonal to its gradients.",
        d=2,
        truth=lambda x: _tuo_wu_2(x, np.array([0.2, 0.4])) + _bias_2(x),
        simulator=_tuo_wu_2,
        gradient=lambda x, theta: np.column_stack([2 / 3 * np.exp(x[:, 0] + theta[0]), 1 - x[:, 1] * np.cos(theta[1])]),
        theta_star=(0.2, 0.4),
        parameters={"theta1": stats.uniform(0, 1), "theta2": stats.uniform(0, 1)},
        n=50,
        noise_sd=0.1,
        source=f"{SOURCE}; the bias is ours",
    )
)

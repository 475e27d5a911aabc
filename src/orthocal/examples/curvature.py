"""A family that shows what curvature does beside a bias."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..arrays import Array
from ..problem.domain.domain import Box
from .base import Example, listed
from .exact import real_process

NOISE_SD = 0.1


def _wave(x: Array) -> tuple[Array, Array]:
    """Two orthonormal functions on [0, 1]."""
    return np.sqrt(2) * np.sin(2 * np.pi * x[:, 0]), np.sqrt(2) * np.cos(2 * np.pi * x[:, 0])


def _curved(x: Array, theta: Array) -> Array:
    a, e = _wave(x)
    return np.asarray(a * theta[0] + e * theta[0] ** 2 / 2)


def _curved_gradient(x: Array, theta: Array) -> Array:
    a, e = _wave(x)
    return np.asarray((a + e * theta[0])[:, None])


def curved(size: float) -> Example:
    """f = a t + e t^2 / 2 with a, e orthonormal, and y_R = size e: a curved simulator beside a large bias.

    theta* = 0, and least squares has the standard deviation noise / sqrt(n) / (1 - size).

    Examples
    --------
    >>> import orthocal as oc
    >>> example = oc.examples.curved(0.5)
    >>> example.theta_star, example.n
    ((0.0,), 200)
    """
    return Example(
        name=f"curved-{size:g}".replace("--", "-minus-"),
        title=f"curved, bias {size:g}",
        words=f"A bias along the curvature: theta is known {'less' if size > 0 else 'better'} than without.",
        d=1,
        truth=lambda x: size * _wave(x)[1],
        simulator=_curved,
        gradient=_curved_gradient,
        theta_star=(0.0,),
        parameters={"theta": stats.norm(0, 10)},
        noise_sd=NOISE_SD,
        n=200,
        design=lambda rng, n: ((np.arange(n) + 0.5) / n)[:, None],
        source="orthocal",
        tags=("curved",),
    )


def curved_draws(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    count: int,
    nu: float = 1.5,
    sd: float = 1.0,
    lengthscale: float = 0.5,
) -> Array:
    """Reference draws of theta for data of ``curved``, (count,): independent, and each the root of a cubic.

        alpha = ∫ a y_R,  eps = ∫ e y_R,  t^3 / 2 + (1 - eps) t - alpha = 0

    is where (alpha - t)^2 + (eps - t^2/2)^2 is least, and alpha and eps are Gaussian given y. The law is that of the
    joint projection with a Gaussian-process bias of given hyperparameters, with a flat prior of theta.

    Parameters
    ----------
    x, y
        Field data.
    rng, count
        Where the draws come from, and their number.
    nu, sd, lengthscale
        Of the Matern kernel.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> x, y = oc.examples.curved(0.5).field_data(seed=1)
    >>> draws = oc.examples.curved_draws(x, y, np.random.default_rng(1), 4000)
    >>> bool(0.013 < draws.std() < 0.015)
    True
    """
    a, e = _wave(x)
    # the best fit to evenly spaced data
    tilde = np.array([_closest(float(np.mean(a * y)), float(np.mean(e * y)))])

    def parts(points: Array) -> tuple[Array, Array]:
        return _curved(points, tilde), _curved_gradient(points, tilde)

    rule, _ = Box(0, 1).rules(1)
    mean, cov = real_process(x, y, parts, rule.nodes, (nu, sd, lengthscale), NOISE_SD**2)
    waves = np.stack(_wave(rule.nodes)) * rule.weights
    pairs = rng.multivariate_normal(waves @ mean, waves @ cov @ waves.T, size=count)
    return np.array([_closest(alpha, eps) for alpha, eps in pairs])


def _closest(alpha: float, eps: float) -> float:
    """The real root of t^3 / 2 + (1 - eps) t - alpha next to 0; for eps < 1 there is one only."""
    roots = np.roots([0.5, 0.0, 1 - eps, -alpha])
    real = roots[np.abs(roots.imag) < 1e-9].real
    return float(real[np.argmin(np.abs(real))])


for _size in (-0.5, 0.5):
    listed(curved(_size))

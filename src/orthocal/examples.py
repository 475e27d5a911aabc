"""Problems with known answers: those of the paper (Chakraborty, Walsh, Strigari, Mallick, Bhattacharya) and our own.

Each has a true process y_R, a simulator f, and the theta* that minimises the L2 distance between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr

from .arrays import Array
from .problem.domain import Box
from .problem.given_simulator import Simulator
from .problem.priors import Distribution
from .problem.problem import Problem


@dataclass(frozen=True)
class Example:
    """A test problem with known truth.

    Attributes
    ----------
    truth, simulator
        y_R(x) and f(x, theta), for x (m, d): (m,), or (m, q) for q outcomes.
    theta_star
        The minimiser of ∫ (y_R - f)' (y_R - f) dx over [0, 1]^d.
    noise_sd, noise_correlation
        Of every outcome, and between every two.
    q
        Number of outcomes.
    gradient
        df/dtheta, (m, p) or (m, q, p).
    n
        Number of field data.
    design
        Where these are: from a generator and n to (n, d); None for uniform.
    nodes
        Of the domain's quadrature rule; None for the default.
    """

    name: str
    d: int
    truth: Callable[[Array], Array]
    simulator: Callable[[Array, Array], Array]
    theta_star: tuple[float, ...]
    parameters: dict[str, Distribution]
    noise_sd: float = 0.2
    noise_correlation: float = 0.0
    q: int = 1
    gradient: Callable[[Array, Array], Array] | None = None
    n: int = 100
    design: Callable[[np.random.Generator, int], Array] | None = None
    nodes: int | None = None

    @property
    def noise_cov(self) -> Array:
        """Sigma_F, (q, q)."""
        correlation = np.where(np.eye(self.q) > 0, 1.0, self.noise_correlation)
        return np.asarray(self.noise_sd**2 * correlation)

    def simulate(self, rng: np.random.Generator, n: int | None = None) -> tuple[Array, Array]:
        """Field data: points x (n, d) and noisy outcomes y, (n,) or (n, q)."""
        n = self.n if n is None else n
        x = rng.random((n, self.d)) if self.design is None else self.design(rng, n)
        truth = self.truth(x)
        noise = rng.standard_normal((n, self.q)) @ np.linalg.cholesky(self.noise_cov).T
        return x, truth + noise.reshape(truth.shape)

    def problem(self, x: Array, y: Array, **changes: Any) -> Problem:
        """The calibration problem of the paper: known noise, the unit cube."""
        settings: dict[str, Any] = {
            "simulator": self.simulator if self.gradient is None else Simulator(self.simulator, self.gradient),
            "parameters": self.parameters,
            "domain": Box(0, 1, nodes=self.nodes),
            "noise_cov": self.noise_cov,
        }
        return Problem(x, y, **{**settings, **changes})


def _model2(x: Array, theta: Array) -> Array:
    wave = np.sin(2 * np.pi * x[:, 0] - np.pi)
    return np.asarray(7 * np.sin(2 * np.pi * theta[0] - np.pi) ** 2 + 2 * (2 * np.pi * theta[1] - np.pi) ** 2 * wave)


def _model2_gradient(x: Array, theta: Array) -> Array:
    wave = np.sin(2 * np.pi * x[:, 0] - np.pi)
    first = np.full(len(x), 14 * np.pi * np.sin(4 * np.pi * theta[0] - 2 * np.pi))
    return np.column_stack([first, 8 * np.pi * (2 * np.pi * theta[1] - np.pi) * wave])


MODEL1 = Example(
    name="Model 1",
    d=1,
    truth=lambda x: 4 * x[:, 0] + x[:, 0] * np.sin(5 * x[:, 0]),
    simulator=lambda x, theta: theta[0] * x[:, 0],
    gradient=lambda x, theta: x,
    # 4 + 3 ∫ x^2 sin(5x) dx, in closed form
    theta_star=(4 + 3 * ((2 / 125 - 1 / 5) * np.cos(5) + 2 / 25 * np.sin(5) - 2 / 125),),
    parameters={"theta": stats.norm(0, 10)},
    # the paper's
    nodes=15,
)

# f has the symmetries t1 -> 1 - t1, t1 -> 1/2 - t1 and t2 -> 1 - t2, so the loss has 8 equal minima in the unit
# square; with the paper's prior N(0, 10^2) there would be infinitely many.
MODEL2 = Example(
    name="Model 2",
    d=1,
    truth=lambda x: _model2(x, np.array([0.2, 0.3])),
    simulator=_model2,
    gradient=_model2_gradient,
    theta_star=(0.2, 0.3),
    parameters={"theta1": stats.uniform(0, 1), "theta2": stats.uniform(0, 1)},
    nodes=15,
)

# one of the eight parts of the unit square that these symmetries make alike: theta* is its only minimum
MODEL2_PART = replace(
    MODEL2,
    name="Model 2, one part of the square",
    parameters={"theta1": stats.uniform(0, 0.25), "theta2": stats.uniform(0, 0.5)},
)


def _model3(x: Array, theta: Array) -> Array:
    return np.asarray(
        theta[0] * np.sin(x[:, 0] * x[:, 1]) + theta[1] * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    )


MODEL3 = Example(
    name="Model 3",
    d=5,
    truth=lambda x: _model3(x, np.array([10.0, 20.0])),
    simulator=_model3,
    gradient=lambda x, theta: np.column_stack([np.sin(x[:, 0] * x[:, 1]), (x[:, 2] - 0.5) ** 2]),
    theta_star=(10.0, 20.0),
    parameters={"theta1": stats.norm(0, 10), "theta2": stats.norm(0, 10)},
)


def _two_outcomes(x: Array, theta: Array) -> Array:
    return np.column_stack([theta[0] * x[:, 0], ndtr(theta[0] * (x[:, 0] - 0.5))])


def _two_outcomes_gradient(x: Array, theta: Array) -> Array:
    centred = x[:, 0] - 0.5
    density = np.exp(-0.5 * (theta[0] * centred) ** 2) / np.sqrt(2 * np.pi)
    return np.stack([x, (density * centred)[:, None]], axis=1)


# the paper's supplement; theta* is for the identity as W, with W = Sigma_F^-1 it is TWO_OUTCOMES_PRECISION
TWO_OUTCOMES = Example(
    name="two outcomes",
    d=1,
    truth=lambda x: np.column_stack([4 * x + x * np.sin(5 * x), 1 / (1 + np.exp(-6 * (x - 0.5)))]),
    simulator=_two_outcomes,
    gradient=_two_outcomes_gradient,
    theta_star=(3.565335,),
    parameters={"theta": stats.norm(0, 10)},
    noise_correlation=0.3,
    q=2,
    nodes=15,
)
TWO_OUTCOMES_PRECISION = 3.575889
#: theta* of the second outcome alone
TWO_OUTCOMES_SECOND = 3.572456


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
    """
    return Example(
        name=f"curved, bias {size:g}",
        d=1,
        truth=lambda x: size * _wave(x)[1],
        simulator=_curved,
        gradient=_curved_gradient,
        theta_star=(0.0,),
        parameters={"theta": stats.norm(0, 10)},
        noise_sd=0.1,
        n=200,
        design=lambda rng, n: ((np.arange(n) + 0.5) / n)[:, None],
    )


def _fin(x: Array, theta: Array) -> Array:
    m = np.sqrt(theta[0])
    return np.asarray(20 + theta[1] * np.cosh(m * (1 - x[:, 0])) / np.cosh(m))


def fin_truth(x: Array, bias: float) -> Array:
    """The real fin's temperature."""
    u = x[:, 0]
    return _fin(x, np.array([2.4**2, 80.0])) + bias * u * (1 - u) * (1.2 - 2 * u)


#: temperature along a cooling fin whose real one loses heat unevenly; theta = (m^2, temperature at the base)
FIN = Example(
    name="cooling fin",
    d=1,
    truth=lambda x: fin_truth(x, 4.0),
    simulator=_fin,
    # by least squares on a fine grid
    theta_star=(5.794941, 80.589913),
    parameters={"m2": stats.uniform(0.5, 20), "base": stats.norm(80, 50)},
    noise_sd=0.7,
    n=30,
)


def _saturation(x: Array, theta: Array) -> Array:
    return np.asarray(theta[0] * (1 - np.exp(-x[:, 0] / theta[1])))


def saturation(a: float, b: float) -> Example:
    """A saturating simulator beside a bias of five noise sds, at points from Beta(a, b), which are uneven."""
    return Example(
        name=f"saturation, x from Beta({a:g}, {b:g})",
        d=1,
        # it overshoots, and comes to a lower level
        truth=lambda x: (
            _saturation(x, np.array([5.0, 0.3]))
            + 2.2 * np.exp(-(((x[:, 0] - 0.35) / 0.25) ** 2))
            - 1.2 * np.tanh(2.5 * x[:, 0])
        ),
        simulator=_saturation,
        # by least squares on a fine grid
        theta_star=(4.092379, 0.107626),
        parameters={"top": stats.norm(5, 5), "rate": stats.uniform(0.02, 3)},
        noise_sd=0.1,
        n=200,
        design=lambda rng, n: rng.beta(a, b, (n, 1)),
    )

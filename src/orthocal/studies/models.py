"""The test problems of the paper (Chakraborty, Walsh, Strigari, Mallick, Bhattacharya).

Each has a true process y_R, a simulator f, and the theta* that minimises the L2 distance between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ..arrays import Array
from ..domain import Box
from ..parameters import Distribution
from ..problem import Problem


@dataclass(frozen=True)
class StudyModel:
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

    @property
    def noise_cov(self) -> Array:
        """Sigma_F, (q, q)."""
        correlation = np.where(np.eye(self.q) > 0, 1.0, self.noise_correlation)
        return np.asarray(self.noise_sd**2 * correlation)

    def simulate(self, rng: np.random.Generator, n: int = 100) -> tuple[Array, Array]:
        """Field data: n uniform points x (n, d) and noisy outcomes y, (n,) or (n, q)."""
        x = rng.random((n, self.d))
        truth = self.truth(x)
        noise = rng.standard_normal((n, self.q)) @ np.linalg.cholesky(self.noise_cov).T
        return x, truth + noise.reshape(truth.shape)

    def problem(self, x: Array, y: Array, **changes: Any) -> Problem:
        """The calibration problem of the paper: known noise, the unit cube."""
        settings: dict[str, Any] = {"domain": Box(0, 1), "noise_cov": self.noise_cov}
        return Problem(x, y, self.simulator, self.parameters, **{**settings, **changes})


def _model2(x: Array, theta: Array) -> Array:
    wave = np.sin(2 * np.pi * x[:, 0] - np.pi)
    return np.asarray(7 * np.sin(2 * np.pi * theta[0] - np.pi) ** 2 + 2 * (2 * np.pi * theta[1] - np.pi) ** 2 * wave)


MODEL1 = StudyModel(
    name="Model 1",
    d=1,
    truth=lambda x: 4 * x[:, 0] + x[:, 0] * np.sin(5 * x[:, 0]),
    simulator=lambda x, theta: theta[0] * x[:, 0],
    # 4 + 3 ∫ x^2 sin(5x) dx, in closed form
    theta_star=(4 + 3 * ((2 / 125 - 1 / 5) * np.cos(5) + 2 / 25 * np.sin(5) - 2 / 125),),
    parameters={"theta": stats.norm(0, 10)},
)

# f has the symmetries t1 -> 1 - t1, t1 -> 1/2 - t1 and t2 -> 1 - t2, so the loss has 8 equal minima in the unit
# square; with the paper's prior N(0, 10^2) there would be infinitely many.
MODEL2 = StudyModel(
    name="Model 2",
    d=1,
    truth=lambda x: _model2(x, np.array([0.2, 0.3])),
    simulator=_model2,
    theta_star=(0.2, 0.3),
    parameters={"theta1": stats.uniform(0, 1), "theta2": stats.uniform(0, 1)},
)


def _model3(x: Array, theta: Array) -> Array:
    return np.asarray(
        theta[0] * np.sin(x[:, 0] * x[:, 1]) + theta[1] * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    )


MODEL3 = StudyModel(
    name="Model 3",
    d=5,
    truth=lambda x: _model3(x, np.array([10.0, 20.0])),
    simulator=_model3,
    theta_star=(10.0, 20.0),
    parameters={"theta1": stats.norm(0, 10), "theta2": stats.norm(0, 10)},
)


def _two_outcomes(x: Array, theta: Array) -> Array:
    return np.column_stack([theta[0] * x[:, 0], stats.norm.cdf(theta[0] * (x[:, 0] - 0.5))])


# the paper's supplement; theta* is for the identity as W, with W = Sigma_F^-1 it is TWO_OUTCOMES_PRECISION
TWO_OUTCOMES = StudyModel(
    name="two outcomes",
    d=1,
    truth=lambda x: np.column_stack([4 * x + x * np.sin(5 * x), 1 / (1 + np.exp(-6 * (x - 0.5)))]),
    simulator=_two_outcomes,
    theta_star=(3.565335,),
    parameters={"theta": stats.norm(0, 10)},
    noise_correlation=0.3,
    q=2,
)
TWO_OUTCOMES_PRECISION = 3.575889
#: theta* of the second outcome alone
TWO_OUTCOMES_SECOND = 3.572456

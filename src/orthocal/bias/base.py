"""What a bias prior is: one small Protocol for the prior, one for the sampler it becomes.

A prior is given the field data once (``prepare``) and then draws functions b from Pi(b | residual), each at the
data points and at the nodes together, for all chains at a time. Outcomes are whitened, so their components are
independent a priori and each has a sampler of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import Array


class Setting(NamedTuple):
    """What a prior may know of one (whitened) outcome before it draws.

    Attributes
    ----------
    x, nodes
        Data points (n, d) and nodes (m, d); m may be 0.
    span
        Width of the domain in each input, (d,).
    noise_var
        Noise variance of each observation, (n,): ones where the noise is the same everywhere.
    residual
        y - f(x, theta_tilde), (n,), whitened.
    gradient
        df/dtheta at the data and theta_tilde, (n, p), whitened.
    unit
        Whitened units in one unit of the outcome.
    """

    x: Array
    nodes: Array
    span: Array
    noise_var: Array
    residual: Array
    gradient: Array
    unit: float


class BiasSampler(Protocol):
    """Draws of the bias given a residual."""

    def draw(self, rngs: list[np.random.Generator], state: Any, residual: Array) -> tuple[Any, Array]:
        """One draw for each chain: residual (c, n) -> the next state, and b at data and nodes (c, n + m).

        ``state`` is None at first.
        """

    def record(self, state: Any) -> dict[str, Array]:
        """What ``predict`` needs of a state, as arrays with the chain first."""

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        """b at x_new (m, d) for s recorded draws, (s, m): the same functions that were drawn."""

    def covariance_factor(self) -> Array:
        """F (n, r) with F F' = Cov(b | y) at the data points, for the finite projection."""

    def covariance(self, x_new: Array) -> Array:
        """Cov(b(x_new), b(x) | y), (m, n), for the finite projection at new points."""

    def findings(self) -> dict[str, Any]:
        """What a user should know of the fitted prior: numbers and lists that can be stored as JSON."""

    def settings(self) -> dict[str, Any]:
        """All that ``BiasPrior.restore`` needs, as what JSON can store."""


class BiasPrior(Protocol):
    """A nonparametric prior on the bias."""

    def prepare(self, setting: Setting) -> BiasSampler:
        """Fix hyperparameters, factorise, compile: all that is done once."""

    def describe(self) -> dict[str, Any]:
        """The user's choices, as what JSON can store."""
